"""A function that chooses by the classes of its arguments makes the choices under a driver that it makes without one."""

from __future__ import annotations

import copy
import functools
import numbers
import pickle
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any

import numpy as np
import pytest
from many_cases import each

import tapegrad as tg
from tapegrad.numpy_arrays.array import Array

ASKED = (
    np.ndarray, np.generic, np.floating, np.float64, np.float32, np.bool_, float, int, list, tuple, dict, bool, complex, str,
    numbers.Number, numbers.Real, numbers.Integral, Sequence,
)  # fmt: skip
ARGUMENTS = {
    "float": 0.7, "float64": np.float64(0.7), "no dimensions": np.array(0.7), "vector": np.array([0.7, 1.3]),
    "matrix": np.array([[0.7, 1.3], [-0.4, 2.0]]),
}  # fmt: skip
SINGLE = {"float32": np.float32(0.7), "no dimensions": np.array(0.7, np.float32), "vector": np.array([0.7, 1.3], np.float32)}


def answers(x: Any) -> list[Any]:
    """What a function can ask of the class of its argument, and of what it makes of it."""
    found: list[Any] = [isinstance(x, kind) for kind in ASKED]
    found += [x.__class__, np.isscalar(x), np.iterable(x), hasattr(x, "__len__")]
    # A number of Python's becomes one of NumPy's in the first operation under a driver; both are floats.
    of_results = (float, np.ndarray, numbers.Real, list, complex)
    results = (x * 2, np.sin(x), x - x, np.sum(x), np.zeros_like(x), np.where(x > 0, x, 0.0), np.concatenate([np.ravel(x)] * 2))
    return found + [isinstance(result, kind) for result in results for kind in of_results]


class Asking:
    """A function that asks in each call, and is the same whatever it is told."""

    def __init__(self) -> None:
        self.told: list[list[Any]] = []

    def __call__(self, x: Any) -> Any:
        self.told.append(answers(x))
        return np.sum(np.sin(x) * x)


class AskingOfEach(Asking):
    """The same with a result for each element."""

    def __call__(self, x: Any) -> Any:
        super().__call__(x)
        return np.sin(x) * x


def _times(k: float, x: Any) -> Any:
    """A multiple of the same class, which a product of an array without dimensions has not."""
    return np.asarray(x * k) if isinstance(x, np.ndarray) else x * k


OF_SCALARS: dict[str, Callable[[Any, Any], Any]] = {
    "value_and_grad": lambda f, x: tg.value_and_grad(f)(x),
    "grad": lambda f, x: tg.grad(f)(x),
    "hessian": lambda f, x: tg.hessian(f)(x),
    "hvp": lambda f, x: tg.hvp(f, x, x),
    "checkpoint": lambda f, x: tg.grad(tg.checkpoint(f))(x),
    "program": lambda f, x: [tg.grad(p)(_times(k, x)) for p in [tg.program(f)] for k in (1.0, 2.0, 3.0)],
    "program of a constant": lambda f, x: [tg.grad(p)(k, x) for p in [tg.program(lambda t, x: t * f(x))] for k in (1.0, 2.0, 3.0)],
    "of two": lambda f, x: tg.grad(lambda t, x: t * f(x), (0, 1))(2.0, x),
    "of a dict": lambda f, x: tg.grad(lambda p: f(p["x"]))({"x": x}),
    "grad of grad": lambda f, x: tg.grad(lambda x: np.sum(tg.grad(f)(x)))(x),
}
OF_EACH: dict[str, Callable[[Any, Any], Any]] = {
    "jacobian": lambda f, x: tg.jacobian(f)(x),
    "value_and_jacobian": lambda f, x: tg.value_and_jacobian(f)(x),
    "elementwise_grad": lambda f, x: tg.elementwise_grad(f)(x),
    "jvp": lambda f, x: tg.jvp(f, (x,), (x,)),
    "vjp": lambda f, x: tg.vjp(f, x),
    "linearize": lambda f, x: tg.linearize(f, x),
    "gauss_newton": lambda f, x: tg.gauss_newton(f, x),
}


@each("x", list(ARGUMENTS.values()))
@each("driver", OF_SCALARS)
def test_answers_under_drivers_of_numbers(driver: str, x: Any) -> None:
    f = Asking()
    OF_SCALARS[driver](f, x)
    assert f.told
    assert all(told == answers(x) for told in f.told)


@each("x", list(ARGUMENTS.values()))
@each("driver", OF_EACH)
def test_answers_under_drivers_of_arrays(driver: str, x: Any) -> None:
    f = AskingOfEach()
    OF_EACH[driver](f, x)
    assert f.told
    assert all(told == answers(x) for told in f.told)


@each("x", list(ARGUMENTS.values()))
def test_answers_under_optimisers(x: Any) -> None:
    """Whose variables that are numbers are floats at every point, whatever number they started from."""
    f = Asking()
    tg.optimize.minimize(lambda x: f(x) ** 2 + np.sum(x**2), x)
    assert f.told
    assert all(told == answers(float(x) if isinstance(x, float) else x) for told in f.told)


@each("x", list(SINGLE.values()))
@each("driver", ["value_and_grad", "grad", "checkpoint", "of two", "of a dict"])
def test_answers_in_single_precision(driver: str, x: Any) -> None:
    f = Asking()
    OF_SCALARS[driver](f, x)
    assert f.told
    assert all(told == answers(x) for told in f.told)


@functools.singledispatch
def dispatched(x: Any) -> Any:
    return 0.0 * np.sum(x)


