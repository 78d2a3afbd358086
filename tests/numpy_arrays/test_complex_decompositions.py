"""Eigenvalues, singular values and solutions of complex matrices in functions that drivers differentiate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from many_cases import each

import tapegrad as tg

W = np.random.default_rng(1).normal(size=(4, 4))
X = np.random.default_rng(2).normal(size=(2, 4, 4))


def matrix(x: Any) -> Any:
    return x[0] + 1j * x[1]


def of_parts(decompose: Callable[[Any], Any], z: Any) -> Any:
    """A number that depends on sizes of all parts of a decomposition."""
    return sum((np.abs(part) ** 2 * np.resize(W, np.shape(part))).sum() for part in decompose(z))


CASES: dict[str, Callable[[Any], Any]] = {
    "eigh": lambda x: of_parts(np.linalg.eigh, matrix(x)),
    "eigh of the upper triangle": lambda x: of_parts(lambda z: np.linalg.eigh(z, "U"), matrix(x)),
    "eigvalsh": lambda x: (np.linalg.eigvalsh(matrix(x)) ** 3).sum(),
    "svd": lambda x: of_parts(np.linalg.svd, matrix(x)),
    "svd of a tall matrix": lambda x: of_parts(lambda z: np.linalg.svd(z, full_matrices=False), matrix(x)[:, :2]),
    "svd of a wide matrix": lambda x: of_parts(lambda z: np.linalg.svd(z, full_matrices=False), matrix(x)[:3]),
    "svd of several": lambda x: of_parts(np.linalg.svd, np.stack([matrix(x), matrix(x).T @ matrix(x)])),
    "singular values": lambda x: (np.linalg.svd(matrix(x), compute_uv=False) ** 3).sum(),
    "norms": lambda x: np.linalg.norm(matrix(x), "nuc") + np.linalg.norm(matrix(x), 2) / np.linalg.norm(matrix(x), -2),
    "eig": lambda x: of_parts(np.linalg.eig, matrix(x)),
    "eig of a real matrix": lambda x: of_parts(np.linalg.eig, x[0]),
    "eigvals of a real matrix": lambda x: np.abs(np.linalg.eigvals(x[0])).max(),
    "solve": lambda x: of_parts(lambda z: [np.linalg.solve(z, x[0]), np.linalg.solve(x[1], z[0])], matrix(x)),
    "solve of several with one vector": lambda x: of_parts(lambda z: [np.linalg.solve(z, x[0, 0, :2])], matrix(x).reshape(4, 2, 2)),
    "det": lambda x: of_parts(lambda z: [np.linalg.det(z), np.linalg.det(np.stack([z, z.T * 2.0])).imag], matrix(x)),
    "slogdet": lambda x: of_parts(np.linalg.slogdet, matrix(x)) + np.linalg.slogdet(matrix(x))[0].real,
    "pinv of a tall matrix": lambda x: of_parts(lambda z: [np.linalg.pinv(z)], matrix(x)[:, :2]),
    "pinv of a wide matrix": lambda x: of_parts(lambda z: [np.linalg.pinv(z)], matrix(x)[:2]),
    "cholesky": lambda x: of_parts(lambda z: [np.linalg.cholesky(z @ z.conj().T + np.eye(4))], matrix(x)),
    "powers": lambda x: of_parts(lambda z: [np.linalg.matrix_power(z, n) for n in (3, 0, -2)], matrix(x)),
    "inv": lambda x: of_parts(lambda z: [np.linalg.inv(z)], matrix(x)),
}


def differences(f: Callable[[Any], Any], x: np.ndarray, v: np.ndarray) -> Any:
    step = 1e-6
    return (f(x + step * v) - f(x - step * v)) / (2.0 * step)


@each("name", CASES)
def test_both_derivatives_are_those_of_differences(name: str) -> None:
    f, v = CASES[name], np.random.default_rng(3).normal(size=X.shape)
    value, gradient = tg.value_and_grad(f)(X)
    assert value == f(X)
    assert np.vdot(gradient, v) == pytest.approx(differences(f, X, v), rel=1e-6)
    expected = differences(tg.grad(f), X, v)
    np.testing.assert_allclose(tg.hvp(f, X, v), expected, rtol=0, atol=1e-6 * np.abs(expected).max())


def test_equal_singular_values_have_a_derivative() -> None:
    gradient = tg.grad(lambda x: np.linalg.norm(matrix(x), "nuc"))(np.stack([np.eye(3), np.zeros((3, 3))]))
    np.testing.assert_allclose(gradient, [np.eye(3), np.zeros((3, 3))], atol=1e-12)


IN_SINGLE: dict[str, Callable[[Any], Any]] = {
    "eigh": lambda z: np.abs(np.linalg.eigh(z)[1]),
    "svd": lambda z: np.abs(np.linalg.svd(z)[2]),
    "eig": lambda z: np.abs(np.linalg.eig(z)[0]),
    "solve": lambda z: np.abs(np.linalg.solve(z, np.ones(4, np.float32))),
    "inv": lambda z: np.abs(np.linalg.inv(z)),
}


@each("name", IN_SINGLE)
def test_single_precision_stays(name: str) -> None:
    kinds = []

    def f(x: Any) -> Any:
        found = IN_SINGLE[name](matrix(x))
        kinds.append(found.dtype)
        return found.sum()

    assert (tg.grad(f)(X.astype(np.float32)).dtype, kinds[0]) == (np.float32, np.float32)


RANK_ONE = np.outer([1.0, 2.0 + 1.0j, -1.0j], [1.0, 2.0])
OF_VALUES_ALONE: dict[str, tuple[np.ndarray, Callable[[Any], Any]]] = {  # the sum of their squares is that of the elements'
    "equal eigenvalues of a Hermitian matrix": (np.diag([2.0, 2.0, 1.0 + 0.0j]), lambda z: np.linalg.eigh(z)[0]),
    "no full rank": (RANK_ONE, lambda z: np.linalg.svd(z, full_matrices=False)[1]),
    "no full rank, wide": (RANK_ONE.T, lambda z: np.linalg.svd(z, full_matrices=False)[1]),
}


@each("name", OF_VALUES_ALONE)
def test_values_of_a_decomposition_have_a_derivative_where_its_vectors_have_none(name: str) -> None:
    z, values = OF_VALUES_ALONE[name]
    gradient = tg.grad(lambda x: np.sum(np.real(values(matrix(x)) ** 2)))(np.stack([z.real, z.imag]))
    np.testing.assert_allclose(gradient, [2.0 * z.real, 2.0 * z.imag], atol=1e-12)


@each("decompose", [np.linalg.eigh, np.linalg.svd, np.linalg.eig])
def test_phases_of_vectors_have_no_derivative(decompose: Any) -> None:
    at = 0 if decompose is np.linalg.svd else 1
    with pytest.raises(RuntimeError, match="determined up to a factor of size one"):
        tg.grad(lambda x: np.real(decompose(matrix(x))[at][1, 1]))(X)
    with pytest.raises(RuntimeError, match="determined up to a factor of size one"):
        tg.grad(lambda x: 1e-9 * np.real(decompose(matrix(x))[at][1, 1]))(X)


@each("decompose", [np.linalg.eigh, np.linalg.svd, np.linalg.eig])
def test_rounding_errors_do_not_pass_for_phases(decompose: Any) -> None:
    def f(x: Any) -> Any:
        sizes = [np.abs(part) ** 2 * np.resize(W, part.shape) for part in decompose(matrix(x))]
        return sum((part * (0.1 + 0.2)).sum() - (part * 0.3).sum() for part in sizes)

    np.testing.assert_allclose(tg.grad(f)(X), np.zeros(X.shape), atol=1e-13)


def test_determinants_of_singular_complex_matrices_are_refused() -> None:
    with pytest.raises(RuntimeError, match="det and slogdet of singular complex matrices"):
        tg.grad(lambda x: np.abs(np.linalg.det(matrix(x))))(np.ones((2, 3, 3)))
