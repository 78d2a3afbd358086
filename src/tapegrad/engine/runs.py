"""Runs of elements at addresses: copied, added, cleared.

Loops over arrays of their own, counted from zero, are those that the compiler vectorises: an index into the middle of an array
might be negative, and count from the end.
"""

from tapegrad.compilation.jit import inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import f32, f64, i64, u8


@inline
def copy_run(to, at, count, step, wide):
    """Elements of so many bytes, a step apart, to neighbouring ones; of other than 4 and 8 bytes, neighbours only."""
    if wide == 8:
        out, values = f64(to, count), f64(at, count * step)
        if step == 1:
            for j in range(count):
                out[j] = values[j]
        else:
            for j in range(count):
                out[j] = values[j * step]
    elif wide == 4:
        out32, values32 = f32(to, count), f32(at, count * step)
        if step == 1:
            for j in range(count):
                out32[j] = values32[j]
        else:
            for j in range(count):
                out32[j] = values32[j * step]
    else:
        out8, values8 = u8(to, count * wide), u8(at, count * wide)
        for j in range(count * wide):
            out8[j] = values8[j]


@inline
def add_apart(out, values, count, step):
    """Neighbouring elements added to those a step apart."""
    if step == 1:
        for j in range(count):
            out[j] += values[j]
    else:
        for j in range(count):
            out[j * step] += values[j]


@inline
def add_run(number, to, at, count, step):
    """The same at addresses, of float64, float32 or int64."""
    if number == FLOAT64:
        add_apart(f64(to, count * step), f64(at, count), count, step)
    elif number == FLOAT32:
        add_apart(f32(to, count * step), f32(at, count), count, step)
    else:
        add_apart(i64(to, count * step), i64(at, count), count, step)


@inline
def clear_run(to, count):
    """Bytes set to zero."""
    out = u8(to, count)
    for j in range(count):
        out[j] = 0


@inline
def set_all(out, count, value):
    """The same number everywhere."""
    for j in range(count):
        out[j] = value
