"""Nonlinearities at their kinks and far out, written in place, and their errors."""

import math

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf, node_name, numbers
from many_cases import each

import tapegrad as tg

F = tg.nn.functional

# Function, point, derivative there.
KINKS = {
    "hardtanh at its lower bound": (F.hardtanh, -1.0, 0.0),
    "hardtanh at its upper bound": (F.hardtanh, 1.0, 0.0),
    "relu6 at 0": (F.relu6, 0.0, 0.0),
    "relu6 at 6": (F.relu6, 6.0, 0.0),
    "threshold at it": (lambda x: F.threshold(x, 0.5, 2.0), 0.5, 0.0),
    "hardshrink at its edge": (F.hardshrink, -0.5, 0.0),
    "hardshrink at 0 of width 0": (lambda x: F.hardshrink(x, 0.0), 0.0, 0.0),
    "softshrink at its edge": (F.softshrink, 0.5, 0.0),
    "hardsigmoid at its end": (F.hardsigmoid, 3.0, 0.0),
    "hardswish below": (F.hardswish, -3.0, 0.0),
    "hardswish above": (F.hardswish, 3.0, 1.0),
    "elu at 0": (lambda x: F.elu(x, 2.0), 0.0, 2.0),
    "selu at 0": (F.selu, 0.0, 1.0507009873554805 * 1.6732632423543772),
    "celu at 0": (lambda x: F.celu(x, 2.0), 0.0, 1.0),
    "leaky_relu at 0": (lambda x: F.leaky_relu(x, 0.3), 0.0, 0.3),
    "prelu at 0": (lambda x: F.prelu(x, tg.tensor([0.3])), 0.0, 0.3),
    "rrelu at 0": (lambda x: F.rrelu(x, 0.25, 0.75), 0.0, 0.5),
    "elu far above": (F.elu, 1e4, 1.0),
    "elu far below": (F.elu, -1e4, 0.0),
    "celu far above": (F.celu, 1e4, 1.0),
    "mish far above": (F.mish, 1e4, 1.0),
    "mish far below": (F.mish, -1e4, 0.0),
    "gelu far above": (lambda x: F.gelu(x, "tanh"), 1e200, 1.0),
    "gelu far below": (lambda x: F.gelu(x, "tanh"), -1e200, 0.0),
}


@pytest.mark.point(78)
@each("create_graph", [False, True])
@each("name", KINKS)
def test_derivative_at_a_kink_or_far_out(name: str, create_graph: bool) -> None:
    f, at, expected = KINKS[name]
    x = leaf([at])
    assert_values(tg.autograd.grad(f(x).sum(), x, create_graph=create_graph)[0], [expected])


@each("f", [F.hardtanh, F.relu6, F.hardshrink, F.softshrink, F.hardsigmoid, F.elu, F.selu, F.celu, F.mish, F.gelu, F.rrelu])
def test_nan_stays_nan(f) -> None:
    assert math.isnan(f(tg.tensor(math.nan)).item())


IN_PLACE = {
    "relu": F.relu,
    "silu": F.silu,
    "leaky_relu": F.leaky_relu,
    "hardtanh": F.hardtanh,
    "relu6": F.relu6,
    "threshold": lambda x, **options: F.threshold(x, 0.1, 2.0, **options),
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "elu": F.elu,
    "selu": F.selu,
    "celu": F.celu,
    "mish": F.mish,
    "rrelu": F.rrelu,
}


@each("name", IN_PLACE)
def test_in_place_form_has_value_and_gradient_of_the_other(name: str) -> None:
    f = IN_PLACE[name]
    x, y = leaf([-0.7, 0.4, 1.9]), leaf([-0.7, 0.4, 1.9])
    inner = x * 1.0
    assert f(inner, inplace=True) is inner
    expected = f(y * 1.0)
    np.testing.assert_allclose(numbers(inner), numbers(expected), rtol=1e-15)
    for z in (inner, expected):
        (z * z).sum().backward()
    np.testing.assert_allclose(numbers(x.grad), numbers(y.grad), rtol=1e-15)


def test_random_slopes_lie_between_their_bounds_and_are_the_derivatives() -> None:
    x = leaf(-np.ones(200))
    y = F.rrelu(x, 0.2, 0.4, training=True)
    y.sum().backward()
    assert_values(x.grad, -numbers(y))
    assert 0.2 <= numbers(x.grad).min() < 0.25 and 0.35 < numbers(x.grad).max() <= 0.4


