"""The walk of a plain pass over its planned rows: stops for Python, and steps whose derivative is Python."""

from __future__ import annotations

from _ctypes import PyObj_FromPtr
from collections.abc import Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.memory_pool import large_empty, owns_memory
from tapegrad.arrays.sizes import stretched_number
from tapegrad.autograd.decoded_rows import arguments_of, as_float, dtype_of, reference_in, shape_of
from tapegrad.autograd.messages import explain, saved_words_of
from tapegrad.autograd.pass_state import Finished
from tapegrad.autograd.plain_context import PlainContext, new_context
from tapegrad.autograd.sweep_memory import Sweep, wrong_shape
from tapegrad.engine import layout as at
from tapegrad.ops.namespaces import PLAIN
from tapegrad.recording.structural import Context, Payload, Structural
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.grad_mode import without_recording
from tapegrad.tensors.tensor import FLOATS, Tensor, make

__all__ = ["after_odd_cotangent", "resume", "run", "through_vjps"]

_ADDRESS = TAPE.address
ARGUMENTS, VJP_DUE, ODD_COTANGENT = at.ARGUMENTS, at.VJP_DUE, at.ODD_COTANGENT
SCALAR, VECTOR = at.FLOAT64, at.FLOAT64 | 1 << 8  # the words of results without and with one dimension


def run(state: Sweep, releases: bool, captured: dict[int, np.ndarray]) -> list[Finished]:
    """Walk the planned rows; requested rows' adjoints are copied to `captured`. Leaves with hooks to call at the end."""
    return resume(state, through_vjps(state, int(releases)), releases, captured)


def through_vjps(state: Sweep, releases: int) -> int:
    """Go on with a walk, and call the vjps of rows on the way where nothing more is to be done for that; where it stopped."""
    address = state.address
    context = new_context()
    status = TAPE.run(_ADDRESS, address, releases, id(context), 0)
    while status == VJP_DUE:
        cotangents = context.op.vjp(context.g, context)
        following = new_context()
        if state.placed:  # what the vjp gave may become a gradient
            _add_all(state, context, cotangents, 0)
            context = following
            status = TAPE.run(_ADDRESS, address, releases, id(context), 0)
            continue
        status = TAPE.run(_ADDRESS, address, releases, id(following), id(cotangents))
        if status == ODD_COTANGENT:
            return after_odd_cotangent(state, context, cotangents, releases)
        context = following
    return status


def after_odd_cotangent(state: Sweep, context: PlainContext, cotangents: Any, releases: int) -> int:
    """Add the cotangents that compiled code did not take, and go on; where the walk stopped."""
    _add_all(state, context, cotangents, state.words[at.FIRST_ODD])
    return through_vjps(state, releases)


def _add_all(state: Sweep, context: PlainContext, cotangents: Any, first: int) -> None:
    """Add cotangents of the current row from the one with this number on, and let the walk go on below it."""
    slot = state.words[at.CURRENT]
    _add(state, context, [argument.slot for argument in arguments_of(slot)], context.op, cotangents, first)
    state.words[at.CURRENT] = slot - 1


def resume(state: Sweep, status: int, releases: bool, captured: dict[int, np.ndarray]) -> list[Finished]:
    """Go on with a walk that stopped at a row for Python; leaves with hooks to call at the end."""
    words = state.words
    while status != at.DONE:
        slot = words[at.CURRENT]
        if status == at.FREED_ROW:
            raise explain(status, slot)
        if status == at.WATCHED_ROW:
            if TAPE.columns["flags"][slot] & at.HOOKED:
                from tapegrad.autograd.hooked_rows import stop_plain

                stop_plain(state, slot, captured)
            else:
                state.show(slot, captured)
        else:
            _host(state, slot)
            words[at.CURRENT] = slot - 1
        status = through_vjps(state, int(releases))
    seen, state.seen = state.seen, None
    return [] if seen is None else seen.finished


