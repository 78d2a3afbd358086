"""The rule table where it is delicate: nan and infinities, kinks, masked branches, operands written afterwards."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.special
from engine_fixtures import assert_values, leaf, numbers
from many_cases import each
from rule_samples import PUBLIC, Rule, call, columns, differentiable, edge_columns, edge_points, names, operands, points

import tapegrad as tg

grad = tg.autograd.grad
every_rule = each("rule", PUBLIC, ids=names(PUBLIC))


def gradients(rule: Rule, values: list[np.ndarray] | tuple[float, ...], create_graph: bool = False) -> list[np.ndarray]:
    arguments = operands(rule, values)
    tracked = [arguments[k] for k in differentiable(rule)]
    y = call(rule, arguments)
    seed = tg.ones_like(y.detach())
    return [numbers(g) for g in grad(y, tracked, seed, create_graph=create_graph, materialize_grads=True)]


@every_rule
def test_edge_values_of_scalars_equal_those_of_arrays(rule: Rule) -> None:
    together = numbers(call(rule, operands(rule, edge_columns(rule))))
    alone = [call(rule, operands(rule, point)).item() for point in edge_points(rule)]
    np.testing.assert_allclose(alone, together, rtol=1e-13, atol=0.0)


@every_rule
def test_edge_gradients_of_scalars_equal_those_of_arrays(rule: Rule) -> None:
    together = gradients(rule, edge_columns(rule))
    alone = list(zip(*[gradients(rule, point) for point in edge_points(rule)], strict=True))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=0.0)


@every_rule
def test_edge_gradients_recorded_equal_those_swept(rule: Rule) -> None:
    swept = gradients(rule, edge_columns(rule))
    recorded = gradients(rule, edge_columns(rule), create_graph=True)
    for one, other in zip(recorded, swept, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=0.0)


@every_rule
def test_tape_is_usable_after_nan_and_infinity(rule: Rule) -> None:
    for point in edge_points(rule)[:20]:
        gradients(rule, point)
    x = leaf(3.0)
    (x * x).backward()
    assert_values(x.grad, 6.0)


@every_rule
def test_float32_edges_do_not_raise(rule: Rule) -> None:
    arguments = operands(rule, edge_columns(rule), tg.float32)
    tracked = [arguments[k] for k in differentiable(rule)]
    got = grad(call(rule, arguments).sum(), tracked, materialize_grads=True)
    assert [g.dtype for g in got] == [tg.float32] * len(tracked)


def inner_operands(rule: Rule, values: list[np.ndarray] | tuple[float, ...]) -> tuple[list[tg.Tensor], list[object]]:
    """Leaves and, made from them, operands that may be written."""
    leaves = operands(rule, values)
    inner = [x * 1.0 if k in differentiable(rule) else x for k, x in enumerate(leaves)]
    return [leaves[k] for k in differentiable(rule)], inner


def assert_safe_when_written(rule: Rule, values: list[np.ndarray] | tuple[float, ...], victim: int) -> None:
    """Write operand number `victim`, or the result if it is -1: backward raises or is right."""
    leaves, inner = inner_operands(rule, values)
    y = call(rule, inner)
    total = y.sum()
    expected = [numbers(g) for g in grad(total, leaves, retain_graph=True, materialize_grads=True)]
    written = y if victim < 0 else inner[victim]
    written.mul_(1.5).add_(0.25)
    refused = False
    try:
        got = [numbers(g) for g in grad(total, leaves, materialize_grads=True)]
    except RuntimeError as error:
        refused = "modified by an inplace operation" in str(error)
        got = []
    assert refused or all(np.array_equal(one, other) for one, other in zip(got, expected, strict=True))


@pytest.mark.point(44)
@every_rule
def test_writing_an_array_operand_raises_or_does_no_harm(rule: Rule) -> None:
    for victim in differentiable(rule):
        assert_safe_when_written(rule, columns(rule), victim)


@pytest.mark.point(44)
@every_rule
def test_writing_a_scalar_operand_raises_or_does_no_harm(rule: Rule) -> None:
    for victim in differentiable(rule):
        assert_safe_when_written(rule, points(rule)[0], victim)


@pytest.mark.point(44)
@every_rule
def test_writing_an_array_result_raises_or_does_no_harm(rule: Rule) -> None:
    assert_safe_when_written(rule, columns(rule), -1)


@pytest.mark.point(44)
@every_rule
def test_writing_a_scalar_result_raises_or_does_no_harm(rule: Rule) -> None:
    assert_safe_when_written(rule, points(rule)[0], -1)


CONVENTIONS: dict[str, tuple[Callable[[tg.Tensor], tg.Tensor], float, float]] = {
    "abs at 0": (lambda x: x.abs(), 0.0, 0.0),
    "sign at 0": (lambda x: x.sign(), 0.0, 0.0),
    "relu at 0": (lambda x: x.relu(), 0.0, 0.0),
    "relu at -0": (lambda x: x.relu(), -0.0, 0.0),
    "clamp at its lower bound": (lambda x: x.clamp(0.0, 1.0), 0.0, 1.0),
    "clamp at its upper bound": (lambda x: x.clamp(0.0, 1.0), 1.0, 1.0),
    "clamp of nan": (lambda x: x.clamp(0.0, 1.0), math.nan, 0.0),
    "clamp with a bound that is nan": (lambda x: x.clamp(math.nan, 1.0), 0.5, 0.0),
    "clamp below": (lambda x: x.clamp(0.0, 1.0), -0.5, 0.0),
    "clamp above": (lambda x: x.clamp(0.0, 1.0), 1.5, 0.0),
    "clamp from below only, at the bound": (lambda x: x.clamp(min=0.0), 0.0, 1.0),
    "clamp from above only, at the bound": (lambda x: x.clamp(max=1.0), 1.0, 1.0),
    "sqrt at 0": (lambda x: x.sqrt(), 0.0, math.inf),
    "log at 0": (lambda x: x.log(), 0.0, math.inf),
    "maximum of a tie": (lambda x: tg.maximum(x, tg.ones_like(x)), 1.0, 0.5),
    "minimum of a tie": (lambda x: tg.minimum(x, tg.ones_like(x)), 1.0, 0.5),
    "maximum with itself": (lambda x: tg.maximum(x, x), 1.0, 1.0),
    "x ** 0 at 0": (lambda x: x**0, 0.0, 0.0),
    "x ** 1 at 0": (lambda x: x**1, 0.0, 1.0),
    "x ** 2 at 0": (lambda x: x**2, 0.0, 0.0),
    "x ** 3 at a negative number": (lambda x: x**3, -2.0, 12.0),
    "0 ** b at 2": (lambda b: 0.0**b, 2.0, 0.0),
    "0 ** b at 0": (lambda b: 0.0**b, 0.0, 0.0),
    "hypot at the origin": (lambda x: tg.hypot(x, tg.zeros_like(x)), 0.0, 0.0),
    "clamp_min at the bound": (lambda x: x.clamp_min(1.0), 1.0, 1.0),
    "clamp_max at the bound": (lambda x: x.clamp_max(1.0), 1.0, 1.0),
    "clamp_min of two that tie, the bound": (lambda x: tg.clamp_min(tg.ones_like(x), x), 1.0, 0.0),
    "copysign of 0": (lambda x: tg.copysign(x, -1.0), 0.0, 0.0),
    "copysign of a negative number": (lambda x: tg.copysign(x, 1.0), -2.0, -1.0),
    "sinc at 0": (lambda x: x.sinc(), 0.0, 0.0),
    "sinc near 0": (lambda x: x.sinc(), 1e-9, -(math.pi**2) / 3 * 1e-9),
    "cbrt at 0": (lambda x: x.cbrt(), 0.0, math.inf),
    "fmax of two that tie, the first": (lambda x: tg.fmax(x, tg.ones_like(x)), 1.0, 1.0),
    "fmax of two that tie, the second": (lambda x: tg.fmax(tg.ones_like(x), x), 1.0, 0.0),
    "fmin beside nan": (lambda x: tg.fmin(x, tg.full_like(x, math.nan)), 1.0, 1.0),
    "erfinv at 1": (lambda x: x.erfinv(), 1.0, math.inf),
    "logit at 0": (lambda x: x.logit(), 0.0, math.inf),
    "floor at 0": (lambda x: x.floor(), 0.0, 0.0),
    "round at a half": (lambda x: x.round(), 0.5, 0.0),
}


@pytest.mark.point(78, 79, 80)
@each("name", CONVENTIONS)
def test_scalar_derivative_at_a_kink(name: str) -> None:
    f, at, expected = CONVENTIONS[name]
    x = leaf(at)
    assert_values(grad(f(x), x)[0], expected)


@pytest.mark.point(78, 79, 80)
@each("name", CONVENTIONS)
def test_array_derivative_at_a_kink(name: str) -> None:
    f, at, expected = CONVENTIONS[name]
    x = leaf([at, at])
    assert_values(grad(f(x).sum(), x)[0], [expected, expected])


@pytest.mark.point(78, 79, 80)
@each("name", CONVENTIONS)
def test_recorded_derivative_at_a_kink(name: str) -> None:
    f, at, expected = CONVENTIONS[name]
    x = leaf([at, at])
    assert_values(grad(f(x).sum(), x, create_graph=True)[0], [expected, expected])


@pytest.mark.point(79)
def test_both_sides_of_a_tie_share_evenly() -> None:
    x, y = leaf([1.0]), leaf([1.0])
    tg.maximum(x, y).backward()
    assert (x.grad.item(), y.grad.item()) == (0.5, 0.5)


@pytest.mark.point(80)
def test_second_derivative_of_a_square_at_zero() -> None:
    x = leaf(0.0)
    (g,) = grad(x**2, x, create_graph=True)
    assert_values(grad(g, x)[0], 2.0)


def test_second_derivative_of_cbrt_at_zero_is_infinite() -> None:
    x = leaf(0.0)
    (g,) = grad(tg.cbrt(x), x, create_graph=True)
    assert_values(grad(g, x)[0], -math.inf)


def test_fourth_derivative_of_sinc_at_zero() -> None:
    x = leaf(0.0)
    g = tg.sinc(x)
    for _ in range(4):
        (g,) = grad(g, x, create_graph=True)
    assert_values(g, math.pi**4 / 5)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_sinc_keep_their_digits_where_series_and_recurrence_meet(order: int) -> None:
    (below, above) = (np.nextafter(3.0 / math.pi, side) for side in (0.0, 1.0))
    found = []
    for at in (below, above):
        x = leaf(float(at))
        g = tg.sinc(x)
        for _ in range(order):
            (g,) = grad(g, x, create_graph=True)
        found.append(g.item())
    assert found[0] == pytest.approx(found[1], rel=1e-13)


@pytest.mark.parametrize("x", [1e-300, 1e-9, 0.3, 0.5, 0.97, 1.0 - 1e-9, 1.0 - 2**-53])
def test_erfinv_undoes_erf_to_the_last_digits(x: float) -> None:
    z = tg.erfinv(tg.tensor(x)).item()
    assert math.erfc(z) == pytest.approx(1.0 - x, rel=1e-14) if x > 0.5 else math.erf(z) == pytest.approx(x, rel=1e-14)


@pytest.mark.point(82)
def test_round_goes_to_even() -> None:
    assert tg.round(tg.tensor([0.5, 1.5, 2.5, -0.5])).tolist() == [0.0, 2.0, 2.0, -0.0]


@pytest.mark.point(82)
def test_remainder_has_the_sign_of_the_divisor() -> None:
    assert (tg.tensor([5.0, -5.0]) % tg.tensor([-3.0, 3.0])).tolist() == [-1.0, 1.0]


@pytest.mark.point(82)
def test_fmod_has_the_sign_of_the_dividend() -> None:
    assert tg.fmod(tg.tensor([5.0, -5.0]), tg.tensor([-3.0, 3.0])).tolist() == [2.0, -2.0]


@pytest.mark.point(83)
def test_softplus_is_linear_above_twenty() -> None:
    x = leaf([25.0])
    y = tg.softplus(x)
    y.backward()
    assert y.item() == 25.0 and x.grad.item() == 1.0


# A branch that is not taken at 0, with an infinite or undefined derivative there: first and second derivative at 0.
MASKED: dict[str, tuple[Callable[[tg.Tensor], tg.Tensor], float, float]] = {
    "log or nothing": (lambda x: tg.where(x > 0, tg.log(x), 0.0), 0.0, 0.0),
    "log or a multiple": (lambda x: tg.where(x > 0, tg.log(x), 2 * x), 2.0, 0.0),
    "sqrt or zero times x": (lambda x: tg.where(x > 0, tg.sqrt(x), 0 * x), 0.0, 0.0),
    "x log x or a square": (lambda x: tg.where(x > 0, x * tg.log(x), x * x), 0.0, 2.0),
    "reciprocal or a cube": (lambda x: tg.where(x > 0, 1 / x, x**3), 0.0, 0.0),
    "quotient or exp": (lambda x: tg.where(x > 0, tg.sin(x) / x, tg.exp(x)), 1.0, 1.0),
    "root or a square": (lambda x: tg.where(x > 0, x**0.5, x * x), 0.0, 2.0),
    "rsqrt or cos": (lambda x: tg.where(x > 0, tg.rsqrt(x), tg.cos(x)), 0.0, -1.0),
    "acosh outside its domain or sin": (lambda x: tg.where(x > 1, tg.acosh(x), tg.sin(x)), 1.0, 0.0),
    "log of log or sinh": (lambda x: tg.where(x > 0, tg.log(tg.log(1 + x)), tg.sinh(x)), 1.0, 0.0),
    "mask as a factor": (lambda x: (x > 0).double() * tg.sqrt(x) + x * x, 0.0, 2.0),
}


def start(array: bool) -> tg.Tensor:
    return leaf([0.0, 0.0]) if array else leaf(0.0)


@pytest.mark.point(81)
@each("array", [False, True], ids=["scalar", "array"])
@each("name", MASKED)
def test_masked_branch_leaves_the_first_derivative_alone(name: str, array: bool) -> None:
    f, first, _ = MASKED[name]
    x = start(array)
    assert_values(grad(f(x).sum(), x)[0], np.full(x.shape, first), atol=1e-15)


@pytest.mark.point(81)
@each("array", [False, True], ids=["scalar", "array"])
@each("name", MASKED)
def test_masked_branch_leaves_the_recorded_derivative_alone(name: str, array: bool) -> None:
    f, first, _ = MASKED[name]
    x = start(array)
    assert_values(grad(f(x).sum(), x, create_graph=True)[0], np.full(x.shape, first), atol=1e-15)


@pytest.mark.point(81)
@each("array", [False, True], ids=["scalar", "array"])
@each("name", MASKED)
def test_masked_branch_leaves_the_second_derivative_alone(name: str, array: bool) -> None:
    f, _, second = MASKED[name]
    x = start(array)
    (g,) = grad(f(x).sum(), x, create_graph=True)
    got = grad(g.sum(), x, materialize_grads=True)[0] if g.requires_grad else tg.zeros_like(x.detach())
    assert_values(got, np.full(x.shape, second), atol=1e-15)


@each("name", MASKED)
def test_branches_are_differentiated_where_they_are_taken(name: str) -> None:
    f = MASKED[name][0]
    x, step = 1.3, 1e-6
    point = leaf(x)
    difference = (f(tg.tensor(x + step)).item() - f(tg.tensor(x - step)).item()) / (2 * step)
    np.testing.assert_allclose(grad(f(point), point)[0].item(), difference, rtol=1e-7)


def test_zero_seed_does_not_meet_an_infinite_partial() -> None:
    x = leaf([0.0, 4.0])
    (g,) = grad(tg.sqrt(x), x, tg.tensor([0.0, 1.0]))
    assert_values(g, [0.0, 0.25])


def test_infinite_partial_without_a_mask_stays_infinite() -> None:
    x = leaf([0.0])
    tg.sqrt(x).backward()
    assert x.grad.item() == math.inf


def test_nan_in_an_unused_element_stays_there() -> None:
    x = leaf([math.nan, 2.0])
    (x * x)[1].backward()
    assert_values(x.grad, [0.0, 4.0])


@each("order", [1, 2, 3, 4])
def test_polygamma_at_its_poles_is_infinite_as_seen_from_the_right(order: int) -> None:
    poles = np.array([0.0, -1.0, -2.0])
    np.testing.assert_array_equal(tg.polygamma(order, tg.tensor(poles)).numpy(), scipy.special.polygamma(order, poles))


@each("x", [-1e-10, -1e-16, -1e-17, -1e-20, -1e-142, -1e-300])
def test_digamma_just_below_zero_is_that_of_its_pole(x: float) -> None:
    np.testing.assert_allclose(tg.digamma(tg.tensor(x)).item(), -1.0 / x - np.euler_gamma, rtol=1e-15)
    np.testing.assert_allclose(tg.digamma(tg.tensor([x])).numpy(), [-1.0 / x - np.euler_gamma], rtol=1e-15)


@each("x", [-1e16, -1e19, -1e300, -math.inf])
def test_digamma_and_its_derivatives_at_integers_that_no_int64_holds(x: float) -> None:
    for point in (tg.tensor(x), tg.tensor([x])):
        assert math.isnan(tg.digamma(point).item())
        assert [tg.polygamma(order, point).item() for order in (1, 2)] == [math.inf, -math.inf]


@each("order", [1, 2, 3])
def test_polygamma_far_below_zero_is_that_of_its_recurrence(order: int) -> None:
    x, steps = -1200.25, np.arange(2000.0)
    sign, factorial = (-1.0) ** (order + 1), math.factorial(order)
    from_above = scipy.special.polygamma(order, x + len(steps))
    expected = from_above + sign * factorial * ((x + steps) ** -(order + 1.0)).sum()
    np.testing.assert_allclose(tg.polygamma(order, tg.tensor([x, -4.0e15 + 0.5])).numpy()[0], expected, rtol=1e-12)
