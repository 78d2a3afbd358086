"""Recordings that leave the counting of references away give back all memory, and none that is still in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python as runtime
from numba.core.runtime import rtsys
from unoptimised_numba import numba_is_quicker  # noqa: F401 - a fixture

import tapegrad as tg

X = np.array([[0.7, 1.2, -0.4], [0.3, 0.9, 1.6]])


@numba.njit
def squares(a, out):
    for k in range(len(a)):
        out[k] = a[k] * a[k]


@numba.njit
def same(a):
    return a


@numba.njit
def head(a):
    return a[:2]


@numba.njit
def rows_of(a):
    m = np.exp(a)
    return m[0], m[1]


@numba.njit
def swapped_sum(a, b):
    a, b = b, a
    return (a * 2.0 + b).sum()


@numba.njit
def total(a):
    if len(a) == 0:
        return 0.0
    return a[0] ** 2 + total(a[1:])


@numba.njit
def row_at(a, k):
    if k > 5:
        raise ValueError("no such row")
    return a[k]


@numba.njit
def views_in_a_loop(x):
    work, s = np.empty(3), 0.0
    for k in range(len(x)):
        squares(x[k], work)
        s += work.sum()
    return s


@numba.njit
def argument_handed_back(x):
    y = same(x * 2.0)
    z = np.ones(6).reshape(2, 3)
    return (y * y).sum() * z[0, 0]


@numba.njit
def view_outlives_its_array(x):
    s = 0.0
    for _ in range(3):
        h = head(np.exp(x[0]))
        other = np.full(3, 7.0)
        s += h[0] * h[1] + other[0]
    return s


@numba.njit
def views_in_a_tuple(x):
    one, other = rows_of(x)
    fill = np.full((2, 3), 9.0)
    return (one * other).sum() + fill[0, 0]


@numba.njit
def array_replaced_under_a_view(x):
    m = x * 2.0
    v = m[0]
    m = x * x
    w = m[1]
    m = np.ones((2, 3)) * x[0, 0]
    return (v * w).sum() + m[1, 1]


@numba.njit
def array_replaced_in_each_turn(x):
    m, s = x * 1.0, 0.0
    for k in range(4):
        v = m[k % 2]
        m = np.sin(m) + x
        s += (v * m[0]).sum()
    return s


@numba.njit
def argument_shrinks(x):
    a, s = x[0] * x[1], 0.0
    while len(a) > 0:
        s += a[0] * len(a)
        a = a[1:]
    return s


@numba.njit
def view_chosen(x):
    m = x * 3.0
    row = m[0] if x[0, 0] > 0.0 else m[1]
    return (row * row).sum()


@numba.njit
def views_in_a_list(x):
    m = x * x
    kept = [m[0]]
    kept.append(m[1])
    m = np.zeros((2, 3))
    return (kept[0] * kept[1]).sum() + m[0, 0]


@numba.njit
def views_by_several_indices(x):
    m, some = np.exp(x), np.array([1, 0])
    a, b, c = m[0, :], m[:, 1], m[..., 2]
    return swapped_sum(a, x[1, :]) + swapped_sum(b, c) + swapped_sum(m[some][0], m[1][::-1]) + m[0][1:][0]


@numba.njit
def recursion(x):
    return total(x[0]) * total(x[1, 1:])


@numba.njit
def views_of_views(x):
    s = 0.0
    for k in range(2):
        v = x[k]
        s += swapped_sum(v[1:], v[:2]) * swapped_sum(v[::2][:1], v[2:])
    return s


@numba.njit
def view_of_what_a_call_gave(x):
    s = 0.0
    for k in range(2):
        s += swapped_sum(row_at(x * x, k), np.exp(x)[k])
    return s


@numba.njit
def pairs(x):
    pair = (x[0], x[1])
    one, other = pair
    for _ in range(3):
        one, other = other, one * other
    return swapped_sum(one, other)


@numba.njit
def exceptions_caught(x):
    m, s = x * x, 0.0
    for k in (0, 6, 1):
        try:
            s += swapped_sum(row_at(m, k), x[k % 2])
        except Exception:
            s += m[k % 2][1] * x[0][2]
    return s


FUNCTIONS = [
    views_in_a_loop, argument_handed_back, view_outlives_its_array, views_in_a_tuple, array_replaced_under_a_view,
    array_replaced_in_each_turn, argument_shrinks, view_chosen, views_in_a_list, views_by_several_indices, recursion,
    views_of_views, view_of_what_a_call_gave, pairs,
]  # fmt: skip
CASES = pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)


def central_differences(f: Callable[..., Any], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    found = np.empty(x.shape)
    for place in np.ndindex(x.shape):
        e = np.zeros(x.shape)
        e[place] = step
        found[place] = (f(x + e) - f(x - e)) / (2.0 * step)
    return found


@pytest.fixture
def counted() -> Iterator[Any]:
    """What gives how many blocks of Numba's memory were taken and given back."""
    runtime.memsys_enable_stats()
    yield rtsys.get_allocation_stats
    runtime.memsys_disable_stats()


@CASES
def test_gradients_of_functions_that_hand_views_on(f: Callable[..., Any], counted: Callable[[], Any]) -> None:
    np.testing.assert_allclose(tg.grad(f)(X), central_differences(f, X), rtol=1e-6, atol=1e-7)
    before = counted()
    for _ in range(3):
        tg.grad(f)(X)
    after = counted()
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0
    assert after.alloc - before.alloc == after.free - before.free


def test_gradient_where_exceptions_are_caught() -> None:
    np.testing.assert_allclose(tg.grad(exceptions_caught)(X), central_differences(exceptions_caught, X), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("f", [array_replaced_in_each_turn, views_of_views], ids=lambda f: f.__name__)
def test_products_with_hessians_of_functions_that_hand_views_on(f: Callable[..., Any]) -> None:
    v = np.cos(X)
    change = (tg.grad(f)(X + 1e-6 * v) - tg.grad(f)(X - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(tg.hvp(f, X, v), change, rtol=1e-5, atol=1e-6)
