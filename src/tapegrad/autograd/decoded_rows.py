"""Rows of the tape as Python values: what the recorded pass, host rows and error messages read."""

import struct
from _ctypes import PyObj_FromPtr
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.engine import layout as at
from tapegrad.named_tuples import Named
from tapegrad.rules.table import RULES
from tapegrad.tape.tape import TAPE

__all__ = [
    "Argument",
    "Record",
    "arguments_in",
    "arguments_of",
    "dtype_of",
    "name_of",
    "object_at",
    "opcode_of",
    "origin",
    "payload_at",
    "record_of",
    "reference_in",
    "shape_of",
    "words_at",
]

_WORD, _FLOAT = struct.Struct("q"), struct.Struct("d")
_FLOAT64 = np.dtype(np.float64)
(_ONE,) = _WORD.unpack(_FLOAT.pack(1.0))
ARGUMENTS, DTYPE, NAME, PAYLOAD, WIDE = at.ARGUMENTS, at.DTYPE, at.NAME, at.PAYLOAD, at.WIDE
assert (at.LENGTH, at.NAME, at.PAYLOAD, at.DTYPE, at.RESULT, at.SCALE, ARGUMENTS) == (0, 1, 3, 5, 6, 7, 8)
_new: Any = tuple.__new__  # by its own class a named tuple takes twice as long
_FLOAT_TYPES: dict[int, np.dtype[Any]] = {at.FLOAT64: np.dtype(np.float64), at.FLOAT32: np.dtype(np.float32)}


class Argument(Named):
    """One argument of a row: the slot it refers to (-1 if untracked), how its value was saved, and the value's word."""

    __slots__ = ()
    slot: int
    kind: int
    saved: int


class Record(Named):
    """The record of a wide row."""

    __slots__ = ()
    name: str
    payload: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    result: int
    scale: float
    arguments: tuple[Argument, ...]
    extra: tuple[int, ...]


def opcode_of(slot: int) -> tuple[int, bool]:
    """Opcode and whether the row is wide."""
    code = TAPE.columns["opcode"].item(slot)
    return code & ~WIDE, code >= WIDE


def object_at(address: int) -> Any:
    """The Python object that a row owns."""
    return PyObj_FromPtr(address)


def payload_at(slot: int) -> Any:
    """The payload of a leaf or host row, without decoding the rest."""
    columns = TAPE.columns
    return PyObj_FromPtr(columns["side"].item(columns["first"].item(slot) + PAYLOAD))


def words_at(slot: int) -> list[int]:
    """The record of a wide row, as words."""
    columns = TAPE.columns
    start, side = columns["first"].item(slot), columns["side"]
    words: list[int] = side[start : start + side.item(start)].tolist()
    return words


def reference_in(word: int) -> int:
    """The slot that an argument's first word refers to, -1 if untracked."""
    return ((word & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


def record_of(slot: int) -> Record:
    """The record of a wide row, decoded."""
    words = words_at(slot)
    _, name, _, payload, _, form, result, scale = words[:ARGUMENTS]
    dimensions = ARGUMENTS + 2 * (name >> 32)
    extra = dimensions + (form >> 8)
    arguments = arguments_in(words[ARGUMENTS:dimensions])
    return _new(
        Record,
        (
            TAPE.names[name & 0xFFFFFFFF],
            payload,
            _FLOAT_TYPES[form & 255],
            tuple(words[dimensions:extra]),
            result,
            1.0 if scale == _ONE else as_float(scale),
            arguments,
            tuple(words[extra:]),
        ),
    )


def arguments_in(words: list[int]) -> tuple[Argument, ...]:
    """Arguments whose words these are."""
    return tuple(
        [
            _new(Argument, (((word & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000, word >> 32, saved))
            for word, saved in zip(words[::2], words[1::2], strict=True)
        ]
    )


def as_float(word: int) -> float:
    """The float whose bits a word holds."""
    return float(_FLOAT.unpack(_WORD.pack(word))[0])


def arguments_of(slot: int) -> tuple[Argument, ...]:
    """Arguments of any row; inputs only, not the extra tensors of structural rows."""
    opcode, wide = opcode_of(slot)
    columns = TAPE.columns
    if wide:
        side, start = columns["side"], columns["first"].item(slot)
        count = payload_at(slot).inputs if opcode == at.HOST else side.item(start + at.NAME) >> 32
        return arguments_in(side[start + ARGUMENTS : start + ARGUMENTS + 2 * count].tolist())
    found = []
    for column in ("first", "second")[: max(1, len(RULES[opcode].args))]:
        reference = int(columns[column][slot])
        found.append(Argument(max(reference, -1), at.ROW if reference >= 0 else at.NUMBER, 0))
    return tuple(found)


def origin(slot: int) -> int:
    """The row behind aliases: the same tensor with the value it had first."""
    while True:
        if opcode_of(slot) != (0, False):
            return slot
        slot = int(TAPE.columns["first"][slot])


def shape_of(slot: int) -> tuple[int, ...]:
    """Shape of a row's result, without decoding the rest: a third of the time."""
    columns = TAPE.columns
    if not columns["opcode"].item(slot) & WIDE:
        return ()
    side, start = columns["side"], columns["first"].item(slot)
    rank = side.item(start + DTYPE) >> 8
    if not rank:
        return ()
    dimensions = start + ARGUMENTS + 2 * (side.item(start + NAME) >> 32)
    return tuple(side[dimensions : dimensions + rank].tolist())


def dtype_of(slot: int) -> np.dtype[Any]:
    """Dtype of a row's result and adjoint, in the same way."""
    columns = TAPE.columns
    if not columns["opcode"].item(slot) & WIDE:
        return _FLOAT64
    return _FLOAT_TYPES[columns["side"].item(columns["first"].item(slot) + DTYPE) & 255]


def name_of(slot: int) -> str:
    """PyTorch's name of the node that a row stands for."""
    opcode, _ = opcode_of(slot)
    if opcode == at.LEAF:
        return "AccumulateGrad"
    if opcode >= at.STRUCTURAL:
        return record_of(slot).name
    return name_of_rule(opcode, lambda: [argument.slot < 0 and argument.kind == at.NUMBER for argument in arguments_of(slot)])


def name_of_rule(opcode: int, numbers: Callable[[], Sequence[bool]]) -> str:
    """PyTorch's name of the node of an elementwise operation; `numbers` tells which operands are plain numbers."""
    names = RULES[opcode].node.split()
    if len(names) == 1:
        return names[0]
    plain = numbers()
    return names[2] if plain[-1] else names[1] if plain[0] else names[0]
