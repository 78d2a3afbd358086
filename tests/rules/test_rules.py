"""Every row of the rule table: values, partials, second order, shapes, dtypes. A new row is tested by being there."""

import math
from collections.abc import Callable

import numpy as np
from engine_fixtures import central_difference, numbers
from many_cases import each
from rule_samples import (
    PUBLIC,
    STEP,
    Rule,
    call,
    columns,
    differences,
    differentiable,
    gradient,
    is_number,
    names,
    operands,
    points,
    value,
)

import tapegrad as tg
from tapegrad.rules.table import RULES

grad = tg.autograd.grad
every_rule = each("rule", PUBLIC, ids=names(PUBLIC))

# Values by other means, for what neither `math` nor NumPy has under the same name.
ORACLES: dict[str, Callable[..., float]] = {
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x: -x,
    "rsqrt": lambda x: 1.0 / math.sqrt(x),
    "asin": math.asin,
    "acos": math.acos,
    "digamma": lambda x: central_difference(math.lgamma, [x], 0, 1e-2 * x),
    "logit": lambda x: math.log(x) - math.log1p(-x),
    "sigmoid": lambda x: 1.0 / (1.0 + math.exp(-x)),
    "logsigmoid": lambda x: -math.log1p(math.exp(-x)),
    "softplus": lambda x: math.log1p(math.exp(x)),
    "relu": lambda x: max(x, 0.0),
    "leaky_relu": lambda x, y: x if x > 0.0 else x * y,
    "silu": lambda x: x / (1.0 + math.exp(-x)),
    "gelu": lambda x: 0.5 * x * math.erfc(-x / math.sqrt(2.0)),
    "xlogy": lambda x, y: x * math.log(y),
    "where": lambda x, y, w: y if x > 0.5 else w,
    "lerp": lambda x, y, w: x * (1.0 - w) + y * w,
    "frac": lambda x: math.modf(x)[0],
    "pow": lambda x, y: x**y,
    "clamp_min": max,
    "clamp_max": min,
}


def oracle(name: str) -> Callable[..., float] | None:
    return ORACLES.get(name) or getattr(np, name, None) or getattr(math, name, None)


WITH_ORACLE = [rule for rule in PUBLIC if oracle(rule.name) is not None]


@each("rule", WITH_ORACLE, ids=names(WITH_ORACLE))
def test_value_agrees_with_another_implementation(rule: Rule) -> None:
    expected = [float(oracle(rule.name)(*point)) for point in points(rule)]
    np.testing.assert_allclose([value(rule, *point) for point in points(rule)], expected, rtol=1e-8, atol=1e-12)


@every_rule
def test_array_value_equals_scalar_values(rule: Rule) -> None:
    got = numbers(call(rule, operands(rule, columns(rule))))
    np.testing.assert_allclose(got, [value(rule, *point) for point in points(rule)], rtol=1e-13, atol=1e-15)


@every_rule
def test_partials_of_scalars_agree_with_differences(rule: Rule) -> None:
    for point in points(rule):
        np.testing.assert_allclose(gradient(rule, point), differences(rule, point), rtol=1e-6, atol=1e-8)


@every_rule
def test_partials_of_arrays_equal_those_of_scalars(rule: Rule) -> None:
    arguments = operands(rule, columns(rule))
    seed = np.linspace(0.5, 1.5, 6)
    tracked = [arguments[k] for k in differentiable(rule)]
    got = grad(call(rule, arguments), tracked, tg.tensor(seed), materialize_grads=True)
    expected = np.array([gradient(rule, point) for point in points(rule)])
    for k, g in zip(differentiable(rule), got, strict=True):
        np.testing.assert_allclose(numbers(g), seed * expected[:, k], rtol=1e-12, atol=1e-14)


@every_rule
def test_recorded_partials_of_scalars_equal_swept_ones(rule: Rule) -> None:
    for point in points(rule):
        np.testing.assert_allclose(gradient(rule, point, create_graph=True), gradient(rule, point), rtol=1e-12, atol=1e-14)


