"""Determinants of tracked matrices keep their factors: the values are NumPy's, and the inverse comes from the factors."""

import numpy as np
import pytest

import tapegrad as tg

RNG = np.random.default_rng(6)
SHAPES = [(1, 1), (2, 2), (3, 3), (50, 50), (4, 3, 3), (2, 2, 20, 20)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_have_numpys_bits(shape: tuple[int, ...]) -> None:
    a = RNG.normal(size=shape)
    x = tg.tensor(a, requires_grad=True)
    np.testing.assert_array_equal(tg.linalg.det(x).detach().numpy(), np.linalg.det(a))
    for found, expected in zip(tg.linalg.slogdet(x), np.linalg.slogdet(a), strict=True):
        np.testing.assert_array_equal(found.detach().numpy(), expected)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_are_inverses(shape: tuple[int, ...]) -> None:
    a = RNG.normal(size=shape) + 3.0 * np.eye(shape[-1])
    inverse = np.linalg.inv(a).swapaxes(-1, -2)
    x, y = (tg.tensor(a, requires_grad=True) for _ in range(2))
    tg.linalg.slogdet(x).logabsdet.sum().backward()
    tg.linalg.det(y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), inverse, rtol=1e-9, atol=1e-12)
    expected = np.linalg.det(a)[..., None, None] * inverse
    np.testing.assert_allclose(y.grad.numpy(), expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


def test_one_singular_matrix_of_a_batch_leaves_the_others_alone() -> None:
    a = RNG.normal(size=(3, 4, 4))
    a[1, 2] = a[1, 0]
    x = tg.tensor(a, requires_grad=True)
    tg.linalg.det(x).sum().backward()
    for k in range(3):
        alone = tg.tensor(a[k], requires_grad=True)
        tg.linalg.det(alone).backward()
        np.testing.assert_allclose(x.grad.numpy()[k], alone.grad.numpy(), rtol=1e-9, atol=1e-12)


def test_right_sides_are_stretched_along_a_batch_with_the_bits_of_each_matrix_alone() -> None:
    a, b = np.triu(RNG.normal(size=(3, 45, 45))) + 5.0 * np.eye(45), RNG.normal(size=(45, 2))
    x, y = tg.tensor(a, requires_grad=True), tg.tensor(b, requires_grad=True)
    solutions = tg.linalg.solve(x, y)
    np.testing.assert_array_equal(solutions.detach().numpy(), np.linalg.solve(a, b))
    alone = [tg.linalg.solve_triangular(tg.tensor(one), tg.tensor(b), upper=True).numpy() for one in a]
    np.testing.assert_array_equal(tg.linalg.solve_triangular(x, y, upper=True).detach().numpy(), alone)
    solutions.sum().backward()
    back = np.linalg.solve(a.swapaxes(-1, -2), np.ones((3, 45, 2)))
    np.testing.assert_allclose(y.grad.numpy(), back.sum(0), rtol=1e-9)
    np.testing.assert_allclose(x.grad.numpy(), -back @ solutions.detach().numpy().swapaxes(-1, -2), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(5, 3), (8, 2), (2, 6, 4)], ids=str)
def test_factors_of_a_tall_matrix_are_differentiated_twice(shape: tuple[int, ...]) -> None:
    a = tg.tensor(RNG.normal(size=shape), requires_grad=True)
    assert tg.autograd.gradcheck(lambda x: tg.linalg.lu_factor(x)[0], (a,))
    assert tg.autograd.gradgradcheck(lambda x: tg.linalg.lu_factor(x)[0], (a,))
    assert tg.linalg.lu_factor(a)[0].grad_fn.name() == "LinalgLuFactorExBackward0"
