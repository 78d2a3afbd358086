"""Derivatives that compiled code calls: gradients beside the drivers', memory, exceptions, threads, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.errors import CompileError
from tapegrad.nopython.tape.held_memory import NATIVE, NATIVE_GROW


class Point(NamedTuple):
    """Two inputs of different kinds."""

    where: np.ndarray
    scale: float


@numba.njit
def valley(x, a=1.0):
    if x[0] < -100:
        raise ValueError("too far")
    s = 0.0
    for k in range(x.size - 1):
        s += (x[k] - a) ** 2 + 10 * (x[k + 1] - x[k] ** 2) ** 2
    return s


@numba.njit
def of_matrix(m, w):
    return np.sum(m * m) * w + np.sin(m[0, 1])


@numba.njit
def of_point(p):
    return p.scale * np.exp(p.where).sum() + p.where[0]


@numba.njit
def of_nested(p, n):
    (a, b), c = p
    for _ in range(n):
        a = a * b + c[1]
    return a


@numba.njit
def of_nothing_dimensional(z):
    return z[()] * z[()] + 1.0


@numba.njit
def overwriting(x, work):
    for k in range(x.size):
        work[k] = x[k] * x[k]
        x[k] = work[k] + 1.0
    return x.sum() * work[0]


@numba.njit
def with_options(x, w, name, g):
    s = g(x[0]) if name == "own" else x[0]
    return s if w is None else s * w[0]


@numba.njit
def cubed(t):
    return t**3


@numba.njit
def recursive(x, n):
    return x if n == 0 else recursive(x * 1.5, n - 1) + x


@numba.njit
def kinked(x):
    return abs(x[0]) + np.maximum(x[1], x[2]) + np.log(x[3])


CASES: list[tuple[Any, Any, tuple[Any, ...]]] = [
    (valley, 0, (np.array([0.5, 0.2, 0.1]),)),
    (valley, 1, (np.array([0.5, 0.2, 0.1]), 0.7)),
    (valley, (1, 0), (np.array([0.5, 0.2, 0.1]), 0.7)),
    (valley, -1, (np.array([0.5, 0.2, 0.1]), 0.7)),
    (valley, 0, (np.linspace(0, 1, 9)[::-2],)),
    (valley, 0, (np.ones(1),)),
    (valley, 0, (np.array([np.nan, 1.0, np.inf]),)),
    (of_matrix, (0, 1), (np.arange(6.0).reshape(2, 3), 2.0)),
    (of_matrix, 0, (np.asfortranarray(np.arange(6.0).reshape(2, 3)), 2.0)),
    (of_matrix, 0, (np.arange(24.0).reshape(4, 6)[::2, ::-2], 2.0)),
    (of_matrix, 1, (np.broadcast_to(np.arange(3.0), (2, 3)), 2.0)),
    (of_point, 0, (Point(np.array([0.1, 0.2]), 3.0),)),
    (of_nested, 0, (((0.5, 1.25), np.array([1.0, 2.0])), 3)),
    (of_nothing_dimensional, 0, (np.array(3.0),)),
    (overwriting, 0, (np.array([0.5, 0.2, 0.1]), np.zeros(3))),
    (overwriting, 1, (np.array([0.5, 0.2, 0.1]), np.ones(3))),
    (with_options, 0, (np.array([0.5]), None, "own", cubed)),
    (with_options, 0, (np.array([0.5]), np.array([3], np.int8), "other", cubed)),
    (recursive, 0, (0.5, 4)),
    (kinked, 0, (np.array([0.0, 1.0, 1.0, 0.0]),)),
]


def parts(value: Any) -> list[Any]:
    return [part for item in value for part in parts(item)] if isinstance(value, tuple) else [value]


def test_values_and_gradients_are_those_of_the_driver(code_is_not_optimised: None) -> None:  # noqa: F811
    made: dict[Any, Any] = {}
    for f, argnums, args in CASES:
        where = f.__name__, argnums
        derivative = made.setdefault(where, tg.njit_derivative(f, argnums))
        given = tuple(np.array(a) if isinstance(a, np.ndarray) else a for a in args)
        value, gradient = derivative(*args)
        wanted, expected = tg.value_and_grad(f, argnums)(*args)
        np.testing.assert_array_equal(value, wanted, err_msg=str(where))
        assert type(gradient) is type(expected), where
        for ours, theirs in zip(parts(gradient), parts(expected), strict=True):
            assert np.shape(ours) == np.shape(theirs), where
            np.testing.assert_array_equal(ours, theirs, err_msg=str(where))
        for before, after in zip(given, args, strict=True):
            if isinstance(after, np.ndarray):
                np.testing.assert_array_equal(after, before, err_msg=str(where))


def test_defaults_are_constants_or_inputs() -> None:
    x = np.array([0.5, 0.2, 0.1])
    for argnums, expected in ((0, tg.value_and_grad(valley)(x)), ((0, 1), tg.value_and_grad(valley, (0, 1))(x, 1.0))):
        value, gradient = tg.njit_derivative(valley, argnums)(x)
        assert value == expected[0]
        for ours, theirs in zip(gradient, expected[1], strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_gradient_descent_in_compiled_code_finds_the_minimum() -> None:
    derivative = tg.njit_derivative(valley)

    @numba.njit
    def descend(x, steps):
        for _ in range(steps):
            _, gradient = derivative(x, a=1.0)
            x = x - 0.005 * gradient
        return x

    np.testing.assert_allclose(descend(np.array([0.5, 0.5]), 10_000), [1.0, 1.0], atol=1e-8)


def test_a_hamiltonian_step_in_compiled_code_is_that_of_a_gradient_by_hand() -> None:
    @numba.njit
    def energy(q, precision):
        return 0.5 * q @ precision @ q + np.sum(q**4) / 4

    @numba.njit
    def by_hand(q, precision):
        return 0.5 * q @ precision @ q + np.sum(q**4) / 4, precision @ q + q**3

    def sampler(derivative: Any) -> Any:
        @numba.njit
        def chain(q, precision, size, count, momenta, chances):
            accepted = 0
            for k in range(len(momenta)):
                p = momenta[k]
                new, moved = q.copy(), p.copy()
                start, slope = derivative(new, precision)
                first = start + 0.5 * p @ p
                for _ in range(count):
                    moved = moved - 0.5 * size * slope
                    new = new + size * moved
                    end, slope = derivative(new, precision)
                    moved = moved - 0.5 * size * slope
                if np.log(chances[k]) < first - end - 0.5 * moved @ moved:
                    q, accepted = new, accepted + 1
            return q, accepted

        return chain

    rng = np.random.default_rng(5)
    drawn = rng.normal(size=(20, 2)), rng.random(20)
    given = np.array([0.3, -0.2]), np.array([[2.0, 0.3], [0.3, 1.0]]), 0.2, 8, *drawn
    ours, accepted = sampler(tg.njit_derivative(energy))(*given)
    theirs, also = sampler(by_hand)(*given)
    assert accepted == also > 10
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_a_tape_that_grows_has_the_same_gradient_and_its_memory_is_given_back() -> None:
    derivative = tg.njit_derivative(valley)
    x = np.linspace(0.0, 1.0, 40_000)
    tg.free_tape_memory()
    before = tg.tape_memory()
    value, gradient = derivative(x)
    held = tg.tape_memory()
    assert held > before + 1_000_000
    expected = tg.value_and_grad(valley)(x)
    assert value == expected[0]
    np.testing.assert_array_equal(gradient, expected[1])
    derivative(x)
    tg.free_tape_memory()
    assert tg.tape_memory() == before
    np.testing.assert_array_equal(derivative(x)[1], gradient)


def test_exceptions_come_through_and_give_the_tape_back() -> None:
    derivative = tg.njit_derivative(valley)

    @numba.njit
    def tried(x):
        try:
            value, _ = derivative(x)
        except Exception:
            value = -1.0
        return value

    far, near = np.array([-200.0, 1.0]), np.array([0.5, 0.5])
    assert tried(far) == -1.0
    assert tried(near) == valley(near)
    held = tg.tape_memory()
    for _ in range(100):
        with pytest.raises(ValueError, match="too far"):
            derivative(far)
        assert tried(far) == -1.0
    assert tg.tape_memory() == held


def test_a_tape_that_cannot_grow_raises_and_the_next_one_works() -> None:
    derivative = tg.njit_derivative(valley)
    x = np.array([0.5, 0.2])
    expected = derivative(x)
    refusing = numba.cfunc("void(int64, int64)")(lambda header, count: None)
    grow = NATIVE[NATIVE_GROW]
    tg.free_tape_memory()
    try:
        NATIVE[NATIVE_GROW] = refusing.address
        with pytest.raises(MemoryError, match="cannot grow any further"):
            derivative(x)
        tg.free_tape_memory()
    finally:
        NATIVE[NATIVE_GROW] = grow
    np.testing.assert_array_equal(derivative(x)[1], expected[1])


def in_threads(work: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=work, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_calls_in_several_threads_have_tapes_of_their_own() -> None:
    derivative = tg.njit_derivative(valley)

    @numba.njit(nogil=True)
    def many(x, count):
        total = np.zeros(x.size)
        for _ in range(count):
            total += derivative(x)[1]
        return total

    points = [np.linspace(0.0, 1.0 + k, 50 * (k + 1)) for k in range(4)]
    expected = [many(x, 200) for x in points]
    found: list[Any] = [None] * len(points)

    def work(k: int) -> None:
        found[k] = many(points[k], 200)

    in_threads(work, len(points))
    for ours, alone in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, alone)


def test_loops_in_parallel_call_it_and_grow_their_tapes_without_the_lock() -> None:
    derivative = tg.njit_derivative(valley)

    @numba.njit(parallel=True)
    def rows(points):
        found = np.empty(points.shape)
        for k in numba.prange(len(points)):
            found[k] = derivative(points[k])[1]
        return found

    points = np.linspace(0.0, 1.0, 8 * 30_000).reshape(8, 30_000)
    tg.free_tape_memory()
    for ours, x in zip(rows(points), points, strict=True):
        np.testing.assert_array_equal(ours, tg.grad(valley)(x))


def test_arrays_that_share_memory_are_refused_where_the_function_writes() -> None:
    @numba.njit
    def reading(x, y):
        return (x * y).sum()

    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(tg.njit_derivative(reading)(x, x)[1], x)
    np.testing.assert_array_equal(tg.njit_derivative(reading, (0, 1))(x[1:], x[:-1])[1], (x[:-1], x[1:]))
    derivative = tg.njit_derivative(overwriting)
    for pair in ((x, x), (x[1:], x[:2]), (x[::-1], x), (x, x[2:])):
        with pytest.raises(ValueError, match="share memory.*pass a copy"):
            derivative(*pair)
    np.testing.assert_array_equal(derivative(x[:1], x[1:])[1], tg.grad(overwriting)(x[:1], x[1:]))
    once = np.lib.stride_tricks.as_strided(x, (3,), (0,))
    with pytest.raises(ValueError, match="share memory"):
        derivative(once, np.zeros(3))


def test_a_function_that_is_differentiated_may_call_it_with_constants_only() -> None:
    derivative = tg.njit_derivative(valley)

    @numba.njit
    def scaled(t, x):
        value, gradient = derivative(x)
        return t * t * value + t * gradient[0]

    x = np.array([0.5, 0.2])
    value, gradient = derivative(x)
    np.testing.assert_allclose(tg.grad(scaled)(3.0, x), 6.0 * value + gradient[0], rtol=1e-15)
    with pytest.raises(CompileError, match=r"valley_and_gradient is called with a variable as its argument x.*tg\.hvp"):
        tg.grad(scaled, 1)(3.0, x)
    outer = tg.njit_derivative(scaled)
    np.testing.assert_allclose(outer(3.0, x)[1], 6.0 * value + gradient[0], rtol=1e-15)

    @numba.njit
    def through(d, x):
        return d(x)[0]

    with pytest.raises(CompileError, match="cannot be differentiated"):
        tg.grad(through, 1)(derivative, x)


def test_a_registered_derivative_inside_of_the_function_is_the_one_that_counts() -> None:
    @numba.njit
    def iterated(x):
        return np.sqrt(x)

    tg.register_derivative(iterated, numba.njit(lambda x: 100.0 * x))

    @numba.njit
    def f(x):
        return iterated(x[0]) * x[1]

    np.testing.assert_array_equal(tg.njit_derivative(f)(np.array([4.0, 3.0]))[1], [1200.0, 2.0])


def test_plain_functions_are_compiled_and_globals_are_those_of_the_first_call() -> None:
    factor = 2.0

    def f(x):
        return factor * x * x

    derivative = tg.njit_derivative(f)
    assert derivative(3.0) == (18.0, 12.0)
    assert derivative.__name__ == "f_and_gradient"


def test_what_cannot_be_differentiated_is_refused_inside_of_compiled_code_as_well() -> None:
    @numba.njit
    def of_eigenvalues(x):
        return np.linalg.eig(x * x)[0][0].real

    derivative = tg.njit_derivative(of_eigenvalues)

    @numba.njit
    def calling(x):
        return derivative(x)[0]

    for f in (derivative, calling):
        with pytest.raises(CompileError, match="of_eigenvalues cannot be differentiated"):
            f(np.eye(2))


REFUSED: list[tuple[Any, tuple[Any, ...], str]] = [
    (lambda x: x * x, (2,), r"argument 0 of <lambda> is int64.*write float"),
    (lambda x: x[0], (np.ones(2, np.complex64),), "argument 0 .*complex64.*astype"),
    (lambda x: x * x, (np.ones(2),), "returns an array.*return one of its elements, or their sum"),
    (lambda x: x > 0, (1.0,), "returns bool.*return a float"),
    (lambda x: int(x), (1.0,), "returns int64.*return a float"),
    (lambda x, y: x * y[0], (1.0, numba.typed.List([1.0])), "argument 1 .*ListType.*pass what it holds"),
]


@pytest.mark.parametrize(("f", "args", "message"), REFUSED)
def test_other_arguments_and_results_are_refused_with_what_to_write(f: Any, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        tg.njit_derivative(f)(*args)


def test_argnums_and_parameters_are_checked_at_once() -> None:
    with pytest.raises(ValueError, match="has no argument 2"):
        tg.njit_derivative(valley, 2)
    with pytest.raises(ValueError, match="each argument once"):
        tg.njit_derivative(valley, (0, -2))
    with pytest.raises(ValueError, match="each argument once"):
        tg.njit_derivative(valley, ())
    with pytest.raises(ValueError, match="arguments with names"):
        tg.njit_derivative(lambda *x: x[0])
    with pytest.raises(TypeError, match="argnums must be an integer"):
        tg.njit_derivative(valley, 0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a function"):
        tg.njit_derivative(3.0)