@every_rule
def test_recorded_partials_of_arrays_equal_swept_ones(rule: Rule) -> None:
    arguments = operands(rule, columns(rule))
    tracked = [arguments[k] for k in differentiable(rule)]
    y = call(rule, arguments).sum()
    swept = grad(y, tracked, retain_graph=True, materialize_grads=True)
    recorded = grad(y, tracked, create_graph=True, materialize_grads=True)
    for one, other in zip(swept, recorded, strict=True):
        np.testing.assert_allclose(numbers(other), numbers(one), rtol=1e-12, atol=1e-14)


def second_order(rule: Rule, point: tuple[float, ...], first: int) -> list[float]:
    """Derivatives of partial `first` with respect to every argument, by recording the first pass."""
    arguments = operands(rule, point)
    tracked = [arguments[k] for k in differentiable(rule)]
    (g,) = grad(call(rule, arguments), arguments[first], create_graph=True, materialize_grads=True)
    partials = [0.0] * len(point)
    if g.requires_grad:
        for k, h in zip(differentiable(rule), grad(g, tracked, materialize_grads=True), strict=True):
            partials[k] = float(h.item())
    return partials


@every_rule
def test_second_order_of_scalars_agrees_with_differences_of_the_first(rule: Rule) -> None:
    for point in points(rule):
        for first in differentiable(rule):
            expected = [
                central_difference(lambda *p, first=first: gradient(rule, p)[first], point, k, STEP)
                if k in differentiable(rule)
                else 0.0
                for k in range(len(point))
            ]
            np.testing.assert_allclose(second_order(rule, point, first), expected, rtol=1e-6, atol=1e-7)


@every_rule
def test_second_order_of_arrays_equals_that_of_scalars(rule: Rule) -> None:
    arguments = operands(rule, columns(rule))
    tracked = [arguments[k] for k in differentiable(rule)]
    for first in differentiable(rule):
        (g,) = grad(call(rule, arguments).sum(), arguments[first], create_graph=True, materialize_grads=True)
        expected = np.array([second_order(rule, point, first) for point in points(rule)])
        got = (
            [numbers(h) for h in grad(g.sum(), tracked, materialize_grads=True)]
            if g.requires_grad
            else [np.zeros(6) for _ in tracked]
        )
        for k, h in zip(differentiable(rule), got, strict=True):
            np.testing.assert_allclose(h, expected[:, k], rtol=1e-11, atol=1e-12)


@every_rule
def test_broadcast_gradients_are_sums_over_the_broadcast_axes(rule: Rule) -> None:
    shapes = [() if is_number(rule, k) else shape for k, shape in enumerate(((6, 1), (6,), (1, 6))[: len(rule.args)])]
    arrays = [np.resize(column, shape) for column, shape in zip(columns(rule), shapes, strict=True)]
    arguments = operands(rule, arrays)
    whole = operands(rule, [np.array(full) for full in np.broadcast_arrays(*arrays)])
    y, z = call(rule, arguments), call(rule, whole)
    seed = tg.tensor(np.linspace(-1.0, 2.0, z.numel()).reshape(tuple(z.shape)))
    got = grad(y, [arguments[k] for k in differentiable(rule)], seed, materialize_grads=True)
    expected = grad(z, [whole[k] for k in differentiable(rule)], seed, materialize_grads=True)
    for k, one, other in zip(differentiable(rule), got, expected, strict=True):
        full = numbers(other)
        kept = (1,) * (full.ndim - len(shapes[k])) + shapes[k]
        axes = tuple(axis for axis in range(full.ndim) if kept[axis] == 1)
        summed = full.sum(axes, keepdims=True).reshape(shapes[k])
        np.testing.assert_allclose(numbers(one), summed, rtol=1e-11, atol=1e-13)


