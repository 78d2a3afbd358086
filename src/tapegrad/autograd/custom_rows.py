"""Rows of custom functions: what they keep, how they are recorded, and their step in a pass.

A function with one output has one row. One with several has a row for the node, whose own adjoint only says that there is
something to do, and a row for each output, which notes its gradient for the node: so gradients keep their shapes and dtypes, and
outputs without a gradient are known from those whose gradient is zero.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.autograd.custom_state import State, fit
from tapegrad.autograd.decoded_rows import Argument, arguments_of, as_float, object_at, opcode_of, payload_at, reference_in
from tapegrad.autograd.messages import explain, saved_words_of
from tapegrad.autograd.nodes import leaf_at
from tapegrad.autograd.sweep_memory import Sweep, sweep_at
from tapegrad.autograd.user_code import call_nested
from tapegrad.engine import layout as at
from tapegrad.ops.products import apart
from tapegrad.recording.structural import Payload, Structural, write_host_row
from tapegrad.tape.tape import TAPE, owner_of
from tapegrad.tensors.grad_mode import without_recording
from tapegrad.tensors.inference_tensors import check_saved
from tapegrad.tensors.saved_value_packing import Packer, current_packer, pack, unpack
from tapegrad.tensors.tensor import Tensor, is_recording, make

if TYPE_CHECKING:
    from tapegrad.autograd.function import FunctionCtx

__all__ = [
    "FunctionNodeRow",
    "FunctionRow",
    "definition",
    "record_function",
    "record_new",
    "record_output",
    "saved_tensors",
]

_ADDRESS = TAPE.address
_FLOAT64 = np.dtype(np.float64)
MOST_INPUTS = 60  # that rows are written for in one call
INPUT, OUTPUT, OTHER = at.SAVED_INPUT, at.SAVED_OUTPUT, at.SAVED_OTHER


class FunctionRow(Payload):
    """Payload of the row of a custom function with one output, which compiled passes call by `plain_step`."""

    __slots__ = ()
    runs_itself = True

    def node_at(self, slot: int) -> FunctionCtx:
        """The `ctx`: what it shows is kept by the row, so nobody need keep it."""
        return ctx_at(self.attrs, slot)

    def contributions(
        self, state: Sweep, slot: int, gradients: Sequence[Tensor | None], wanted: Callable[[Argument], bool]
    ) -> list[tuple[Argument, Tensor]]:
        """What the function's ``backward`` makes of the gradients of its outputs."""
        noted = None if state.seen is None else state.seen.outputs.pop(slot, None)
        if noted is not None:
            gradients = noted
        own: State = self.attrs
        gradients = own.materialized(gradients)
        results = own.for_inputs(self.op.name, call_nested(ctx_at(own, slot).apply, *gradients))
        return [
            (argument, fit(self, result, k))
            for k, (argument, result) in enumerate(zip(arguments_of(slot), results, strict=True))
            if result is not None and argument.slot >= 0 and wanted(argument)
        ]


def ctx_at(own: State, slot: int) -> FunctionCtx:
    """The `ctx` of a row; the same object while somebody holds it."""
    ctx = None if own.link is None else own.link()
    if ctx is None or TAPE.slot(ctx._row) != slot:
        ctx = new_ctx(own)
        bind(ctx, slot)
    return ctx


def plain_step(g: Tensor, given: Any) -> Sequence[Tensor | None]:
    """What ``backward`` gives for each tensor among the arguments, in a plain pass that goes on in compiled code."""
    return _gradients(given.attrs, given, (g,))


