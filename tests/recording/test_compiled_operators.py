"""Operators in their compiled and in their Python form: the same values, rows, errors, and nothing leaked by either."""

import gc
import math
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf, live_rows, node_name, numbers, settled_rows
from many_cases import each

import tapegrad as tg
from tapegrad.ops.elementwise import FORMS, FUNCTIONS
from tapegrad.recording.primal_values import float_at_the_edge, scalar_forward
from tapegrad.rules.table import RULES

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.5, 1e-320, 1e308, -1e308, math.inf, -math.inf, math.nan]
UNARY = [(opcode, rule.name) for opcode, rule in enumerate(RULES) if len(rule.args) == 1]
BINARY = [(opcode, rule.name) for opcode, rule in enumerate(RULES) if len(rule.args) == 2]
TERNARY = [(opcode, rule.name) for opcode, rule in enumerate(RULES) if len(rule.args) == 3]
OPERATORS = ["add", "sub", "mul", "truediv", "pow", "mod"]


@pytest.fixture(autouse=True, scope="module")
def _loaded() -> None:
    """Operators are compiled once a scalar row and an array row have been recorded."""
    assert (leaf(1.0) * 2.0).requires_grad
    assert (leaf([1.0]) * 2.0).requires_grad


def assert_same_bits(got: Any, expected: Any) -> None:
    """Values bit for bit, signs of zeros included; every nan is the same."""
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(expected)[~np.isnan(expected)])


def python_value(opcode: int, *floats: float) -> float:
    try:
        return float(scalar_forward[opcode](*floats))
    except (ArithmeticError, ValueError):
        return float_at_the_edge(opcode, *floats)


def points(opcode: int, k: int) -> list[float]:
    low, high = RULES[opcode].domain[k]
    return [*EDGES, *np.random.default_rng(opcode).uniform(low, high, 20).tolist()]


def compiled(name: str) -> Callable[..., tg.Tensor]:
    """The compiled operator behind a rule's method, whatever the method is called."""
    return FUNCTIONS[name]


@each(("opcode", "name"), UNARY)
def test_scalar_values_are_those_of_the_python_form(opcode: int, name: str) -> None:
    xs = points(opcode, 0)
    assert_same_bits([compiled(name)(tg.tensor(x)).item() for x in xs], [python_value(opcode, x) for x in xs])


@each(("opcode", "name"), BINARY)
def test_scalar_values_of_two_operands_are_those_of_the_python_form(opcode: int, name: str) -> None:
    pairs = [(x, y) for x in points(opcode, 0)[::2] for y in points(opcode, 1)[::2]]
    got = [compiled(name)(tg.tensor(x), tg.tensor(y)).item() for x, y in pairs]
    assert_same_bits(got, [python_value(opcode, x, y) for x, y in pairs])


@each(("opcode", "name"), UNARY)
def test_small_arrays_have_the_values_of_the_python_form(opcode: int, name: str) -> None:
    x = tg.tensor(points(opcode, 0))
    assert_same_bits(numbers(compiled(name)(x)), numbers(FORMS[opcode](x)))


@each("shapes", [("array", "array"), ("array", "number"), ("number", "array")], ids="-".join)
@each(("opcode", "name"), BINARY)
def test_small_arrays_of_two_operands_have_the_values_of_the_python_form(opcode: int, name: str, shapes: tuple[str, str]) -> None:
    x, y = (tg.tensor(points(opcode, k) if shape == "array" else points(opcode, k)[-1]) for k, shape in enumerate(shapes))
    assert_same_bits(numbers(compiled(name)(x, y)), numbers(FORMS[opcode](x, y)))


@each("shapes", ["array array array", "array number number", "array array number", "array number row"])
@each(("opcode", "name"), TERNARY)
def test_small_arrays_of_three_operands_have_the_values_of_the_python_form(opcode: int, name: str, shapes: str) -> None:
    operands: list[Any] = []
    for k, shape in enumerate(shapes.split()):
        found = points(opcode, k)
        operands.append(found[-1] if shape == "number" else tg.tensor(found if shape == "array" else found[:1]))
    assert_same_bits(numbers(compiled(name)(*operands)), numbers(FORMS[opcode](*operands)))


