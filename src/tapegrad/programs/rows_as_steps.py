"""Rows as steps: what each entry that writes rows was given says how its value came about."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.programs.forward_values import forward_of
from tapegrad.programs.given_again import is_operation_given_again
from tapegrad.programs.known_values import KnownValues
from tapegrad.programs.steps import Cast, Copied, Gathered, Joined, Scattered, Structured, Summed, Value, Viewed
from tapegrad.recording.strided_maps import scattered, strided
from tapegrad.recording.structural import Payload
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import FLOATS

__all__ = ["AS_STEPS"]

# Names of scatters into constants that are made of shapes alone.
PLACING = frozenset(["ConstantPadNdBackward0"])


# Names of writes of whole arrays.
WRITES = frozenset(["CopyBackwards", "ZeroBackward0", "FillBackward2", "FillBackward3"])
CAST = "ToCopyBackward0"
SENDING = frozenset(["CopyBackwards", "FillBackward3"])  # which send a derivative to what is written, their second input


# The object of an address, in a third of the time that `ctypes.cast` takes.
object_at: Callable[[int], Any] = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(("Py_NewRef", ctypes.pythonapi))


def words_at(address: int, count: int) -> list[int]:
    """So many words from an address on."""
    return list((ctypes.c_int64 * count).from_address(address))


class _Operand:
    """Handle and data, as entries that write rows are given them."""

    __slots__ = ("_data", "_row")

    def __init__(self, row: int, data: Any) -> None:
        self._row, self._data = row, data


def source_of(known: KnownValues, handle: int, data: Any) -> Value | None:
    """What is known of an operand."""
    return known.value_of(_Operand(handle, data))


def view_row(known: KnownValues, slot: int, name: int, x_row: int, px: int, base: int, taken: int, pz: int) -> None:
    """A view, or an element of an array."""
    a, view, z = object_at(px), object_at(taken), object_at(pz)
    source = source_of(known, x_row, a)
    if source is None:
        return
    if type(z) is float:
        found = known.number()
        if view.base is None or not np.may_share_memory(view, a):
            known.refuse("an element of a strided array")
        known.note(Copied(Value(view, of=source), found))
    elif np.may_share_memory(z, a) or not z.size:
        found = Value(z, of=source)
        known.note(Viewed(found))
    else:
        known.refuse("a view of other memory")
        return
    known.know(z, found, slot)


def map_row(
    known: KnownValues, slot: int, scatters: int, name: int, x_row: int, px: int, geometry: int, scale: float, pz: int
) -> None:
    """A strided map."""
    a, z = object_at(px), object_at(pz)
    source = source_of(known, x_row, a)
    rank, offset = words_at(geometry, 2)
    words = words_at(geometry + 16, 2 * rank)
    dims, strides = words[:rank], words[rank:]
    if source is None:
        return
    if np.asarray(z).dtype not in FLOATS or not np.asarray(z).flags.c_contiguous:
        known.refuse("a map of another dtype or order of elements")
        return
    found = known.place_of(z)
    if scatters:
        shape = np.shape(z)
        if TAPE.names[name] in PLACING:
            known.note(Copied(source, Value(strided(z.reshape(-1), dims, strides, offset)), dims))
        elif np.any(np.asarray(z) != scattered(np.asarray(a), dims, strides, offset, scale, shape)):
            known.refuse("values among constants")
            return
        else:
            known.note(Scattered(source, lambda x: scattered(x, dims, strides, offset, scale, shape), found))
    else:
        known.note(Gathered(source, dims, strides, offset, scale, found))
    known.know(z, found, slot)


def reduce_row(known: KnownValues, slot: int, name: int, x_row: int, px: int, bits: int, scale: float, pz: int) -> None:
    """A sum over axes."""
    a, z = object_at(px), object_at(pz)
    source = source_of(known, x_row, a)
    if source is None:
        return
    rank = np.ndim(a)
    axes = tuple(d for d in range(rank) if bits == -1 or bits >> min(d, 63) & 1)
    count = math.prod(np.shape(a)[d] for d in axes)
    found = known.place_of(z)
    divisor = 1 if scale == 1.0 else count if count and scale == 1.0 / count else 0
    known.note(Summed(source, None if bits == -1 else axes, divisor, scale, found))
    known.know(z, found, slot)


def join_row(known: KnownValues, slot: int, name: int, inputs: int, data: int, at: int, pz: int) -> None:
    """A concatenation."""
    z, arrays = object_at(pz), object_at(data)
    sources = [source_of(known, t._row, a) for t, a in zip(object_at(inputs), arrays, strict=True)]
    if None in sources or z.dtype not in FLOATS or not z.flags.c_contiguous or not z.size:
        known.refuse("a concatenation of another dtype or order of elements, or of nothing")
        return
    found, outer = Value(z), math.prod(z.shape[:at])
    widths = [1 if type(a) is float else a.size // outer for a in arrays]
    filled = [(value, width) for value, width in zip(sources, widths, strict=True) if value is not None and width]
    known.note(Joined([value for value, _ in filled], [width for _, width in filled], found))
    known.know(z, found, slot)


def host_row(
    known: KnownValues,
    slot: int,
    name: int,
    count: int,
    handles: int,
    objects: int,
    save: int,
    payload_at: int,
    saves: int,
    pz: int,
) -> None:
    """An operation whose derivative is Python."""
    payload, z = object_at(payload_at), object_at(pz)
    data = [object_at(o) for o in words_at(objects, count)]
    if TAPE.names[name] in WRITES:  # `Recorder.overwriting` is told next
        known.link = "copy" if TAPE.names[name] in SENDING and words_at(handles, 2)[1] else ""
        return
    if TAPE.names[name] == "CopySlices":  # what was written into a part stands in the whole
        written = known.value_at(z)
        if written is None:
            known.refuse("it writes into what programs do not know")
        else:
            known.know(z, written, slot)
        return
    if TAPE.names[name] == CAST:
        source = source_of(known, words_at(handles, 1)[0], data[0])
        if source is not None:
            found = known.place_of(z)
            known.note(Cast(source, found))
            known.know(z, found, slot)
        return
    forward = forward_of(payload, data[payload.inputs :], np.shape(z)) if type(payload) is Payload else None
    chosen = [known.value_at(a) for a in data[payload.inputs :]]
    told = known.value_at(z) if type(z) is not float else None
    if told is not None and None not in chosen:  # by whoever computed it
        known.know(z, told, slot)
        return
    if None in chosen and not known.places_are_given:
        known.refuse(f"{TAPE.names[name]} at places that may depend on values")
        return
    keeps_a_number = any(payload.op.uses) and any(type(a) is float for a in data) if type(payload) is Payload else False
    given = data[: payload.inputs]
    if forward is None or keeps_a_number or not is_operation_given_again(forward, given, z):
        known.refuse(f"{TAPE.names[name]} is not run again by programs yet")
        return
    operands = [source_of(known, h, a) for h, a in zip(words_at(handles, payload.inputs), data, strict=False)]
    if None in operands:
        return
    found = known.place_of(z)
    sources = [value for value in operands if value is not None]
    step = Structured(TAPE.names[name], forward, sources, found, payload, data[payload.inputs :], chosen)
    known.note(step)
    known.kept.append(data)
    known.know(z, found, slot)


AS_STEPS: dict[str, Callable[..., None]] = {
    "view_row": view_row,
    "map_row": map_row,
    "reduce_row": reduce_row,
    "join_row": join_row,
    "host_row": host_row,
}