@every_rule
def test_a_scalar_among_arrays_receives_the_sum(rule: Rule) -> None:
    for k in differentiable(rule):
        arrays = [np.array(column) for column in columns(rule)]
        arrays[k] = np.asarray(arrays[k][0])
        arguments = operands(rule, arrays)
        (got,) = grad(call(rule, arguments).sum(), arguments[k], materialize_grads=True)
        rows = [list(row) for row in zip(*[np.broadcast_to(a, 6) for a in arrays], strict=True)]
        if all(j == k or is_number(rule, j) for j in range(len(rule.args))):
            rows = rows[:1]
        expected = sum(gradient(rule, row)[k] for row in rows)
        np.testing.assert_allclose(float(got.item()), expected, rtol=1e-11, atol=1e-13)


@every_rule
def test_strided_operands_have_the_gradients_of_contiguous_ones(rule: Rule) -> None:
    blocks = [column.reshape(2, 3) for column in columns(rule)]
    plain = operands(rule, blocks)
    padded = [np.repeat(block.T, 2, axis=1) for block in blocks]  # transposed, each element twice
    bases = operands(rule, padded)
    views = [base[:, ::2].t() if isinstance(base, tg.Tensor) else base for base in bases]
    seed = tg.tensor(np.arange(1.0, 7.0).reshape(2, 3))
    tracked = differentiable(rule)
    expected = grad(call(rule, plain), [plain[k] for k in tracked], seed, materialize_grads=True)
    got = grad(call(rule, views), [bases[k] for k in tracked], seed, materialize_grads=True)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(numbers(one)[:, ::2].T, numbers(other), rtol=1e-12, atol=1e-14)


@every_rule
def test_long_arrays_have_the_gradients_of_short_ones(rule: Rule) -> None:
    repeats = 400  # longer than any block that a kernel works in
    short = operands(rule, columns(rule))
    long = operands(rule, [np.tile(column, repeats) for column in columns(rule)])
    tracked = differentiable(rule)
    expected = grad(call(rule, short).sum(), [short[k] for k in tracked], materialize_grads=True)
    got = grad(call(rule, long).sum(), [long[k] for k in tracked], materialize_grads=True)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(numbers(one), np.tile(numbers(other), repeats), rtol=1e-12, atol=1e-14)


@every_rule
def test_empty_arrays_have_empty_gradients(rule: Rule) -> None:
    arguments = operands(rule, [np.zeros((0, 2)) for _ in rule.args])
    got = grad(call(rule, arguments).sum(), [arguments[k] for k in differentiable(rule)], materialize_grads=True)
    assert [tuple(g.shape) for g in got] == [(0, 2)] * len(got)


@every_rule
def test_a_plain_number_is_a_constant_operand(rule: Rule) -> None:
    for k in differentiable(rule):
        first = points(rule)[0]
        for own in (first[k], columns(rule)[k]):
            values = [own if j == k else first[j] for j in range(len(first))]
            tensors = operands(rule, values)
            mixed = [tensors[j] if j == k or rule.partials[j] is None else first[j] for j in range(len(first))]
            (got,) = grad(call(rule, mixed).sum(), mixed[k], materialize_grads=True)
            (expected,) = grad(call(rule, tensors).sum(), tensors[k], materialize_grads=True)
            np.testing.assert_allclose(numbers(got), numbers(expected), rtol=1e-13, atol=1e-15)


@every_rule
def test_untracked_operands_give_an_untracked_result(rule: Rule) -> None:
    assert call(rule, operands(rule, columns(rule), tracked=False)).grad_fn is None


@every_rule
def test_float32_operands_give_a_float32_result(rule: Rule) -> None:
    assert call(rule, operands(rule, columns(rule), tg.float32)).dtype == tg.float32


@every_rule
def test_float32_value_is_the_rounded_one(rule: Rule) -> None:
    got = numbers(call(rule, operands(rule, columns(rule), tg.float32)))
    expected = numbers(call(rule, operands(rule, [c.astype(np.float32).astype(float) for c in columns(rule)])))
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-6)