def test_random_slopes_leave_positive_elements_alone() -> None:
    assert F.rrelu(tg.tensor([2.0, 3.0]), training=True).tolist() == [2.0, 3.0]


def test_weights_of_prelu_belong_to_the_second_dimension() -> None:
    x, w = leaf(-np.ones((2, 3, 2))), leaf([0.1, 0.2, 0.3])
    F.prelu(x, w).sum().backward()
    assert_values(w.grad, [-4.0, -4.0, -4.0])
    assert_values(x.grad[0, :, 0], [0.1, 0.2, 0.3])


ERRORS = {
    "hardtanh with crossing bounds": (lambda x: F.hardtanh(x, 2.0, 1.0), ValueError, "min_val cannot be greater than max_val"),
    "softshrink with a negative width": (lambda x: F.softshrink(x, -1.0), RuntimeError, "lambda must be in range"),
    "gelu by another approximation": (lambda x: F.gelu(x, "erf"), RuntimeError, "must be either none or tanh"),
    "celu of alpha 0": (lambda x: F.celu(x, 0.0), RuntimeError, "alpha cannot be 0 for CELU"),
    "prelu with a number": (lambda x: F.prelu(x, 0.5), TypeError, "argument 'weight' (position 2) must be Tensor, not float"),
    "prelu with too many weights": (lambda x: F.prelu(x, tg.ones(3)), RuntimeError, "parameter numbers = 3 and channel size = 1"),
    "prelu of two dtypes": (lambda x: F.prelu(x, tg.ones(1, dtype=tg.float32)), RuntimeError, "Got Double and Float"),
    "glu of an odd size": (lambda x: F.glu(x[:1]), RuntimeError, "Halving dimension must be even, but dimension 0 is size 1"),
    "glu without dimensions": (lambda x: F.glu(x[0]), RuntimeError, "glu does not support 0-dimensional tensors"),
    "elu of integers": (lambda x: F.elu(tg.tensor([1])), NotImplementedError, "not implemented for 'Long'"),
    "in place on a leaf": (lambda x: F.elu(x, inplace=True), RuntimeError, "a leaf Variable that requires grad"),
    "addcmul with a number": (lambda x: tg.addcmul(x, 2.0, x), TypeError, "argument 'tensor1' (position 2) must be Tensor"),
    "addcdiv of integers": (lambda x: tg.addcdiv(x, tg.tensor([1]), tg.tensor([2])), RuntimeError, "Integer division with addcdiv"),
    "rounded quotient by zero": (lambda x: tg.div(tg.tensor(1), 0, rounding_mode="floor"), RuntimeError, "ZeroDivisionError"),
    "unknown rounding": (lambda x: tg.div(x, 2.0, rounding_mode="up"), RuntimeError, "rounding_mode to be one of None"),
    "heaviside with a number": (lambda x: tg.heaviside(x, 0.5), TypeError, "argument 'values' (position 2) must be Tensor"),
    "isclose of two dtypes": (lambda x: tg.isclose(x, tg.ones(2, dtype=tg.float32)), RuntimeError, "Double did not match Float"),
    "isclose with a negative tolerance": (lambda x: tg.isclose(x, x, rtol=-1), RuntimeError, "greater than or equal to zero"),
    "diff without dimensions": (lambda x: tg.diff(x[0]), RuntimeError, "at least one-dimensional"),
    "diff of a negative order": (lambda x: tg.diff(x, -1), RuntimeError, "order must be non-negative but got -1"),
    "diff with a matrix in front": (lambda x: tg.diff(x, prepend=tg.ones(1, 2)), RuntimeError, "same dimension as input"),
    "trapezoid of too few points": (lambda x: tg.trapezoid(x, tg.ones(3)), RuntimeError, "one `x` value for each sample point"),
    "trapezoid of points and distance": (lambda x: tg.trapezoid(x, x, dx=1.0), TypeError, "not both"),
    "trapezoid of bools": (lambda x: tg.trapezoid(x > 0), RuntimeError, "received a bool input for `y`"),
    "trapezoid without dimensions": (lambda x: tg.trapezoid(x[0]), IndexError, "tensor has no dimensions"),
    "nanmean of integers": (lambda x: tg.nanmean(tg.tensor([1])), RuntimeError, "floating point or complex dtype but got Long"),
    "logcumsumexp of integers": (lambda x: tg.logcumsumexp(tg.tensor([1]), 0), NotImplementedError, "not implemented for 'Long'"),
}