def _host(state: Sweep, slot: int) -> None:
    """The step of a row whose derivative is Python. Its record is read word by word: decoding it all took a tenth longer."""
    words = saved_words_of(slot)
    payload: Payload = PyObj_FromPtr(words[at.PAYLOAD])
    form, size = words[at.DTYPE], words[at.SIZE]
    dimensions = ARGUMENTS + 2 * (words[at.NAME] >> 32)
    offset, bar, result = state.offsets.item(slot), state.bar, None
    place, is_one_number, is_ours = offset >> 2, offset & at.UNIFORM, True
    # Nothing here is tracked, so whether the thread records makes no difference.
    if form == SCALAR:
        g = make(bar.item(place), 0)
        result = make(TAPE.columns["value"].item(slot), 0)
    elif is_one_number and form & 255 == at.FLOAT64 and not payload.runs_itself and payload.op.takes_stretched:
        g = make(stretched_number(bar.item(place), tuple(words[dimensions : dimensions + (form >> 8)]), dtypes.float64), 0)
    elif slot in state.handed:
        g = make(state.handed.pop(slot), 0)
    elif is_one_number and form & 255 == at.FLOAT64 and payload.runs_itself:
        whole = large_empty(tuple(words[dimensions : dimensions + (form >> 8)]), dtypes.float64)
        whole.fill(bar[place])
        g = make(whole, 0)
    else:
        is_ours = False
        flat: np.ndarray = bar[place : place + size]
        if form & 255 != at.FLOAT64:
            flat = bar[place : place + (size + 1) // 2].view(np.float32)[:size]
        if is_one_number:
            flat.fill(flat[0])
            state.offsets[slot] = offset - at.UNIFORM
        g = make(flat if form == VECTOR else flat.reshape(words[dimensions : dimensions + (form >> 8)]), 0)
    if payload.runs_itself:  # custom functions, packed values
        if not is_ours:
            g = make(g._data.copy(), 0)  # it may be kept
        found = without_recording(payload.contributions, state, slot, (g,), state.is_wanted)
        to, cotangents = [argument.slot for argument, _ in found], [c for _, c in found]
        del found  # which would refer to cotangents that nobody else has
        for k, argument in enumerate(to):
            shape = shape_of(argument)
            if state.placed and dtype_of(argument) == dtypes.float64:
                own = _owned(cotangents, k)
                if own is not None and own.shape == shape and state.take(argument, own):
                    continue
            state.contribute(argument, cotangents[k], shape, payload.op.name)
        return
    if words[at.RESULT]:
        result = make(PyObj_FromPtr(words[at.RESULT]), 0)
    slots: list[int] = []
    values: list[Tensor | None] = []
    for k in range(ARGUMENTS, dimensions, 2):
        word = words[k]
        kind = word >> 32
        slots.append(reference_in(word))
        if kind == at.ARRAY:
            values.append(make(PyObj_FromPtr(words[k + 1]), 0))
        else:
            values.append(make(as_float(words[k + 1]), 0) if kind == at.NUMBER else None)
    del slots[payload.inputs :]
    if state.marks is None:
        needs = [argument >= 0 for argument in slots]
    else:
        needs = [bool(TAPE.wants(_ADDRESS, state.address, argument)) for argument in slots]
    context = payload.context(values, result, needs, PLAIN)
    _add(state, context, slots, payload.op, payload.op.vjp(g, context))


def _add(
    state: Sweep, context: Context, slots: list[int], op: Structural, cotangents: Sequence[Tensor | None], first: int = 0
) -> None:
    """Add a vjp's cotangents, from the one with this number on, to the adjoints of its inputs' rows."""
    if not isinstance(cotangents, (tuple, list)):
        cotangents = list(cotangents)
    for k in range(first, min(len(cotangents), len(slots))):
        if cotangents[k] is None or not context.needs[k]:
            continue
        expected = context.shapes[k]
        if state.placed and context.dtypes[k] == dtypes.float64:
            own = _owned(cotangents, k)
            if own is not None and own.shape == expected and state.take(slots[k], own):
                continue
        data: Any = cotangents[k]._data  # type: ignore[union-attr]
        if type(data) is float:
            fits = not expected
        else:
            if data.dtype not in FLOATS:
                data = data.astype(np.float64)
            fits = data.shape == expected
        if not fits or TAPE.add_to_adjoint(_ADDRESS, state.address, slots[k], id(data)) < 0:
            raise wrong_shape(op.name, data, expected)


def _references(cotangents: Sequence[Tensor | None], k: int) -> tuple[int, int]:
    """How often the k-th cotangent and its data are referred to."""
    cotangent = cotangents[k]
    data = cotangent._data  # type: ignore[union-attr]
    return getrefcount(cotangent), getrefcount(data)


_ALONE = _references((make(np.empty(1), 0),), 0)


def _owned(cotangents: Sequence[Tensor | None], k: int) -> np.ndarray | None:
    """The data of a cotangent as an array that nobody else has, and that a gradient may stand in; None if it is no such array."""
    cotangent = cotangents[k]
    assert cotangent is not None
    data = cotangent._data
    if type(data) is not np.ndarray or data.dtype is not dtypes.float64 or not data.flags.c_contiguous or not data.flags.writeable:
        return None
    if data.base is not None and not owns_memory(data.base):
        return None
    del cotangent, data
    return cotangents[k]._data if _references(cotangents, k) == _ALONE else None  # type: ignore[union-attr]
