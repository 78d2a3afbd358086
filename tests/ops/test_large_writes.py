"""Writes over large arrays: values, what derivatives read of what was there, views, and what is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.engine.layout import LARGEST_BLOCK

SIZES = [LARGEST_BLOCK + 1, 5 * LARGEST_BLOCK + 77, 1 << 15, (1 << 15) + 1001]
Case = tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]
sigmoid: Any = lambda a: 1 / (1 + np.exp(-a))  # noqa: E731

# What is written, and its value and slope.
WRITES: dict[str, Case] = {
    "neg_": (lambda t: t.neg_(), np.negative, lambda a: -np.ones_like(a)),
    "sign_": (lambda t: t.sign_(), np.sign, np.zeros_like),
    "round_": (lambda t: t.round_(), np.round, np.zeros_like),
    "relu_": (lambda t: t.relu_(), lambda a: np.maximum(a, 0), lambda a: (a > 0) * 1.0),
    "square_": (lambda t: t.square_(), np.square, lambda a: 2 * a),
    "exp_": (lambda t: t.exp_(), np.exp, np.exp),
    "sin_": (lambda t: t.sin_(), np.sin, np.cos),
    "sigmoid_": (lambda t: t.sigmoid_(), sigmoid, lambda a: sigmoid(a) * (1 - sigmoid(a))),
    "add_ of a number": (lambda t: t.add_(1.5), lambda a: a + 1.5, np.ones_like),
    "mul_ of a number": (lambda t: t.mul_(2), lambda a: a * 2, lambda a: np.full_like(a, 2)),
    "pow_ of a number": (lambda t: t.pow_(3.0), lambda a: a**3.0, lambda a: 3 * a**2),
    "clamp_": (lambda t: t.clamp_(-0.5, 0.75), lambda a: np.clip(a, -0.5, 0.75), lambda a: ((a >= -0.5) & (a <= 0.75)) * 1.0),
    "leaky_relu_": (
        lambda t: tg.nn.functional.leaky_relu_(t, 0.25), lambda a: np.where(a > 0, a, 0.25 * a), lambda a: np.where(a > 0, 1, 0.25),
    ),
    "elu_": (
        lambda t: tg.nn.functional.elu_(t), lambda a: np.where(a > 0, a, np.expm1(a)), lambda a: np.where(a > 0, 1, np.exp(a)),
    ),
    "fmod_": (lambda t: t.fmod_(0.3), lambda a: np.fmod(a, 0.3), np.ones_like),
}  # fmt: skip


def points(size: int) -> np.ndarray:
    return np.random.default_rng(size).uniform(-2, 2, size)


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("size", SIZES)
def test_a_large_write_has_its_value_and_its_slope(name: str, size: int) -> None:
    write, value, slope = WRITES[name]
    a, weights = points(size), np.linspace(0.5, 1.5, size)
    x = tg.tensor(a, requires_grad=True)
    y = write(x.clone())
    (y * tg.tensor(weights)).sum().backward()
    np.testing.assert_allclose(y.detach().numpy(), value(a), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(x.grad.numpy(), weights * slope(a), rtol=1e-12, atol=1e-14)
    assert np.array_equal(x.detach().numpy(), a)


@pytest.mark.parametrize("name", WRITES)
def test_a_large_write_has_the_bits_of_small_ones(name: str) -> None:
    a = np.concatenate([points(9000), [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324]])
    written = WRITES[name][0](tg.tensor(a)).numpy()
    for part in (slice(0, LARGEST_BLOCK // 2), slice(-LARGEST_BLOCK // 2, None)):
        apart = WRITES[name][0](tg.tensor(a[part])).numpy()
        assert np.array_equal(np.isnan(written[part]), np.isnan(apart))
        assert np.where(np.isnan(apart), 0.0, written[part]).tobytes() == np.where(np.isnan(apart), 0.0, apart).tobytes()


def test_what_a_second_operand_reads_of_the_target_is_what_was_there() -> None:
    a, b = points(6000), points(6000)[::-1].copy()
    x, y = tg.tensor(a, requires_grad=True), tg.tensor(b, requires_grad=True)
    x.clone().mul_(y).sum().backward()
    assert np.array_equal(x.grad.numpy(), b)
    assert np.array_equal(y.grad.numpy(), a)


def test_a_constant_target_is_read_by_the_operand_alone() -> None:
    a, b = points(6000), points(6000)[::-1].copy()
    y, z = tg.tensor(b, requires_grad=True), tg.tensor(a)
    z.mul_(y)
    z.sum().backward()
    assert np.array_equal(z.detach().numpy(), a * b)
    assert np.array_equal(y.grad.numpy(), a)


def test_operands_on_the_target_are_read_as_they_were() -> None:
    a = points(6000)
    t = tg.tensor(a)
    t.add_(t.flip(0))
    assert np.array_equal(t.numpy(), a + a[::-1])
    t = tg.tensor(a)
    t[1:].mul_(t[:-1])
    assert np.array_equal(t.numpy()[1:], a[1:] * a[:-1])


def test_large_writes_one_after_the_other_multiply_their_slopes() -> None:
    a = points(7000)
    x = tg.tensor(a, requires_grad=True)
    x.clone().sin_().mul_(3.0).square_().neg_().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), -18 * np.sin(a) * np.cos(a), rtol=1e-12, atol=1e-13)


def test_a_large_write_to_a_view_changes_the_rest_of_no_gradient() -> None:
    a, slope = points(9000), np.ones(9000)
    x = tg.tensor(a, requires_grad=True)
    y = x.clone()
    part = y[1000:8000]
    part.square_()
    y.sum().backward()
    slope[1000:8000] = 2 * a[1000:8000]
    assert np.array_equal(x.grad.numpy(), slope)
    assert np.array_equal(part.detach().numpy(), a[1000:8000] ** 2)


def test_a_large_write_makes_what_was_saved_before_stale() -> None:
    x = tg.tensor(points(6000), requires_grad=True)
    y = x.clone()
    z = y * y
    y.neg_()
    assert y._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_a_large_write_to_a_leaf_is_refused() -> None:
    x = tg.tensor(points(6000), requires_grad=True)
    before = x.detach().numpy().copy()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.neg_()
    assert np.array_equal(x.detach().numpy(), before)
    with tg.no_grad():
        x.neg_()
    assert np.array_equal(x.detach().numpy(), -before)


def test_a_large_write_to_memory_that_is_read_only_is_refused() -> None:
    a = points(6000)
    a.flags.writeable = False
    t = tg.from_numpy(a)
    with pytest.raises((RuntimeError, ValueError)):
        t.neg_()
    assert np.array_equal(a, points(6000))
