"""PyTorch's names of the parameters of elementwise operations: functions, methods and in-place forms take them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf

import tapegrad as tg

Call = Callable[[tg.Tensor, tg.Tensor], Any]
X, Y = [0.5, 2.0], [3.0, 0.25]
PLAIN = ["mul", "atan2", "copysign", "fmod", "hypot", "logaddexp", "maximum", "minimum", "remainder", "xlogy"]


def by_name(name: str) -> tuple[Call, Call]:
    """A function of two tensors with names, and without."""
    return lambda x, y: getattr(tg, name)(input=x, other=y), lambda x, y: getattr(tg, name)(x, y)


BY_NAME: dict[str, tuple[Call, Call]] = {name: by_name(name) for name in PLAIN}
BY_NAME |= {
    "add": (lambda x, y: tg.add(x, other=y, alpha=2), lambda x, y: x + 2 * y),
    "sub": (lambda x, y: tg.sub(x, other=y), lambda x, y: x - y),
    "rsub": (lambda x, y: tg.rsub(x, other=y), lambda x, y: y - x),
    "div": (lambda x, y: tg.div(x, other=y), lambda x, y: x / y),
    "eq": (lambda x, y: tg.eq(x, other=y), lambda x, y: x == y),
    "logical_and": (lambda x, y: tg.logical_and(x, other=y), lambda x, y: tg.logical_and(x, y)),
    "floor_divide": (lambda x, y: tg.floor_divide(x, other=y), lambda x, y: tg.floor_divide(x, y)),
    "pow": (lambda x, y: tg.pow(x, exponent=y), lambda x, y: x**y),
    "float_power": (lambda x, y: tg.float_power(x, exponent=2), lambda x, y: x**2),
    "clamp_min": (lambda x, y: tg.clamp_min(x, min=y), lambda x, y: tg.maximum(x, y)),
    "clamp_max": (lambda x, y: tg.clamp_max(x, max=y), lambda x, y: tg.minimum(x, y)),
    "lerp": (lambda x, y: tg.lerp(x, end=y, weight=0.25), lambda x, y: tg.lerp(x, y, 0.25)),
    "polygamma": (lambda x, y: tg.polygamma(n=1, input=x), lambda x, y: tg.polygamma(1, x)),
    "where": (lambda x, y: tg.where(x > 1.0, input=x, other=y), lambda x, y: tg.where(x > 1.0, x, y)),
    "x.mul": (lambda x, y: x.mul(other=y), lambda x, y: x * y),
    "x.add": (lambda x, y: x.add(other=y, alpha=3), lambda x, y: x + 3 * y),
    "x.pow": (lambda x, y: x.pow(exponent=2), lambda x, y: x * x),
    "x.atan2": (lambda x, y: x.atan2(other=y), lambda x, y: tg.atan2(x, y)),
    "x.where": (lambda x, y: x.where(x > 1.0, other=y), lambda x, y: tg.where(x > 1.0, x, y)),
    "x.polygamma": (lambda x, y: x.polygamma(1), lambda x, y: tg.polygamma(1, x)),
    "x.polygamma by name": (lambda x, y: x.polygamma(n=2), lambda x, y: tg.polygamma(2, x)),
    "x.mul_": (lambda x, y: x.clone().mul_(other=y), lambda x, y: x * y),
    "x.sub_": (lambda x, y: x.clone().sub_(other=y), lambda x, y: x - y),
    "x.subtract_": (lambda x, y: x.clone().subtract_(y, alpha=2), lambda x, y: x - 2 * y),
    "x.lerp_": (lambda x, y: x.clone().lerp_(end=y, weight=y), lambda x, y: tg.lerp(x, y, y)),
    "x.clamp_min_": (lambda x, y: x.clone().clamp_min_(min=y), lambda x, y: tg.maximum(x, y)),
    "x.copy_": (lambda x, y: (x * 1.0).copy_(other=y, non_blocking=True), lambda x, y: y * 1.0),
}


@pytest.mark.parametrize("name", BY_NAME)
def test_operands_may_be_given_by_name(name: str) -> None:
    found = [f(tg.tensor(X), tg.tensor(Y)) for f in BY_NAME[name]]
    np.testing.assert_array_equal(found[0].numpy(), found[1].numpy())


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: tg.mul(x, x, other=x), "multiple values"),
        (lambda x: x.mul(x, other=x), "multiple values"),
        (lambda x: x.mul_(x, other=x), "multiple values"),
        (lambda x: x.mul_(foo=x), "unexpected keyword"),
        (lambda x: tg.logical_and(x, foo=x), "unexpected keyword"),
        (lambda x: tg.logical_not(x, other=x), "unexpected keyword"),
        (lambda x: x.pow(other=2), "unexpected keyword|missing"),
    ],
)
def test_other_names_are_refused(f: Callable[[tg.Tensor], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        f(tg.tensor(X))


def test_derivative_of_a_method_s_polygamma() -> None:
    x = leaf(X)
    x.polygamma(0).sum().backward()
    assert_values(x.grad, tg.polygamma(1, tg.tensor(X)).tolist())


@pytest.mark.parametrize("function", [tg.logit, lambda x: x.clone().logit_()])
def test_logit_has_no_derivative_where_it_has_no_value(function: Callable[[tg.Tensor], tg.Tensor]) -> None:
    x = leaf([-0.5, 0.25, 1.5])
    function(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [np.nan, 16 / 3, np.nan])


def test_limits_of_integers_in_place() -> None:
    assert tg.tensor([1, -2]).clamp_(min=0).tolist() == [1, 0]
    assert tg.tensor([1, -2]).clamp_(max=tg.tensor([0, 0])).tolist() == [0, -2]
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max' must not be None"):
        tg.tensor([1.0]).clamp_()