def slopes(function: Callable[..., Any], operands: list[Any]) -> list[Any]:
    """Gradients of all tracked operands, weighted differently at each element."""
    tracked = [x for x in operands if isinstance(x, tg.Tensor) and x.requires_grad]
    result = function(*operands)
    weights = tg.linspace(0.5, 1.5, result.numel()).reshape(result.shape)
    return [numbers(g).tolist() for g in tg.autograd.grad(result, tracked, weights)]


@each("tracked", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
@each("name", ["lerp", "_clamp"])
def test_operations_on_three_arrays_have_the_gradients_of_the_python_form(name: str, tracked: tuple[int, ...]) -> None:
    opcode = next(opcode for opcode, own in TERNARY if own == name)
    operands = [leaf(points(opcode, k)[-20:]) if k in tracked else tg.tensor(points(opcode, k)[-20:]) for k in range(3)]
    assert slopes(compiled(name), operands) == slopes(FORMS[opcode], operands)


@each(
    "shapes",
    [((2, 3), (3,), (2, 1)), ((3,), (2, 3), ()), ((1,), (1, 1), (4,)), ((2, 1), (1, 3), (3,)), ((0, 3), (3,), (1, 3))],
    ids=str,
)
@each("name", ["lerp", "_clamp", "where"])
def test_stretched_operands_of_three_are_those_of_the_python_form(name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    opcode = next(opcode for opcode, own in TERNARY if own == name)
    rng = np.random.default_rng(len(shapes[0]))
    operands = [
        tg.tensor(rng.standard_normal(shape), requires_grad=RULES[opcode].partials[k] is not None) for k, shape in enumerate(shapes)
    ]
    if name == "where":
        operands[0] = operands[0] > 0.0
    assert_same_bits(numbers(compiled(name)(*operands)), numbers(FORMS[opcode](*operands)))
    assert slopes(compiled(name), operands) == slopes(FORMS[opcode], operands)


@each("numbers_of_choice", [(1, 2), (1.0, 2.0), (1, 2.5)], ids=str)
def test_choice_between_numbers_has_the_dtype_of_the_python_form(numbers_of_choice: Any) -> None:
    opcode = next(opcode for opcode, own in TERNARY if own == "where")
    mask = tg.tensor([True, False])
    found, expected = compiled("where")(mask, *numbers_of_choice), FORMS[opcode](mask, *numbers_of_choice)
    assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())


@each("name", ["lerp", "_clamp", "_elu"])
def test_shapes_of_three_that_do_not_fit_are_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match="must match the size"):
        compiled(name)(leaf([1.0, 2.0, 3.0]), tg.tensor([1.0, 2.0]), 0.5)


@each("choice", [[True, False, True], [1.0, 0.0, 1.0]], ids=["bool", "double"])
def test_choice_between_two_has_the_gradient_where_it_was_taken(choice: Any) -> None:
    y, w = leaf([1.0, 2.0, 3.0]), leaf([4.0, 5.0, 6.0])
    for _ in range(2):
        z = compiled("where")(tg.tensor(choice), y, w)
    assert z.tolist() == [1.0, 5.0, 3.0]
    got = tg.autograd.grad(z, [y, w], tg.tensor([1.0, 2.0, 3.0]))
    assert [g.tolist() for g in got] == [[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]]


@each(("opcode", "name"), [one for one in (*BINARY, *TERNARY) if None in RULES[one[0]].partials])
def test_operand_without_a_derivative_is_refused_where_it_is_tracked(opcode: int, name: str) -> None:
    k = RULES[opcode].partials.index(None)
    operands: list[Any] = [tg.tensor(points(opcode, j)[-3:]) for j in range(len(RULES[opcode].args))]
    compiled(name)(*operands)
    operands[k].requires_grad_()
    with pytest.raises(NotImplementedError, match=f"argument {k}"):
        compiled(name)(*operands)


