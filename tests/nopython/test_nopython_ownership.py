"""Arrays in containers: the caller keeps their values, and sharing memory is not lost in silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from numba.experimental import jitclass
from unoptimised_numba import numba_is_quicker  # noqa: F401 - a fixture

import tapegrad as tg

X = np.array([1.3, 0.7, 1.1])


def write_into_the_first(x, pair):
    pair[0][0] = x[0] * 2.0
    return pair[1][0] * x[1]


def write_into_the_point(x, pair):
    x[0] = x[1] * 2.0
    return pair[0][0] * x[1]


def constant_into_the_first(x, pair):
    pair[0][0] += 5.0
    return pair[1][0] * x[1]


W = np.ones(3)


@pytest.mark.parametrize(
    ("f", "pair"),
    [
        (write_into_the_first, (W, W)),
        (constant_into_the_first, (W, W)),
        (constant_into_the_first, [W[:2], W[1:]]),
        (constant_into_the_first, lambda: numba.typed.List([W[:2], W[1:]])),
        (write_into_the_point, (X, W)),
        (write_into_the_point, [X]),
    ],
    ids=range(6),
)
def test_writing_into_arrays_that_share_memory_in_a_container_is_refused(f: Callable[..., Any], pair: Any) -> None:
    with pytest.raises(ValueError, match="share memory"):
        tg.grad(numba.njit(f))(X, pair() if callable(pair) else pair)


def typed_list(*arrays: Any) -> Any:
    return numba.typed.List(arrays)


def typed_dictionary(*arrays: Any) -> Any:
    made = numba.typed.Dict.empty(numba.int64, numba.typeof(arrays[0]))
    for k, array in enumerate(arrays):
        made[k] = array
    return made


def add_to_the_first(x, arrays):
    arrays[0][0] += arrays[1][1]
    return arrays[0][0] * x[0] ** 2


@pytest.mark.parametrize("container", [typed_list, typed_dictionary])
def test_arrays_in_typed_containers_keep_their_values(container: Callable[..., Any]) -> None:
    first, second = np.array([2.0, 3.0]), np.array([4.0, 5.0])
    value, gradient = tg.value_and_grad(numba.njit(add_to_the_first))(X, container(first, second))
    assert value == 7.0 * 1.3**2
    np.testing.assert_allclose(gradient, [14.0 * 1.3, 0.0, 0.0])
    assert first.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("container", [typed_list, typed_dictionary])
def test_one_array_held_twice_stays_one(container: Callable[..., Any]) -> None:
    def f(x, arrays):
        arrays[0][0] = 5.0
        return arrays[1][0] * x[0]

    one = np.array([2.0, 3.0])
    assert tg.grad(numba.njit(f))(X, container(one, one)).tolist() == [5.0, 0.0, 0.0]
    assert one[0] == 2.0


def test_arrays_in_nested_typed_lists_keep_their_values() -> None:
    def f(x, lists):
        lists[0][0][0] += 1.0
        return lists[0][0][0] * x[0]

    array = np.array([2.0])
    assert tg.grad(numba.njit(f))(X, numba.typed.List([numba.typed.List([array])])).tolist() == [3.0, 0.0, 0.0]
    assert array[0] == 2.0


@jitclass([("weights", numba.float64[:]), ("count", numba.int64), ("_scale", numba.float64)])
class Model:
    def __init__(self, weights):
        self.weights, self.count, self._scale = weights, 0, 1.0

    def step(self):
        self.count += 1
        self.weights[0] += 1.0
        self._scale *= 2.0
        return self._scale


def steps(x, model):
    return x[0] * model.step() * model.step() * model.weights[0] + model.count


def test_an_instance_of_a_compiled_class_is_put_back() -> None:
    weights = np.array([2.0, 3.0])
    model = Model(weights)
    for _ in range(2):
        value, gradient = tg.value_and_grad(numba.njit(steps))(X, model)
        assert (value, gradient.tolist()) == (1.3 * 8.0 * 4.0 + 2, [32.0, 0.0, 0.0])
    assert (weights.tolist(), model.count, model.step()) == ([2.0, 3.0], 0, 2.0)


def test_an_instance_that_shares_memory_with_an_argument_is_refused() -> None:
    point = X.copy()
    with pytest.raises(ValueError, match="share memory"):
        tg.grad(numba.njit(steps))(point, Model(point))


def contiguous_copy_is_overwritten(x, c):
    copy = np.ascontiguousarray(c)
    flat = x.ravel()
    copy[0] = flat[0] = 5.0
    return c[0] * x[0] + copy[0] * x[1] * c[1] + flat[0]


@pytest.mark.parametrize(("step_x", "step_c"), [(1, 2), (2, 1), (-1, -1), (2, -2)])
def test_what_copies_strided_arguments_copies_them(step_x: int, step_c: int) -> None:
    x, c = np.arange(1.0, 8.0)[::step_x], np.arange(2.0, 9.0)[::step_c]
    first = 5.0 if step_c == 1 else c[0]  # contiguous memory is not copied
    want = [0.0 if step_x == 1 else first, 5.0 * c[1]]
    np.testing.assert_array_equal(tg.grad(numba.njit(contiguous_copy_is_overwritten))(x, c)[:2], want)


def last_of_the_list(x, arrays):
    first = arrays[0]
    last = arrays.pop()
    last[0] = x[0]
    return first[0] * x[1]


def test_variables_in_an_array_that_a_list_shares_are_refused() -> None:
    shared = np.ones(2)
    with pytest.raises((tg.CompileError, ValueError)):
        tg.grad(numba.njit(last_of_the_list))(X, numba.typed.List([shared, shared]))


@jitclass([("weights", numba.float64[:])])
class Holder:
    def __init__(self):
        self.weights = np.array([1.0, 2.0])

    def own(self):
        return self.weights


def array_of_an_instance(x, holder):
    w = holder.own()
    w[0] = x[0]
    return holder.weights[0] * x[1]


def test_variables_in_an_array_that_an_instance_holds_are_refused() -> None:
    with pytest.raises(tg.CompileError):
        tg.grad(numba.njit(array_of_an_instance))(X, Holder())


def test_one_array_twice_in_a_tuple_that_is_differentiated_by() -> None:
    @numba.njit
    def written(pair):
        pair[0][0] = 2.0 * pair[1][1]
        return (pair[0] * pair[1]).sum()

    @numba.njit
    def read(pair):
        return (pair[0] * pair[1] * pair[1]).sum()

    x = np.array([0.7, 1.3])
    with pytest.raises(ValueError, match="share memory"):
        tg.value_and_grad(written)((x, x))
    np.testing.assert_allclose(tg.grad(read)((x, x)), (x * x, 2.0 * x * x), rtol=1e-15)
