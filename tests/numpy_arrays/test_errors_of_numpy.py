"""A function that catches NumPy's errors catches them under a driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from many_cases import each

import tapegrad as tg

V, M = np.array([1.0, 2.0, 3.0]), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@each(
    ("f", "x"),
    [
        (lambda x: x + np.ones(2), V),
        (lambda x: np.concatenate([x, np.ones((2, 2))]), V),
        (lambda x: x @ np.ones(2), V),
        (lambda x: x.reshape(2, 2), V),
        (lambda x: x.sum(2), M),
        (lambda x: np.sum(x, axis=(0, 0)), M),
        (lambda x: np.gradient(x, axis=(0, 0)), M),
        (lambda x: np.moveaxis(x, 0, 3), M),
        (lambda x: np.broadcast_to(x, (2,)), V),
        (lambda x: np.broadcast_to(x, (-1, 3)), V),
        (lambda x: np.average(x, axis=0, weights=[1.0, 2.0, 3.0]), M),
        (lambda x: np.quantile(x, 0.5, method="middle"), V),
        (lambda x: np.linalg.pinv(x, 1e-3, rtol=1e-3), M),
        (lambda x: np.einsum("ii->i", x), M),
        (lambda x: np.einsum("ij,jk", x, x), M),
        (lambda x: np.einsum("i", x), M),
    ],
)
def test_value_errors_are_value_errors(f: Callable[[Any], Any], x: Any) -> None:
    with pytest.raises(ValueError):
        f(x.copy())
    with pytest.raises(ValueError):
        tg.grad(lambda x: np.sum(f(x)))(x)


@each("f", [lambda x: x.sum(2), lambda x: np.flip(x, 2), lambda x: np.stack([x, x], 4)])
def test_axes_out_of_range_are_axis_errors(f: Callable[[Any], Any]) -> None:
    with pytest.raises(np.exceptions.AxisError, match="Dimension out of range"):
        tg.grad(lambda x: np.sum(f(x)))(M)


def test_shapes_that_do_not_go_together_are_runtime_errors_and_value_errors() -> None:
    assert issubclass(tg.ShapeError, RuntimeError) and issubclass(tg.ShapeError, ValueError)


def test_a_number_of_bins_is_an_integer() -> None:
    with pytest.raises(TypeError, match="integer"):
        tg.grad(lambda x: np.histogram(x, 2.4)[1][0])(V)


@each("p", [None, 2, 1, np.inf, "fro"])
def test_condition_of_a_singular_matrix_is_infinite_and_its_derivative_not_finite(p: Any) -> None:
    stack = np.stack([np.eye(2), np.zeros((2, 2)), np.array([[2.0, 1.0], [1.0, 3.0]])])
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append(np.linalg.cond(x, p))
        return np.sum(seen[-1])

    gradient = tg.grad(f)(stack)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(tg.stop_gradient(seen[0]), np.linalg.cond(stack, p), rtol=1e-14)
    assert not np.isfinite(gradient[1]).any()
    np.testing.assert_allclose(gradient[2], tg.grad(lambda x: np.linalg.cond(x, p))(stack[2]), rtol=1e-14)


@each("p", [None, 1])
def test_condition_of_no_elements_is_refused_as_by_numpy(p: Any) -> None:
    with pytest.raises(np.linalg.LinAlgError, match="not defined on empty arrays"):
        tg.grad(lambda x: np.sum(np.linalg.cond(x[:, :0, :0], p)) + np.sum(x))(np.ones((2, 2, 2)))


def test_pseudo_inverse_leaves_out_the_singular_values_that_numpy_does() -> None:
    small = np.diag([*[1.0] * 39, 3e-15])  # beyond NumPy's tolerance, and not beyond one that grows with the size
    seen: list[Any] = []
    tg.grad(lambda x: np.sum(seen.append(np.linalg.pinv(x)) or seen[-1]))(small)
    np.testing.assert_allclose(tg.stop_gradient(seen[0]), np.linalg.pinv(small), rtol=1e-12)


def test_singular_vectors_of_symmetric_matrices_are_their_eigenvectors() -> None:
    a = np.array([[1.0, 2.0, 0.5], [2.0, -3.0, 0.3], [0.5, 0.3, 0.2]])
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen[:] = np.linalg.svd(x, hermitian=True)
        u, s, vt = seen
        return np.sum((u * s) @ vt * np.arange(9.0).reshape(3, 3)) + np.sum(u[:, 0] * u[:, 0] * V)

    gradient = tg.grad(f)(a)
    for got, wanted in zip(seen, np.linalg.svd(a, hermitian=True), strict=True):
        np.testing.assert_allclose(tg.stop_gradient(got), wanted, rtol=1e-12, atol=1e-14)

    def along(k: int, j: int) -> float:
        e = np.zeros((3, 3))
        e[k, j] = e[j, k] = 1e-6

        def value(x: Any) -> float:
            u, s, vt = np.linalg.svd(x, hermitian=True)
            return float(np.sum((u * s) @ vt * np.arange(9.0).reshape(3, 3)) + np.sum(u[:, 0] * u[:, 0] * V))

        return (value(a + e) - value(a - e)) / 2e-6

    for k in range(3):
        for j in range(k):
            assert gradient[k, j] + gradient[j, k] == pytest.approx(along(k, j), rel=1e-6)
