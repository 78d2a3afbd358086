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

from tapegrad.autograd.decoded_rows import Argument, arguments_of, as_float, object_at, opcode_of, reference_in
from tapegrad.autograd.messages import explain, saved_words_of
from tapegrad.autograd.nodes import leaf_at
from tapegrad.autograd.sweep_memory import Sweep
from tapegrad.autograd.user_code import call_nested
from tapegrad.engine import layout as at
from tapegrad.recording.casting import cast
from tapegrad.recording.strided_maps import sum_to
from tapegrad.recording.structural import Payload, Structural, write_host_row
from tapegrad.tape.tape import TAPE, owner_of
from tapegrad.tensors.inference_tensors import check_saved
from tapegrad.tensors.saved_value_packing import Packer, current_packer, pack, unpack
from tapegrad.tensors.tensor import Tensor, is_recording, make

if TYPE_CHECKING:
    from tapegrad.autograd.function import FunctionCtx

__all__ = ["FunctionRow", "State", "record_function", "record_output", "saved_tensors"]

_ADDRESS = TAPE.address
_OUTPUT = Structural("FunctionOutput", ((),), lambda g, ctx: (g,), joins=True)
INPUT, OUTPUT, OTHER = 0, 1, 2  # what a saved tensor was


class State:
    """What the row of a custom function keeps: all that its `ctx` shows."""

    __slots__ = (
        "arguments",
        "attributes",
        "dirty",
        "kind",
        "link",
        "materialize",
        "needs",
        "outputs",
        "positions",
        "saved",
        "to_save",
        "untracked",
    )

    def __init__(self, kind: type[FunctionCtx], args: Sequence[Any]) -> None:
        self.kind = kind
        self.link: weakref.ref[FunctionCtx] | None = None  # to the `ctx` that is bound to the row
        self.attributes: dict[str, Any] = {}
        self.arguments = len(args)
        self.positions = tuple([k for k, a in enumerate(args) if isinstance(a, Tensor)])  # of the tensors among the arguments
        self.needs = tuple([isinstance(a, Tensor) and a._row != 0 for a in args])
        self.materialize = True
        self.outputs: list[tuple[tuple[int, ...], np.dtype[Any]] | None] = []  # None for what is not a tensor
        self.saved: list[tuple[int, int, int] | None] = []  # what each was, its number, and the argument of the row that keeps it
        self.to_save: tuple[Any, ...] = ()
        self.dirty: tuple[Any, ...] = ()
        self.untracked: tuple[Any, ...] = ()


class FunctionRow(Payload):
    """Payload of the row of a custom function's node."""

    __slots__ = ()
    runs_itself = True

    def node_at(self, slot: int) -> FunctionCtx:
        """The `ctx`: what it shows is kept by the row, so nobody need keep it."""
        own: State = self.attrs
        ctx = None if own.link is None else own.link()
        if ctx is None or TAPE.slot(ctx._row) != slot:
            ctx = new_ctx(own)
            bind(ctx, slot)
        return ctx

    def contributions(
        self, state: Sweep, slot: int, gradients: Sequence[Tensor | None], wanted: Callable[[Argument], bool]
    ) -> list[tuple[Argument, Tensor]]:
        """What the function's ``backward`` makes of the gradients of its outputs."""
        noted = None if state.seen is None else state.seen.outputs.pop(slot, None)
        if noted is not None:
            gradients = noted
        own: State = self.attrs
        if own.materialize:
            gradients = [
                make(np.zeros(*kind), 0) if g is None and kind is not None else g
                for g, kind in zip(gradients, own.outputs, strict=True)
            ]
        results = call_nested(self.node_at(slot).apply, *gradients)
        return self._checked(arguments_of(slot), results, wanted)

    def _checked(
        self, arguments: Sequence[Argument], results: Any, wanted: Callable[[Argument], bool]
    ) -> list[tuple[Argument, Tensor]]:
        own: State = self.attrs
        given = results if isinstance(results, tuple) else (results,)
        while len(given) > own.arguments and given[-1] is None:
            given = given[:-1]
        name = self.op.name
        if len(given) != own.arguments:
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {own.arguments}, got {len(given)}): "
                "backward returns one for each argument of forward, None for those that are no tensors"
            )
        found = []
        positions = own.positions
        for position, result in enumerate(given):
            if result is None:
                continue
            k = position if len(positions) == len(given) else positions.index(position) if position in positions else -1
            if k < 0:
                raise RuntimeError(
                    f"function {name} returned a gradient different than None at position {position + 1}, "
                    "but the corresponding forward input was not a Variable"
                )
            if not isinstance(result, Tensor):
                raise RuntimeError(
                    f"expected Variable or None (got {type(result).__name__}) from {name}; convert it with tg.tensor(...)"
                )
            argument = arguments[k]
            if argument.slot >= 0 and wanted(argument):
                found.append((argument, self._fit(result, k)))
        return found

    def _fit(self, result: Tensor, k: int) -> Tensor:
        shape, data = self.shapes[k], result._data
        own = () if type(data) is float else data.shape
        if own != shape:
            aligned = own[len(own) - len(shape) :] if shape else ()
            if len(own) < len(shape) or any(n not in (1, m) for n, m in zip(shape, aligned, strict=True)):
                raise RuntimeError(
                    f"Function {self.op.name} returned an invalid gradient at index {k} - got {list(own)} but expected shape "
                    f"compatible with {list(shape)}"
                )
            result = sum_to(result, shape)
        dtype = self.dtypes[k]
        return result if type(data) is np.ndarray and data.dtype == dtype else cast(result, dtype)


