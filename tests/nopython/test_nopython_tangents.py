"""Tangents that compiled code calls for: beside Jacobians of the drivers, in one direction and several, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.errors import CompileError


class Point(NamedTuple):
    """Two inputs of different kinds."""

    where: np.ndarray
    scale: float


@numba.njit
def curve(t, n):
    made = np.zeros(n)
    for k in range(n):
        made[k] = np.sin(t * k) * np.exp(-t)
    return made


@numba.njit
def of_array(x, a=2.0):
    return np.array([[x[0] * x[1], a * x[2]], [np.log(x[1]), x[0] ** a]]), x.sum(), 3.0


@numba.njit
def of_point(p):
    return Point(p.where * p.scale, p.scale**3)


@numba.njit
def number(x):
    return abs(x[0]) + np.maximum(x[1], x[2])


@numba.njit
def of_no_dimension(z):
    return z * 2.0 + z[()] ** 2


@numba.njit
def overwriting(x):
    for k in range(1, x.size):
        x[k] *= x[k - 1]
    return x


@numba.njit
def matrices(m):
    return m @ m.T


POINT = np.array([0.7, 1.3, 0.4])
CASES: list[tuple[Any, Any, tuple[Any, ...]]] = [
    (curve, 0, (0.3, 5)),
    (of_array, 0, (POINT, 2.0)),
    (of_array, 1, (POINT, 2.0)),
    (of_array, (1, 0), (POINT, 2.0)),
    (of_point, 0, (Point(np.array([0.1, 0.2]), 3.0),)),
    (number, 0, (np.array([0.0, 1.0, 1.0]),)),
    (number, 0, (np.array([np.nan, np.inf, 1.0]),)),
    (of_no_dimension, 0, (np.array(3.0),)),
    (overwriting, 0, (POINT,)),
    (overwriting, 0, (np.linspace(0.5, 2.0, 7)[::-2],)),
    (matrices, 0, (np.asfortranarray(np.arange(6.0).reshape(2, 3)),)),
    (matrices, 0, (np.arange(3.0) * np.ones((2, 1)),)),
    (matrices, 0, (np.zeros((2, 0)),)),
]


def leaves(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, tuple) else [value]


def random_like(value: Any, rng: Any, *more: int) -> Any:
    """Tangents of an argument, with further dimensions."""
    if isinstance(value, tuple):
        parts = [random_like(item, rng, *more) for item in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    found = rng.normal(size=(*np.shape(value), *more))
    return found if np.ndim(found) or isinstance(value, np.ndarray) else float(found)


def assert_like(found: Any, expected: Any, where: str) -> None:
    assert type(found) is type(expected) or not isinstance(expected, tuple), where
    for ours, theirs in zip(leaves(found), leaves(expected), strict=True):
        assert np.shape(ours) == np.shape(theirs), where
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-13, err_msg=where)


@cache
def made(f: Any, argnums: Any) -> Any:
    return tg.dual(f, argnums)


def contracted(jacobian: Any, value: Any, tangents: Any) -> Any:
    """Products of a Jacobian with tangents, in the form of the value."""
    if isinstance(value, tuple):
        parts = [contracted(own, item, tangents) for own, item in zip(jacobian, value, strict=True)]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    pairs = zip(leaves(jacobian), leaves(tangents), strict=True)
    return sum(np.tensordot(block, tangent, np.ndim(tangent)) for block, tangent in pairs)


def test_values_and_tangents_are_those_of_the_driver(code_is_not_optimised: None) -> None:  # noqa: F811
    rng = np.random.default_rng(0)
    for f, argnums, args in CASES:
        places = [argnums] if isinstance(argnums, int) else argnums
        tangents = tuple(random_like(args[k], rng) for k in places)
        before = [np.array(a) for a in args if isinstance(a, np.ndarray)]
        value, tangent = made(f, argnums)(*args, *tangents)
        wanted, jacobian = tg.value_and_jacobian(f, argnums)(*args)
        assert_like(value, wanted, f.__name__)
        assert_like(tangent, contracted(jacobian, wanted, tangents), f.__name__)
        for array, kept in zip([a for a in args if isinstance(a, np.ndarray)], before, strict=True):
            np.testing.assert_array_equal(array, kept)


def test_several_tangents_are_as_many_single_ones(code_is_not_optimised: None) -> None:  # noqa: F811
    rng = np.random.default_rng(1)
    for (f, argnums, args), count in product(CASES, [0, 1, 2, 8, 9, 20]):
        places = [argnums] if isinstance(argnums, int) else argnums
        several = tuple(random_like(args[k], rng, count) for k in places)
        value, tangents = made(f, argnums)(*args, *several)
        for j in range(count):
            own = tuple(at(one, args[k], j) for k, one in zip(places, several, strict=True))
            wanted, expected = made(f, argnums)(*args, *own)
            assert_like(at(tangents, wanted, j), expected, f"{f.__name__} {j}")
            assert_like(value, wanted, f.__name__)
        for leaf, part in zip(leaves(tangents), leaves(value), strict=True):
            assert leaf.shape == (*np.shape(part), count)


def at(several: Any, like: Any, j: int) -> Any:
    """One of several tangents, in the form of what it is a tangent of."""
    if isinstance(several, tuple):
        parts = [at(item, other, j) for item, other in zip(several, like, strict=True)]
        return type(several)(*parts) if hasattr(several, "_fields") else tuple(parts)
    found = several[..., j]
    return np.ascontiguousarray(found).reshape(found.shape) if isinstance(like, np.ndarray) else float(found)


@given(st.integers(0, 10**6), st.integers(1, 12))
@settings(max_examples=30)
def test_a_jacobian_of_random_compositions(seed: int, n: int) -> None:
    x = np.random.default_rng(seed).uniform(0.2, 2.0, n)
    steps = np.random.default_rng(seed).integers(0, 4, 15)
    _, jacobian = composed_tangents(x, steps, np.eye(n))
    np.testing.assert_allclose(jacobian, tg.jacobian(composed)(x, steps), rtol=1e-12, atol=1e-12)


@numba.njit
def composed(x, steps):
    y = x.copy()
    for k in range(steps.size):
        i, j = k % y.size, (k * 7 + 1) % y.size
        if steps[k] == 0:
            y[i] = y[i] * y[j]
        elif steps[k] == 1:
            y[i] = np.sin(y[j]) + 0.5 * y[i]
        elif steps[k] == 2:
            y = y / (1.0 + y[i] ** 2)
        else:
            y[i] = max(y[i], y[j])
    return y


composed_tangents = tg.dual(composed)


def test_float32_keeps_its_type() -> None:
    x = np.array([0.5, 0.25], np.float32)
    value, tangent = tg.dual(lambda x: x * x)(x, np.ones(2, np.float32))
    assert (value.dtype, tangent.dtype) == (np.float32, np.float32)
    np.testing.assert_array_equal(tangent, [1.0, 0.5])


def test_compiled_code_calls_it() -> None:
    tangents = tg.dual(of_array)

    @numba.njit(nogil=True)
    def newton(x, target):
        for _ in range(20):
            (block, _, _), (slope, _, _) = tangents(x, 2.0, np.eye(3))
            residual = np.array([block[0, 0] - target[0], block[0, 1] - target[1], block[1, 0] - target[2]])
            x = x - np.linalg.solve(np.stack((slope[0, 0], slope[0, 1], slope[1, 0])), residual)
        return x

    expected = np.array([0.7, 1.3, 0.4])
    block = of_array(expected)[0]
    np.testing.assert_allclose(newton(np.ones(3), np.array([block[0, 0], block[0, 1], block[1, 0]])), expected, rtol=1e-12)


def test_threads_have_tapes_of_their_own() -> None:
    tangents = tg.dual(composed)
    steps, x = np.arange(15) % 4, np.linspace(0.3, 1.5, 6)

    @numba.njit(nogil=True)
    def many(x, steps, found):
        for k in range(len(found)):
            found[k] = tangents(x + 0.01 * k, steps, np.eye(6))[1]

    results = [np.zeros((300, 6, 6)) for _ in range(4)]
    many(x, steps, results[0][:1])
    workers = [threading.Thread(target=many, args=(x, steps, found)) for found in results]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    np.testing.assert_allclose(results[0][7], tg.jacobian(composed)(x + 0.07, steps), rtol=1e-12, atol=1e-13)
    for found in results[1:]:
        np.testing.assert_array_equal(found, results[0])


@pytest.mark.parametrize(
    ("tangents", "error", "message"),
    [
        ((np.ones(4),), ValueError, "a tangent must have the shape of its argument"),
        ((np.ones((4, 2)),), ValueError, "a tangent must have the shape of its argument"),
        ((1.0,), CompileError, "the tangent of an argument of number .* is float64"),
        ((np.ones((3, 2, 2)),), CompileError, "the tangent of an argument of number"),
        ((np.ones(3, bool),), CompileError, "the tangent of an argument of number"),
        ((), TypeError, "not enough arguments"),
    ],
)
def test_tangents_that_do_not_fit_are_refused(tangents: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tg.dual(number)(POINT, *tangents)


def test_numbers_of_tangents_must_agree() -> None:
    tangents = tg.dual(of_array, (0, 1))
    with pytest.raises(ValueError, match="the same number of tangents"):
        tangents(POINT, 2.0, np.ones((3, 2)), np.ones(3))
    with pytest.raises(CompileError, match="one tangent and others several"):
        tangents(POINT, 2.0, np.ones((3, 2)), 1.0)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: tg.dual(number, 1), ValueError, "number has no argument 1"),
        (lambda: tg.dual(number, True), TypeError, "argnums must be an integer"),
        (lambda: tg.dual(number, ()), ValueError, "at least one"),
        (lambda: tg.dual(3.0), TypeError, "expected a function"),
        (lambda: tg.dual(lambda *x: x[0]), ValueError, r"takes \*args"),
    ],
)
def test_what_is_no_such_function_is_refused(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_what_it_makes_is_not_differentiated_itself() -> None:
    tangents = tg.dual(number)
    with pytest.raises(CompileError, match=r"what tg\.dual makes cannot be differentiated itself"):
        tg.grad(numba.njit(lambda x: tangents(x, np.ones(3))[1] + 0.0))(POINT)


def test_a_name_that_is_taken_is_not_taken_again() -> None:
    @numba.njit
    def of_both(x, x_dot):
        return x * x_dot

    value, tangent = tg.dual(of_both)(2.0, 5.0, x_dot_=1.0)
    assert (value, tangent) == (10.0, 5.0)


def test_an_exception_of_the_function_comes_through_and_the_next_call_works() -> None:
    @numba.njit
    def positive(x):
        if x < 0.0:
            raise ValueError("too small")
        return np.sqrt(x)

    tangents = tg.dual(positive)
    with pytest.raises(ValueError, match="too small"):
        tangents(-1.0, 1.0)
    assert tangents(4.0, 1.0) == (2.0, 0.25)
