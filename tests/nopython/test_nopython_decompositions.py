"""Decompositions in compiled functions, beside closed forms, where their programs need more room than a tape has at first."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from linked_numba import numbas_functions_are_linked
from unoptimised_numba import code_is_not_optimised

import tapegrad as tg

__all__ = ["code_is_not_optimised", "numbas_functions_are_linked"]

SIZE = 12  # a product of two such matrices has 3,456 pairs, and a derivative a dozen of these


@numba.njit
def squares(a):
    """The sum of the squares of all elements of the symmetric half, by its eigenvalues."""
    values, vectors = np.linalg.eigh(0.5 * (a + a.T))
    return np.sum(values * values) + np.sum(vectors * vectors)


@pytest.fixture(scope="module")
def point() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((SIZE, SIZE))


def test_gradient_of_the_sum_of_squared_eigenvalues(point: np.ndarray) -> None:
    np.testing.assert_allclose(tg.grad(squares)(point), point + point.T, atol=1e-10)


def test_hessian_of_the_sum_of_squared_eigenvalues(point: np.ndarray) -> None:
    hessian = tg.hessian(squares)(point).reshape(SIZE * SIZE, SIZE * SIZE)
    unit = np.eye(SIZE * SIZE)
    exchanged = unit.reshape(SIZE, SIZE, -1).swapaxes(0, 1).reshape(SIZE * SIZE, -1)
    np.testing.assert_allclose(hessian, unit + exchanged, atol=1e-6)


def test_product_with_the_hessian_of_the_sum_of_squared_eigenvalues(point: np.ndarray) -> None:
    direction = np.cos(np.arange(SIZE * SIZE)).reshape(SIZE, SIZE)
    np.testing.assert_allclose(tg.hvp(squares, point, direction), direction + direction.T, atol=1e-6)


@numba.njit
def fitted(b, a):
    return np.linalg.lstsq(a, b)[0].sum()


def test_a_constant_matrix_of_a_least_squares_fit_has_no_rows(point: np.ndarray) -> None:
    found = tg.grad(fitted)(point[:, 0].copy(), point[:, :5].copy())
    np.testing.assert_allclose(found, np.linalg.pinv(point[:, :5]).sum(0), atol=1e-12)


@numba.njit
def by_eigenvectors(a):
    values, vectors = np.linalg.eigh(a @ a.T)
    return np.sin((vectors * values) @ vectors.T).sum()


@numba.njit
def by_singular_vectors(a):
    u, s, vt = np.linalg.svd(a)
    return np.sin((u * s**3) @ vt).sum()


@pytest.mark.parametrize(
    ("function", "smooth"),
    [(by_eigenvectors, lambda a: np.sin(a @ a.T).sum()), (by_singular_vectors, lambda a: np.sin(a @ a.T @ a).sum())],
    ids=["eigh", "svd"],
)
def test_derivatives_through_vectors_of_equal_values_are_right_or_not_finite(function, smooth) -> None:
    rng = np.random.default_rng(0)
    for values in ([3.0, 2.0, 1.0], [2.0, 1.0, 1.0], [3.0, 0.0, 0.0], [1.0, 1.0, 1.0]):
        left, right = (np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2))
        a = left @ np.diag(values) @ right
        found, expected = tg.grad(function)(a), tg.grad(smooth)(a)
        assert np.isfinite(found).all() == (len(set(values)) == 3)
        np.testing.assert_allclose(found[np.isfinite(found)], expected[np.isfinite(found)], rtol=1e-9)