def test_operations_on_three_operands_leak_nothing() -> None:
    x, y, w = leaf([0.5, 1.5]), leaf([1.0, 2.0]), tg.tensor([0.25, 0.75])
    for _ in range(3):
        compiled("lerp")(x, y, w)
        compiled("_clamp")(x, 0, 1.0)
    rows = settled_rows()
    counts = [sys.getrefcount(data) for data in (x._data, y._data, w._data)]
    for _ in range(50):
        compiled("lerp")(x, y, w)
        compiled("_clamp")(x, 0, 1.0)
        compiled("_clamp")(x, tg.tensor(0.0), w)
    assert settled_rows() == rows
    assert [sys.getrefcount(data) for data in (x._data, y._data, w._data)] == counts


@each("other", [2, 2.5, -1, 0, True, np.float64(1.5), np.float32(0.5), np.int64(3)], ids=repr)
@each("start", [1.5, [0.5, 1.5, 2.5]], ids=["scalar", "array"])
@each("operator", OPERATORS)
def test_numbers_on_the_right(operator: str, start: Any, other: Any) -> None:
    x = leaf(start)
    with np.errstate(all="ignore"):
        expected = getattr(np.asarray(start, np.float64), f"__{operator}__")(np.float64(other))
    assert_values(getattr(x, f"__{operator}__")(other), expected)


@each("other", [2, 2.5, True, np.float64(1.5), np.int64(3)], ids=repr)
@each("start", [1.5, [0.5, 1.5, 2.5]], ids=["scalar", "array"])
@each("operator", OPERATORS)
def test_numbers_on_the_left(operator: str, start: Any, other: Any) -> None:
    x = leaf(start)
    expected = getattr(np.asarray(start, np.float64), f"__r{operator}__")(np.float64(other))
    assert_values(getattr(x, f"__r{operator}__")(other), expected)


def test_integers_too_large_for_a_float_raise() -> None:
    with pytest.raises(OverflowError):
        leaf(1.0) * 10**400


@each("other", ["1", None, [1.0], object()], ids=["str", "None", "list", "object"])
@each("start", [1.5, [0.5, 1.5]], ids=["scalar", "array"])
def test_what_is_no_operand_raises_and_records_nothing(start: Any, other: Any) -> None:
    x = leaf(start)
    y = x * 1.0
    before = live_rows()
    with pytest.raises(TypeError, match="operand"):
        y * other
    assert live_rows() == before


def test_a_method_refuses_operands() -> None:
    with pytest.raises(TypeError, match="takes no arguments"):
        leaf(1.0).sin(2.0)


def test_a_descriptor_refuses_other_objects() -> None:
    with pytest.raises(TypeError, match="Tensor"):
        tg.Tensor.sin(1.0)


def test_parameters_are_operands_and_results_are_tensors() -> None:
    p = tg.nn.Parameter(tg.tensor([1.0, 2.0]))
    assert type(p * 2.0) is tg.Tensor
    assert_values(2.0 * p * p, [2.0, 8.0])


def test_operators_that_a_subclass_overrides_win() -> None:
    class Loud(tg.Tensor):
        __slots__ = ()

        def __radd__(self, other: Any) -> Any:
            return "radd"

    loud = Loud([1.0])
    assert tg.tensor([1.0]) + loud == "radd"


def test_operands_of_other_threads_modes_are_recorded() -> None:
    x = leaf(2.0)
    results = []

    def work() -> None:
        results.append((x * x).requires_grad)

    with tg.no_grad():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        results.append((x * x).requires_grad)
    assert results == [True, False]


