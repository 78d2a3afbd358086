"""Gradients of gradients: create_graph to any depth, through scalars, arrays and structural operations."""

from collections.abc import Callable

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf, node_name, numbers

import tapegrad as tg

grad = tg.autograd.grad


@pytest.mark.parametrize("start", [1.5, [1.5]])
def test_derivatives_of_a_power_down_to_the_constant(start: float | list[float]) -> None:
    x = leaf(start)
    y = x**4
    orders = []
    for _ in range(4):
        (y,) = grad(y, x, create_graph=True)
        orders.append(y.item())
    np.testing.assert_allclose(orders, [4 * 1.5**3, 12 * 1.5**2, 24 * 1.5, 24.0], rtol=1e-13)


@pytest.mark.parametrize("order", range(1, 9))
def test_every_derivative_of_sine(order: int) -> None:
    x = leaf(0.7)
    y = tg.sin(x)
    for _ in range(order):
        (y,) = grad(y, x, create_graph=True)
    np.testing.assert_allclose(y.item(), np.sin(0.7 + order * np.pi / 2), rtol=1e-12)


def test_tenth_derivative_of_exp() -> None:
    x = leaf(0.3)
    y = tg.exp(x)
    for _ in range(10):
        (y,) = grad(y, x, create_graph=True)
    np.testing.assert_allclose(y.item(), np.exp(0.3), rtol=1e-14)


def test_recorded_gradient_of_a_square_is_a_product() -> None:
    x = leaf([3.0])
    assert node_name(grad(x**2, x, create_graph=True)[0]) == "MulBackward0"


def test_mixed_second_derivative() -> None:
    x, y = leaf(1.5), leaf(0.5)
    (gx,) = grad(tg.sin(x * y), x, create_graph=True)
    np.testing.assert_allclose(grad(gx, y)[0].item(), np.cos(0.75) - 0.75 * np.sin(0.75), rtol=1e-13)


def test_second_derivative_is_symmetric() -> None:
    x, y = leaf([0.3, -0.7]), leaf([1.1, 0.4])
    f = (tg.exp(x * y) / (1.0 + y * y)).sum()
    gx, gy = grad(f, [x, y], create_graph=True)
    np.testing.assert_allclose(numbers(grad(gx.sum(), y, retain_graph=True)[0]), numbers(grad(gy.sum(), x)[0]), rtol=1e-12)


def hessian(f: Callable[[tg.Tensor], tg.Tensor], start: np.ndarray) -> np.ndarray:
    x = leaf(start)
    (g,) = grad(f(x), x, create_graph=True)
    return np.array([numbers(grad(g[k], x, retain_graph=True, materialize_grads=True)[0]) for k in range(len(start))])


def test_hessian_of_rosenbrock() -> None:
    expected = [[1200 * 1.3**2 - 400 * 0.7 + 2, -400 * 1.3], [-400 * 1.3, 200.0]]
    got = hessian(lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2, np.array([1.3, 0.7]))
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_hessian_of_a_quadratic_form() -> None:
    a = np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 3.0], [4.0, 0.0, 2.0]])
    got = hessian(lambda x: x @ (tg.tensor(a) @ x), np.array([1.0, -2.0, 0.5]))
    np.testing.assert_allclose(got, a + a.T, rtol=1e-13)


def test_hessian_of_log_sum_exp() -> None:
    start = np.array([0.2, -0.4, 1.0])
    p = np.exp(start) / np.exp(start).sum()
    np.testing.assert_allclose(hessian(lambda x: x.logsumexp(0), start), np.diag(p) - np.outer(p, p), rtol=1e-11)


def test_hessian_of_a_product_of_all() -> None:
    start = np.array([2.0, 3.0, 5.0])
    expected = [[0.0, 5.0, 3.0], [5.0, 0.0, 2.0], [3.0, 2.0, 0.0]]
    np.testing.assert_allclose(hessian(lambda x: x.prod(), start), expected, rtol=1e-12, atol=1e-12)


def test_hessian_of_a_product_with_a_zero() -> None:
    expected = [[0.0, 5.0, 3.0], [5.0, 0.0, 0.0], [3.0, 0.0, 0.0]]
    np.testing.assert_allclose(hessian(lambda x: x.prod(), np.array([0.0, 3.0, 5.0])), expected, atol=1e-12)


def test_hessian_of_a_norm() -> None:
    start = np.array([3.0, 4.0])
    expected = np.eye(2) / 5.0 - np.outer(start, start) / 125.0
    np.testing.assert_allclose(hessian(lambda x: x.norm(), start), expected, rtol=1e-12, atol=1e-14)