class OutputRow(Payload):
    """Payload of the row of one of several outputs."""

    __slots__ = ()
    runs_itself = True

    def contributions(
        self, state: Sweep, slot: int, gradients: Sequence[Tensor | None], wanted: Callable[[Argument], bool]
    ) -> list[tuple[Argument, Tensor]]:
        """Note the gradient for the node."""
        (argument,) = arguments_of(slot)
        number, count = self.attrs
        noted = state.visits().outputs.setdefault(argument.slot, [None] * count)
        before, g = noted[number], gradients[0]
        # An output that was saved and unpacked again has another row.
        noted[number] = g if before is None else before if g is None else before + g
        return [(argument, make(0.0, 0))]


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
    state.saved = []
    for number, t in enumerate(state.to_save):
        if t is None:
            state.saved.append(None)
            continue
        if not isinstance(t, Tensor):
            raise TypeError(f"save_for_backward can only save variables, but argument {number} is of type {type(t).__name__}")
        k = _place(t, inputs)
        output = _place(t, outputs)
        if output >= 0 and (k < 0 or _place(t, state.dirty) >= 0):
            tracked = _place(t, state.untracked) < 0
            state.saved.append((OUTPUT if tracked else OTHER, output, len(inputs) + len(extra)))
            extra.append(t)
        elif k >= 0:
            state.saved.append((INPUT, k, k))
            kept.add(k)
        else:
            state.saved.append((OTHER, 0, len(inputs) + len(extra)))
            extra.append(t)
    check_saved([t for t in state.to_save if t is not None])
    packer = current_packer() if TAPE.packers else None
    if packer is not None:
        kept, extra = set(), [make(_pack(state, packer, inputs, extra), 0)]
    tensors = [*inputs, *extra]
    kept.update(range(len(inputs), len(tensors)))
    payload = FunctionRow(op, state, [t._data for t in inputs], len(inputs))
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
    row = write_host_row(OutputRow(_OUTPUT, (number, count), [0.0], 1), [node], 1, set(), value)
    TAPE.number_output(TAPE.address, row, number)
    return row


def saved_tensors(handle: int, state: State) -> tuple[Tensor | None, ...]:
    """What was saved for backward.

    Raises
    ------
    RuntimeError
        If it was released or overwritten.
    """
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
            elif kind == OUTPUT and len(state.outputs) == 1:
                found.append(make(data, TAPE.new_handle(slot)))
            elif kind == OUTPUT and is_recording():
                node = make(0.0, TAPE.new_handle(slot))
                found.append(make(data, record_output(node, number, len(state.outputs), data)))
            else:
                found.append(make(data, 0))
        return tuple(found)


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
