"""What a reverse pass does at a row that has hooks, be the pass plain or recorded.

The order is: tensor hooks with the complete gradient, retained and requested gradients, hooks before the node, the node itself,
hooks after it. A leaf's gradient goes through its tensor hooks and those before its AccumulateGrad node; what comes after is
called when the gradients of the whole pass have been handed over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.autograd.decoded_rows import Argument, arguments_of, name_of, object_at, opcode_of, record_of, shape_of
from tapegrad.autograd.pass_state import Finished
from tapegrad.autograd.row_derivatives import contributions
from tapegrad.autograd.sweep_memory import Sweep
from tapegrad.engine import layout as at
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.grad_mode import without_recording
from tapegrad.tensors.hooks import Group, RowHooks, hooks_at, running
from tapegrad.tensors.tensor import Tensor, is_recording, make

__all__ = ["call_finished", "stop_plain", "stop_recorded"]

Gradients = tuple[Tensor | None, ...]


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", "<unknown>")


def _type(t: Tensor) -> str:
    return dtypes.type_name(np.dtype(np.float64) if type(t._data) is float else t._data.dtype)


def _checked(before: Tensor | None, result: Any, hook: Any) -> Tensor | None:
    """A gradient in the place of `before`.

    Raises
    ------
    TypeError
        If it is neither a tensor nor None.
    RuntimeError
        If its size or type differs, or there was no gradient.
    """
    if result is None:
        return None
    if before is None:
        raise RuntimeError(f"hook '{_name(hook)}': can't replace a None gradient with a non-None value")
    if not isinstance(result, Tensor):
        raise TypeError(
            f"expected Variable, but hook returned '{type(result).__name__}'. Return a Tensor, or None to keep the gradient."
        )
    if _type(result) != _type(before):
        raise RuntimeError(
            f"hook '{_name(hook)}' has changed the type of value (was {_type(before)}Tensor got {_type(result)}Tensor)"
        )
    if np.shape(result._data) != np.shape(before._data):
        raise RuntimeError(
            f"hook '{_name(hook)}' has changed the size of value "
            f"(was {list(np.shape(before._data))} got {list(np.shape(result._data))})"
        )
    return result


def _call_tensor_hooks(state: Sweep, hooks: RowHooks, g: Tensor | None) -> Tensor | None:
    """The gradient that the hooks make of `g`, which may be undefined."""
    passes = running()
    passes.append(state.visits())
    try:
        for hook in list(hooks.tensor.values()):
            result = _checked(g, hook(g), hook)
            g = g if result is None else result
    finally:
        passes.pop()
    return g


def _call_node_hooks(group: Group, gradients: Gradients, *others: Any) -> Gradients:
    for hook in list(group.values()):
        results = hook(gradients, *others)
        if results is None:
            continue
        if not isinstance(results, tuple):
            raise TypeError(f"expected tuple, but hook returned '{type(results).__name__}'")
        if len(results) != len(gradients):
            raise RuntimeError(
                f"hook '{_name(hook)}' has returned an incorrect number of values "
                f"(got {len(results)}, but expected {len(gradients)})"
            )
        gradients = tuple(_checked(g, result, hook) for g, result in zip(gradients, results, strict=True))
    return gradients


def _run_node(
    state: Sweep, slot: int, gradients: Gradients, wanted: Callable[[Argument], bool], hooks: RowHooks
) -> list[tuple[Argument, Tensor]]:
    """Contributions of a row, with the hooks before and after its node."""
    gradients = _call_node_hooks(hooks.before, gradients)
    parts = state.visits().pieces.get(slot)
    inner = gradients if parts is None else (_joined(state, parts, gradients),)
    found = contributions(state, slot, inner, wanted) if any(g is not None for g in inner) else []
    if not hooks.after:
        return found
    sent = iter([*found, (None, None)])
    argument, c = next(sent)
    arguments = arguments_of(slot)
    inputs: list[Tensor | None] = []
    for one in arguments:
        # By slot: what an argument saved may have been freed by another pass meanwhile.
        if argument is not None and one.slot == argument.slot:
            inputs.append(c)
            argument, c = next(sent)
        else:
            inputs.append(None)
    results = _call_node_hooks(hooks.after, tuple(inputs), gradients)
    return [(one, result) for one, result in zip(arguments, results, strict=True) if result is not None]


def _report(state: Sweep, slot: int, g: Tensor | None) -> None:
    """Note the gradient of a row that is part of its node's row."""
    node = arguments_of(slot)[0].slot
    seen = state.visits()
    gradients = seen.outputs.setdefault(node, [None] * int(TAPE.columns["second"][node]))
    number = int(TAPE.columns["second"][slot])
    gradients[number] = g
    seen.pieces.setdefault(node, {})[number] = slot