@each("name", ERRORS)
def test_wrong_call_is_refused(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind) as caught:
        call(leaf([1.0, -2.0]))
    assert message in str(caught.value)


NODES = {
    "HardtanhBackward0": lambda x: F.relu6(x),
    "ThresholdBackward0": lambda x: tg.threshold(x, 1.0, 2.0),
    "HardshrinkBackward0": lambda x: x.hardshrink(),
    "SoftshrinkBackward0": lambda x: F.softshrink(x),
    "HardsigmoidBackward0": lambda x: F.hardsigmoid(x),
    "HardswishBackward0": lambda x: F.hardswish(x),
    "EluBackward0": lambda x: tg.selu(x),
    "CeluBackward0": lambda x: tg.celu(x),
    "MishBackward0": lambda x: F.mish(x),
    "GeluBackward0": lambda x: F.gelu(x, "tanh"),
    "PreluKernelBackward0": lambda x: x.prelu(tg.tensor([0.1])),
    "LeakyReluBackward0": lambda x: F.leaky_relu(x),
    "RreluWithNoiseBackward0": lambda x: tg.rrelu(x),
    "AddcmulBackward0": lambda x: x.addcmul(x, x),
    "AddcdivBackward0": lambda x: x.addcdiv(x, x),
    "DivBackward2": lambda x: x.div(2.0, rounding_mode="floor"),
    "RoundBackward1": lambda x: x.round(decimals=1),
    "FmaxBackward0": lambda x: tg.fmax(x, tg.ones(2)),
    "CopysignBackward1": lambda x: x.copysign(-1.0),
    "ClampMinBackward0": lambda x: x.clamp_min(0.0),
    "ClampMaxBackward1": lambda x: tg.clamp_max(x, tg.ones(2)),
    "LogitBackward0": lambda x: tg.logit(x, 0.1),
    "SincBackward0": lambda x: x.sinc(),
    "NotImplemented": lambda x: x // 2.0,
}


@each("name", NODES)
def test_node_has_its_name(name: str) -> None:
    assert node_name(NODES[name](leaf([0.5, 0.25]))) == name


