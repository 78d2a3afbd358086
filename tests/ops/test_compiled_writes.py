"""Writes in place that are one call into compiled code, beside the same computation without writes.

What a write means is said by NumPy on copies, and its derivative by `where` and the out-of-place operation.
"""

import inspect
import os
import random
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_processes import environment, run
from loaded_writes import warm

import tapegrad as tg
from tapegrad.tape.tape import TAPE

START = np.array([[0.5, 1.25, 0.75], [1.5, 0.25, 2.0]])
UNARY = (
    "tanh",
    "exp",
    "sin",
    "square",
    "neg",
    "sqrt",
    "sigmoid",
    "abs",
    "log1p",
    "reciprocal",
    "relu",
    "erf",
    "lgamma",
    "logit",
    "round",
    "silu",
    "sinc",
    "softplus",
)
BINARY = ("add", "sub", "mul", "div", "maximum", "pow")
KEYS: tuple[Any, ...] = (
    0,
    -1,
    slice(1, None),
    slice(None),
    (0, 1),
    (1, slice(1, 3)),
    (slice(None), -1),
    (slice(0, 1), slice(None)),
)


def bits(t: Any) -> bytes:
    return np.asarray(t.tolist()).tobytes()


def gradients(results: list[Any], leaves: list[Any]) -> list[bytes]:
    total = sum((r * r).sum() for r in results)
    return [bits(g) for g in tg.autograd.grad(total, leaves, retain_graph=True, materialize_grads=True)]


def without_writes(value: Any, key: Any, new: Any) -> Any:
    """A tensor with a part replaced, by an operation that writes nothing."""
    mask = np.zeros(value.shape, bool)
    mask[key] = True
    spread = np.zeros(value.shape)[key].shape
    whole = tg.zeros(*value.shape) + 0.0
    if mask.any():
        whole = tg.index_put(whole, [tg.tensor(one) for one in np.nonzero(mask)], tg.broadcast_to(new, spread).reshape(-1))
    return tg.where(tg.tensor(mask), whole, value)


@pytest.mark.parametrize("start", [START, START[0, 0], START[:, 0]], ids=["matrix", "number", "vector"])
@pytest.mark.parametrize("name", UNARY)
def test_unary_rule_in_place_is_the_rule_on_a_copy(name: str, start: Any) -> None:
    warm()
    x = tg.tensor(start, requires_grad=True)
    y = x.clone()
    assert getattr(y, f"{name}_")() is y
    assert y._version == 1
    z = getattr(x.clone(), name)()
    assert bits(y) == bits(z)
    assert y.grad_fn.name() == z.grad_fn.name()
    assert gradients([y], [x]) == gradients([z], [x])


@pytest.mark.parametrize("other", ["number", "integer", "scalar", "tracked scalar", "row", "tracked", "numpys"])
@pytest.mark.parametrize("name", BINARY)
def test_binary_rule_in_place_is_the_rule_on_a_copy(name: str, other: str) -> None:
    warm()
    x, w = tg.tensor(START, requires_grad=True), tg.tensor(1.5, requires_grad=True)
    v = tg.tensor(START[::-1].copy(), requires_grad=True)
    operand: Any = {
        "number": 1.5, "integer": 2, "scalar": tg.tensor(1.5), "tracked scalar": w, "row": tg.tensor(START[0]), "tracked": v,
        "numpys": np.float64(0.75),
    }[other]  # fmt: skip
    y = x.clone()
    assert getattr(y, f"{name}_")(operand) is y
    z = getattr(x.clone(), name)(operand)
    assert bits(y) == bits(z)
    assert y._version == 1
    assert gradients([y], [x, w, v]) == gradients([z], [x, w, v])


F = tg.nn.functional
WITH_CONSTANTS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "elu": (lambda t: F.elu_(t, 0.5), lambda t: F.elu(t, 0.5)),
    "celu": (lambda t: F.celu_(t, 0.5), lambda t: F.celu(t, 0.5)),
    "selu": (F.selu_, F.selu),
    "hardtanh": (lambda t: F.hardtanh_(t, 0.5, 1.5), lambda t: F.hardtanh(t, 0.5, 1.5)),
    "relu6": (lambda t: F.relu6(t, inplace=True), F.relu6),
    "threshold": (lambda t: F.threshold_(t, 1.0, -2.0), lambda t: F.threshold(t, 1.0, -2.0)),
    "leaky_relu": (lambda t: F.leaky_relu_(t, 0.25), lambda t: F.leaky_relu(t, 0.25)),
    "rrelu": (F.rrelu_, F.rrelu),
    "mish": (lambda t: F.mish(t, inplace=True), F.mish),
    "hardswish": (lambda t: F.hardswish(t, inplace=True), F.hardswish),
    "hardsigmoid": (lambda t: F.hardsigmoid(t, inplace=True), F.hardsigmoid),
    "clamp": (lambda t: t.clamp_(0.5, 1.25), lambda t: t.clamp(0.5, 1.25)),
    "lower bound": (lambda t: t.clamp_(min=0.5), lambda t: t.clamp(min=0.5)),
    "logit": (lambda t: t.logit_(0.25), lambda t: t.logit(0.25)),
}


