"""The compiled sweeps over linear tapes against the recorded pass, row by row of the rule table and on random programs."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from many_cases import each
from rule_samples import call, columns, differentiable, names, operand, points

import tapegrad as tg
from tapegrad.drivers.derivatives import Derivative
from tapegrad.engine import LANES
from tapegrad.linear import linear_tape as module
from tapegrad.linear.linear_tape import linear_tape
from tapegrad.rules.table import RULES, Rule

PUBLIC = [rule for rule in RULES if not rule.name.startswith("_")]
POWERS = [2.0, 3.0, 0.5, -1.0]


def product_of_all(leaves: Sequence[tg.Tensor], output: tg.Tensor) -> tg.Tensor:
    """A number whose second derivatives are those of `output`, weighted, and of what follows it."""
    weights = tg.tensor(np.linspace(0.5, 1.5, output.numel()).reshape(output.shape))
    total = (output * weights).sum()
    return total * total


def assert_same_derivatives(leaves: Sequence[tg.Tensor], output: tg.Tensor, rtol: float = 1e-12) -> None:
    """Assert that all products by compiled sweeps are those by general passes."""
    compiled = linear_tape(leaves, [output])
    assert compiled is not None
    general = Derivative(leaves, [output])
    general._compiled = None
    seeds = np.eye(general.results)
    jacobian = general.pull(seeds).T
    scale = np.max(np.abs(jacobian), initial=1.0)
    np.testing.assert_allclose(compiled.pull(seeds).T, jacobian, rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(compiled.push(np.eye(general.inputs)), jacobian, rtol=rtol, atol=rtol * scale)


def assert_same_curvature(leaves: Sequence[tg.Tensor], total: tg.Tensor, rtol: float = 1e-10) -> None:
    """Assert that the compiled Hessian is the one of the recorded pass."""
    compiled = linear_tape(leaves, [total], second=True)
    assert compiled is not None
    general = Derivative(leaves, [total])
    directions = np.eye(general.inputs)
    expected = general.curve(directions)
    scale = np.max(np.abs(expected), initial=1.0)
    np.testing.assert_allclose(compiled.curve(directions), expected, rtol=rtol, atol=rtol * scale)
    assert_same_single_product(leaves, total)


def assert_same_single_product(leaves: Sequence[tg.Tensor], total: tg.Tensor) -> None:
    """Assert that the walk which takes one product only, and leaves out what that does not need, gives the bits of the sweeps."""
    any_product = linear_tape(leaves, [total], second=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LONG_ROWS", 0)
        one_product = linear_tape(leaves, [total], second=True, once=True)
    assert any_product is not None and one_product is not None
    direction = np.cos(1.0 + np.arange(any_product.inputs))[:, None]
    np.testing.assert_array_equal(one_product.curve(direction), any_product.curve(direction))


def scalars(rule: Rule, point: Sequence[float]) -> tuple[list[tg.Tensor], tg.Tensor]:
    arguments = [operand(rule, k, value) for k, value in enumerate(point)]
    return [arguments[k] for k in differentiable(rule)], call(rule, arguments)


@each("rule", PUBLIC, ids=names(PUBLIC))
def test_scalar_rows(rule: Rule) -> None:
    for point in points(rule, 2):
        leaves, output = scalars(rule, point)
        assert_same_derivatives(leaves, output)
        leaves, output = scalars(rule, point)
        assert_same_curvature(leaves, product_of_all(leaves, output))


@each("rule", PUBLIC, ids=names(PUBLIC))
def test_array_rows(rule: Rule) -> None:
    for _ in range(2):
        arguments = [operand(rule, k, column) for k, column in enumerate(columns(rule, 5))]
        leaves = [arguments[k] for k in differentiable(rule)]
        output = call(rule, arguments)
    assert_same_derivatives(leaves, output)
    assert_same_curvature(leaves, product_of_all(leaves, output))


@each("exponent", POWERS)
@each("value", [1.7, [0.3, 1.7]], ids=["scalar", "array"])
def test_powers_that_are_rules_of_their_own(exponent: float, value: Any) -> None:
    x = tg.tensor(value, requires_grad=True)
    assert_same_derivatives([x], x**exponent)
    assert_same_curvature([x], product_of_all([x], x**exponent))


@each("masked", [lambda x: tg.where(x > 0, tg.sqrt(x), 0 * x), lambda x: tg.where(x > 0, x * tg.log(x), x * x)])
@each("value", [0.0, [0.0, 2.0]], ids=["scalar", "array"])
def test_a_masked_branch_poisons_nothing(masked: Callable[[tg.Tensor], tg.Tensor], value: Any) -> None:
    x = tg.tensor(value, requires_grad=True)
    total = masked(x).sum()
    tape = linear_tape([x], [total], second=True)
    assert tape is not None
    for product in (tape.push, tape.curve):
        assert np.isfinite(product(np.eye(tape.inputs))).all()
    assert np.isfinite(tape.pull(np.ones((1, 1)))).all()


# Programs of rows of every kind; each takes what was made before.
UNARY = [tg.sin, lambda x: x * x, tg.tanh, lambda x: -x, lambda x: 2.0 * x, lambda x: tg.exp(0.3 * x), lambda x: x + 1.0]
SHAPING: list[Callable[[Any], Any]] = [
    lambda x: x.sum(),
    lambda x: x.mean(0) if x.ndim else x,
    lambda x: x.sum(-1, keepdim=True) if x.ndim else x,
    lambda x: x.reshape(-1)[::2],
    lambda x: x.reshape(-1)[0],
    lambda x: x.expand(2, *x.shape),
    lambda x: x.transpose(0, -1) if x.ndim else x,
    lambda x: tg.cat([x.reshape(-1), (2.0 * x).reshape(-1)]),
    lambda x: x.unsqueeze(0),
    lambda x: x.flip(0) if x.ndim else x,
]
BINARY = [lambda x, y: x * y, lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x / (1.5 + y * y), tg.maximum, tg.hypot]
STEP = st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 7), st.integers(0, 7))


def broadcast(x: tg.Tensor, y: tg.Tensor) -> bool:
    try:
        shape = np.broadcast_shapes(tuple(x.shape), tuple(y.shape))
    except ValueError:
        return False
    return int(np.prod(shape)) <= 64


def run(steps: list[tuple[int, int, int, int]], leaves: list[tg.Tensor]) -> tg.Tensor:
    made = list(leaves)
    for kind, which, one, other in steps:
        x, y = made[one % len(made)], made[other % len(made)]
        if kind == 0:
            made.append(UNARY[which % len(UNARY)](x))
        elif kind == 1 and x.numel() <= 32:
            made.append(SHAPING[which % len(SHAPING)](x))
        elif broadcast(x, y):
            made.append(BINARY[which % len(BINARY)](x, y))
    output = made[-1]
    for x in made[:-1]:
        output = output + 0.1 * x if broadcast(output, x) else output
    return output


def fresh_leaves() -> list[tg.Tensor]:
    rng = np.random.default_rng(1)
    return [tg.tensor(rng.uniform(0.2, 1.2, shape), requires_grad=True) for shape in ((), (3,), (2, 3))]


@given(st.lists(STEP, max_size=12))
def test_random_programs(steps: list[tuple[int, int, int, int]]) -> None:
    leaves = fresh_leaves()
    assert_same_derivatives(leaves, run(steps, leaves))
    assert_same_curvature(leaves, product_of_all(leaves, run(steps, leaves)))


@each("columns", sorted({1, 2, *LANES, LANES[-1] + 1}))
def test_any_number_of_lanes(columns: int) -> None:
    x = tg.tensor([0.5, 1.0, 2.0], requires_grad=True)
    tape = linear_tape([x], [tg.exp(x) * x[0]])
    assert tape is not None
    directions = np.random.default_rng(0).normal(size=(3, columns))
    e = np.exp([0.5, 1.0, 2.0])
    jacobian = np.diag(0.5 * e) + np.outer(e, [1.0, 0.0, 0.0])
    np.testing.assert_allclose(tape.push(directions), jacobian @ directions, rtol=1e-13)
    np.testing.assert_allclose(tape.pull(directions), jacobian.T @ directions, rtol=1e-13)


def test_arrays_longer_than_a_block() -> None:
    values = np.linspace(0.1, 2.0, 1500)
    x = tg.tensor(values, requires_grad=True)
    tape = linear_tape([x], [(tg.sin(x) * x).sum()], second=True)
    assert tape is not None
    np.testing.assert_allclose(tape.pull(np.ones((1, 1)))[:, 0], np.cos(values) * values + np.sin(values), rtol=1e-13)
    curved = tape.curve(np.ones((1500, 1)))[:, 0]
    np.testing.assert_allclose(curved, 2.0 * np.cos(values) - np.sin(values) * values, rtol=1e-12, atol=1e-14)


def test_float32_rows() -> None:
    x = tg.tensor([0.5, 1.5], dtype=tg.float32, requires_grad=True)
    y = tg.exp(x) * tg.tensor(2.0, dtype=tg.float32)
    tape = linear_tape([x], [y])
    assert tape is not None
    np.testing.assert_allclose(tape.push(np.eye(2)), np.diag(2.0 * np.exp([0.5, 1.5])), rtol=1e-6)


class Doubled(tg.autograd.Function):
    """A custom function."""

    @staticmethod
    def forward(ctx: Any, x: tg.Tensor) -> tg.Tensor:
        return 2.0 * x

    @staticmethod
    def backward(ctx: Any, g: tg.Tensor) -> tg.Tensor:
        return 2.0 * g


def test_custom_functions_are_left_to_the_general_pass() -> None:
    x = tg.tensor([0.5, 1.5], requires_grad=True)
    assert linear_tape([x], [Doubled.apply(x)]) is None


MATRIX = tg.tensor([[2.0, 0.3, 0.1], [0.2, 3.0, 0.4], [0.5, 0.1, 1.5]])
HOSTED: dict[str, Callable[[Any, Any], Any]] = {
    "matrix times vector": lambda x, m: m @ x,
    "vector times matrix": lambda x, m: x @ m,
    "matrix product": lambda x, m: m @ m.T,
    "dot": lambda x, m: x.dot(x * 2.0),
    "einsum": lambda x, m: tg.einsum("i,ij,j->", x, m, x),
    "index array": lambda x, m: x[[0, 2, 0]] * x,
    "cumsum": lambda x, m: m.cumsum(1),
    "cumprod": lambda x, m: x.cumprod(0),
    "product of all": lambda x, m: x.prod(),
    "maximum of all": lambda x, m: (x * x).max(),
    "sort": lambda x, m: (x * x).sort()[0],
    "softmax": lambda x, m: m.softmax(0),
    "logsumexp": lambda x, m: m.logsumexp(1),
    "norm": lambda x, m: m.norm(),
    "standard deviation": lambda x, m: m.std(0),
    "solve": lambda x, m: tg.linalg.solve(m, x),
    "inverse": lambda x, m: tg.linalg.inv(m),
    "determinant": lambda x, m: tg.linalg.det(m),
    "eigenvalues": lambda x, m: tg.linalg.eigvalsh(m @ m.T),
    "triangle": lambda x, m: tg.tril(m),
}


@each("f", HOSTED.values(), ids=HOSTED)
def test_rows_whose_derivative_is_python(f: Callable[[Any, Any], Any]) -> None:
    x, y = (tg.tensor(values, requires_grad=True) for values in ([0.4, 1.2, -0.7], [0.1, 0.2, 0.3]))
    m = MATRIX * (1.0 + 0.1 * tg.sin(y))
    assert_same_derivatives([x, y], tg.exp(0.3 * f(tg.sin(x), m)), rtol=1e-10)


OF_ONE_DEGREE = [
    "matrix times vector",
    "vector times matrix",
    "matrix product",
    "dot",
    "einsum",
    "index array",
    "cumsum",
    "triangle",
]


@each("name", HOSTED, ids=HOSTED)
def test_second_derivatives_of_such_rows_that_are_linear_in_each_operand(name: str) -> None:
    x, y = (tg.tensor(values, requires_grad=True) for values in ([0.4, 1.2, -0.7], [0.1, 0.2, 0.3]))
    total = product_of_all([x, y], tg.exp(0.3 * HOSTED[name](tg.sin(x), MATRIX * (1.0 + 0.1 * tg.sin(y)))))
    tape = linear_tape([x, y], [total], second=True)
    assert (tape is None) == (name not in OF_ONE_DEGREE)
    if tape is not None:
        assert_same_curvature([x, y], total)  # in blocks, and one by one
        expected = Derivative([x, y], [total])._curved(np.eye(6)[:, :1])
        np.testing.assert_allclose(tape.curve(np.eye(6)[:, :1]), expected, rtol=1e-10, atol=1e-10)


def test_values_of_such_rows_are_those_of_the_recording() -> None:
    matrix = tg.tensor(np.eye(2))
    x = tg.tensor([0.5, 1.5], requires_grad=True)
    tape = linear_tape([x], [matrix @ x])
    assert tape is not None
    matrix.fill_(7.0)
    np.testing.assert_array_equal(tape.push(np.eye(2)), np.eye(2))
    np.testing.assert_array_equal(tape.pull(np.eye(2)), np.eye(2))


def test_a_hook_is_left_to_the_general_pass() -> None:
    x = tg.tensor([0.5, 1.5], requires_grad=True)
    y = x * 2.0
    y.register_hook(lambda g: g * 3.0)
    assert linear_tape([x], [y]) is None


def test_overwritten_values_are_refused() -> None:
    x = tg.tensor([0.5, 1.5], requires_grad=True)
    y = x * 2.0
    z = y * y
    y.mul_(3.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        linear_tape([x], [z])


def test_the_tape_can_be_used_when_the_graph_is_gone() -> None:
    x = tg.tensor([0.5, 1.5], requires_grad=True)
    tape = linear_tape([x], [tg.sin(x)])
    assert tape is not None
    del x
    tg.tape.default_tape().collect()
    np.testing.assert_allclose(tape.push(np.eye(2)), np.diag(np.cos([0.5, 1.5])), rtol=1e-14)


def test_linear_tapes_leave_gradients_alone() -> None:
    x = tg.tensor([0.5, 1.5], requires_grad=True)
    y = (x * x).sum()
    linear_tape([x], [y], second=True)
    assert x.grad is None
    y.backward()
    assert x.grad.tolist() == [1.0, 3.0]


@each("mode", ["forward", "reverse"])
def test_outputs_that_depend_on_another_leaf_only(mode: str) -> None:
    w = tg.tensor([1.0, 2.0], requires_grad=True)
    assert tg.jacobian(lambda x: w * w, mode=mode)(np.ones(2)).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert tg.jacobian(lambda x: (x[:1], w[:1] * w[:1]), mode=mode)(np.ones(2))[1].tolist() == [[0.0, 0.0]]


def test_leaves_that_are_results_have_no_places_of_their_own() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2.0
    output = y * y
    assert linear_tape([y], [output]) is None and linear_tape([x, y], [output]) is None
    np.testing.assert_array_equal(Derivative([y], [output]).pull(np.eye(2)), np.diag([4.0, 8.0]))


def test_results_count_as_leaves_on_request_apart_from_what_they_were_made_of() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2.0
    tape = linear_tape([y, x], [(y * y * x).sum()], second=True, ends=True)
    assert tape is not None
    assert tape.pull(np.ones((1, 1)))[:, 0].tolist() == [4.0, 16.0, 4.0, 16.0]
    assert tape.curve(np.eye(4)).tolist() == [[2, 0, 4, 0], [0, 4, 0, 8], [4, 0, 0, 0], [0, 8, 0, 0]]


def test_leaf_given_twice_has_the_same_derivatives_twice() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    np.testing.assert_array_equal(Derivative([x, x], [x * x]).pull(np.eye(2)), np.vstack(2 * [np.diag([2.0, 4.0])]))


def test_blocks_of_fewer_lanes_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tg.tensor(np.linspace(0.1, 1.0, 40), requires_grad=True)
    tape = linear_tape([x], [(x.sin() * x.sum()).sum()], second=True)
    assert tape is not None
    products = tape.push(np.eye(40)), tape.curve(np.eye(40))
    monkeypatch.setattr(module, "CACHED", 0)
    np.testing.assert_array_equal(tape.push(np.eye(40)), products[0])
    np.testing.assert_array_equal(tape.curve(np.eye(40)), products[1])


@each("lanes", [1, 8, 32])
@each("value", [0.0, [0.0, 0.0]], ids=["scalar", "array"])
def test_products_are_zero_where_either_factor_is_in_all_lanes(lanes: int, value: Any) -> None:
    """At zero the square has the factor zero and the root an infinite one; every other lane is zero, infinite or not a number."""
    x = tg.tensor(value, requires_grad=True)
    square, root = linear_tape([x], [x.square()]), linear_tape([x], [x.sqrt()])
    assert square is not None and root is not None
    vectors = np.resize([np.inf, 0.0, np.nan, 1.0], (square.inputs, lanes))
    for product in (square.push, square.pull):
        np.testing.assert_array_equal(product(vectors), np.zeros_like(vectors))
    expected = np.where(vectors > 0.0, np.inf, vectors)
    for product in (root.push, root.pull):
        np.testing.assert_array_equal(product(vectors), expected)
