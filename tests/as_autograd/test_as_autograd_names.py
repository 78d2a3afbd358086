"""What else autograd's users import: containers, flattening, optimisers, fixed points, names of NumPy."""

from typing import Any

import autograd.numpy as np
import autograd.numpy.random as npr
import numpy as onp
import pytest
from autograd import dict as agdict
from autograd import grad
from autograd import isinstance as agisinstance
from autograd import tuple as agtuple
from autograd.builtins import DictBox, SequenceBox
from autograd.builtins import type as agtype
from autograd.extend import Box
from autograd.misc import const_graph, flatten
from autograd.misc.fixed_points import fixed_point
from autograd.misc.flatten import flatten_func
from autograd.misc.optimizers import adam, rmsprop, sgd
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.numpy.numpy_vjps import repeat_to_match_shape, unbroadcast, unbroadcast_f
from autograd.test_util import check_grads

from tapegrad.as_autograd.names import MODULES
from tapegrad.surface.scipy_counterparts import DISTRIBUTIONS

X = onp.array([0.3, 0.7, 1.1])


def test_flatten_and_back() -> None:
    value = {"b": [onp.ones((2, 2)), 3.0], "a": (4.0,)}
    vector, unflatten = flatten(value)
    assert vector.tolist() == [4.0, 1.0, 1.0, 1.0, 1.0, 3.0]
    again = unflatten(vector * 2.0)
    assert list(again) == ["b", "a"]
    assert again["a"] == (8.0,)
    assert again["b"][0].tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_flatten_is_differentiated_both_ways() -> None:
    f, _, vector = flatten_func(lambda p: {"c": p["a"] ** 2 * p["b"]}, {"a": X, "b": 2.0})
    check_grads(f)(vector)
    check_grads(lambda p: flatten(p)[0] ** 2)({"a": X, "b": 2.0})


@pytest.mark.parametrize(
    ("optimise", "first"),
    [(sgd, -0.1 * 0.1 * 2.0), (rmsprop, -0.1 * 2.0 / (onp.sqrt(0.9 + 0.1 * 4.0) + 1e-8)), (adam, -0.001 * 2.0 / (2.0 + 1e-8))],
)
def test_optimiser_takes_its_first_step_and_arrives(optimise: Any, first: float) -> None:
    gradient = lambda p, i: grad(lambda p: np.sum(p["x"] ** 2))(p)  # noqa: E731
    told: list[Any] = []
    found = optimise(gradient, {"x": onp.ones(2)}, lambda p, i, g: told.append((i, g["x"][0])), num_iters=1)
    onp.testing.assert_allclose(found["x"], 1.0 + first, rtol=1e-12)
    assert told == [(0, 2.0)]
    assert onp.abs(optimise(gradient, {"x": onp.ones(2)}, num_iters=300, step_size=0.02)["x"]).max() < 0.6


def test_fixed_points_are_differentiated() -> None:
    root = lambda a: fixed_point(lambda a: lambda x: 0.5 * (x + a / x), a, 1.0, lambda x, y: abs(x - y), 1e-13)  # noqa: E731
    assert root(2.0) == pytest.approx(onp.sqrt(2.0))
    assert grad(root)(2.0) == pytest.approx(0.5 / onp.sqrt(2.0))
    assert grad(grad(root))(2.0) == pytest.approx(-0.25 / 2.0**1.5)


def test_types_are_those_of_the_values() -> None:
    seen: list[Any] = []

    def f(p: Any) -> Any:
        seen.extend([agisinstance(p["x"], onp.ndarray), agtype(p["x"]), isinstance(p, DictBox), isinstance(p["y"], SequenceBox)])
        seen.extend([isinstance(p["x"], ArrayBox), isinstance(p["x"], Box), isinstance(X, Box), isinstance(p["x"], onp.ndarray)])
        return np.sum(p["x"]) * agtuple((p["y"][0], 2.0))[0] * agdict(a=p["y"][0])["a"]

    found = grad(f)({"x": X, "y": (3.0,)})
    assert seen == [True, onp.ndarray, True, True, True, True, False, True]
    onp.testing.assert_allclose(found["x"], 9.0)
    assert found["y"][0] == pytest.approx(6.0 * X.sum())


def test_new_boxes_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="no boxes"):
        type("MyBox", (Box,), {})