@pytest.mark.parametrize("part", [None, 1, slice(0, 1)], ids=["whole", "row", "slice"])
@pytest.mark.parametrize("name", WITH_CONSTANTS)
def test_write_with_constants_is_the_function_on_a_copy(name: str, part: Any) -> None:
    warm()
    write, function = WITH_CONSTANTS[name]
    x = tg.tensor(START - 0.75, requires_grad=True)
    for _ in range(2):  # the first row of a rule is the Python form's
        y, z = x.clone(), x.clone()
        target = y if part is None else y[part]
        assert write(target) is target
        new = function(z if part is None else z[part])
    assert bits(target) == bits(new)
    assert target._version == 1
    if part is None:
        assert y.grad_fn.name() == new.grad_fn.name()
    whole = new if part is None else without_writes(z, part, new)
    assert gradients([y], [x]) == gradients([whole], [x])


@pytest.mark.parametrize("tracked", [(), (0,), (1, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("weight", [0.25, START / 4], ids=["number", "array"])
def test_interpolation_in_place_is_the_function_on_a_copy(weight: Any, tracked: tuple[int, ...]) -> None:
    warm()
    operands = [tg.tensor(value, requires_grad=k in tracked) for k, value in enumerate((START, START[::-1].copy(), weight))]
    for _ in range(2):
        y = operands[0].clone()
        assert y.lerp_(*operands[1:]) is y
        z = tg.lerp(*operands)
    assert bits(y) == bits(z)
    assert y._version == 1
    leaves = [operands[k] for k in tracked]
    if leaves:
        assert gradients([y], leaves) == gradients([z], leaves)


WRITES_ALONE = """
import sys
import numpy as np
from loaded_writes import warm
import tapegrad as tg

warm()
x, w = (tg.tensor(np.linspace(-0.5, 0.75, 6), requires_grad=True) for _ in range(2))
for name, others in {"tanh": (), "sigmoid": (), "lgamma": (), "atan2": (w,), "lerp": (w, 0.25)}.items():
    for _ in range(3):  # rows of a rule, and what it is differentiated by, are loaded by the Python form
        y, called = x.clone(), []
        write = getattr(y, f"{name}_")
        sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
        write(*others)
        sys.setprofile(None)
        y.sum().backward()
    print(name, called)
"""


def test_writes_are_compiled_where_the_function_was_never_asked_for() -> None:
    settings = environment()
    settings["PYTHONPATH"] += os.pathsep + str(Path(__file__).parents[1])
    lines = run(WRITES_ALONE, settings).stdout.splitlines()
    assert lines == [f"{name} []" for name in ("tanh", "sigmoid", "lgamma", "atan2", "lerp")]


def test_write_with_constants_into_a_leaf_is_refused() -> None:
    warm()
    x = tg.tensor(START, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        F.elu_(x)
    assert bits(x) == START.tobytes()


def test_write_with_constants_counts_for_what_was_saved() -> None:
    warm()
    x = tg.tensor(START, requires_grad=True)
    y = x * 1.0
    squares = y * y
    F.hardtanh_(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        squares.sum().backward()


@pytest.mark.parametrize("value", [2.0, 3, "scalar", "part"])
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_assignment_replaces_a_part_and_cuts_its_gradient(key: Any, value: Any) -> None:
    warm()
    x, s = tg.tensor(START, requires_grad=True), tg.tensor(1.5, requires_grad=True)
    part = tg.tensor(np.linspace(1.0, 2.0, START[key].size).reshape(START[key].shape), requires_grad=True)
    new: Any = {"scalar": s, "part": part}.get(value, value)
    y = x.clone()
    y[key] = new
    z = without_writes(x.clone(), key, new if isinstance(new, tg.Tensor) else tg.tensor(float(new)))
    assert bits(y) == bits(z)
    assert y._version == 1
    assert y.grad_fn.name().endswith("CopySlices")
    assert gradients([y], [x, s, part]) == gradients([z], [x, s, part])


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_write_through_a_view_is_seen_by_base_and_other_views(key: Any) -> None:
    warm()
    x = tg.tensor(START, requires_grad=True)
    y = x.clone()
    row, part = y[0], y[key]
    part *= 3.0
    z = without_writes(x.clone(), key, x.clone()[key] * 3.0)
    assert bits(y) == bits(z)
    assert bits(row) == bits(z[0])
    assert y._version == row._version == part._version == 1
    assert gradients([y, row, part], [x]) == gradients([z, z[0], z[key]], [x])


def test_part_that_is_written_by_an_operator_counts_two_writes() -> None:
    warm()
    y = tg.tensor(START, requires_grad=True).clone()
    y[:1] *= 3.0
    assert y._version == 2


@pytest.mark.parametrize("write", [lambda t: t.zero_(), lambda t: t.fill_(2.0), lambda t: t.copy_(tg.ones(2, 3))])
def test_what_is_filled_has_a_zero_gradient(write: Callable[[Any], Any]) -> None:
    warm()
    x = tg.tensor(START, requires_grad=True)
    write(x.clone()).sum().backward()
    assert x.grad.tolist() == [[0.0] * 3] * 2


def test_copied_tensor_gets_the_gradient() -> None:
    warm()
    x, v = tg.tensor(START, requires_grad=True), tg.tensor(START * 2.0, requires_grad=True)
    y = x.clone()
    y.copy_(v)
    (y * y).sum().backward()
    assert x.grad.tolist() == np.zeros((2, 3)).tolist()
    assert v.grad.tolist() == (4.0 * START).tolist()


def test_untracked_target_becomes_tracked_by_what_is_assigned() -> None:
    warm()
    x, y = tg.tensor(START[0], requires_grad=True), tg.zeros(3, dtype=tg.float64)
    for k in range(3):
        y[k] = x[2 - k] * 2.0
    assert y.requires_grad
    (y * tg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [6.0, 4.0, 2.0]


@pytest.mark.parametrize(
    "write",
    [lambda t: t.mul_(2.0), lambda t: t.tanh_(), lambda t: t.zero_(), lambda t: t.copy_(t * 1.0), lambda t: t.__setitem__(0, 1.0)],
)
def test_leaf_that_requires_grad_is_refused_and_unwritten(write: Callable[[Any], Any]) -> None:
    warm()
    x = tg.tensor(START, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        write(x)
    with pytest.raises(RuntimeError, match="a view of a leaf"):
        write(x[:1])
    assert x.tolist() == START.tolist()
    assert x._version == 0


def test_leaf_is_written_under_no_grad_and_stays_a_leaf() -> None:
    warm()
    x, w = tg.tensor(START, requires_grad=True), tg.tensor(1.5, requires_grad=True)
    y, z = (x * x).sum(), w * w
    with tg.no_grad():
        x.sub_(0.25)
        x[0] = 1.0
        w.mul_(2.0)
    assert (x.is_leaf, x.requires_grad, x._version, w._version) == (True, True, 2, 1)
    assert x.tolist() == np.vstack([np.ones(3), START[1] - 0.25]).tolist()
    for stale in (y, z):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            stale.backward()


@pytest.mark.parametrize("start", [START, 0.75], ids=["array", "number"])
def test_value_that_was_saved_before_is_stale(start: Any) -> None:
    warm()
    y = tg.tensor(start, requires_grad=True).clone()
    z = (y * y).sum()
    y.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_messages_name_versions() -> None:
    warm()
    y = tg.tensor(START, requires_grad=True).clone()
    y.mul_(2.0)
    z = y.exp()
    for _ in range(5):
        z.mul_(1.0)
    with pytest.raises(RuntimeError, match="is at version 5; expected version 0"):
        z.sum().backward()


def test_operand_on_the_targets_memory() -> None:
    warm()
    y = tg.tensor(START[0], requires_grad=True).clone()
    y[:2].add_(y[1:].detach())
    assert y.tolist() == [1.75, 2.0, 0.75]
    y[1:] = y[:2].detach()
    assert y.tolist() == [1.75, 1.75, 2.0]
    y.sub_(y.detach())
    assert y.tolist() == [0.0, 0.0, 0.0]


def test_hook_sees_the_gradient_of_the_value_at_registration_and_a_retained_one_that_of_the_newest() -> None:
    warm()
    seen: list[Any] = []
    y = tg.tensor(START[0], requires_grad=True).clone()
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.retain_grad()
    y.mul_(3.0)
    y[0] = 1.0
    y.sum().backward()
    assert seen == [[0.0, 3.0, 3.0]]
    assert y.grad.tolist() == [1.0, 1.0, 1.0]


def test_outputs_of_one_operation_stay_refused() -> None:
    warm()
    y = tg.tensor(START, requires_grad=True).clone()
    first, _ = y.unbind()
    with pytest.raises(RuntimeError, match="Output 0 of Unbind is a view"):
        first.mul_(2.0)
    assert y.tolist() == START.tolist()


@pytest.mark.parametrize(
    ("dtype", "value"), [(tg.float32, 0.5), (tg.float32, np.float64(0.1)), (tg.int64, 2)], ids=["single", "numpys", "integers"]
)
def test_other_dtypes_keep_theirs(dtype: Any, value: Any) -> None:
    warm()
    y = tg.tensor([1, 2, 3], dtype=dtype)
    y.mul_(value)
    y[0] = value
    assert y.dtype == dtype
    with pytest.raises(RuntimeError, match="can't be cast"):
        tg.tensor([1, 2], dtype=tg.int64).mul_(0.5)


def test_expanded_and_read_only_memory_is_refused() -> None:
    warm()
    wide = tg.ones(1, dtype=tg.float64).expand(3)
    with pytest.raises(RuntimeError, match="single memory location"):
        wide.mul_(2.0)
    array = np.ones(3)
    array.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        tg.from_numpy(array).mul_(2.0)


def test_options_and_names_of_arguments_reach_the_python_form() -> None:
    warm()
    y = tg.tensor([1.0, 7.0])
    assert y.add_(tg.tensor([2.0, 2.0]), alpha=2.0).tolist() == [5.0, 11.0]
    assert y.mul_(other=2.0).tolist() == [10.0, 22.0]
    assert y.div_(3.0, rounding_mode="floor").tolist() == [3.0, 7.0]
    assert y.fill_(value=4.0).tolist() == [4.0, 4.0]
    with pytest.raises(TypeError):
        y.tanh_(1.0)
    with pytest.raises(TypeError):
        y.mul_()
    with pytest.raises(IndexError):
        y[2] = 1.0
    multiply = y.mul_
    assert multiply(2.0) is y
    assert list(inspect.signature(tg.Tensor.mul_).parameters) == ["self", "other"]


def test_value_that_was_assigned_is_not_kept() -> None:
    warm()
    x = tg.tensor(START, requires_grad=True)
    value = x.exp()
    gone = weakref.ref(value)
    y = x.clone()
    y[0] = value[1]
    y.copy_(value)
    del value
    y.sum().backward()
    assert gone() is None


def test_loop_of_writes_keeps_the_tape_small() -> None:
    warm()
    x = tg.tensor(START, requires_grad=True)
    before = TAPE.rows
    for _ in range(3000):
        y = x.clone()
        y[0] *= 2.0
        y.tanh_()
        y[1, 1] = x[0, 0]
    del y
    x.sum()
    assert TAPE.rows < before + 100


def written_by_driver(p: Any) -> Any:
    y = np.zeros_like(p)
    for k in range(4):
        y[k] = p[k] ** 2
    y[1:3] *= p[0]
    y[0] = y[3]
    y[2] = 0.5
    return np.sum(y * p)


def test_arrays_of_drivers_are_written() -> None:
    p = np.array([0.5, 1.5, 2.0, 0.25])
    value, gradient = tg.value_and_grad(written_by_driver)(p)
    assert value == written_by_driver(p)
    steps = 1e-6 * np.eye(4)
    expected = [(written_by_driver(p + h) - written_by_driver(p - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(gradient, expected, rtol=1e-7)


def test_random_sequences_are_those_without_writes() -> None:
    warm()
    chosen = random.Random(3)
    for _ in range(300):
        x, s = tg.tensor(START, requires_grad=True), tg.tensor(0.75, requires_grad=True)
        y = z = x.clone()
        y = y.clone()
        z = z.clone()
        for _ in range(chosen.randrange(1, 7)):
            key, operand = chosen.choice(KEYS), chosen.choice([0.5, 2, s, s * 2.0])
            kind = chosen.randrange(4)
            as_tensor = operand if isinstance(operand, tg.Tensor) else tg.tensor(float(operand))
            if kind == 0:
                name = chosen.choice(["add", "mul", "sub"])
                getattr(y, f"{name}_")(operand)
                z = getattr(z, name)(operand)
            elif kind == 1:
                y.sin_()
                z = z.sin()
            elif kind == 2:
                y[key] = operand
                z = without_writes(z, key, as_tensor)
            else:
                y[key] *= operand
                z = without_writes(z, key, z[key] * operand)
        assert bits(y) == bits(z)
        for found, expected in zip(gradients([y], [x, s]), gradients([z], [x, s]), strict=True):
            np.testing.assert_allclose(np.frombuffer(found), np.frombuffer(expected), rtol=1e-12, atol=1e-15)
