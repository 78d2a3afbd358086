"""Every driver against closed forms, complex step, central differences, and the others."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

MATRIX = np.array([[1.0, 2.0, -1.0], [0.5, -1.0, 3.0]])
X = np.array([0.4, 1.1, -0.7])
RNG = np.random.default_rng(3)
V, W = RNG.normal(size=3), RNG.normal(size=3)


# Written with operators and NumPy's functions only, so that complex arrays go through them too.
VECTOR_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: np.sin(x) * x / (2.0 + np.cos(x)),
    "shifted": lambda x: np.exp(x) * x[0] - x[1],
    "scalars": lambda x: np.stack([x[0] * x[1], np.sin(x[2]) * x[0], x[1] / x[0], x[2] ** 2]),
    "slices": lambda x: np.concatenate([x[1:] - x[:-1] ** 2, 1.0 - x[:1]]),
    "matrix": lambda x: np.tanh(MATRIX @ x),
    "outer": lambda x: x[:, None] * x[None, :],
    "one": lambda x: np.sum(x**2, keepdims=True),
}


def reduced(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A scalar function with a Hessian that couples everything."""
    return lambda x: (f(x) ** 2).sum() + f(x).sum() ** 3


SCALAR_FUNCTIONS = {name: reduced(f) for name, f in VECTOR_FUNCTIONS.items()}
vector_functions = pytest.mark.parametrize("f", VECTOR_FUNCTIONS.values(), ids=VECTOR_FUNCTIONS)
scalar_functions = pytest.mark.parametrize("f", SCALAR_FUNCTIONS.values(), ids=SCALAR_FUNCTIONS)