def _gradients(own: State, given: Any, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
    """What ``backward`` makes of the gradients of the outputs, in the forms that compiled code takes."""
    shapes, dtypes = given.shapes, given.dtypes
    results = without_recording(call_nested, ctx_at(own, given.slot).apply, *gradients)
    # A tuple of our own: the user may keep the other, and nobody may have a part in a cotangent that becomes a gradient.
    found = (*results,) if type(results) is tuple else (results,)
    if len(found) != own.arguments or len(found) != len(shapes):
        found = own.for_inputs(given.op.name, results)
    for result, shape, dtype in zip(found, shapes, dtypes, strict=True):
        if result is None:
            continue
        if type(result) is not Tensor:
            break
        data = result._data
        if type(data) is float:
            if shape or dtype is not _FLOAT64:
                break
        elif data.dtype is not dtype or data.shape != shape:
            break
    else:
        return found
    found = own.for_inputs(given.op.name, results)
    return tuple([fit(given, c, k) if c is not None and given.needs[k] else None for k, c in enumerate(found)])


class FunctionNodeRow(FunctionRow):
    """The same of a function with several outputs."""

    __slots__ = ()


class OutputRow(Payload):
    """Payload of the row of one of several outputs."""

    __slots__ = ()
    runs_itself = True

    def contributions(
        self, state: Sweep, slot: int, gradients: Sequence[Tensor | None], wanted: Callable[[Argument], bool]
    ) -> list[tuple[Argument, Tensor]]:
        """Note the gradient for the node."""
        (argument,) = arguments_of(slot)
        _note(state, argument.slot, self.attrs, gradients[0])
        return [(argument, make(0.0, 0))]


def _note(state: Sweep, node: int, which: tuple[int, int], g: Tensor | None) -> None:
    """Note the gradient of an output, of which there are so many, for its node."""
    number, count = which
    outputs = state.visits().outputs
    noted = outputs.get(node)
    if noted is None:
        noted = outputs[node] = [None] * count
    before = noted[number]
    # An output that was saved and unpacked again has another row.
    noted[number] = g if before is None else before if g is None else before + g


def _output_step(g: Tensor, given: Any) -> Sequence[Tensor]:
    """The same in a plain pass that goes on in compiled code."""
    columns = TAPE.columns
    word = columns["side"].item(columns["first"].item(given.slot) + at.ARGUMENTS)
    _note(sweep_at(given.sweep), reference_in(word), given.attrs, g)
    return (make(0.0, 0),)


def _node_step(g: Tensor, given: Any) -> Sequence[Tensor | None]:
    """As `plain_step`, for a function with several outputs."""
    own: State = given.attrs
    state = sweep_at(given.sweep)
    gradients = own.materialized(state.visits().outputs.pop(given.slot))
    return _gradients(own, given, gradients)


_OUTPUT = Structural("FunctionOutput", ((),), _output_step, joins=True, payload_class=OutputRow)


def new_ctx(state: State) -> FunctionCtx:
    """A view of what a custom function keeps."""
    ctx = object.__new__(state.kind)
    ctx._row, ctx._owner, ctx._state = 0, None, state
    ctx.__dict__ = state.attributes
    return ctx


def bind(ctx: FunctionCtx, slot: int) -> None:
    """Make a `ctx` the view of a row."""
    ctx._row = TAPE.new_handle(slot)
    ctx._state.link = weakref.ref(ctx)


def definition(name: str, saved: int, several: bool = False) -> Structural:
    """The operation that a custom function is on the tape if it saves those of its inputs whose bits are set.

    Parameters
    ----------
    several : bool
        Whether it has several outputs.
    """
    uses = tuple([k for k in range(saved.bit_length()) if saved >> k & 1])
    if several:
        return Structural(name, (uses,), _node_step, payload_class=FunctionNodeRow)
    return Structural(name, (uses,), plain_step, payload_class=FunctionRow)


def record_new(
    definitions: dict[int, Structural], name: str, state: State, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
) -> int:
    """Write the row of a function whose outputs are new in one call; 0 or less, with nothing done, if `record_function` is needed.

    Parameters
    ----------
    definitions : dict
        The function's operations with as many outputs, one or several, for each set of inputs that it ever saved.
    """
    saved: list[tuple[int, int, int] | None] = []
    extra: tuple[Tensor, ...] = ()
    mask, count, several = 0, len(inputs), len(outputs) > 1
    if count > MOST_INPUTS:
        return 0
    for t in state.to_save:
        if type(t) is not Tensor:
            return 0
        for k, x in enumerate(inputs):
            if x is t:
                saved.append((INPUT, k, k))
                mask |= 1 << k
                break
        else:
            number = _place(t, outputs)
            if number < 0 and t._row:
                return 0
            saved.append((OTHER, 0, count + len(extra)) if number < 0 else (OUTPUT, number, count + len(extra)))
            extra += (t,)
    op = definitions.get(mask)
    if op is None:
        op = definitions[mask] = definition(name, mask, several)
    state.saved = saved
    value = 0.0 if several else outputs[0]._data
    return int(TAPE.operation_row(_ADDRESS, id(op), id(inputs), id(extra), id(state), id(value)))


def record_function(op: Structural, state: State, inputs: list[Tensor], outputs: Sequence[Any], value: Any) -> int:
    """Write the row of a node; its handle.

    Parameters
    ----------
    value : ndarray or float
        The output, if there is only one.

    Raises
    ------
    TypeError
        If something else than tensors was saved.
    RuntimeError
        If an inference tensor was saved.
    """
    kept: set[int] = set()
    extra: list[Tensor] = []
    state.saved, state.others = [], []
    for number, t in enumerate(state.to_save):
        if t is None:
            state.saved.append(None)
            continue
        if not isinstance(t, Tensor):
            raise TypeError(f"save_for_backward can only save variables, but argument {number} is of type {type(t).__name__}")
        k = _place(t, inputs)
        output = _place(t, outputs)
        if output >= 0 and (k < 0 or _place(t, state.dirty) >= 0):
            kind = (OUTPUT, output) if _place(t, state.untracked) < 0 else (OTHER, 0)
            state.saved.append((*kind, len(inputs) + len(extra)))
            extra.append(t)
        elif k >= 0:
            state.saved.append((INPUT, k, k))
            kept.add(k)
        else:
            if t._row:
                state.others.append(apart(t, 0.0))  # which keeps its present row: it may be written meanwhile
            state.saved.append((OTHER, len(state.others) if t._row else 0, len(inputs) + len(extra)))
            extra.append(t)
    check_saved([t for t in state.to_save if t is not None])
    packer = current_packer() if TAPE.packers else None
    if packer is not None:
        kept, extra = set(), [make(_pack(state, packer, inputs, extra), 0)]
    tensors = [*inputs, *extra]
    kept.update(range(len(inputs), len(tensors)))
    payload = (FunctionRow if len(outputs) == 1 else FunctionNodeRow)(op, state, [t._data for t in inputs], len(inputs))
    return write_host_row(payload, tensors, len(inputs), kept, value)


def _pack(state: State, packer: Packer, inputs: list[Tensor], extra: list[Tensor]) -> np.ndarray:
    """All that was saved, packed, in the order of saving."""
    tensors = [*inputs, *extra]
    packed = pack(packer, [tensors[entry[2]] for entry in state.saved if entry is not None])
    places = iter(range(len(packed)))
    state.saved = [None if entry is None else (entry[0], entry[1], -1 - next(places)) for entry in state.saved]
    return packed


def _place(t: Tensor, among: Sequence[Any]) -> int:
    for k, other in enumerate(among):
        if other is t:
            return k
    return -1


def record_output(node: Tensor, number: int, count: int, value: Any) -> int:
    """Write the row of one of several outputs; its handle."""
    inputs, extra, which = (node,), (), (number, count)  # variables, since compiled code is given addresses
    row = int(TAPE.operation_row(_ADDRESS, id(_OUTPUT), id(inputs), id(extra), id(which), id(value)))
    if row <= 0:
        row = write_host_row(OutputRow(_OUTPUT, which, [0.0], 1), [node], 1, set(), value)
    TAPE.number_output(TAPE.address, row, number)
    return row


def saved_tensors(handle: int, state: State) -> tuple[Tensor | None, ...]:
    """What was saved for backward.

    Raises
    ------
    RuntimeError
        If it was released or overwritten.
    """
    found: list[Tensor | None] = []
    for entry in state.saved:
        if entry is None:
            found.append(None)
            continue
        was, number, k = entry
        python = k < 0 or (was == OUTPUT and len(state.outputs) > 1) or (was == OTHER and number > 0)
        if python or TAPE.unpack_saved(_ADDRESS, handle, was, k, id(found)) < 0:
            return _saved_tensors(handle, state)
    return tuple(found)


def _saved_tensors(handle: int, state: State) -> tuple[Tensor | None, ...]:
    """The same where compiled code leaves it to Python."""
    with TAPE.claim():
        slot = TAPE.slot(handle)
        words = saved_words_of(slot)
        found: list[Tensor | None] = []
        for entry in state.saved:
            if entry is None:
                found.append(None)
                continue
            kind, number, k = entry
            data = unpack(object_at(words[_last(words)])[-1 - k]) if k < 0 else _saved(words, slot, k)
            if kind == INPUT:
                found.append(_input(reference_in(words[at.ARGUMENTS + 2 * number]), data))
            elif kind == OTHER and number:
                found.append(_input(TAPE.slot(state.others[number - 1]._row), data))
            elif kind == OUTPUT and len(state.outputs) == 1:
                found.append(make(data, TAPE.new_handle(slot)))
            elif kind == OUTPUT and is_recording():
                row = _output_at(slot, number, len(state.outputs))
                if row >= 0:  # whose hooks see what comes by this way, too
                    found.append(make(data, TAPE.new_handle(row)))
                    continue
                node = make(0.0, TAPE.new_handle(slot))
                found.append(make(data, record_output(node, number, len(state.outputs), data)))
            else:
                found.append(make(data, 0))
        return tuple(found)


def _output_at(node: int, number: int, count: int) -> int:
    """The row of an output where it was recorded, right behind its node; -1 if it is gone."""
    for row in range(node + 1, min(node + 1 + count, TAPE.rows)):
        if TAPE.has_row(row) and opcode_of(row) == (at.HOST, True):
            payload = payload_at(row)
            if type(payload) is OutputRow and payload.attrs[0] == number and arguments_of(row)[0].slot == node:
                return row
    return -1


def _last(words: list[int]) -> int:
    """The place of what the last argument saved."""
    return at.ARGUMENTS + 2 * (words[at.NAME] >> 32) - 1


def _saved(words: list[int], slot: int, k: int) -> Any:
    place = at.ARGUMENTS + 2 * k
    saved = words[place + 1]
    if words[place] >> 32 != at.ARRAY:
        return as_float(saved)
    data = object_at(saved)
    counter = TAPE.versions.get(owner_of(data))
    if counter is not None and counter.before(words[at.SERIAL]) != counter.count:
        raise explain(at.STALE_ROW, slot)
    return data


def _input(slot: int, data: Any) -> Tensor:
    if slot < 0:
        return make(data, 0)
    if opcode_of(slot)[0] == at.LEAF:
        leaf = leaf_at(slot)
        if leaf._data is data or (type(data) is float and leaf._data == data):
            return leaf
    return make(data, TAPE.new_handle(slot))