SMOOTH: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "broadcast": lambda x: ((x.unsqueeze(0) - x.unsqueeze(1)) ** 2 * x).sum(),
    "views": lambda x: (x.view(2, 2).t() * x.reshape(2, 2)).sum(),
    "cat": lambda x: (tg.cat([x[:2], x * x]) ** 3).sum(),
    "stack": lambda x: (tg.stack([x, x.sin()]) ** 2).prod(0).sum(),
    "matmul": lambda x: (x.view(2, 2) @ x.view(2, 2).exp()).sum(),
    "mean and var": lambda x: x.var() * x.mean() + x.std(),
    "softmax": lambda x: (x.softmax(0) * x).sum(),
    "log_softmax": lambda x: (x.log_softmax(0) * x.sin()).sum(),
    "cumsum": lambda x: (x.cumsum(0) ** 2).sum(),
    "cumprod": lambda x: x.cumprod(0).sum(),
    "index": lambda x: (x[tg.tensor([0, 0, 3])] ** 3).sum() * x[1],
    "mask": lambda x: (x[x > 0.0] ** 3).sum(),
    "where": lambda x: tg.where(x > 0.0, x**3, x.exp()).sum(),
    "max": lambda x: x.max() ** 3 + x.min() ** 2,
    "split": lambda x: (x.split(2)[0] * x.chunk(2)[1].exp()).sum(),
    "outer": lambda x: (tg.outer(x, x) * tg.outer(x.sin(), x)).sum(),
    "logistic": lambda x: tg.log(1.0 + tg.exp(-x)).sum() ** 2,
}


@pytest.mark.parametrize("name", SMOOTH)
def test_hessian_agrees_with_differences_of_the_gradient(name: str) -> None:
    start = np.array([0.4, -0.3, 1.1, 0.9])
    step = 1e-5

    def gradient(point: np.ndarray) -> np.ndarray:
        x = leaf(point)
        return numbers(grad(SMOOTH[name](x), x)[0])

    differences = [(gradient(start + step * e) - gradient(start - step * e)) / (2 * step) for e in np.eye(4)]
    np.testing.assert_allclose(hessian(SMOOTH[name], start), differences, rtol=1e-6, atol=1e-7)


def test_third_order_through_a_matrix_product() -> None:
    x = leaf([[0.5, -1.0], [2.0, 0.3]])
    y = (x @ x @ x).sum()
    (first,) = grad(y, x, create_graph=True)
    (second,) = grad(first.sum(), x, create_graph=True)
    (third,) = grad(second.sum(), x)
    # The sum over all entries of x @ x @ x is a cubic form, so its third derivative along ones, ones, . is constant.
    e = np.ones((2, 2))
    cases = [np.eye(1, 4, k).reshape(2, 2) for k in range(4)]
    expected = [sum(2 * (a @ b @ c).sum() for a, b, c in ((d, e, e), (e, d, e), (e, e, d))) for d in cases]
    np.testing.assert_allclose(numbers(third).ravel(), expected, rtol=1e-12)


def test_gradient_penalty() -> None:
    x, w = leaf([1.0, 2.0]), leaf([0.5, -0.5])
    (gx,) = grad((w * x * x).sum(), x, create_graph=True)
    (gx * gx).sum().backward()
    assert_values(w.grad, [4.0, -8.0 * 2.0 * 0.5 * 2.0])


def test_recorded_gradient_with_respect_to_the_seed() -> None:
    x, seed = leaf([1.0, 2.0]), leaf([1.0, 1.0])
    (gx,) = grad(x**3, x, seed, create_graph=True)
    assert_values(grad(gx.sum(), seed)[0], [3.0, 12.0])


@pytest.mark.filterwarnings("ignore:.*reference cycle:UserWarning")
def test_backward_through_a_recorded_grad_attribute() -> None:
    x = leaf([2.0])
    (x**3).backward(create_graph=True)
    first = x.grad
    x.grad = None
    first.backward()
    assert_values(x.grad, [12.0])


def test_second_order_where_one_path_is_linear() -> None:
    x = leaf([2.0])
    (g,) = grad(x * 3 + x**2, x, create_graph=True)
    assert_values(grad(g, x)[0], [2.0])


def test_newton_iteration_with_recorded_gradients_converges() -> None:
    x = leaf(2.0)
    for _ in range(8):
        (g,) = grad(x**4 / 4 - 3 * x, x, create_graph=True)
        (h,) = grad(g, x)
        with tg.no_grad():
            x -= g / h
    np.testing.assert_allclose(x.item(), 3.0 ** (1 / 3), rtol=1e-14)


def test_differentiating_an_optimisation_step() -> None:
    rate, w = leaf(0.1), leaf([1.0, -2.0])
    (g,) = grad((w * w).sum(), w, create_graph=True)
    stepped = w - rate * g
    (stepped * stepped).sum().backward()
    # d/drate |w - 2 rate w|^2 = -4 (1 - 2 rate) |w|^2
    np.testing.assert_allclose(rate.grad.item(), -4 * 0.8 * 5.0, rtol=1e-13)
