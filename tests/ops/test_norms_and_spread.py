"""Variance, standard deviation and norms: values against NumPy, derivatives, zeros, extreme magnitudes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import leaf
from numerical import check_gradients, gradient
from sample_points import INF, MATRIX

import tapegrad as tg


@pytest.mark.point(82)
@pytest.mark.parametrize(
    ("arguments", "ddof"),
    [({}, 1), ({"unbiased": False}, 0), ({"unbiased": True}, 1), ({"correction": 0}, 0), ({"correction": 2.5}, 2.5)],
    ids=str,
)
@pytest.mark.parametrize("name", ["var", "std"])
def test_spread_divides_by_the_degrees_of_freedom(name: str, arguments: dict[str, Any], ddof: float) -> None:
    got = getattr(tg, name)(tg.tensor(MATRIX), **arguments).item()
    np.testing.assert_allclose(got, getattr(np, name)(MATRIX, ddof=ddof), rtol=1e-12)


def test_a_bool_in_place_of_the_dimension_is_unbiased() -> None:
    np.testing.assert_allclose(tg.var(tg.tensor(MATRIX), False).item(), np.var(MATRIX), rtol=1e-12)


@pytest.mark.parametrize("name", ["var", "std"])
def test_spread_derivatives_to_third_order(name: str) -> None:
    check_gradients(lambda x: getattr(tg, name)(x, 0), MATRIX[:, :2], order=3, tolerance=1e-5)


@pytest.mark.point(78)
def test_std_of_equal_elements_has_zero_derivatives() -> None:
    x = leaf([2.0, 2.0, 2.0])
    (first,) = tg.autograd.grad(tg.std(x), x, create_graph=True)
    (second,) = tg.autograd.grad((first * tg.tensor([1.0, 2.0, 3.0])).sum(), x)
    np.testing.assert_array_equal([first.detach().numpy(), second.numpy()], np.zeros((2, 3)))


@pytest.mark.point(82)
@pytest.mark.parametrize("name", ["var", "std"])
def test_spread_without_degrees_of_freedom_warns_and_is_nan(name: str) -> None:
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert np.isnan(getattr(tg, name)(tg.tensor([1.0])).item())


ORDERS = [1, 2, 3, 1.5, 4, INF, -INF, "fro", None, 0, -1, 0.5]


@pytest.mark.parametrize("p", ORDERS, ids=str)
@pytest.mark.parametrize("dim", [None, 0])
def test_norm_equals_numpy(p: Any, dim: int | None) -> None:
    flat = MATRIX.ravel() if dim is None else MATRIX
    expected = np.linalg.norm(flat, 2 if p in ("fro", None) else p, axis=dim)
    np.testing.assert_allclose(tg.norm(tg.tensor(MATRIX), p, dim).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("p", ORDERS, ids=str)
def test_norm_derivatives(p: Any) -> None:
    check_gradients(lambda x: tg.norm(x, p, 1), MATRIX)


@pytest.mark.point(78)
@pytest.mark.parametrize("p", ORDERS[:-2], ids=str)
def test_norm_of_zeros_has_zero_derivative(p: Any) -> None:
    np.testing.assert_array_equal(gradient(lambda x: tg.norm(x, p), [0.0, 0.0]), [0.0, 0.0])


@pytest.mark.parametrize("p", [2, 3, 1.5])
def test_norm_of_zeros_has_zero_second_derivative(p: float) -> None:
    x = leaf([[0.0, 0.0], [3.0, 4.0]])
    (first,) = tg.autograd.grad(tg.norm(x, p, 1).sum(), x, create_graph=True)
    (second,) = tg.autograd.grad((first * tg.tensor([1.0, 2.0])).sum(), x)
    np.testing.assert_array_equal(second.numpy()[0], [0.0, 0.0])


@pytest.mark.point(79)
def test_infinity_norm_shares_ties_evenly() -> None:
    np.testing.assert_array_equal(gradient(lambda x: tg.norm(x, INF), [3.0, -3.0, 1.0]), [0.5, -0.5, 0.0])


@pytest.mark.parametrize("scale", [1e200, 1e-200, 5e-324])
@pytest.mark.parametrize("p", [2, 3])
def test_norm_neither_overflows_nor_underflows(scale: float, p: int) -> None:
    expected = (2.0 ** (1.0 / p)) * scale
    np.testing.assert_allclose(tg.norm(tg.tensor([scale, -scale]), p).item(), expected, rtol=1e-12, atol=5e-324)


@pytest.mark.parametrize(("of_rows", "of_weights"), [(np.float32, np.float64), (np.float64, np.float32)])
def test_weights_of_covariances_are_as_exact_as_they_are_given(of_rows: Any, of_weights: Any) -> None:
    rows, weights = np.array([[1.0, 4.0, 2.0], [0.5, -1.0, 3.0]], of_rows), np.array([0.1, 0.7, 0.3], of_weights)
    found = tg.cov(tg.tensor(rows), aweights=tg.tensor(weights), fweights=tg.tensor([1, 2, 3]))
    assert found.dtype == tg.float64
    np.testing.assert_allclose(found.numpy(), np.cov(rows, aweights=weights, fweights=[1, 2, 3]), rtol=1e-14)


@pytest.mark.parametrize(
    "of", [lambda x: tg.linalg.norm(x), lambda x: tg.linalg.norm(x, 3), tg.std, lambda x: tg.linalg.norm(x[None], dim=1)[0]]
)
def test_what_is_not_chosen_has_no_slope_where_it_is_nan(of: Callable[[tg.Tensor], tg.Tensor]) -> None:
    x = tg.tensor([math.nan, 1.0, 2.0], requires_grad=True)
    tg.where(tg.tensor(True), x[1], of(x)).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 1.0, 0.0])
    x.grad = None
    of(x).backward()
    assert np.isnan(x.grad.numpy()).all()
