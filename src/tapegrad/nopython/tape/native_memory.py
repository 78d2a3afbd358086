"""Tapes of derivatives that compiled code calls: their memory is taken, grown and given back without Python.

A tape that no call uses stands in one of the slots of a pool, from which calls in several threads take it by an atomic exchange.
Its header has no owner in Python; where its columns are full, compiled code calls the function at the address that the header has.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.core.extending import intrinsic

from tapegrad.compilation.memory_types import at_address
from tapegrad.engine.memory import load_i64, store_i64
from tapegrad.nopython.numba_interface.linking import part
from tapegrad.nopython.tape.columns import (
    BAR_COLUMN,
    BAR_LIMIT,
    FIRST,
    GROW,
    LIMIT,
    MOST,
    ODD,
    PAIRS,
    PARTIAL_COLUMN,
    ROW_COLUMN,
    ROWS,
    WORDS,
)
from tapegrad.nopython.tape.held_memory import EMPTYING, NATIVE, NATIVE_BYTES, NATIVE_GROW, NATIVE_SLOTS
from tapegrad.nopython.tape.lane_sweeps import PUSH
from tapegrad.nopython.tape.reverse_sweep import sweep
from tapegrad.nopython.tape.sweep_entries import Recording, f64

__all__ = ["borrow", "give", "prepare", "pushed", "swept"]

I8, I64 = ir.IntType(8), ir.IntType(64)
WORD = 8
LAST_SLOT = NATIVE.size


@intrinsic
def pool(typingctx: Any) -> Any:
    """The address of the pool. Code with it is of this process alone, which Numba's cache is told."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ptrtoint(context.add_dynamic_addr(builder, NATIVE.ctypes.data, info="tapes of tapegrad"), I64)

    return types.int64(), write


@intrinsic
def exchanged(typingctx: Any, address: Any, value: Any) -> Any:
    """The word at an address, which has another value from now on."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.atomic_rmw("xchg", builder.inttoptr(args[0], I64.as_pointer()), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), write


@intrinsic
def filled(typingctx: Any, address: Any, value: Any) -> Any:
    """Whether the word at an address was zero; then it has this value from now on."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], I64.as_pointer())
        return builder.extract_value(builder.cmpxchg(place, I64(0), args[1], "seq_cst", "seq_cst"), 1)

    return types.boolean(types.int64, types.int64), write


