"""Gradients of functions with products and factorisations of matrices: the pass stops at their rows, whose derivative is Python."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

MATRIX = np.array([[2.0, 0.3, -0.4], [0.1, 1.5, 0.2], [-0.3, 0.6, 1.8]])
X = np.array([0.4, 1.1, -0.7])

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "vector": lambda x: np.tanh(MATRIX @ x).sum(),
    "number": lambda x: (MATRIX[0] @ x) ** 2 + x[1],
    "twice": lambda x: x @ (MATRIX @ x) + (x * (MATRIX @ x)).sum(),
    "solution": lambda x: np.linalg.solve(MATRIX + x[:, None] * x, np.sin(x)).sum(),
    "determinant": lambda x: np.linalg.slogdet(MATRIX + x[:, None] * x)[1] * x[0],
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_gradient_is_that_of_differences(f: Callable[[Any], Any]) -> None:
    steps = 1e-6 * np.eye(3)
    expected = [(f(X + h) - f(X - h)) / 2e-6 for h in steps]
    for _ in range(3):  # with memory of the pass before
        assert tg.grad(f)(X) == pytest.approx(expected, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_gradient_is_that_of_the_general_pass_to_the_bit(f: Callable[[Any], Any]) -> None:
    x = tg.tensor(X, requires_grad=True)
    (expected,) = tg.autograd.grad(f(x), x)
    assert np.array_equal(tg.grad(f)(X), expected.numpy())


def test_gradient_longer_than_a_block_is_whole() -> None:
    x = np.random.default_rng(0).normal(size=3000)
    matrix = np.random.default_rng(1).normal(size=(2, 3000))
    expected = 2.0 * matrix.T @ (matrix @ x) + 1.0
    assert np.allclose(tg.grad(lambda x: ((matrix @ x) ** 2).sum() + x.sum())(x), expected, rtol=1e-12)


def test_hook_between_products_changes_the_gradient() -> None:
    def f(x: Any) -> Any:
        y = MATRIX @ x
        y.register_hook(lambda g: 10.0 * g)
        return y.sum()

    assert tg.grad(f)(X) == pytest.approx(10.0 * MATRIX.sum(axis=0))


def test_hook_of_the_variable_changes_the_gradient() -> None:
    def f(x: Any) -> Any:
        x.register_hook(lambda g: -g)
        return (MATRIX @ x).sum()

    assert tg.grad(f)(X) == pytest.approx(-MATRIX.sum(axis=0))


def test_tensor_between_products_retains_its_gradient() -> None:
    kept = []

    def f(x: Any) -> Any:
        y = MATRIX @ x
        y.retain_grad()
        kept.append(y)
        return MATRIX[0] @ y

    tg.grad(f)(X)
    assert kept[0].grad.tolist() == MATRIX[0].tolist()


def test_tracked_tensor_around_the_function_gets_no_gradient() -> None:
    w = tg.tensor(MATRIX[1], requires_grad=True)
    assert tg.grad(lambda x: MATRIX[0] @ x + w.detach() @ w.detach())(X) == pytest.approx(MATRIX[0])
    assert tg.value_and_grad(lambda x: w @ x)(X)[1].tolist() == MATRIX[1].tolist()
    assert w.grad is None


def test_failing_derivative_leaves_the_next_gradient_as_it_was() -> None:
    class Failing(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise ArithmeticError("no derivative")

    def f(x: Any) -> Any:
        return (MATRIX @ Failing.apply(x)).sum()

    before = tg.grad(FUNCTIONS["twice"])(X)
    with pytest.raises(ArithmeticError, match="no derivative"):
        tg.grad(f)(X)
    assert np.array_equal(tg.grad(FUNCTIONS["twice"])(X), before)


def test_pass_within_a_derivative_keeps_its_own_memory() -> None:
    class Nested(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * tg.tensor(tg.grad(FUNCTIONS["vector"])(X))

    expected = MATRIX.sum(axis=0) * tg.grad(FUNCTIONS["vector"])(X)
    assert tg.grad(lambda x: (MATRIX @ Nested.apply(x)).sum())(X) == pytest.approx(expected)


def test_gradient_within_a_driver_is_recorded() -> None:
    expected = 2.0 * MATRIX.T @ MATRIX
    assert np.allclose(tg.jacobian(tg.grad(lambda x: ((MATRIX @ x) ** 2).sum()))(X), expected)