@each(
    ("y", "name"), [(2, "PowBackward0"), (3.0, "PowBackward0"), (0.5, "PowBackward0"), (-1, "PowBackward0"), (2.5, "PowBackward0")]
)
@each("start", [1.5, [0.5, 1.5]], ids=["scalar", "array"])
def test_powers_of_numbers(start: Any, y: float, name: str) -> None:
    x = leaf(start)
    power = x**y
    power.sum().backward()
    assert node_name(power) == name
    assert_values(x.grad, y * np.asarray(start) ** (y - 1), rtol=1e-14)


REFERENCES: dict[str, Callable[[tg.Tensor, tg.Tensor], Any]] = {
    "tensors": lambda x, y: x * y,
    "number": lambda x, y: x * 2.5,
    "integer": lambda x, y: x + 7,
    "number first": lambda x, y: 2.5 - x,
    "function": lambda x, y: tg.sin(x),
    "method": lambda x, y: x.exp(),
    "without compiled scalars": lambda x, y: tg.lgamma(x),
    "power": lambda x, y: x**2,
}


def element() -> tg.Tensor:
    """A view of one element of a computed vector."""
    return (leaf([1.5, 2.5]) * 1.0)[0]


@each("start", [1.5, [0.5, 1.5], None], ids=["scalar", "array", "element"])
@each("what", REFERENCES)
def test_no_reference_is_lost_or_kept(what: str, start: Any) -> None:
    operate = REFERENCES[what]
    x, y = (element() if start is None else leaf(np.multiply(start, 1.0).tolist()) for _ in range(2))  # no constants of this file
    watched = [x, y, x._data, y._data, tg.Tensor, sys.intern("tapegrad"), float, None]
    operate(x, y)
    gc.collect()
    before = [sys.getrefcount(obj) for obj in watched]
    for _ in range(500):
        operate(x, y)
    gc.collect()
    after = [sys.getrefcount(obj) for obj in watched]
    np.testing.assert_allclose(after, before, atol=20)  # the test itself holds a few more of None


FORMS_OF_TWO: dict[str, Callable[..., tg.Tensor]] = {
    "both": lambda f, a, b: f(a, b),
    "with itself": lambda f, a, b: f(a, a),
    "with a number": lambda f, a, b: f(a, float(b.item())),
    "with a vector": lambda f, a, b: f(a, tg.tensor([b.item()] * 3)),
    "after a vector": lambda f, a, b: f(tg.tensor([a.item()] * 3), b),
}


@each("form", FORMS_OF_TWO)
@each(("opcode", "name"), [(k, name) for k, name in BINARY if None not in RULES[k].partials])
def test_elements_of_a_computed_vector_are_operands_like_numbers(opcode: int, name: str, form: str) -> None:
    at = [float(np.random.default_rng(opcode).uniform(*bounds)) for bounds in RULES[opcode].domain]
    x, a, b = leaf(at), leaf(at[0]), leaf(at[1])
    q = x * 1.0
    y, z = (FORMS_OF_TWO[form](compiled(name), *operands) for operands in ((q[0], q[1]), (a, b)))
    assert_same_bits(numbers(y), numbers(z))
    y.sum().backward()
    z.sum().backward()
    np.testing.assert_array_equal(numbers(x.grad), [0.0 if t.grad is None else t.grad.item() for t in (a, b)])


def test_an_element_written_later_had_the_value_that_was_used() -> None:
    x = leaf([2.0, 3.0])
    q = x * 1.0
    first = q[0]
    y = first * first
    q[0] = 7.0
    z = first * first
    y.backward(retain_graph=True)
    assert x.grad.tolist() == [4.0, 0.0]
    assert z.item() == 49.0
    x.grad = None
    z.backward()
    assert x.grad.tolist() == [0.0, 0.0]


@each("start", [1.5, [0.5, 1.5]], ids=["scalar", "array"])
@each("what", REFERENCES)
def test_leaves_used_for_the_first_time_get_their_gradient(what: str, start: Any) -> None:
    operate = REFERENCES[what]
    x, y = leaf(start), leaf(start)
    x * 1.0, y * 1.0
    operate(x, y).sum().backward()
    u, v = leaf(start), leaf(start)
    operate(u, v).sum().backward()
    assert [None if t.grad is None else t.grad.tolist() for t in (u, v)] == [
        None if t.grad is None else t.grad.tolist() for t in (x, y)
    ]


