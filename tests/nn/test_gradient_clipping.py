"""Gradients clipped by norm and by value."""

import math
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

clip_norm, clip_value = tg.nn.utils.clip_grad_norm_, tg.nn.utils.clip_grad_value_


def with_gradients(*gradients: Any) -> list[tg.Tensor]:
    params = []
    for gradient in gradients:
        p = tg.zeros(*np.shape(gradient), requires_grad=True) if np.ndim(gradient) else tg.tensor(0.0, requires_grad=True)
        p.grad = tg.tensor(gradient)
        params.append(p)
    return params


@pytest.mark.parametrize("order", [1, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_norm_of_all_gradients_is_limited(order: float, limit: float) -> None:
    values = [0.5, [3.0, -4.0], [[1.0], [-2.0]]]
    params = with_gradients(*values)
    whole = np.concatenate([np.ravel(v) for v in values])
    norm = np.linalg.norm(whole, order)
    assert clip_norm(params, limit, order).item() == pytest.approx(norm, rel=1e-14)
    clipped = np.concatenate([np.ravel(p.grad.numpy()) for p in params])
    np.testing.assert_allclose(clipped, whole * min(1.0, limit / (norm + 1e-6)), rtol=1e-14)


def test_parameters_without_gradient_are_passed_over() -> None:
    (p,) = with_gradients([3.0, 4.0])
    assert clip_norm([tg.ones(2, requires_grad=True), p], 1.0).item() == 5.0


def test_one_parameter_may_stand_alone() -> None:
    (p,) = with_gradients([3.0, 4.0])
    assert clip_norm(p, 1.0).item() == 5.0


def test_norm_of_nothing_is_zero() -> None:
    assert clip_norm([tg.ones(2, requires_grad=True)], 1.0).item() == 0.0


def test_float32_gradients_have_a_float32_norm() -> None:
    p = tg.zeros(2, dtype=tg.float32, requires_grad=True)
    p.grad = tg.tensor([3.0, 4.0], dtype=tg.float32)
    assert clip_norm([p], 1.0).dtype == p.grad.dtype == tg.float32


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_norm_that_is_not_finite_can_be_an_error(bad: float) -> None:
    params = with_gradients([1.0, bad], 2.0)
    with pytest.raises(RuntimeError, match="total norm of order 2.0 for gradients from `parameters` is non-finite"):
        clip_norm(params, 1.0, error_if_nonfinite=True)
    assert params[1].grad.item() == 2.0


def test_nan_spreads_where_it_is_no_error() -> None:
    params = with_gradients([1.0, math.nan], 2.0)
    clip_norm(params, 1.0)
    assert math.isnan(params[1].grad.item())


def test_elements_are_limited() -> None:
    params = with_gradients([3.0, -4.0, 0.5, math.nan], -7.0)
    clip_value(params, 2)
    np.testing.assert_array_equal(params[0].grad.numpy(), [2.0, -2.0, 0.5, math.nan])
    assert params[1].grad.item() == -2.0


@pytest.mark.parametrize("clip", [lambda p: clip_norm(p, 0.1), lambda p: clip_value(p, 0.1)])
@pytest.mark.parametrize("gradient", [2.0, [3.0, 4.0]])
def test_gradient_object_stays_and_its_saved_values_are_protected(clip: Any, gradient: Any) -> None:
    (p,) = with_gradients(gradient)
    before, w = p.grad.requires_grad_(), tg.tensor(gradient, requires_grad=True)
    product = (before * w).sum()
    clip([p])
    assert p.grad is before
    assert before._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_generator_that_is_used_up_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="empty generator"):
        clip_norm((p for p in ()), 1.0)
