"""Temporaries that one later statement alone reads are a part of its row where a product with the Hessian has a known direction."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

from tapegrad.nopython.derivatives import Recording
from tapegrad.nopython.recorder import recorder

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1])
V = np.array([0.3, 1.0, -0.5, 0.8, 0.1])


def recorded(f: Any, direction: np.ndarray | None = None, x: np.ndarray = X) -> Recording:
    record = recorder(f, (0,))
    return Recording(record, record.arguments((x.copy(),), {}), True, direction=direction)


@numba.njit
def rosenbrock(x):
    s = 0.0
    for i in range(len(x) - 1):
        t1 = x[i + 1] - x[i] * x[i]
        t2 = 1.0 - x[i]
        s += 100.0 * t1 * t1 + t2 * t2
    return s


@numba.njit
def nested(x):
    s = 0.0
    for i in range(1, len(x)):
        difference = x[i] - x[i - 1]
        square = difference * difference
        root = math.sqrt(1.0 + square)
        s += root * square + 0.5 * root
    return s


@numba.njit
def read_by_two(x):
    s, r = 0.0, 1.0
    for i in range(1, len(x)):
        t = x[i] * x[i - 1]
        s += t * t
        r += math.sin(t) * s
    return s * r


@numba.njit
def read_in_another_block(x):
    s = 0.0
    for i in range(1, len(x)):
        t = x[i] * x[i - 1]
        u = t + x[i]
        if u > 0.3:
            s += t * math.exp(t)
        else:
            s -= t * t * t
    return s


@numba.njit
def assigned_twice(x):
    s = 0.0
    for i in range(len(x)):
        t = x[i] * x[i]
        t = t * t + x[0]
        t += x[i]
        s += t * t
    return s


@numba.njit
def elements_written_between(x):
    w = x.copy()
    s = 0.0
    for i in range(1, len(x)):
        t = w[i] * w[i - 1]
        w[i] = t * t + 1.0
        u = w[i] - x[i]
        w[i - 1] = 3.0
        s += u * u * w[i]
    return s + w[2] * w[2]


@numba.njit
def many_leaves(x):
    s = 0.0
    for i in range(len(x) - 4):
        t = x[i] * x[i + 1] + x[i + 2] * x[i + 3] * x[i + 4]
        s += t * t
    return s


@numba.njit
def long_sum_of_temporaries(x):
    a = x[0] * x[1]
    b = x[1] * x[2]
    c = x[2] * x[3]
    d = x[3] * x[4]
    e = x[0] - x[4]
    return a * a * b + b * c * c + math.sin(d) * d * a + e * e * c + a * b * c * d * e


@numba.njit
def kinks(x):
    s = 0.0
    for i in range(1, len(x)):
        t = abs(x[i]) - max(x[i - 1], 0.25)
        s += t * t * abs(t)
    return s


@numba.njit
def complex_temporaries(x):
    s = 0.0
    for i in range(1, len(x)):
        z = complex(x[i], x[i - 1])
        t = z * z
        s += abs(t * t + t)
    return s


@numba.njit
def arrays(x):
    w = np.zeros(len(x))
    for i in range(len(x)):
        w[i] = x[i]
    t = w * w + 1.0
    u = t * np.ones((3, 1)) * t
    return u.sum()


FUNCTIONS = [
    rosenbrock, nested, read_by_two, read_in_another_block, assigned_twice, elements_written_between, many_leaves,
    long_sum_of_temporaries, kinks, complex_temporaries, arrays,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.py_func.__name__)
def test_products_are_those_of_recordings_for_any_direction(f: Any) -> None:
    one, any_ = recorded(f, V), recorded(f)
    assert one.value == any_.value == f(X.copy())
    np.testing.assert_allclose(one.curve_along(), any_.curve(V[:, None])[:, 0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("f", "rows"),
    [
        (rosenbrock, 4),
        (nested, 16),
        (read_by_two, 13),
        (many_leaves, 2),
    ],
    ids=lambda f: "" if isinstance(f, int) else f.py_func.__name__,
)
def test_rows_are_those_of_statements_that_others_read(f: Callable[..., Any], rows: int) -> None:
    assert recorded(f, V).rows - len(X) == rows


def test_arrays_that_are_stretched_are_computed_once() -> None:
    assert recorded(arrays, V).rows == recorded(arrays).rows


def test_partials_that_cancel_do_not_meet_an_infinite_one_by_one() -> None:
    @numba.njit
    def f(x):
        s = 0.0
        for i in range(len(x)):
            t = abs(x[i]) - x[i]
            s += math.sqrt(t)
        return s

    np.testing.assert_array_equal(recorded(f, np.ones(2), np.array([1.0, -2.0])).curve_along(), [0.0, -0.125])


def test_tangents_that_cancel_through_another_temporary_do_not_meet_an_infinite_second_partial_one_by_one() -> None:
    @numba.njit
    def f(x):
        s = 0.0
        for i in range(len(x)):
            size = abs(x[i])
            t = size - x[i]
            s += math.sqrt(t)
        return s

    np.testing.assert_array_equal(recorded(f, np.ones(2), np.array([1.0, -2.0])).curve_along(), [0.0, -0.125])


def test_tangents_that_cancel_do_not_meet_an_infinite_second_partial_one_by_one() -> None:
    @numba.njit
    def f(x):
        t = x[0] - x[1]
        return t**1.5 + x[0] * x[1]

    np.testing.assert_array_equal(recorded(f, np.ones(2), np.ones(2)).curve_along(), [1.0, 1.0])


def of_a_shared_root(x):
    root = math.sqrt(x[0])
    return root * x[1] - root * x[2]


def of_a_shared_difference(x):
    difference = x[1] - x[2]
    return math.sqrt(x[0]) * difference


@pytest.mark.parametrize("f", [of_a_shared_root, of_a_shared_difference])
def test_changes_of_adjoints_that_cancel_do_not_meet_an_infinite_slope_one_by_one(f: Any) -> None:
    x, v = np.array([0.0, 1.0, 1.0]), np.array([0.0, 1.0, 1.0])
    np.testing.assert_array_equal(recorded(numba.njit(f), v, x).curve_along(), [0.0, 0.0, 0.0])


def test_a_masked_branch_leaves_no_nan() -> None:
    @numba.njit
    def f(x):
        s = 0.0
        for i in range(len(x)):
            root = math.sqrt(x[i])
            count = 1.0 if x[i] > 0.0 else 0.0
            s += root * root * root * count
        return s

    x, v = np.array([0.0, 4.0]), np.array([1.0, 1.0])
    np.testing.assert_allclose(recorded(f, v, x).curve_along(), recorded(f, None, x).curve(v[:, None])[:, 0], rtol=1e-12)
