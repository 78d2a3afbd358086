"""Cotangents of factors, eigenvectors and singular vectors: compiled loops for small matrices give what the operations give."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numerical import check_gradients

import tapegrad as tg
from tapegrad.linalg.substitution import SMALL_TRIANGLE
from tapegrad.linalg.triangular_factors import SMALL

RNG = np.random.default_rng(14)
SIDES = [(1, 1), (2, 2), (3, 3), (7, 7), (SMALL, SMALL), (SMALL + 3, SMALL + 3)]
RECTANGLES = [(1, 4), (4, 1), (3, 8), (8, 3), (2, 40), (40, 2), (33, 35), (35, 33)]
Array = np.ndarray[Any, Any]


def both_passes(f: Callable[[tg.Tensor], tg.Tensor], a: Array) -> tuple[Array, Array]:
    """Gradients of a plain and of a recorded pass."""
    found = []
    for create_graph in (False, True):
        x = tg.tensor(a, requires_grad=True)
        (g,) = tg.autograd.grad(f(x), x, create_graph=create_graph)
        found.append(g.detach().numpy())
    return found[0], found[1]


def weighted(outputs: Any) -> tg.Tensor:
    """A sum of results in which no two elements count the same."""
    total: Any = 0.0
    for k, t in enumerate(outputs):
        if t.requires_grad:
            total = total + (t * tg.tensor(np.random.default_rng(k).normal(size=tuple(t.shape)))).sum()
    return total


@pytest.mark.parametrize("batch", [(), (3,), (2, 0)], ids=str)
@pytest.mark.parametrize("shape", [*SIDES, *RECTANGLES], ids=str)
def test_factors_give_the_same_gradient_in_both_passes(shape: tuple[int, int], batch: tuple[int, ...]) -> None:
    a = RNG.normal(size=(*batch, *shape))
    for function in (tg.linalg.lu_factor, tg.linalg.lu):
        plain, recorded = both_passes(lambda x, function=function: weighted(function(x)), a)
        np.testing.assert_allclose(plain, recorded, rtol=1e-7, atol=1e-9 * max(1.0, np.abs(recorded).max(initial=0.0)))


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (3, 5), (5, 3), (2, 2, 4)], ids=str)
def test_derivatives_of_factors_are_difference_quotients(shape: tuple[int, ...]) -> None:
    check_gradients(lambda x: tg.linalg.lu_factor(x)[0], RNG.normal(size=shape) + 2.0 * np.eye(*shape[-2:]))


@pytest.mark.parametrize("name", ["LinalgLuFactorExBackward0"])
def test_factors_of_a_wide_matrix_are_one_operation(name: str) -> None:
    found = tg.linalg.lu_factor(tg.tensor(RNG.normal(size=(2, 4)), requires_grad=True))[0]
    assert found.grad_fn.name() == name


def test_factors_of_strided_matrices_and_cotangents() -> None:
    a = RNG.normal(size=(3, 5, 4))
    x, y = (tg.tensor(values, requires_grad=True) for values in (a, a.transpose(0, 2, 1).copy()))
    w = RNG.normal(size=(3, 4, 5))
    (tg.linalg.lu_factor(x)[0].mT * tg.tensor(w)).sum().backward()
    (tg.linalg.lu_factor(y.mT)[0] * tg.tensor(w.transpose(0, 2, 1).copy())).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy().transpose(0, 2, 1), rtol=1e-12)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("unitriangular", [True, False])
@pytest.mark.parametrize("batch", [(), (4,)], ids=str)
@pytest.mark.parametrize("n", [1, 3, SMALL_TRIANGLE, SMALL_TRIANGLE + 1])
def test_cotangents_of_triangular_equations_are_solutions(
    left: bool, upper: bool, unitriangular: bool, batch: tuple[int, ...], n: int
) -> None:
    triangle = (np.triu if upper else np.tril)(RNG.normal(size=(*batch, n, n)) / n, 1 if upper else -1)
    triangle += np.eye(n) if unitriangular else (1.5 + RNG.random((*batch, n))[..., None, :]) * np.eye(n)
    b = RNG.normal(size=(*batch, n, 2) if left else (*batch, 2, n))
    g = RNG.normal(size=b.shape)
    y = tg.tensor(b, requires_grad=True)
    x = tg.linalg.solve_triangular(tg.tensor(triangle), y, upper=upper, left=left, unitriangular=unitriangular)
    (x * tg.tensor(g)).sum().backward()
    product = triangle.swapaxes(-1, -2) @ y.grad.numpy() if left else y.grad.numpy() @ triangle.swapaxes(-1, -2)
    np.testing.assert_allclose(product, g, rtol=1e-9, atol=1e-11)


def test_zeros_on_the_diagonal_of_a_triangle_give_what_is_not_finite() -> None:
    a, b = tg.tensor([[0.0, 0.0], [1.0, 2.0]]), tg.tensor([[1.0], [1.0]], requires_grad=True)
    tg.linalg.solve_triangular(a, b, upper=False).sum().backward()
    assert not np.isfinite(b.grad.numpy()).all()


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 4, 4), (0, 3, 3), (50, 50)], ids=str)
def test_eigenvectors_give_the_same_gradient_in_both_passes(shape: tuple[int, ...]) -> None:
    a = RNG.normal(size=shape)
    plain, recorded = both_passes(lambda x: weighted(tg.linalg.eigh(x + x.mT)), a)
    np.testing.assert_allclose(plain, recorded, rtol=1e-7, atol=1e-9 * max(1.0, np.abs(recorded).max(initial=0.0)))


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 4, 3), (2, 3, 4), (0, 3, 3), (30, 20)], ids=str)
def test_singular_vectors_give_the_same_gradient_in_both_passes(shape: tuple[int, ...]) -> None:
    a = RNG.normal(size=shape)
    plain, recorded = both_passes(lambda x: weighted(tg.linalg.svd(x, full_matrices=False)), a)
    np.testing.assert_allclose(plain, recorded, rtol=1e-7, atol=1e-9 * max(1.0, np.abs(recorded).max(initial=0.0)))


def test_equal_values_of_one_matrix_leave_the_others_of_a_batch_alone() -> None:
    a = np.stack([np.diag([1.0, 1.0, 2.0]), np.diag([1.0, 2.0, 4.0])])
    x = tg.tensor(a, requires_grad=True)
    (tg.linalg.eigh(x).eigenvectors * tg.tensor(RNG.normal(size=a.shape))).sum().backward()
    assert not np.isfinite(x.grad.numpy()[0]).all()
    assert np.isfinite(x.grad.numpy()[1]).all()
