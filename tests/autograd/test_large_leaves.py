"""Gradients of large leaves, which are computed where they stay: sums with older ones, hooks, leaves that vanish, and failures."""

import gc
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

SIZE = 5000
a, b = np.random.default_rng(1).uniform(-2, 2, (2, SIZE))


def leaves() -> tuple[tg.Tensor, tg.Tensor]:
    return tg.tensor(a, requires_grad=True), tg.tensor(b, requires_grad=True)


class Doubled(tg.autograd.Function):
    """Twice its operand; calls what `during` holds on the way back."""

    during: Any = staticmethod(lambda: None)

    @staticmethod
    def forward(ctx: Any, x: tg.Tensor) -> tg.Tensor:
        return x * 2.0

    @staticmethod
    def backward(ctx: Any, g: tg.Tensor) -> tg.Tensor:
        Doubled.during()
        return g * 2.0


@pytest.fixture
def during(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda action: monkeypatch.setattr(Doubled, "during", staticmethod(action))


def test_two_large_leaves_and_a_number_get_their_gradients() -> None:
    x, y = leaves()
    s = tg.tensor(3.0, requires_grad=True)
    (x * y * s).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * b, rtol=1e-15)
    np.testing.assert_allclose(y.grad.numpy(), 3 * a, rtol=1e-15)
    assert s.grad.item() == pytest.approx(float(a @ b), rel=1e-12)


def test_a_large_leaf_that_is_used_twice_gets_the_sum() -> None:
    x, _ = leaves()
    (x.sin() + x * x + x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos(a) + 2 * a + 1, rtol=1e-13, atol=1e-13)


def test_further_passes_add_to_the_gradient_that_is_there() -> None:
    x, _ = leaves()
    (x * x).sum().backward()
    first = x.grad
    for _ in range(2):
        (x * x).sum().backward()
    assert x.grad is first
    assert np.array_equal(first.numpy(), 6 * a)


def test_gradients_of_two_leaves_never_share_memory() -> None:
    x, y = leaves()
    (x + y).sum().backward()
    x.grad.mul_(5.0)
    assert np.array_equal(y.grad.numpy(), np.ones(SIZE))
    (x + y).sum().backward()
    assert np.array_equal(x.grad.numpy(), np.full(SIZE, 6.0))


def test_gradients_that_somebody_keeps_are_not_written_by_later_passes() -> None:
    x, _ = leaves()
    kept = []
    for k in range(1, 4):
        x.grad = None
        (x * float(k)).sum().backward()
        kept.append(x.grad)
    assert [float(g.numpy()[0]) for g in kept] == [1.0, 2.0, 3.0]


def test_a_leaf_that_was_dropped_leaves_the_others_alone() -> None:
    x, y = leaves()
    z = (x * y).sum()
    del x
    gc.collect()
    z.backward()
    assert np.array_equal(y.grad.numpy(), a)


def test_a_leaf_whose_flag_was_cleared_gets_none() -> None:
    x, y = leaves()
    z = (x * y).sum()
    x.requires_grad_(False)
    z.backward()
    assert x.grad is None
    assert np.array_equal(y.grad.numpy(), a)


def test_hooks_of_large_leaves_change_their_gradients() -> None:
    x, _ = leaves()
    x.register_hook(lambda g: g * 10.0)
    (x * x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 20 * a, rtol=1e-15)


def test_retained_gradients_are_there_beside_those_of_leaves() -> None:
    x, _ = leaves()
    y = x * 2.0
    y.retain_grad()
    (y * y).sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), 4 * a, rtol=1e-15)
    np.testing.assert_allclose(x.grad.numpy(), 8 * a, rtol=1e-15)


@pytest.mark.parametrize("before", [False, True], ids=["first", "added"])
def test_a_custom_function_on_the_way_is_no_obstacle(before: bool) -> None:
    x, y = leaves()
    if before:
        x.grad = tg.tensor(np.full(SIZE, 100.0))
    (Doubled.apply(x) * y + x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * b + 1 + 100.0 * before, rtol=1e-14)
    np.testing.assert_allclose(y.grad.numpy(), 2 * a, rtol=1e-15)


def test_a_gradient_that_is_set_during_the_pass_is_added_to(during: Any) -> None:
    x, _ = leaves()

    def set_gradient() -> None:
        x.grad = tg.tensor(np.full(SIZE, 7.0))

    during(set_gradient)
    Doubled.apply(x * 3.0).sum().backward()
    assert np.array_equal(x.grad.numpy(), np.full(SIZE, 13.0))


def test_a_pass_within_a_pass_has_its_own_gradients(during: Any) -> None:
    x, y = leaves()
    during(tg.enable_grad()(lambda: (y * y).sum().backward()))
    Doubled.apply(x).sum().backward()
    assert np.array_equal(x.grad.numpy(), np.full(SIZE, 2.0))
    assert np.array_equal(y.grad.numpy(), 2 * b)


def test_a_pass_within_a_pass_may_add_to_the_same_leaf(during: Any) -> None:
    x, _ = leaves()
    during(tg.enable_grad()(lambda: (x * x).sum().backward()))
    Doubled.apply(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * a + 2, rtol=1e-14)


def test_a_pass_that_raises_leaves_gradients_as_they_were(during: Any) -> None:
    x, y = leaves()

    def fail() -> None:
        raise ValueError("on purpose")

    during(fail)
    with pytest.raises(ValueError, match="on purpose"):
        (Doubled.apply(x) * y).sum().backward()
    assert x.grad is None
    assert y.grad is None
    during(lambda: None)
    (Doubled.apply(x) * y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * b, rtol=1e-15)


def test_a_gradient_of_another_layout_is_added_to_in_place() -> None:
    x = tg.tensor(a.reshape(50, 100), requires_grad=True)
    x.grad = tg.tensor(np.zeros((100, 50))).T
    (x * x).sum().backward()
    assert np.array_equal(x.grad.numpy(), 2 * a.reshape(50, 100))


def test_large_leaves_of_single_precision_keep_it() -> None:
    x = tg.tensor(a, dtype=tg.float32, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.dtype == tg.float32
    np.testing.assert_allclose(x.grad.numpy(), 2 * a.astype(np.float32), rtol=1e-6)