def _joined(state: Sweep, pieces: dict[int, int], gradients: Gradients) -> Tensor | None:
    """The gradient of the row that outputs are parts of, from theirs."""
    total: Tensor | None = None
    for number, slot in pieces.items():
        g = gradients[number]
        if g is not None:
            ((_, part),) = contributions(state, slot, (g,), lambda _: True)
            total = part if total is None else total + part
    return total


def _gradients_of_node(state: Sweep, slot: int, g: Tensor | None, hooks: RowHooks) -> Gradients:
    """Gradients of all outputs of the node that a row stands for; the hooks of outputs without one are called with None."""
    known = state.visits().outputs.pop(slot, None)
    gradients: Gradients = (g,) if known is None else tuple(known)
    for _, link in sorted(hooks.outputs.items()):
        other = link()
        if other is not None and other not in state.visits().called:
            _call_tensor_hooks(state, other, None)
    return gradients


def _is_on_path(state: Sweep, slot: int) -> bool:
    return state.marks is None or not state.words[at.MARKS] or bool(state.marks[slot] & at.ON_PATH)


def _has_node_hooks(hooks: RowHooks) -> bool:
    return bool(hooks.before or hooks.after or hooks.outputs)


def stop_plain(state: Sweep, slot: int, captured: dict[int, np.ndarray]) -> None:
    """The stop of a plain pass."""
    hooks = None if state.ends_at(slot) else hooks_at(slot)
    if opcode_of(slot)[0] == at.LEAF:
        if hooks is not None:
            without_recording(_leaf, state, slot, hooks)
        return
    undefined = bool(int(state.offsets[slot]) & at.UNWRITTEN)
    g = None
    if hooks is not None:
        if not undefined:
            g = _tensor(state.adjoint(slot))
        result = without_recording(_call_tensor_hooks, state, hooks, g)
        state.visits().called.add(hooks)
        if result is not None:
            state.adjoint(slot)[...] = result._data
            g = result
        if hooks.reports:
            _report(state, slot, g)
    if not undefined:
        state.show(slot, captured)
    if hooks is None or not _has_node_hooks(hooks) or not _is_on_path(state, slot):
        return

    def run() -> list[tuple[Argument, Tensor]]:
        return _run_node(state, slot, _gradients_of_node(state, slot, g, hooks), state.is_wanted, hooks)

    for argument, c in without_recording(run):
        state.contribute(argument.slot, c, shape_of(argument.slot), name_of(slot))
    state.words[at.CURRENT] = slot - 1


def _tensor(adjoint: np.ndarray) -> Tensor:
    """A gradient that hooks may keep or write to."""
    return make(adjoint.item() if adjoint.ndim == 0 and adjoint.dtype == np.float64 else adjoint.copy(), 0)


def _leaf(state: Sweep, slot: int, hooks: RowHooks) -> None:
    undefined = bool(int(state.offsets[slot]) & at.UNWRITTEN)
    place = state.leaf_adjoint(slot)
    g = _call_tensor_hooks(state, hooks, None if undefined else _tensor(place))
    if state.accumulates:
        (g,) = _call_node_hooks(hooks.before, (g,))
        if hooks.accumulated or hooks.after:
            state.visits().finished.append((object_at(record_of(slot).payload)(), hooks, g))
    if g is not None:
        place[...] = g._data
    else:
        state.offsets[slot] |= at.UNWRITTEN


def stop_recorded(
    state: Sweep, slot: int, g: Tensor | None, show: Callable[[Tensor], None], wanted: Callable[[Argument], bool], runs: bool
) -> list[tuple[Argument, Tensor]]:
    """The stop of a recorded pass: contributions of the row."""
    hooks = None if state.ends_at(slot) else hooks_at(slot)
    if hooks is not None:
        # What hooks write to the gradient of a pass that is not recorded changes nothing.
        given = g if g is None or type(g._data) is float or is_recording() else make(g._data.copy(), 0)
        result = _call_tensor_hooks(state, hooks, given)
        g = g if result is given else result
        state.visits().called.add(hooks)
        if hooks.reports:
            _report(state, slot, g)
    if opcode_of(slot)[0] == at.LEAF:
        if hooks is not None and state.accumulates:
            (g,) = _call_node_hooks(hooks.before, (g,))
            if hooks.accumulated or hooks.after:
                state.visits().finished.append((object_at(record_of(slot).payload)(), hooks, g))
        if g is not None:
            show(g)
        return []
    if g is not None:
        show(g)
    if not runs:
        return []
    if hooks is not None:
        return _run_node(state, slot, _gradients_of_node(state, slot, g, hooks), wanted, hooks)
    return contributions(state, slot, (g,), wanted) if g is not None else []


def call_finished(finished: list[Finished]) -> None:
    """The hooks of leaves whose gradients are in place now."""
    for t, hooks, g in finished:
        if t is not None:
            for hook in list(hooks.accumulated.values()):
                if hook(t) is not None:
                    raise RuntimeError(
                        f"hook '{_name(hook)}' returned a value: Tensor post accumulate grad hooks should return None."
                    )
        _call_node_hooks(hooks.after, (), (g,))
