"""Random programs of views and in-place writes, compared with the naive tape on NumPy arrays of its variables.

An object array of naive variables is viewed and written like any NumPy array: no doubt what a program means.
No step keeps its result, so no later write may be refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from engine_fixtures import leaf, numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import Tape, Variable

import tapegrad as tg

START = np.array([[0.5, -1.0, 1.5], [2.0, 0.25, -0.75]])
WEIGHTS = (0.8, -1.25)


@dataclass(frozen=True)
class Action:
    kind: str  # "view", "write", "assign" or "read"
    name: str
    target: int
    other: int


VIEWS: dict[str, Callable[[Any], Any]] = {
    "first": lambda t: t[:1],
    "rest": lambda t: t[1:],
    "step": lambda t: t[::2],
    "last axis": lambda t: t[..., 0],
    "all but one": lambda t: t[..., 1:],
    "transpose": lambda t: t.T,
    "whole": lambda t: t[:],
    "new axis": lambda t: t[None],
}
WRITES = ("scale", "shift", "times", "sin", "square", "zero", "copy", "subtract itself")
KEYS: dict[str, Any] = {
    "first": slice(0, 1),
    "all": Ellipsis,
    "last": (Ellipsis, slice(-1, None)),
    "step": slice(None, None, 2),
}


def each(tape: Tape, name: str, x: Any, *others: Any) -> Any:
    """Apply an operation of the naive tape to every element."""
    return np.frompyfunc(lambda *values: tape.apply(name, *values), 1 + len(others), 1)(x, *others)


def total(tape: Tape, array: np.ndarray) -> Variable:
    result = tape.leaf(0.0)
    for value in np.ravel(array):
        result = tape.apply("add", result, value)
    return result


def naive_write(tape: Tape, action: Action, t: np.ndarray, other: np.ndarray, weights: list[Variable]) -> None:
    fresh = {
        "scale": lambda: each(tape, "mul", t, 1.5),
        "shift": lambda: each(tape, "add", t, weights[0]),
        "times": lambda: each(tape, "mul", t, weights[1]),
        "sin": lambda: each(tape, "sin", t),
        "square": lambda: each(tape, "pow", t, 2.0),
        "zero": lambda: tape.leaf(0.0),
        "copy": lambda: tape.apply("mul", total(tape, other), 0.25),
        "subtract itself": lambda: each(tape, "sub", t, t),
    }[action.name]()
    t[...] = fresh


def tensor_write(action: Action, t: tg.Tensor, other: tg.Tensor, weights: list[tg.Tensor]) -> None:
    {
        "scale": lambda: t.mul_(1.5),
        "shift": lambda: t.add_(weights[0]),
        "times": lambda: t.mul_(weights[1]),
        "sin": t.sin_,
        "square": lambda: t.pow_(2),
        "zero": t.zero_,
        "copy": lambda: t.copy_(other.sum() * 0.25),
        "subtract itself": lambda: t.sub_(t),
    }[action.name]()


def applicable(action: Action, t: np.ndarray) -> bool:
    if action.kind != "view":
        return t.ndim > 0
    if t.ndim not in (1, 2, 3) or len(t) < 2:
        return False
    least_rank = {"last axis": 2, "transpose": 2}.get(action.name, 1)
    return t.ndim >= least_rank and not (action.name == "transpose" and t.ndim > 2) and t.shape[-1] >= 2


def assert_program_agrees_with_the_naive_tape(program: list[Action]) -> None:
    tape = Tape()
    twin_leaf = np.frompyfunc(tape.leaf, 1, 1)(START)
    twin_weights = [tape.leaf(w) for w in WEIGHTS]
    twins = [each(tape, "mul", twin_leaf, 1.0)]
    twin_read = tape.leaf(0.0)
    x, weights = leaf(START), [leaf(w) for w in WEIGHTS]
    tensors = [x * 1.0]
    read = tg.tensor(0.0)
    for action in [*program, Action("read", "", 0, 0)]:
        i, j = action.target % len(tensors), action.other % len(tensors)
        if not applicable(action, twins[i]):
            continue
        if action.kind == "view":
            twins.append(VIEWS[action.name](twins[i]))
            tensors.append(VIEWS[action.name](tensors[i]))
        elif action.kind == "write":
            naive_write(tape, action, twins[i], twins[j], twin_weights)
            tensor_write(action, tensors[i], tensors[j], weights)
        elif action.kind == "assign":
            twins[i][KEYS[action.name]] = tape.apply("mul", twin_weights[0], twin_weights[1])
            tensors[i][KEYS[action.name]] = weights[0] * weights[1]
        else:
            twin_read = tape.apply("add", twin_read, tape.apply("tanh", total(tape, twins[i])))
            read = read + tg.tanh(tensors[i].sum())
    np.testing.assert_allclose(read.item(), twin_read.primal, rtol=1e-9, atol=1e-12)
    read.backward()
    adjoints, scale = tape.gradient({twin_read.slot: 1.0}), tape.gradient({twin_read.slot: 1.0}, magnitude=True)
    for tensor, twin in [(x, twin_leaf), *zip(weights, map(np.asarray, twin_weights), strict=True)]:
        slots = [v.slot for v in np.ravel(np.asarray(twin, dtype=object))]
        got = np.zeros(len(slots)) if tensor.grad is None else numbers(tensor.grad).ravel()
        assert np.all(np.abs(got - np.array(adjoints)[slots]) <= 1e-9 * (1.0 + np.array(scale)[slots]))


positions = st.integers(0, 8)
actions = st.one_of(
    st.builds(Action, st.just("view"), st.sampled_from(sorted(VIEWS)), positions, positions),
    st.builds(Action, st.just("write"), st.sampled_from(WRITES), positions, positions),
    st.builds(Action, st.just("assign"), st.sampled_from(sorted(KEYS)), positions, positions),
    st.builds(Action, st.just("read"), st.just(""), positions, positions),
)


@settings(max_examples=250, deadline=None)
@given(st.lists(actions, min_size=1, max_size=14))
def test_programs_of_views_and_writes_agree_with_the_naive_tape(program: list[Action]) -> None:
    assert_program_agrees_with_the_naive_tape(program)
