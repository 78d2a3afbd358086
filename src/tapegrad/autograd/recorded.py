"""The reverse pass that is itself recorded: the same rows and the same rules, walked in Python on `Tensor`s."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial as partial_call
from typing import Any

import numpy as np

from tapegrad.autograd.handing_over import check_shapes
from tapegrad.autograd.rows import Argument, Record, as_float, object_at, opcode_of, payload_at, record_of, shape_of
from tapegrad.autograd.sweeping import check_used
from tapegrad.autograd.visits import Finished, Visits
from tapegrad.autograd.working_memory import Sweep, borrow, saved_record_of
from tapegrad.casting import cast
from tapegrad.elementwise import FUNCTIONS
from tapegrad.engine import layout as at
from tapegrad.grad_mode import enable_grad, set_grad_enabled
from tapegrad.opcodes import OPCODES, names_in
from tapegrad.rules import RULES
from tapegrad.structural import Context, Payload, reshape_copy, strided_gather, strided_scatter, sum_to
from tapegrad.tape import TAPE, at_once
from tapegrad.tensor import Tensor, array_of, is_recording, make, meta_of
from tapegrad.watching import watchers_of

__all__ = ["apply_node", "call_finished_recorded", "contributions", "recorded_sweep", "replace_gradients"]

_ADDRESS = TAPE.address
NAMES: dict[str, Any] = FUNCTIONS | {"mul0": FUNCTIONS["_mul0"], "__builtins__": {}}
Contributions = list[tuple[Argument, Tensor]]
_partials: dict[str, Callable[..., Any]] = {}


def partial(text: str) -> Callable[..., Any]:
    """A rule's partial as a function of Tensors ``x, y, w, z``."""
    function = _partials.get(text)
    if function is None:
        # Rule text is ours, never a user's.
        function = _partials[text] = eval(f"lambda x, y, w, z: {text}", NAMES)
    return function


def recorded_sweep(
    slots: Sequence[int],
    seeds: Sequence[Tensor],
    requested: Sequence[int] | None,
    demand: bool = False,
    accumulates: bool = True,
    records: bool = True,
    ends: bool = False,
) -> tuple[dict[int, Tensor], list[tuple[Tensor, Tensor]], list[Finished]]:
    """Adjoints, as tracked tensors, of the requested rows or of all leaves that are reached.

    With them come the tensors that retain their gradients, and those; and the leaves whose hooks are to be called at the end.

    Parameters
    ----------
    slots, seeds : sequence
        Roots and what is given to them. The caller has pinned the tape.
    requested : sequence of int or None
        Rows whose adjoints are wanted; None wants all leaves.
    demand : bool
        Raise, before anything runs, if a requested row is not reached.
    accumulates : bool
        Whether leaves get what is contributed to them.
    records : bool
        Whether the pass is recorded, if this thread records; else it only walks as a recorded one does.
    ends : bool
        Whether the pass ends at the requested rows, as a part of another one.
    """
    state = borrow()
    if requested is not None:
        state.request(requested, max(slots), ends)
    state.plan(slots)
    low, top = int(state.header[at.LOW]), int(state.header[at.TOP])
    reached = np.flatnonzero(state.offsets[low : top + 1] != at.UNSEEN)[::-1] + low
    present = set(reached.tolist())
    TAPE.clear(_ADDRESS, state.address, low)
    if requested is not None and demand:
        check_used(requested, present.__contains__)
    state.accumulates = accumulates
    state.seen = Visits(present.__contains__)
    adjoints: dict[int, Tensor] = {}
    found: dict[int, Tensor] = {}
    shown: list[tuple[Tensor, Tensor]] = []
    with set_grad_enabled(records):
        for slot, seed in zip(slots, seeds, strict=True):
            if slot in present:
                _add(adjoints, slot, seed)
        for slot in reached.tolist():
            g = adjoints.pop(slot, None)
            if g is not None or TAPE.columns["flags"][slot] & at.HOOKED:
                _step(state, slot, g, adjoints, found, shown)
    return found, shown, state.seen.finished


def call_finished_recorded(finished: list[Finished]) -> None:
    """The hooks of leaves after a recorded pass, which are recorded too."""
    if finished:
        from tapegrad.autograd.stops import call_finished

        with enable_grad():
            call_finished(finished)


def _add(adjoints: dict[int, Tensor], slot: int, contribution: Tensor) -> None:
    before = adjoints.get(slot)
    adjoints[slot] = contribution if before is None else before + contribution


