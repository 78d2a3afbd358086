"""Functions that overwrite what their derivatives need: structure element by element, as for functions that do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapegrad as tg

SIZE = 9
SEEDS = st.integers(0, 10**6)
DIFFERENCE = 1e-6

Array = Any
Statement = Callable[[Array, Array, Array], None]


def _statement(rng: np.random.Generator) -> Statement:
    """One statement that writes into `a`, of `b` and `x`; derivatives never cancel, so a zero is no entry."""
    shift, k, m = (int(n) for n in rng.integers(1, SIZE, 3))
    places, factor = rng.permutation(SIZE)[:4], rng.uniform(0.5, 1.5)

    def multiplied_along(a: Array, b: Array, x: Array) -> None:
        a[1:-1] *= x[2:]

    def added_and_squared(a: Array, b: Array, x: Array) -> None:
        a += factor * x
        b += a * a
        a *= 2.0

    def by_itself(a: Array, b: Array, x: Array) -> None:
        a[shift:] *= a[: SIZE - shift]

    def through_a_view(a: Array, b: Array, x: Array) -> None:
        piece = a[k - 1 : k + 1]
        piece += np.sin(piece) * b[m]
        a[0] *= piece[0]

    def numbers(a: Array, b: Array, x: Array) -> None:
        for i in range(1, 4):
            a[i] = a[i - 1] * x[i] + factor * a[i]

    def at_places(a: Array, b: Array, x: Array) -> None:
        a[places] *= b[:4]

    def into_given_memory(a: Array, b: Array, x: Array) -> None:
        np.exp(0.1 * a, out=a)
        np.multiply(a, x[::-1], out=a)

    def divided(a: Array, b: Array, x: Array) -> None:
        a /= 2.0 + b * b

    def of_two_dimensions(a: Array, b: Array, x: Array) -> None:
        a.reshape(3, 3)[1] *= b.reshape(3, 3)[:, 2]

    def powers(a: Array, b: Array, x: Array) -> None:
        a **= 3
        a += factor * b

    statements: list[Statement] = [
        multiplied_along,
        added_and_squared,
        by_itself,
        through_a_view,
        numbers,
        at_places,
        into_given_memory,
        divided,
        of_two_dimensions,
        powers,
    ]
    return statements[int(rng.integers(len(statements)))]


def program(seed: int) -> Callable[[Array], Array]:
    """A function that writes again and again into two arrays."""
    rng = np.random.default_rng(seed)
    statements = [(_statement(rng), bool(rng.random() < 0.5)) for _ in range(int(rng.integers(1, 5)))]

    def function(x: Array) -> Array:
        a, b = np.sin(x), x * x[::-1]
        for statement, swaps in statements:
            statement(b, a, x) if swaps else statement(a, b, x)
        return np.concatenate([a, b])

    return function


def points(seed: int) -> Any:
    return np.random.default_rng(seed).uniform(0.3, 1.3, (3, SIZE))


def entries(matrices: list[Any]) -> Any:
    """Where one of them has an entry."""
    return np.any([np.abs(matrix) > 0 for matrix in matrices], axis=0)


@given(SEEDS)
@settings(max_examples=60)
def test_jacobians_of_random_programs(seed: int) -> None:
    f, made = program(seed), tg.sparse.jacobian(program(seed))
    dense = [tg.jacobian(f)(x) for x in points(seed)]
    for x, expected in zip(points(seed), dense, strict=True):
        np.testing.assert_allclose(made(x).toarray(), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(made.pattern.toarray(), entries(dense))


@given(SEEDS)
@settings(max_examples=60)
def test_hessians_of_random_programs(seed: int) -> None:
    f = program(seed)

    def scalar(x: Array) -> Array:
        return np.cos(f(x)).sum()

    made, edges = tg.sparse.hessian(scalar, mode="star"), tg.sparse.hessian(scalar, mode="edges")
    x = points(seed)[0]
    expected = tg.hessian(scalar)(x)
    scale = 1e-11 * np.abs(expected).max()
    np.testing.assert_allclose(made(x).toarray(), expected, rtol=1e-9, atol=scale)
    np.testing.assert_allclose(edges(x).toarray(), expected, rtol=1e-9, atol=scale)


@given(SEEDS)
@settings(max_examples=30)
def test_derivatives_of_random_programs_are_difference_quotients(seed: int) -> None:
    f, x = program(seed), points(seed)[0]

    def scalar(x: Array) -> Array:
        return np.cos(f(x)).sum()

    for found, of in ((tg.sparse.jacobian(f), f), (tg.sparse.hessian(scalar), tg.grad(scalar))):
        expected = np.stack([of(x + step) - of(x - step) for step in DIFFERENCE * np.eye(SIZE)], 1) / (2 * DIFFERENCE)
        np.testing.assert_allclose(found(x).toarray(), expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def product_with_neighbours(x: Array) -> Array:
    r = np.sin(x)
    r[1:-1] *= x[2:]
    r[1:-1] *= r[1:-1]
    return r


def squared_before_it_is_scaled(x: Array) -> Array:
    a = 1.0 * x
    a += x
    b = a * a
    a *= 2.0
    return a + b


def number_by_number(x: Array) -> Array:
    total = np.zeros_like(x[0])
    results = np.zeros_like(x)
    for i in range(len(x)):
        total[...] = x[i]
        results[i] = total * total * x[0]
        total *= 3.0
    return results


@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (product_with_neighbours, [[0], [1, 2], [2, 3], [3, 4], [4]]),
        (squared_before_it_is_scaled, [[0], [1], [2], [3], [4]]),
        (number_by_number, [[0], [0, 1], [0, 2], [0, 3], [0, 4]]),
    ],
)
def test_patterns_are_those_of_the_statements(function: Any, rows: Any) -> None:
    pattern = tg.sparse.jacobian_structure(function, np.linspace(0.5, 1.5, 5))
    assert [sorted(pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]].tolist()) for i in range(5)] == rows


def test_a_hessian_through_writes_is_had_in_one_pass() -> None:
    rng = np.random.default_rng(0)
    places = rng.integers(0, 300, (3, 3000))

    def energy(x: Array) -> Array:
        r = x[places[0]]
        r *= x[places[1]]
        r += x[places[2]]
        s = r * r
        r *= 0.5
        return (s * r).sum()

    made = tg.sparse.hessian(energy)
    x = rng.uniform(0.5, 1.5, 300)
    np.testing.assert_allclose(made(x).toarray(), tg.hessian(energy)(x), rtol=1e-10, atol=1e-10)
    assert made.info.method == "edges"