def test_a_new_leaf_in_an_operation_that_fails_gets_no_row() -> None:
    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0, 3.0])
    before = live_rows()
    with pytest.raises(RuntimeError, match="must match the size"):
        x * y
    assert live_rows() == before


def test_results_that_die_give_their_rows_back() -> None:
    x = leaf(1.5)
    y = x * 1.0
    before = live_rows()
    for _ in range(1000):
        y * 2.0
        tg.sin(y)
    assert live_rows() == before


def test_a_refused_row_falls_back_and_is_recorded() -> None:
    tape = tg.tape.default_tape()
    x = leaf(2.0)
    tape.collect()
    kept = [x * 1.0 for _ in range(3 * live_rows() + 20_000)]  # more than any limit allows before room is made
    assert all(t.requires_grad for t in kept[-10:])
    sum(kept[-3:], tg.tensor(0.0)).backward()
    assert_values(x.grad, 3.0)


def test_values_do_not_depend_on_what_was_recorded_before() -> None:
    script = """
import tapegrad as tg, numpy as np
x = tg.tensor(np.linspace(0.1, 0.9, 37))
s = [tg.tensor(v) for v in np.linspace(0.1, 0.9, 37).tolist()]
names = "sin cos tan exp exp2 expm1 log log2 log10 log1p asin acos atan".split()
names += "sinh cosh tanh asinh atanh sqrt sigmoid softplus erf".split()
def values():
    return [getattr(tg, name)(x).tolist() for name in names] + [[getattr(tg, name)(t).item() for t in s] for name in names]
before = values()
w = tg.tensor([1.0], requires_grad=True)
((w * 2.0).sum() * tg.tensor(1.0, requires_grad=True)).backward()
assert values() == before
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_tensors_may_outlive_the_modules() -> None:
    script = """
import builtins, tapegrad as tg
x = tg.tensor(1.0, requires_grad=True)
v = tg.tensor([1.0, 2.0], requires_grad=True)
builtins.kept = [x * 2.0, tg.sin(v) * v, (x * x).grad_fn]
class Late:
    def __init__(self): self.t = x * 3.0
    def __del__(self): self.t = None
builtins.late = Late()
cycle = [x * 4.0]
cycle.append(cycle)
"""
    subprocess.run([sys.executable, "-X", "dev", "-c", script], check=True)


def test_a_subclass_without_data_raises() -> None:
    class Unready(tg.Tensor):
        __slots__ = ()

        def __init__(self) -> None:
            pass

    with pytest.raises(AttributeError):
        Unready() * 2.0


def test_what_a_signal_handler_raises_is_not_swallowed_without_recording() -> None:
    class AlarmError(Exception):
        pass

    def handler(*_: Any) -> None:
        raise AlarmError

    x = leaf(3.0)
    before = signal.signal(signal.SIGALRM, handler)
    raised = 0
    try:
        for _ in range(30):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.002)
                with tg.no_grad():
                    for _ in range(10**6):
                        x * x
            except AlarmError:
                raised += 1
    finally:
        signal.signal(signal.SIGALRM, before)
    assert raised == 30


def test_finalisers_in_a_cycle_find_their_tensor_untracked() -> None:
    x = leaf(3.0)
    seen = []

    class Holder:
        def __del__(self) -> None:
            seen.append((self.t * 2.0).requires_grad)

    gc.collect()
    gc.disable()
    try:
        holder: Any = Holder()
        holder.t, holder.me = x * x, holder
        del holder
    finally:
        gc.enable()
    gc.collect()
    y = x * x
    y.backward()
    assert len(seen) == 1
    assert_values(x.grad, 6.0)