def _step(
    state: Sweep,
    slot: int,
    g: Tensor | None,
    adjoints: dict[int, Tensor],
    found: dict[int, Tensor],
    shown: list[tuple[Tensor, Tensor]],
) -> None:
    marks = state.marks
    opcode, _ = opcode_of(slot)
    flags = int(TAPE.columns["flags"][slot])
    if g is not None and type(g._data) is not float and not is_recording():
        g = make(g._data.copy(), 0)  # hooks and custom functions may keep it or write to it

    def show(g: Tensor) -> None:
        if flags & at.WATCHED and not state.ends_at(slot):
            shown.extend((t, g) for t in watchers_of(slot))
        if opcode == at.LEAF or (marks is not None and marks[slot] & at.REQUESTED):
            found[slot] = g

    def wanted(argument: Argument) -> bool:
        return argument.slot >= 0 and (marks is None or marks[argument.slot] != 0)

    runs = opcode != at.LEAF and (marks is None or bool(marks[slot] & at.ON_PATH))

    def send() -> Contributions:
        if flags & at.HOOKED:
            from tapegrad.autograd.stops import stop_recorded

            return stop_recorded(state, slot, g, show, wanted, runs)
        if g is None:
            return []
        show(g)
        return contributions(state, slot, (g,), wanted) if runs else []

    for argument, c in _observed(slot, send) if TAPE.anomalies else send():
        _add(adjoints, argument.slot, _fit(argument.slot, c))


def _observed(slot: int, send: Callable[[], Contributions]) -> Contributions:
    from tapegrad.autograd.anomalies import observed

    return observed(slot, send)


def apply_node(slot: int, gradients: Sequence[Tensor | None]) -> Any:
    """What a row sends to its arguments for the gradients of its outputs: one tensor, or a tuple with None where there is none."""
    with enable_grad():
        sent = contributions(borrow(), slot, gradients, lambda argument: argument.slot >= 0)
        results = tuple(c for _, c in sent)
    return results[0] if len(results) == 1 else results


def contributions(state: Sweep, slot: int, gradients: Sequence[Tensor | None], wanted: Callable[[Argument], bool]) -> Contributions:
    """Contributions of a row to those of its arguments that are wanted.

    Parameters
    ----------
    gradients : sequence of Tensor or None
        Of the outputs of the node; a row of an operation of ours has one.
    """
    opcode, wide = opcode_of(slot)
    if opcode == at.HOST:
        payload: Payload = payload_at(slot)
        if payload.runs_itself:
            found: Contributions = payload.contributions(state, slot, gradients, wanted)
            return found
    (g,) = gradients
    if g is None:
        return []
    if opcode < at.STRUCTURAL:
        return _elementwise(slot, opcode, wide, g, wanted)
    record = saved_record_of(slot)
    if opcode == at.HOST:
        return _host(slot, record, g, wanted)
    if opcode == at.JOIN:
        return _joined(record, g, wanted)
    argument = record.arguments[0]
    rank, offset = record.extra[:2]
    dims, strides = record.extra[2 : 2 + rank], record.extra[2 + rank :]
    turned = strided_scatter if opcode == at.GATHER else strided_gather
    c = turned(g, dims, strides, offset, record.scale, shape_of(argument.slot), _transposed_name(record.name))
    return [(argument, c)]


def _joined(record: Record, g: Tensor, wanted: Callable[[Argument], bool]) -> list[tuple[Argument, Tensor]]:
    widths = record.extra
    inner, before = sum(widths), 0
    outer = array_of(g).size // inner if inner else 0
    found = []
    for argument, width in zip(record.arguments, widths, strict=True):
        if wanted(argument):
            shape = shape_of(argument.slot)
            found.append((argument, strided_gather(g, (outer, width), (inner, 1), before, 1.0, shape, "SliceBackward0")))
        before += width
    return found


def _transposed_name(name: str) -> str:
    """Node name of the derivative of a strided map."""
    known = {
        "SumBackward0": "ExpandBackward0",
        "SumBackward1": "ExpandBackward0",
        "MeanBackward0": "DivBackward0",
        "MeanBackward1": "DivBackward0",
        "ExpandBackward0": "SumBackward1",
        "ViewBackward0": "ViewBackward0",
        "TBackward0": "TBackward0",
        "TransposeBackward0": "TransposeBackward0",
        "PermuteBackward0": "PermuteBackward0",
        "UnsqueezeBackward0": "SqueezeBackward1",
        "FlipBackward0": "FlipBackward0",
        "Rot90Backward0": "Rot90Backward0",
        "DiagEmbedBackward0": "DiagonalBackward0",
        "ConstantPadNdBackward0": "ConstantPadNdBackward0",
    }
    return known.get(name, name.replace("Backward0", "BackwardBackward0"))


def replace_gradients(pairs: Iterable[tuple[Tensor, Tensor]]) -> None:
    """Let each tensor's gradient be a new one that is larger by `g`, the old one keeping its value: all of them at once."""
    fresh: dict[int, tuple[Any, Tensor]] = {}
    for t, g in pairs:
        meta = meta_of(t)
        before = fresh[id(t)][1] if id(t) in fresh else meta.grad
        if before is not None:
            check_shapes(before._data, g._data)
        fresh[id(t)] = (meta, own_copy(g) if before is None else before + g)
    at_once(*(partial_call(setattr, meta, "grad", grad) for meta, grad in fresh.values()))


