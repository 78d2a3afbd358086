"""A large row that only passes elements on has its adjoint where that of the leaf stands: gradients are those of a copy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import leaf, numbers

import tapegrad as tg

SHAPE = (60, 50)
VALUES = np.random.default_rng(4).uniform(-1.0, 1.0, SHAPE)
WEIGHTS = np.random.default_rng(5).uniform(-1.0, 1.0, SHAPE)


def weighted(result: tg.Tensor) -> tg.Tensor:
    return (result * tg.tensor(WEIGHTS.reshape(result.shape), dtype=result.dtype)).sum()


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (lambda x: x.clone(), 1.0),
        (lambda x: x.reshape(50, 60), 1.0),
        (lambda x: x.clone().reshape(-1).clone(), 1.0),
        (lambda x: x.clone().mul_(3.0), 3.0),
        (lambda x: x.clone().tril_(1), np.tri(*SHAPE, 1)),
        (lambda x: x.clone() * x, 2.0 * VALUES),
        (lambda x: x * x.clone(), 2.0 * VALUES),
        (lambda x: x.clone() + x.clone().mul_(2.0), 3.0),
        (lambda x: (x * 2.0).reshape(-1).clone(), 2.0),
        (lambda x: x.clone().index_fill_(0, tg.tensor([3, 4]), 1.0), np.where(np.isin(np.arange(60), [3, 4]), 0.0, 1.0)[:, None]),
    ],
)
def test_gradient_through_a_copy(function: Callable[[tg.Tensor], tg.Tensor], slope: Any, kind: Any) -> None:
    x = leaf(VALUES.astype(kind))
    weighted(function(x)).backward()
    expected = (slope * WEIGHTS.reshape(SHAPE)).astype(kind)
    np.testing.assert_allclose(numbers(x.grad), expected, rtol=1e-6 if kind is np.float32 else 1e-15)


def test_gradients_of_several_passes_add_up() -> None:
    x = leaf(VALUES)
    loss = weighted(x.clone().mul_(2.0))
    loss.backward(retain_graph=True)
    first = x.grad
    loss.backward(retain_graph=True)
    assert x.grad is first
    np.testing.assert_allclose(numbers(x.grad), 4.0 * WEIGHTS, rtol=1e-15)


def test_a_copy_that_retains_its_gradient_has_one_of_its_own() -> None:
    x = leaf(VALUES)
    copied = x.clone()
    copied.retain_grad()
    weighted(copied).backward()
    copied.grad.zero_()
    np.testing.assert_array_equal(numbers(x.grad), WEIGHTS)


def test_a_copy_that_is_asked_for() -> None:
    x = leaf(VALUES)
    copied = x.clone()
    of_copy, of_leaf = tg.autograd.grad(weighted(copied * copied), (copied, x))
    np.testing.assert_array_equal(numbers(of_copy), numbers(of_leaf))
    np.testing.assert_allclose(numbers(of_leaf), 2.0 * VALUES * WEIGHTS, rtol=1e-15)


def test_a_hook_of_the_copy_changes_the_gradient() -> None:
    x = leaf(VALUES)
    copied = x.clone()
    copied.register_hook(lambda g: 5.0 * g)
    weighted(copied).backward()
    np.testing.assert_allclose(numbers(x.grad), 5.0 * WEIGHTS, rtol=1e-15)


class Registering(tg.autograd.Function):
    """Registers a hook on a tensor while the pass is under way."""

    of: Any = None

    @staticmethod
    def forward(ctx: Any, x: tg.Tensor) -> tg.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: tg.Tensor) -> tg.Tensor:
        Registering.of.register_hook(lambda g: 5.0 * g)
        return g.clone()


def test_a_hook_that_is_registered_during_the_pass() -> None:
    x = leaf(VALUES)
    copied = x.clone()
    Registering.of = copied
    try:
        weighted(Registering.apply(copied)).backward()
    finally:
        Registering.of = None
    np.testing.assert_allclose(numbers(x.grad), 5.0 * WEIGHTS, rtol=1e-15)


class Keeping(tg.autograd.Function):
    """Keeps what it gives."""

    kept: Any = None

    @staticmethod
    def forward(ctx: Any, x: tg.Tensor) -> tg.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: tg.Tensor) -> tg.Tensor:
        Keeping.kept = 2.0 * g
        return Keeping.kept


def test_what_a_custom_function_keeps_is_not_the_gradient() -> None:
    x = leaf(VALUES)
    try:
        weighted(Keeping.apply(x)).backward()
        x.grad.zero_()
        np.testing.assert_allclose(numbers(Keeping.kept), 2.0 * WEIGHTS, rtol=1e-15)
    finally:
        Keeping.kept = None


@pytest.mark.parametrize("function", [lambda x: x, lambda x: x.clone(), lambda x: x.roll(1)])
@pytest.mark.parametrize("view", [lambda g: g.view(-1), lambda g: g.t(), lambda g: g.detach(), lambda g: g.numpy()[3:5]])
def test_a_view_of_what_a_custom_function_gives_keeps_its_numbers(
    function: Callable[[tg.Tensor], tg.Tensor], view: Callable[[tg.Tensor], Any]
) -> None:
    """In arrays large enough for memory that is used again, whose views refer to them in another way."""

    class Viewed(tg.autograd.Function):
        kept: Any = None

        @staticmethod
        def forward(ctx: Any, x: tg.Tensor) -> tg.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: tg.Tensor) -> tg.Tensor:
            given = 2.0 * g
            Viewed.kept = view(given)
            return given

    x = leaf(np.ones((130, 80)))
    passed = function(x)
    of_passed = passed.sum()  # contributes after the function, to what that gave
    (Viewed.apply(passed).sum() + of_passed).backward()
    np.testing.assert_array_equal(numbers(x.grad), np.full((130, 80), 3.0))
    x.grad.zero_()
    np.testing.assert_array_equal(np.unique(np.asarray(Viewed.kept)), [2.0])


def test_rows_in_python_one_after_the_other() -> None:
    """What the derivative of one gives is the adjoint of the next, to which others contribute."""
    x = leaf(VALUES)
    first = x.log_softmax(1)
    second = first.roll(3)
    (weighted(second.cumsum(0)) + weighted(second) + weighted(first)).backward()
    z = VALUES - np.log(np.exp(VALUES).sum(1, keepdims=True))
    to_second = np.flip(np.flip(WEIGHTS, 0).cumsum(0), 0) + WEIGHTS
    to_first = np.roll(to_second, -3) + WEIGHTS
    expected = to_first - np.exp(z) * to_first.sum(1, keepdims=True)
    np.testing.assert_allclose(numbers(x.grad), expected, rtol=1e-11, atol=1e-12)


def test_a_cotangent_of_equal_numbers() -> None:
    x, y = leaf(VALUES), leaf(VALUES)
    (x.roll(3) + y.clone().roll(2) * 2.0).sum().backward()
    np.testing.assert_array_equal(numbers(x.grad), np.ones(SHAPE))
    np.testing.assert_array_equal(numbers(y.grad), np.full(SHAPE, 2.0))
    x.grad.add_(1.0)  # it has memory for all of its elements
    np.testing.assert_array_equal(numbers(x.grad), np.full(SHAPE, 2.0))
