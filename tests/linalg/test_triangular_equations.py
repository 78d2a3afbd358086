"""Triangular equations by the second half of the general solver: they have its bits, also where that is not usual."""

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.linalg import substitution

RNG = np.random.default_rng(8)
SIZES = [(40, 1), (40, 2), (47, 1), (47, 3), (64, 1), (64, 9), (64, 70)]


def triangle(*shape: int) -> np.ndarray:
    found: np.ndarray = np.triu(RNG.normal(size=shape)) + 3.0 * np.eye(shape[-1])
    return found


def same_bits(found: np.ndarray, expected: np.ndarray) -> None:
    """Signs of zeros, too."""
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found) & (found == 0.0), np.signbit(expected) & (expected == 0.0))


def solved(a: Any, b: Any, **options: bool) -> np.ndarray:
    found: np.ndarray = tg.linalg.solve_triangular(tg.tensor(a), tg.tensor(b), **options).numpy()
    return found


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_values_have_the_bits_of_the_general_solver(n: int, k: int) -> None:
    a, b = triangle(n, n), RNG.normal(size=(n, k))
    below = RNG.normal(size=(n, n))
    expected = np.linalg.solve(a, b)
    same_bits(solved(a + np.tril(below, -1), b, upper=True), expected)
    same_bits(solved((a + np.tril(below, -1)).T, b.T, upper=False, left=False).T, expected)
    same_bits(solved(a[::-1, ::-1], b[::-1], upper=False)[::-1], expected)
    np.fill_diagonal(a, 1.0)
    a /= np.where(np.eye(n) > 0.0, 1.0, n)
    same_bits(solved(a + np.diag(below[0]), b, upper=True, unitriangular=True), np.linalg.solve(a, b))


@pytest.mark.parametrize(("n", "k"), SIZES)
@pytest.mark.parametrize("value", [0.0, -0.0, np.inf, -np.inf, np.nan])
def test_unusual_right_sides_have_the_bits_of_the_general_solver(n: int, k: int, value: float) -> None:
    a, b = triangle(n, n) * (RNG.random((n, n)) < 0.7) + np.eye(n), RNG.normal(size=(n, k))
    b[RNG.random((n, k)) < (0.6 if value == 0.0 else 0.02)] = value
    same_bits(solved(a, b, upper=True), np.linalg.solve(a, b))


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_unusual_triangles_have_the_values_of_the_general_solver(value: float) -> None:
    a, b = triangle(50, 50), RNG.normal(size=(50, 2))
    for place in ((20, 20), (10, 30)):
        other = a.copy()
        other[place] = value
        with np.errstate(all="ignore"):
            same_bits(solved(other, b, upper=True), np.linalg.solve(other, b))


def test_a_value_that_overflows_is_infinite_and_no_error() -> None:
    a, b = triangle(50, 50), np.full((50, 1), 1e300)
    a[49, 49] = 1e-300
    assert np.isinf(solved(a, b, upper=True)[49, 0])


@pytest.mark.parametrize("shapes", [((2, 1, 45, 45), (3, 45, 2)), ((45, 45), (2, 3, 45, 1)), ((2, 3, 45, 45), (45, 4))], ids=str)
def test_batches_have_the_bits_of_each_of_their_equations(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = triangle(*shapes[0]), RNG.normal(size=shapes[1])
    found = solved(a, b, upper=True)
    a, b = np.broadcast_to(a, (2, 3, 45, 45)), np.broadcast_to(b, (2, 3, *b.shape[-2:]))
    for place in np.ndindex(2, 3):
        same_bits(found[place], np.linalg.solve(a[place], b[place]))


def test_other_matrices_of_a_batch_are_solved_beside_one_with_a_zero_on_the_diagonal() -> None:
    a, b = triangle(3, 70, 70), RNG.normal(size=(3, 70, 2))
    a[1, 5, 5] = 0.0
    found = solved(a, b, upper=True)
    assert not np.isfinite(found[1]).all()
    for k in (0, 2):
        np.testing.assert_allclose(found[k], solved(a[k], b[k], upper=True), rtol=1e-10)


def test_gradients_of_large_batches_of_vectors_are_those_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = triangle(50, 46, 46), RNG.normal(size=(46, 1))

    def gradients() -> list[np.ndarray]:
        x, y = tg.tensor(a, requires_grad=True), tg.tensor(b, requires_grad=True)
        (tg.linalg.solve_triangular(x, y, upper=True) ** 2).sum().backward()
        return [x.grad.numpy(), y.grad.numpy()]

    found, total = gradients(), np.zeros_like(b)
    for k in range(50):
        solution = np.linalg.solve(a[k], b)
        cotangent = np.linalg.solve(a[k].T, 2.0 * solution)
        np.testing.assert_allclose(found[0][k], np.triu(-cotangent @ solution.T), rtol=1e-9, atol=1e-12)
        total += cotangent
    np.testing.assert_allclose(found[1], total, rtol=1e-9)
    monkeypatch.setattr(substitution, "address_of", lambda name: 0)  # without the functions for triangles
    for one, other in zip(gradients(), found, strict=True):
        np.testing.assert_array_equal(one, other)