def complex_step(f: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    """Jacobian to rounding: no difference is taken."""
    columns = [np.imag(f(x + 1e-30j * e)) / 1e-30 for e in np.eye(len(x))]
    return np.stack(columns, axis=-1)


def central(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    return np.stack([(f(x + step * e) - f(x - step * e)) / (2.0 * step) for e in np.eye(len(x))], axis=-1)


@scalar_functions
def test_value_and_gradient(f: Callable[[Any], Any]) -> None:
    value, gradient = tg.value_and_grad(f)(X)
    assert value == pytest.approx(f(X), rel=1e-14)
    np.testing.assert_allclose(gradient, complex_step(f, X), rtol=1e-12, atol=1e-13)


@vector_functions
@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_jacobian(f: Callable[[Any], Any], mode: str) -> None:
    value, jacobian = tg.value_and_jacobian(f, mode=mode)(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-14)
    np.testing.assert_allclose(jacobian, complex_step(f, X), rtol=1e-12, atol=1e-13)


def test_an_unknown_mode() -> None:
    with pytest.raises(ValueError, match="mode must be one of"):
        tg.jacobian(np.sin, mode="backward")


@scalar_functions
def test_hessian(f: Callable[[Any], Any]) -> None:
    hessian = tg.hessian(f)(X)
    np.testing.assert_allclose(hessian, central(tg.grad(f), X), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(hessian, hessian.T)


@scalar_functions
def test_hessian_vector_product(f: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(tg.hvp(f, X, V), tg.hessian(f)(X) @ V, rtol=1e-11, atol=1e-11)


@vector_functions
def test_forward_product(f: Callable[[Any], Any]) -> None:
    value, tangent = tg.jvp(f, (X,), (V,))
    np.testing.assert_allclose(value, f(X), rtol=1e-14)
    np.testing.assert_allclose(tangent, np.imag(f(X + 1e-30j * V)) / 1e-30, rtol=1e-12, atol=1e-13)


@vector_functions
def test_products_from_both_sides_agree(f: Callable[[Any], Any]) -> None:
    _, tangent = tg.jvp(f, (X,), (V,))
    _, pull = tg.vjp(f, X)
    weights = np.cos(np.arange(tangent.size)).reshape(tangent.shape)
    (cotangent,) = pull(weights)
    assert np.sum(weights * tangent) == pytest.approx(cotangent @ V, rel=1e-11)


@vector_functions
def test_linearize_gives_a_linear_function(f: Callable[[Any], Any]) -> None:
    value, product = tg.linearize(f, X)
    np.testing.assert_allclose(value, f(X), rtol=1e-14)
    np.testing.assert_allclose(product(V), tg.jvp(f, (X,), (V,))[1], rtol=1e-14)
    np.testing.assert_allclose(product(2.0 * V - W), 2.0 * product(V) - product(W), rtol=1e-11, atol=1e-12)


def test_products_can_be_taken_again() -> None:
    _, pull = tg.vjp(lambda x: x * x, X)
    np.testing.assert_allclose(pull(V)[0], 2.0 * X * V, rtol=1e-15)
    np.testing.assert_allclose(pull(W)[0], 2.0 * X * W, rtol=1e-15)


def test_products_are_those_of_the_point_whatever_becomes_of_its_array() -> None:
    x, matrix = X.copy(), np.eye(3)
    _, pull = tg.vjp(lambda x: (matrix @ (x * x)) * x, x)
    _, push = tg.linearize(lambda x: (matrix @ (x * x)) * x, x)
    model = tg.gauss_newton(lambda x: x * x * x, x)
    x[:], matrix[:] = 7.0, 7.0
    for product in (pull(V)[0], push(V)):
        np.testing.assert_allclose(product, 3.0 * X * X * V, rtol=1e-14)
    np.testing.assert_allclose(model.product(V), 9.0 * X**4 * V, rtol=1e-14)


def test_several_arguments() -> None:
    def f(x: Any, y: Any) -> Any:
        return {"product": x * y, "sum": (x + y).sum()}

    value, tangent = tg.jvp(f, (X, 2.0), (V, 1.0))
    np.testing.assert_allclose(tangent["product"], 2.0 * V + X, rtol=1e-14)
    assert tangent["sum"] == pytest.approx(V.sum() + 3.0)
    assert value["sum"] == pytest.approx(X.sum() + 6.0)
    _, pull = tg.vjp(f, X, 2.0)
    by_x, by_y = pull({"product": W, "sum": 1.0})
    np.testing.assert_allclose(by_x, 2.0 * W + 1.0, rtol=1e-14)
    assert by_y == pytest.approx(X @ W + 3.0)


def test_aux_of_products() -> None:
    def f(x: Any) -> Any:
        return x * x, "aux"

    assert tg.jvp(f, (3.0,), (1.0,), has_aux=True) == (9.0, 6.0, "aux")
    assert tg.vjp(f, 3.0, has_aux=True)[::2] == (9.0, "aux")
    assert tg.linearize(f, 3.0, has_aux=True)[::2] == (9.0, "aux")


def test_elementwise_gradient() -> None:
    np.testing.assert_allclose(tg.elementwise_grad(np.tanh)(X), 1.0 - np.tanh(X) ** 2, rtol=1e-14)
    assert tg.elementwise_grad(lambda x: x * x)(3.0) == 6.0
    np.testing.assert_allclose(tg.elementwise_grad(tg.elementwise_grad(np.sin))(X), -np.sin(X), rtol=1e-14)


@vector_functions
def test_gauss_newton(f: Callable[[Any], Any]) -> None:
    model = tg.gauss_newton(f, X)
    jacobian = complex_step(f, X).reshape(-1, 3)
    np.testing.assert_allclose(model.value, f(X), rtol=1e-14)
    np.testing.assert_allclose(model.gradient, jacobian.T @ f(X).reshape(-1), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(model.product(V), jacobian.T @ (jacobian @ V), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(model.matrix(), jacobian.T @ jacobian, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("n", [2, 9, 40])
def test_hessian_of_a_loop_over_scalars(n: int) -> None:
    x = np.linspace(-1.2, 1.0, n)

    def rosenbrock(x: Any) -> Any:
        value = 0.0
        for i in range(len(x) - 1):
            value = value + 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
        return value

    expected = np.zeros((n, n))
    inner = np.arange(n - 1)
    expected[inner, inner] = 1200.0 * x[:-1] ** 2 - 400.0 * x[1:] + 2.0
    expected[inner + 1, inner + 1] += 200.0
    expected[inner, inner + 1] = expected[inner + 1, inner] = -400.0 * x[:-1]
    np.testing.assert_allclose(tg.hessian(rosenbrock)(x), expected, rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(tg.hvp(rosenbrock, x, np.cos(x)), expected @ np.cos(x), rtol=1e-12, atol=1e-11)


def test_a_tall_and_a_wide_jacobian() -> None:
    tall = np.random.default_rng(0).normal(size=(50, 3))
    np.testing.assert_allclose(tg.jacobian(lambda x: np.sin((tall * x).sum(-1)))(X), np.cos(tall @ X)[:, None] * tall, rtol=1e-12)
    wide = np.random.default_rng(0).normal(size=(3, 50))
    y = np.linspace(-1.0, 1.0, 50)
    np.testing.assert_allclose(tg.jacobian(lambda y: np.sin((wide * y).sum(-1)))(y), np.cos(wide @ y)[:, None] * wide, rtol=1e-12)


I = np.eye(2)


class Cube(tg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3.0 * x**2 * g


@pytest.mark.parametrize("mode", [tg.no_grad, tg.inference_mode], ids=["no_grad", "inference_mode"])
@pytest.mark.parametrize(
    "cube",
    [
        Cube.apply,
        tg.checkpoint(lambda x: x**3),
        lambda x: np.einsum("i,ij,j->i", x, I, x * x),
    ],
    ids=["custom function", "checkpoint", "einsum"],
)
def test_derivatives_do_not_depend_on_the_mode_around(cube: Any, mode: Any) -> None:
    x, v = np.array([2.0, -3.0]), np.array([1.0, 0.5])
    with mode():
        np.testing.assert_allclose(tg.jacobian(cube, mode="forward")(x), np.diag(3.0 * x**2), rtol=1e-13)
        np.testing.assert_allclose(tg.jvp(cube, (x,), (v,))[1], 3.0 * x**2 * v, rtol=1e-13)
        np.testing.assert_allclose(tg.hessian(lambda x: cube(x).sum())(x), np.diag(6.0 * x), rtol=1e-13)
        np.testing.assert_allclose(tg.hvp(lambda x: cube(x).sum(), x, v), 6.0 * x * v, rtol=1e-13)


def test_empty_arrays() -> None:
    assert tg.grad(lambda x: x.sum())(np.empty(0)).shape == (0,)
    assert tg.jacobian(lambda x: 2.0 * x)(np.empty(0)).shape == (0, 0)
    assert tg.hessian(lambda x: (x * x).sum())(np.empty(0)).shape == (0, 0)


def test_nan_at_the_point_shows() -> None:
    value, gradient = tg.value_and_grad(lambda x: (x * x).sum())(np.array([np.nan, 1.0]))
    assert np.isnan(value)
    np.testing.assert_array_equal(gradient, [np.nan, 2.0])


# The public check.


@vector_functions
def test_right_derivatives_pass_the_check(f: Callable[[Any], Any]) -> None:
    tg.check_grads(f, (X,))


def test_float32_passes_the_check() -> None:
    tg.check_grads(lambda x: np.sin(x) * x, (X.astype(np.float32),))


class Wrong(tg.autograd.Function):
    """A square whose derivative is wrong."""

    @staticmethod
    def forward(ctx: Any, x: tg.Tensor) -> tg.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: tg.Tensor) -> tg.Tensor:
        (x,) = ctx.saved_tensors
        return 3.0 * x * g


def test_a_wrong_derivative_fails_the_check() -> None:
    with pytest.raises(AssertionError, match="order 1"):
        tg.check_grads(Wrong.apply, (X,))


class WrongTwice(tg.autograd.Function):
    """A square whose derivative is right, but has a wrong one itself."""

    @staticmethod
    def forward(ctx: Any, x: tg.Tensor) -> tg.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: tg.Tensor) -> tg.Tensor:
        (x,) = ctx.saved_tensors
        return 2.0 * x.detach() * g


def test_a_wrong_second_derivative_fails_the_check_of_order_two_only() -> None:
    tg.check_grads(WrongTwice.apply, (X,), order=1)
    with pytest.raises(AssertionError, match="order 2"):
        tg.check_grads(WrongTwice.apply, (X,))


@pytest.mark.parametrize("order", [0, 3, "2"])
def test_orders_that_are_not_checked(order: Any) -> None:
    with pytest.raises(ValueError, match="order must be 1 or 2"):
        tg.check_grads(np.sin, (X,), order=order)
