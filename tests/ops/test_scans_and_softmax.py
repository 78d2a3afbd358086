"""Products, scans and sums of exponentials: derivatives with zeros and infinities."""

import numpy as np
import pytest
from engine_fixtures import leaf
from numerical import check_gradients, gradient
from sample_points import CUBE, INF, MATRIX, POINTS

import tapegrad as tg


@pytest.mark.point(80)
@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
def test_prod_derivatives_are_exact_with_zeros(zeros: int) -> None:
    x = np.array([2.0, -3.0, 5.0, 0.5])
    x[:zeros] = 0.0
    check_gradients(tg.prod, x, order=3)


@pytest.mark.point(80)
@pytest.mark.parametrize("dim", [0, 1])
def test_prod_along_a_dimension_is_exact_with_zeros(dim: int) -> None:
    x = np.array([[0.0, 2.0, 3.0], [4.0, 0.0, 0.0]])
    check_gradients(lambda x: tg.prod(x, dim), x, order=3)


def test_prod_derivative_survives_underflow() -> None:
    np.testing.assert_allclose(gradient(tg.prod, [1e-200, 1e-200, 3.0]), [3e-200, 3e-200, 0.0])


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dim", [0, 1, -2])
def test_scan_equals_numpy(name: str, dim: int) -> None:
    got = getattr(tg, name)(tg.tensor(CUBE), dim)
    np.testing.assert_allclose(got.numpy(), getattr(np, name)(CUBE, axis=dim), rtol=1e-12)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_running_sums_of_large_arrays_have_numpys_bits_both_ways(dim: int) -> None:
    values, g = (np.random.default_rng(seed).normal(size=(12, 20, 15)) for seed in (1, 2))
    x = leaf(values)
    z = tg.cumsum(x, dim)
    np.testing.assert_array_equal(z.detach().numpy(), np.cumsum(values, dim))
    z.backward(tg.tensor(g))
    np.testing.assert_array_equal(x.grad.numpy(), np.flip(np.cumsum(np.flip(g, dim), dim), dim))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("point", ["vector", "matrix", "strided", "number"])
def test_scan_derivatives(name: str, point: str) -> None:
    check_gradients(lambda x: getattr(tg, name)(x, -1), POINTS[point])


@pytest.mark.point(80)
@pytest.mark.parametrize("x", [[0.0, 2.0, 3.0], [2.0, 0.0, 3.0], [2.0, 0.0, 0.0, 4.0], [0.0, 0.0]], ids=str)
def test_cumprod_derivatives_are_exact_with_zeros(x: list[float]) -> None:
    check_gradients(lambda x: tg.cumprod(x, 0), x, order=3)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scan_of_nothing_is_empty(name: str) -> None:
    x = leaf(np.zeros((0, 3)))
    z = getattr(tg, name)(x, 0)
    z.sum().backward()
    assert z.shape == x.grad.shape == (0, 3)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_equals_its_definition(dim: int) -> None:
    e = np.exp(CUBE)
    expected = e / e.sum(dim, keepdims=True)
    np.testing.assert_allclose(tg.softmax(tg.tensor(CUBE), dim).numpy(), expected, rtol=1e-12)


def test_log_softmax_is_the_logarithm_of_softmax() -> None:
    x = tg.tensor(MATRIX)
    np.testing.assert_allclose(tg.log_softmax(x, 1).numpy(), np.log(tg.softmax(x, 1).numpy()), rtol=1e-12)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize("point", ["vector", "matrix", "strided", "number"])
def test_exponential_sum_derivatives(name: str, point: str) -> None:
    check_gradients(lambda x: getattr(tg, name)(x, -1), POINTS[point], order=3, tolerance=1e-5)


@pytest.mark.parametrize(
    ("x", "value", "expected"),
    [
        ([1000.0, 1000.0], 1000.0 + np.log(2.0), [0.5, 0.5]),
        ([-1e4, 0.0], 0.0, [0.0, 1.0]),
        ([-INF, 1.0], 1.0, [0.0, 1.0]),
        ([-INF, -INF], -INF, [0.0, 0.0]),
        ([INF, 1.0], INF, [1.0, 0.0]),
        ([INF, INF, 1.0], INF, [0.5, 0.5, 0.0]),
    ],
    ids=str,
)
def test_logsumexp_at_the_edges(x: list[float], value: float, expected: list[float]) -> None:
    z = leaf(x)
    result = tg.logsumexp(z, 0)
    result.backward()
    np.testing.assert_allclose(result.item(), value, rtol=1e-15)
    np.testing.assert_allclose(z.grad.numpy(), expected, rtol=1e-12)


def test_logsumexp_of_integers_is_of_the_default_dtype() -> None:
    assert tg.logsumexp(tg.tensor([1, 2]), 0).dtype == tg.get_default_dtype()