@intrinsic
def added(typingctx: Any, address: Any, value: Any) -> Any:
    """Add to the word at an address; what it was before."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", builder.inttoptr(args[0], I64.as_pointer()), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), write


@intrinsic
def _allocate(typingctx: Any, size: Any) -> Any:
    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ptrtoint(context.nrt.allocate(builder, args[0]), I64)

    return types.int64(types.int64), write


@intrinsic
def _free(typingctx: Any, address: Any) -> Any:
    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        context.nrt.free(builder, builder.inttoptr(args[0], I8.as_pointer()))
        return context.get_dummy_value()

    return types.none(types.int64), write


@part
def allocated(size):
    """The address of new memory; 0 if there is none."""
    address = _allocate(size)
    if address != 0:
        added(pool() + WORD * NATIVE_BYTES, size)
    return address


@part
def freed(address, size):
    """Give memory back."""
    if address != 0:
        _free(address)
        added(pool() + WORD * NATIVE_BYTES, -size)


@part
def word(header, number):
    """A word of a header."""
    return load_i64(header + WORD * number)


@part
def set_word(header, number, value):
    """Give a word of a header a value."""
    store_i64(header + WORD * number, value)


@part
def copied(target, source, size):
    """Copy bytes, eight at a time; both ends are those of words."""
    for k in range(0, size, WORD):
        store_i64(target + k, load_i64(source + k))


def grow(header, count):
    """Make room for `count` more pairs, if there is any to be had; who called it looks."""
    used = word(header, PAIRS)
    needed = used + count
    if needed + word(header, ROWS) > MOST:
        return
    capacity = min(max(needed, 2 * used, FIRST) + ODD, MOST)
    rows = allocated(4 * (capacity + ODD))
    partials = allocated(8 * capacity)
    if rows == 0 or partials == 0:
        freed(rows, 4 * (capacity + ODD))
        freed(partials, 8 * capacity)
        return
    copied(rows, word(header, ROW_COLUMN), (4 * used + 7) // 8 * 8)
    copied(partials, word(header, PARTIAL_COLUMN), 8 * used)
    forget_columns(header)
    set_word(header, ROW_COLUMN, rows)
    set_word(header, PARTIAL_COLUMN, partials)
    set_word(header, LIMIT, capacity)


@part
def forget_columns(header):
    """Give the columns of pairs back."""
    capacity = word(header, LIMIT)
    freed(word(header, ROW_COLUMN), 4 * (capacity + ODD))
    freed(word(header, PARTIAL_COLUMN), 8 * capacity)


@part
def dissolved(header):
    """Give all memory of a tape back."""
    forget_columns(header)
    freed(word(header, BAR_COLUMN), 8 * word(header, BAR_LIMIT))
    freed(header, WORD * WORDS)


@part
def borrow():
    """An empty tape: one that no call uses, or a new one."""
    here = pool()
    header = 0
    for k in range(NATIVE_SLOTS, LAST_SLOT):
        place = here + WORD * k
        if load_i64(place) != 0:
            header = exchanged(place, 0)
            if header != 0:
                break
    if header == 0:
        header = allocated(WORD * WORDS)
        if header == 0:
            raise MemoryError("there is no memory for the tape of a compiled function")
        for k in range(WORDS):
            set_word(header, k, 0)
        set_word(header, GROW, load_i64(here + WORD * NATIVE_GROW))
    set_word(header, ROWS, 0)
    set_word(header, PAIRS, 0)
    return header


@part
def give(header):
    """Keep a tape for calls to come, or give its memory back where enough are kept."""
    here = pool()
    for k in range(NATIVE_SLOTS, LAST_SLOT):
        if filled(here + WORD * k, header):
            return
    dissolved(header)


def emptied():
    """Give the memory of all tapes back that no call uses."""
    here = pool()
    for k in range(NATIVE_SLOTS, LAST_SLOT):
        header = exchanged(here + WORD * k, 0)
        if header != 0:
            dissolved(header)


_reverse = part(sweep.function)
_push, _push_several = part(PUSH[1].function), part(PUSH[8].function)
_as_recording = at_address(Recording)


@part
def room(header, count):
    """The address of memory for so many numbers, which the next one who asks for it of this tape gets too."""
    if word(header, BAR_LIMIT) < count:
        freed(word(header, BAR_COLUMN), 8 * word(header, BAR_LIMIT))
        set_word(header, BAR_COLUMN, 0)
        set_word(header, BAR_LIMIT, 0)
        most = count + count // 8
        found = allocated(8 * most)
        if found == 0:
            raise MemoryError("there is no memory for the derivative of a compiled function")
        set_word(header, BAR_COLUMN, found)
        set_word(header, BAR_LIMIT, most)
    return word(header, BAR_COLUMN)


@part
def swept(header, row):
    """The address of the adjoints of all rows, from that of one."""
    last = word(header, ROWS)
    count = last + 1
    bars = room(header, count)
    bar = f64(bars, count)
    for k in range(count):
        bar[k] = 0.0
    if 0 < row <= last:
        bar[row] = 1.0
        _reverse(_as_recording(header), bars)
    return bars


@part
def pushed(header, outs, directions, products):
    """Products of the Jacobian with the columns of a matrix, those of some rows; eight at once where there are several."""
    inputs, width = directions.shape
    results = outs.size
    if results == 0 or width == 0:
        return
    lanes = 1 if width == 1 else 8
    dots = room(header, (word(header, ROWS) + 1) * lanes)
    recording, ends = _as_recording(header), outs.ctypes.data
    given, found = directions.ctypes.data, products.ctypes.data
    if lanes == 1:
        _push(recording, dots, ends, results, given, inputs, found, width, 0, width)
    else:
        _push_several(recording, dots, ends, results, given, inputs, found, width, 0, width)


_kept: list[Any] = []  # the code at the addresses that are handed out


@functools.cache
def prepare() -> None:
    """Make the pool usable; whoever compiles what takes tapes from it asks for that first."""
    made = numba.cfunc(types.void(types.int64, types.int64))(grow)
    NATIVE[NATIVE_GROW] = made.address
    _kept.append(made)
    EMPTYING.append(_empty)


def _empty() -> None:
    if not _emptying:
        made = numba.cfunc(types.void())(emptied)
        _kept.append(made)
        _emptying.append(ctypes.CFUNCTYPE(None)(made.address))
    _emptying[0]()


_emptying: list[Any] = []