def test_a_graph_that_is_kept_is_a_call() -> None:
    f = const_graph(lambda a, x: a * x**2, 3.0)
    assert grad(f)(2.0) == 12.0


NUMPY = {
    "a list": lambda x: np.array([x[0], [1.0, 2.0][1] * x[1]]),
    "r_": lambda x: np.r_[0.0, x, x[:1] ** 2],
    "zeros": lambda x: np.concatenate([np.zeros(2), x]),
    "an iterator": lambda x: np.stack(part**2 for part in x),
    "values of a dict": lambda x: np.concatenate({"a": x, "b": x[:1] ** 2}.values()),
    "atleast_1d": lambda x: np.atleast_1d(x[0], x)[0] ** 2,
    "atleast_2d": lambda x: np.atleast_2d(x) ** 2,
    "atleast_3d": lambda x: np.atleast_3d(x) ** 2,
    "make_diagonal": lambda x: np.make_diagonal(x, axis1=-1, axis2=-2) ** 2,
    "where": lambda x: np.where(x > 0.5, x**2, 3.0),
    "eigh by its lower triangle": lambda x: np.linalg.eigh(np.reshape(np.concatenate([x, x[:1] ** 2]), (2, 2)))[0],
    "eigvalsh by its upper triangle": lambda x: np.linalg.eigvalsh(np.reshape(np.concatenate([x, x[:1] ** 2]), (2, 2)), "U"),
}


@pytest.mark.parametrize("name", NUMPY)
def test_numpy(name: str) -> None:
    check_grads(NUMPY[name])(X)


def test_where_of_numbers_gives_a_number() -> None:
    assert type(np.where(True, 1, 2)) is int
    assert np.where([True, False], X[:2], 0.0).tolist() == [0.3, 0.0]


def test_random_numbers_are_numpys() -> None:
    npr.seed(3)
    first = npr.randn(2)
    onp.random.seed(3)  # noqa: NPY002
    assert first.tolist() == onp.random.randn(2).tolist()  # noqa: NPY002


def test_all_names_can_be_imported() -> None:
    space: dict[str, Any] = {}
    exec("from autograd.numpy import *\nfrom autograd import *", space)
    assert {"sin", "grad", "zeros", "hessian"} <= set(space)


def test_helpers_of_formulas() -> None:
    assert unbroadcast(onp.ones((2, 3)), ((3,), 1, float, False)).tolist() == [2.0, 2.0, 2.0]
    assert unbroadcast_f(1.0, lambda g: g * onp.ones(3))(2.0) == 6.0
    found, count = repeat_to_match_shape(onp.array([1.0, 2.0]), (2, 3), float, 1, False)
    assert found.tolist() == [[1.0] * 3, [2.0] * 3]
    assert count == 3


def test_parts_of_r_and_c_with_two_dimensions_are_joined_as_in_numpy() -> None:
    x = onp.array([[1.0, 2.0], [3.0, 4.0]])
    for joined, theirs in ((np.r_, onp.r_), (np.c_, onp.c_)):
        seen: list[Any] = []
        grad(lambda a, joined=joined, seen=seen: np.sum(seen.append(joined[a, x]) or seen[0] ** 2))(2.0 * x)
        onp.testing.assert_array_equal(onp.asarray(seen[0].detach()), theirs[2.0 * x, x])


def test_types_of_integers_take_what_is_differentiated() -> None:
    onp.testing.assert_array_equal(grad(lambda x: (x * np.int64(x)).sum())(onp.array([1.5, 2.5])), [1.0, 2.0])
    assert np.zeros(2, np.int32).dtype == onp.int32
    assert isinstance(onp.int64(3), np.int64) and isinstance(np.int64(3), onp.int64) and not isinstance(3, np.int64)
    assert np.issubdtype(onp.arange(2).dtype, np.int64) and np.integer is onp.integer
    assert np.int64 == onp.int64 and hash(onp.int64) == hash(np.int64) and np.int64 != onp.int32


def test_named_methods_of_distributions_are_those_that_there_are() -> None:
    room = "autograd.scipy.stats."
    known = {name.removeprefix(room): set(" ".join(files.values()).split()) for name, files in MODULES.items() if room in name}
    assert {name: set(methods.split()) for name, methods in DISTRIBUTIONS.items()} == known