@dispatched.register
def _(x: np.ndarray) -> Any:
    return 2.0 * x.sum()


@dispatched.register
def _(x: float) -> Any:
    return 3.0 * x


def matched(x: Any) -> Any:
    match x:
        case np.ndarray():
            return sum(map(matched, x))
        case float(value):
            return value**2
    return 0.0 * x


@each("x", list(ARGUMENTS.values())[:2] + list(ARGUMENTS.values())[3:])
@each("f", [dispatched, matched])
def test_dispatch_by_class(f: Callable[[Any], Any], x: Any) -> None:
    value, gradient = tg.value_and_grad(f)(x)
    assert value == f(x)
    slope = 3.0 if f is dispatched and not np.ndim(x) else 2.0 if f is dispatched else 2.0 * x
    np.testing.assert_array_equal(gradient, np.broadcast_to(slope, np.shape(x)))


def test_arrays_are_tensors_as_well() -> None:
    seen: list[bool] = []
    tg.grad(lambda x: seen.extend(isinstance(part, tg.Tensor) for part in (x, x[0], x.sum(), np.copy(x[0]))) or x.sum())(np.ones(2))
    assert seen == [True] * 4


def test_copies_are_arrays() -> None:
    def f(x: Any) -> Any:
        for part in (x, x[0], np.copy(x[0])):
            for made in (copy.copy(part), copy.deepcopy(part), pickle.loads(pickle.dumps(tg.stop_gradient(part)))):
                assert (type(made), made.ndim, isinstance(made, np.ndarray)) == (Array, part.ndim, True) or not part.ndim
        return x.sum()

    tg.grad(f)(np.ones(2))


def test_length_of_a_number_is_refused_as_numpy_does() -> None:
    def f(x: Any) -> Any:
        with pytest.raises(TypeError, match=r"object of type 'numpy.float64' has no len\(\)"):
            len(x[0])
        with pytest.raises(TypeError, match=r"len\(\) of unsized object"):
            len(np.copy(x[0]))
        with pytest.raises(TypeError, match="iteration over a 0-d array"):
            iter(x[0])
        return x[0] * len(x)

    assert tg.grad(f)(np.ones(3))[0] == 3.0


def test_what_has_no_length_is_no_iterable_that_ends() -> None:
    """Numbers count as iterables, which NumPy's are not, and raise where they are iterated over."""

    def f(x: Any) -> Any:
        assert (isinstance(x[0], Iterable), isinstance(x[0], Sized)) == (True, True)
        return sum(v for v in x[0])

    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        tg.grad(f)(np.ones(3))


def test_numba_refuses_what_is_no_array_of_numpys() -> None:
    numba = pytest.importorskip("numba")
    plain = numba.njit(lambda a: a * 2.0)
    for argument in (lambda x: x, lambda x: x[0], lambda x: np.zeros_like(x), lambda x: np.copy(x[0])):
        with pytest.raises(TypeError, match=r"tg\.njit_op"):
            tg.grad(lambda x, argument=argument: np.sum(plain(argument(x))))(np.ones(2))
    assert plain(np.ones(2)).tolist() == [2.0, 2.0]
    assert plain(2.0) == plain(np.float64(2.0)) == 4.0


class _Square(tg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Any) -> Any:
        ctx.save_for_backward(q)
        return q * q

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (q,) = ctx.saved_tensors
        return 2.0 * q * g


@each("name", ["saved by a function", "seen in a view", "updated by itself", "counted without recording"])
def test_updates_of_arrays_without_dimensions(name: str) -> None:
    x = np.array([0.5, 2.0])

    def updated(x: Any) -> Any:
        q = r = np.copy(x[0])
        if name == "saved by a function":
            s = _Square.apply(q) if isinstance(x, tg.Tensor) else q * q
            q += x[1]
            return s * r
        if name == "seen in a view":
            v = q.reshape(1)
            q += x[1]
            w = q[...]
            q *= x[0]
            return v[0] * w * r
        if name == "updated by itself":
            q *= q
            q += q
            return r * x[1]
        q += x[1] * 3.0
        s = q * x[0]
        with tg.no_grad():
            q += 1.0
        return s * 1.0 + 0.0 * r

    step = [(updated(x + d) - updated(x - d)) / 2e-5 for d in 1e-5 * np.eye(2)]
    value, gradient = tg.value_and_grad(updated)(x)
    assert value == updated(x.copy())
    np.testing.assert_allclose(gradient, step, rtol=1e-8)


@each("taken", [np.ravel, np.atleast_1d, lambda q: q.reshape(1), lambda q: np.expand_dims(q, 0)])
def test_views_of_constant_arrays_without_dimensions_show_what_is_written(taken: Any) -> None:
    def f(x: Any) -> Any:
        q = np.zeros_like(x[0])
        v = taken(q)
        v[0] = x[0] * x[1]
        return 3.0 * q + v[0]

    value, gradient = tg.value_and_grad(f)(np.array([0.5, 2.0]))
    assert value == 4.0
    np.testing.assert_allclose(gradient, [8.0, 2.0], rtol=1e-15)


def test_pickle_does_not_take_what_is_differentiated() -> None:
    def f(x: Any) -> Any:
        assert pickle.loads(pickle.dumps(tg.stop_gradient(x))).sum() == 3.0
        return pickle.loads(pickle.dumps(x)).sum()

    with pytest.raises(TypeError, match="pickle takes .* write tg.stop_gradient"):
        tg.grad(f)(np.array([1.0, 2.0]))
