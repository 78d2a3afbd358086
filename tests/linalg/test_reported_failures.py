"""Matrices that have no factorisation, inverse or solution, reported beside those that have one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tapegrad as tg

L = tg.linalg
RNG = np.random.default_rng(4)
GOOD = RNG.normal(size=(3, 3)) + 3.0 * np.eye(3)
SINGULAR = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 1.0, 1.0]])
BOTH = np.stack([GOOD, SINGULAR])
RIGHT = RNG.normal(size=(3, 4))
SYMMETRIC = np.stack([GOOD @ GOOD.T, np.diag([1.0, 2.0, -1.0])])


@pytest.mark.parametrize(
    ("call", "good"),
    [
        (lambda x: L.inv_ex(x), np.linalg.inv(GOOD)),
        (lambda x: L.solve_ex(x, tg.tensor(RIGHT)), np.linalg.solve(GOOD, RIGHT)),
        (lambda x: L.solve_ex(x, tg.tensor(RIGHT[:, 0])), np.linalg.solve(GOOD, RIGHT[:, 0])),
        (lambda x: L.solve_ex(x, tg.tensor(RIGHT.T), left=False), np.linalg.solve(GOOD.T, RIGHT).T),
    ],
)
def test_singular_matrix_gives_nan_and_leaves_the_others_alone(call: Callable[[Any], Any], good: np.ndarray) -> None:
    found, info = call(tg.tensor(BOTH))
    assert (info.tolist(), info.dtype) == ([0, 3], tg.int32)
    np.testing.assert_allclose(found[0], good, rtol=1e-12)
    assert np.isnan(found[1].numpy()).all()


@pytest.mark.parametrize("upper", [False, True])
def test_first_minor_that_is_not_positive_is_told(upper: bool) -> None:
    found, info = L.cholesky_ex(tg.tensor(SYMMETRIC), upper=upper)
    assert info.tolist() == [0, 3]
    np.testing.assert_allclose(found[0], scipy.linalg.cholesky(SYMMETRIC[0], lower=not upper), rtol=1e-12, atol=1e-15)
    assert np.isnan(found[1].numpy()).all()


def test_gradient_of_what_has_an_inverse_is_that_of_inv() -> None:
    x, alone = tg.tensor(BOTH, requires_grad=True), tg.tensor(GOOD, requires_grad=True)
    (found,) = tg.autograd.grad(L.inv_ex(x).inverse[0].square().sum(), x)
    (expected,) = tg.autograd.grad(L.inv(alone).square().sum(), alone)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)


def test_pivots_that_are_zero_are_told() -> None:
    found = L.lu_factor_ex(tg.tensor(BOTH))
    assert found.info.tolist() == [0, 3]
    np.testing.assert_array_equal(found.LU, L.lu_factor(tg.tensor(BOTH)).LU)


SQUARE_ONE = tg.tensor(SINGULAR)


@pytest.mark.parametrize(
    "call",
    [
        lambda: L.inv_ex(SQUARE_ONE, check_errors=True),
        lambda: L.solve_ex(SQUARE_ONE, tg.ones(3), check_errors=True),
        lambda: L.cholesky_ex(-SQUARE_ONE, check_errors=True),
        lambda: L.lu_factor_ex(SQUARE_ONE, check_errors=True),
    ],
)
def test_errors_are_raised_on_request(call: Callable[[], Any]) -> None:
    with pytest.raises(L.LinAlgError, match="singular|not positive-definite|division by zero"):
        call()


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 5, 3), (3, 2, 3), (0, 3), (3, 0)])
def test_factors_of_rectangles_give_the_matrix(shape: tuple[int, ...]) -> None:
    a = RNG.normal(size=shape)
    P, lower, upper = L.lu(tg.tensor(a))
    np.testing.assert_allclose(P @ lower @ upper, a, atol=1e-14)
    factors = L.lu_factor(tg.tensor(a))
    assert factors.pivots.shape == (*shape[:-2], min(shape[-2:]))
    np.testing.assert_array_equal(factors.LU.triu()[..., : min(shape[-2:]), :], upper)


def test_tall_matrix_of_low_rank_has_factors() -> None:
    a = np.outer(np.arange(1.0, 5.0), [1.0, 2.0])
    P, lower, upper = L.lu(tg.tensor(a))
    np.testing.assert_allclose(P @ lower @ upper, a, atol=1e-14)


@pytest.mark.parametrize("call", [L.lu, L.lu_factor, L.lu_factor_ex])
def test_exchange_of_rows_cannot_be_left_out(call: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="LU without pivoting is not implemented on the CPU"):
        call(tg.ones(2, 2), pivot=False)


def test_powers_need_a_second_column() -> None:
    with pytest.raises(RuntimeError, match=r"N must be greater than 1, but got 1 for a tensor of shape \[3\]"):
        L.vander(tg.ones(3), N=1)
    assert L.vander(tg.tensor(3), N=3).tolist() == [[1, 3, 9]]


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (3, 0), (0, 3)])
def test_matrices_without_pivots_have_no_zero_among_them(shape: tuple[int, ...]) -> None:
    info = L.lu_factor_ex(tg.zeros(*shape)).info
    assert info.dtype == np.int32
    assert info.tolist() == np.zeros(shape[:-2]).tolist()