@pytest.mark.point(31)
@each("f", [lambda x: x // 2.0, lambda x: 2.0 // x, lambda x: tg.heaviside(x, tg.ones(2))])
def test_going_back_through_what_has_no_derivative_is_an_error(f) -> None:
    x = leaf([0.5, 3.0])
    y = f(x) + x
    with pytest.raises(RuntimeError, match="derivative for aten::.* is not implemented"):
        y.sum().backward()
    assert x.grad is None


def test_floored_quotient_is_that_of_the_exact_division() -> None:
    tenth = tg.tensor(0.1)
    assert (tg.tensor(1.0) // tenth).item() == 9.0  # 1 / 0.1 rounds up to 10
    assert tg.div(tg.tensor(1.0), tenth, rounding_mode="floor").item() == 9.0


def test_derivative_of_a_remainder_with_respect_to_the_divisor_is_that_of_the_value_it_has() -> None:
    for f in (tg.remainder, tg.fmod):
        y = leaf(0.1)
        f(tg.tensor(1.0), y).backward()
        assert y.grad.item() == -9.0


def test_rounded_quotient_of_large_integers_is_exact() -> None:
    x = tg.tensor([2**62 + 1, -(2**62) - 1])
    assert tg.div(x, 2, rounding_mode="trunc").tolist() == [2**61, -(2**61)]
    assert tg.div(x, 2, rounding_mode="floor").tolist() == [2**61, -(2**61) - 1]


def test_integers_keep_their_dtype_beside_numbers() -> None:
    x = tg.tensor([6, 5], dtype=tg.int32)
    assert (x & 3).dtype == tg.int32 and tg.clamp_min(x, 6).dtype == tg.int32


def test_largest_float32_replaces_infinity() -> None:
    assert tg.nan_to_num(tg.tensor(math.inf, dtype=tg.float32)).item() == float(np.finfo(np.float32).max)


def test_what_was_replaced_gets_no_gradient() -> None:
    x = leaf([1.0, math.nan, math.inf, -math.inf])
    tg.nan_to_num(x, 7.0, 8.0, 9.0).sum().backward()
    assert_values(x.grad, [1.0, 0.0, 0.0, 0.0])


def test_sum_without_nan_of_nothing_else_is_zero_and_the_mean_is_nan() -> None:
    x = tg.tensor([math.nan, math.nan])
    assert tg.nansum(x).item() == 0.0 and math.isnan(tg.nanmean(x).item())


def test_larger_of_a_number_and_nan_is_the_number_and_gets_the_gradient() -> None:
    x, y = leaf([1.0, math.nan, 2.0]), leaf([math.nan, 1.0, 2.0])
    tg.fmax(x, y).sum().backward()
    assert_values(x.grad, [1.0, 0.0, 1.0])
    assert_values(y.grad, [0.0, 1.0, 0.0])


HUGE = np.array([1.0, 1.79e308, -1.79e308, math.inf, -math.inf, math.nan])
SINGLE = tg.tensor([1.0, 2.0], dtype=tg.float32)
NUMBER = tg.tensor(1e300)  # beyond float32, and without dimensions, so that it does not widen

# Overflow and nan are values here; a warning would be an error in these tests.
QUIET = {
    "addcmul": lambda x: tg.addcmul(SINGLE, SINGLE, NUMBER),
    "logaddexp2": lambda x: tg.logaddexp2(SINGLE, NUMBER),
    "fmax": lambda x: tg.fmax(SINGLE, NUMBER),
    "floor_divide": lambda x: SINGLE // NUMBER,
    "hardtanh with wide bounds": lambda x: F.hardtanh(SINGLE, -1e300, 1e300),
    "threshold with a huge value": lambda x: F.threshold(SINGLE, 5.0, 1e300),
    "round": lambda x: tg.round(x, decimals=2),
    "diff": tg.diff,
    "trapezoid": tg.trapezoid,
    "logcumsumexp": lambda x: tg.logcumsumexp(x, 0),
    "cummax": lambda x: tg.cummax(x, 0).values,
    "median": tg.median,
    "mode": lambda x: tg.mode(x).values,
    "quantile": lambda x: tg.quantile(x, 0.3),
    "nanquantile": lambda x: tg.nanquantile(x, 0.3),
    "nansum": tg.nansum,
    "nanmean": tg.nanmean,
    "aminmax": lambda x: tg.aminmax(x).max,
    "var_mean": lambda x: tg.var_mean(x)[0],
    "dist": lambda x: tg.dist(x, -x),
    "erfinv": tg.erfinv,
    "sinc": tg.sinc,
    "logit": tg.logit,
    "copysign": lambda x: tg.copysign(x, -1.0),
    "float_power": lambda x: tg.float_power(x, 3.0),
    "gelu by tanh": lambda x: F.gelu(x, "tanh"),
}


SHORT = "celu elu gelu hardshrink hardsigmoid hardswish hardtanh mish relu6 rrelu selu softshrink softsign tanhshrink"
QUIET |= {name: getattr(F, name) for name in SHORT.split()}


@each("create_graph", [False, True])
@each("name", QUIET)
def test_overflow_and_nan_are_no_warnings(name: str, create_graph: bool) -> None:
    x = leaf(HUGE)
    y = QUIET[name](x)
    assert y.numel()
    if y.requires_grad:
        (g,) = tg.autograd.grad(y.sum(), x, create_graph=create_graph)
        assert g.shape == x.shape


def test_sigmoid_of_bools_is_that_of_zeros_and_ones() -> None:
    assert_values(tg.sigmoid(tg.tensor([True, False])), tg.sigmoid(tg.tensor([1.0, 0.0])).tolist())


def test_slopes_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(RuntimeError, match="less than or equal to the upper bound, got 0.3 and 0.1"):
        F.rrelu(tg.ones(2), 0.3, 0.1, training=True)


def test_bools_have_squares_of_integers() -> None:
    square = tg.tensor([True, False]).square()
    assert (square.tolist(), square.dtype) == ([1, 0], tg.int64)