def own_copy(g: Tensor) -> Tensor:
    """A recorded copy: a gradient never shares memory with a seed or another gradient."""
    return reshape_copy(g, "CopyBackwards", array_of(g).copy())


def dtype_of(slot: int) -> np.dtype[Any]:
    """Dtype of a row's result and adjoint."""
    return record_of(slot).dtype if opcode_of(slot)[1] else np.dtype(np.float64)


def _fit(slot: int, c: Tensor) -> Tensor:
    """A contribution in the dtype of its row."""
    dtype = dtype_of(slot)
    return (
        c
        if (type(c._data) is float and dtype == np.float64) or (type(c._data) is not float and c._data.dtype == dtype)
        else cast(c, dtype)
    )


def _operand(argument: Argument) -> Tensor | None:
    """An argument's value as a tensor on its row; None if it was not saved."""
    if argument.kind not in (at.ROW, at.NUMBER, at.ARRAY):
        return None
    row = TAPE.new_handle(argument.slot) if argument.slot >= 0 else 0
    if argument.kind == at.ROW:
        return make(float(TAPE.columns["value"][argument.slot]), row)
    if argument.kind == at.NUMBER:
        return make(as_float(argument.saved), row)
    array = object_at(argument.saved)
    if row and array.dtype != dtype_of(argument.slot):
        array = array.astype(dtype_of(argument.slot))
    return make(array.item() if array.ndim == 0 and array.dtype == np.float64 else array, row)


def _in_dtype(t: Tensor | None, dtype: np.dtype[Any]) -> Tensor | None:
    """An operand in the dtype that the partials are computed in: text like ``-x`` and ``x * x`` means real numbers."""
    if t is None or type(t._data) is float or (t._data.ndim == 0 and t._data.dtype.kind == "f"):
        return t
    return cast(t, dtype)


def _plain_operands(slot: int) -> list[tuple[Argument, Tensor | None]]:
    columns = TAPE.columns
    found = []
    for column in ("first", "second"):
        reference = int(columns[column][slot])
        if reference >= 0:
            argument = Argument(reference, at.ROW, 0)
            found.append((argument, _operand(argument)))
        elif reference <= -2:
            value = float(columns["constant"][1 + (-2 - reference)])
            found.append((Argument(-1, at.NUMBER, 0), make(value, 0)))
    return found


def _elementwise(slot: int, opcode: int, wide: bool, g: Tensor, wanted: Any) -> list[tuple[Argument, Tensor]]:
    result: Tensor | None
    if wide:
        record = saved_record_of(slot)
        operands = [(argument, _in_dtype(_operand(argument), record.dtype)) for argument in record.arguments]
        result = make(object_at(record.result), TAPE.new_handle(slot)) if record.result else None
    else:
        operands, result = _plain_operands(slot), None
    if result is None and (not wide or not record.shape):
        result = make(float(TAPE.columns["value"][slot]), TAPE.new_handle(slot))
    return apply_partials(opcode, operands, result, g, wanted)


def apply_partials(
    opcode: int, operands: Sequence[tuple[Argument, Tensor | None]], result: Tensor | None, g: Tensor, wanted: Any
) -> Contributions:
    """Contributions of an elementwise operation, given the values that its wanted partials use."""
    values = [t for _, t in operands] + [None] * (3 - len(operands))
    contributions = []
    for (argument, _), text in zip(operands, RULES[opcode].partials, strict=True):
        if not wanted(argument):
            continue
        if text is None:
            raise NotImplementedError(f"the derivative for '{RULES[opcode].name}' is not implemented")
        if text == "1.0":
            c = g
        elif text == "-1.0":
            c = -g
        elif names_in(text) & {"x", "y", "w", "z"}:
            c = NAMES["mul0"](g, partial(text)(*values, result))
        else:
            c = NAMES["mul0"](g, float(partial(text)(None, None, None, None)))
        contributions.append((argument, sum_to(c, shape_of(argument.slot))))
    return contributions


def _host(slot: int, record: Record, g: Tensor, wanted: Any) -> list[tuple[Argument, Tensor]]:
    payload: Payload = object_at(record.payload)
    inputs = record.arguments[: payload.inputs]
    needs = tuple(wanted(argument) for argument in inputs)
    result: Tensor | None = None
    if record.result:
        result = make(object_at(record.result), TAPE.new_handle(slot))
    elif not record.shape and record.dtype == np.float64:
        result = make(float(TAPE.columns["value"][slot]), TAPE.new_handle(slot))
    context = Context(
        tuple(_operand(argument) for argument in inputs),
        result,
        tuple(t for argument in record.arguments[payload.inputs :] if (t := _operand(argument)) is not None),
        payload.attrs,
        needs,
        payload.shapes[: payload.inputs],
        payload.dtypes[: payload.inputs],
    )
    cotangents = payload.op.vjp(g, context)
    return [(a, c) for a, wants, c in zip(inputs, needs, cotangents, strict=True) if wants and c is not None]


assert OPCODES["_alias"] == 0  # the engine writes aliases by number