@every_rule
def test_float32_leaf_gets_a_float32_gradient(rule: Rule) -> None:
    arguments = operands(rule, columns(rule), tg.float32)
    got = grad(call(rule, arguments).sum(), [arguments[k] for k in differentiable(rule)], materialize_grads=True)
    assert all(g.dtype == tg.float32 for g in got)


@every_rule
def test_float32_gradient_is_the_rounded_one(rule: Rule) -> None:
    arguments = operands(rule, columns(rule), tg.float32)
    doubles = operands(rule, [c.astype(np.float32).astype(float) for c in columns(rule)])
    tracked = differentiable(rule)
    got = grad(call(rule, arguments).sum(), [arguments[k] for k in tracked], materialize_grads=True)
    expected = grad(call(rule, doubles).sum(), [doubles[k] for k in tracked], materialize_grads=True)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-4, atol=1e-5)


def rounded(point: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(float(np.float32(value)) for value in point)


@every_rule
def test_float32_scalars_have_float32_gradients(rule: Rule) -> None:
    arguments = operands(rule, points(rule)[0], tg.float32)
    got = grad(call(rule, arguments), [arguments[k] for k in differentiable(rule)], materialize_grads=True)
    assert all(g.dtype == tg.float32 for g in got)


@each("create_graph", [False, True], ids=["swept", "recorded"])
@every_rule
def test_float32_scalars_have_the_gradients_of_float64_ones(rule: Rule, create_graph: bool) -> None:
    for point in points(rule):
        arguments = operands(rule, point, tg.float32)
        tracked = [arguments[k] for k in differentiable(rule)]
        got = grad(call(rule, arguments), tracked, create_graph=create_graph, materialize_grads=True)
        expected = [gradient(rule, rounded(point))[k] for k in differentiable(rule)]
        np.testing.assert_allclose([g.item() for g in got], expected, rtol=1e-4, atol=1e-5)


@each("create_graph", [False, True], ids=["swept", "recorded"])
@every_rule
def test_float32_scalar_among_float64_scalars_has_its_gradient(rule: Rule, create_graph: bool) -> None:
    point = rounded(points(rule)[0])
    for k in differentiable(rule):
        arguments = operands(rule, point)
        arguments[k] = tg.tensor(point[k], dtype=tg.float32, requires_grad=True)
        (got,) = grad(call(rule, arguments) * 1.5, arguments[k], create_graph=create_graph, materialize_grads=True)
        np.testing.assert_allclose(got.item(), 1.5 * gradient(rule, point)[k], rtol=1e-4, atol=1e-5)
        assert got.dtype == tg.float32


@every_rule
def test_float32_second_order_is_the_rounded_one(rule: Rule) -> None:
    point = rounded(points(rule)[0])
    for first in differentiable(rule):
        arguments = operands(rule, [[value] * 3 for value in point], tg.float32)
        tracked = [arguments[k] for k in differentiable(rule)]
        (g,) = grad(call(rule, arguments).sum() * 2.0, arguments[first], create_graph=True, materialize_grads=True)
        if g.requires_grad:
            got = [float(h[1].item()) for h in grad(g.sum(), tracked, materialize_grads=True)]
        else:
            got = [0.0] * len(tracked)
        expected = [2.0 * second_order(rule, point, first)[k] for k in differentiable(rule)]
        np.testing.assert_allclose(got, expected, rtol=2e-3, atol=1e-3)


WITH_METHOD = [rule for rule in PUBLIC if rule.partials[0] is not None and hasattr(tg.Tensor, rule.name)]


@each("rule", WITH_METHOD, ids=names(WITH_METHOD))
def test_method_equals_function(rule: Rule) -> None:
    first, *others = operands(rule, columns(rule))
    assert getattr(first, rule.name)(*others).tolist() == call(rule, [first, *others]).tolist()


def test_names_of_rules_are_unique() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_every_rule_has_one_partial_and_one_interval_per_argument() -> None:
    assert all(len(rule.args) == len(rule.partials) == len(rule.domain) for rule in RULES)
