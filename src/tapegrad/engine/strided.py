"""Blocks of strided arrays: to contiguous float64 and back. Broadcasting, views, sums and mixed dtypes all go through these.

`dimensions` and `strides` (bytes) are addresses of int64 words, `counter` is room for ``rank`` words. Elements are visited in
C order starting at flat index `start`, so sums have one fixed order.
"""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    f32,
    f64,
    float_of,
    load_f32,
    load_f64,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    store_f32,
    store_f64,
    u8,
)


@inline
def read(address, number):
    """One element of any supported dtype as float64."""
    if number == FLOAT64:
        return load_f64(address)
    if number == FLOAT32:
        return float(load_f32(address))
    if number == INT64:
        return float(load_i64(address))
    if number == INT32:
        return float(load_i32(address))
    if number == INT16:
        return float(load_i16(address))
    if number == INT8:
        return float(load_i8(address))
    return float(load_u8(address))


@inline
def is_dense(rank, dimensions, strides):
    """Whether a map (strides in elements) visits consecutive elements, one after the other."""
    step = 1
    for d in range(rank - 1, -1, -1):
        extent = dimensions[d]
        if extent != 1 and strides[d] != step:
            return False
        step *= extent
    return True


@inline
def locate(rank, dimensions, strides, counter, start):
    """Set the counter to flat index `start` and return the byte offset there."""
    offset = 0
    for d in range(rank - 1, -1, -1):
        extent = dimensions[d]
        above = start // extent
        index = start - above * extent
        counter[d] = index
        offset += index * strides[d]
        start = above
    return offset


@inline
def carry(rank, dimensions, strides, counter, offset):
    """Move a counter whose last index ran over to the next row; the new byte offset."""
    d = rank - 1
    while d > 0 and counter[d] == dimensions[d]:
        offset += strides[d - 1] - counter[d] * strides[d]
        counter[d] = 0
        counter[d - 1] += 1
        d -= 1
    return offset


@inline
def after_run(rank, dimensions, strides, counter, offset, run, has_more):
    """Move a counter on by a run along the last dimension; the new byte offset."""
    last = rank - 1
    index = counter[last] + run
    counter[last] = index
    offset += run * strides[last]
    if index == dimensions[last] and has_more:
        offset = carry(rank, dimensions, strides, counter, offset)
    return offset


@kernel("void(int64,int64,int64,int64,Words,Words,Words,int64,int64)")
def gather_block(target, source, number, rank, dimensions, strides, counter, start, count):
    """Copy `count` elements from flat index `start` on into the contiguous float64 block at `target`."""
    offset = locate(rank, dimensions, strides, counter, start)
    last = rank - 1
    extent = dimensions[last]
    step = strides[last]
    done = 0
    while done < count:
        index = counter[last]
        run = min(count - done, extent - index)
        at, out = source + offset, f64(target + 8 * done, run)
        if step == 0:
            value = read(at, number)
            for j in range(run):
                out[j] = value
        elif number == FLOAT64 and step == 8:
            flat = f64(at, run)
            for j in range(run):
                out[j] = flat[j]
        elif number == FLOAT32 and step == 4:
            flat32 = f32(at, run)
            for j in range(run):
                out[j] = flat32[j]
        elif number == FLOAT64:
            for j in range(run):
                out[j] = load_f64(at + j * step)
        else:
            for j in range(run):
                out[j] = read(at + j * step, number)
        done += run
        offset = after_run(rank, dimensions, strides, counter, offset, run, done < count)


@inline
def block_sum(values, start, count):
    """Sum of a block in four interleaved partial sums: a fixed order that still keeps the adders busy."""
    a = b = c = d = 0.0
    j = start
    stop = start + count
    while j + 4 <= stop:
        a += values[j]
        b += values[j + 1]
        c += values[j + 2]
        d += values[j + 3]
        j += 4
    total = (a + b) + (c + d)
    while j < stop:
        total += values[j]
        j += 1
    return total


@inline
def add_at(address, number, value):
    """Add to the number at an address."""
    if number == FLOAT64:
        store_f64(address, load_f64(address) + value)
    else:
        store_f32(address, (load_f32(address) + value))


@kernel("void(int64,int64,int64,int64,Words,Words,Words,int64,int64)")
def scatter_block(target, number, source, rank, dimensions, strides, counter, start, count):
    """Add `count` contiguous float64 values to the strided places from flat index `start` on."""
    offset = locate(rank, dimensions, strides, counter, start)
    last = rank - 1
    extent = dimensions[last]
    step = strides[last]
    done = 0
    while done < count:
        index = counter[last]
        run = min(count - done, extent - index)
        at, values = target + offset, f64(source + 8 * done, run)
        if step == 0:
            add_at(at, number, block_sum(values, 0, run))
        elif number == FLOAT64 and step == 8:
            flat = f64(at, run)
            for j in range(run):
                flat[j] += values[j]
        else:
            for j in range(run):
                add_at(at + j * step, number, values[j])
        done += run
        offset = after_run(rank, dimensions, strides, counter, offset, run, done < count)


@kernel("void(int64,int64,int64,int64)")
def fill_block(address, number, bits, count):
    """Set a contiguous piece of an adjoint to one value, given by its bits as float64."""
    value = float_of(bits)
    if bits == 0:  # the same bytes in either type: the compiler makes this a memset
        out8 = u8(address, (8 if number == FLOAT64 else 4) * count)
        for j in range(len(out8)):
            out8[j] = 0
    elif number == FLOAT64:
        out = f64(address, count)
        for j in range(count):
            out[j] = value
    else:
        out32 = f32(address, count)
        for j in range(count):
            out32[j] = value


@inline
def flat_copy(source, number, start, count, scratch):
    """Copy `count` elements of a contiguous piece from flat index `start` on."""
    block = f64(scratch, count)
    if number == FLOAT64:
        values = f64(source + 8 * start, count)
        for j in range(count):
            block[j] = values[j]
    else:
        values32 = f32(source + 4 * start, count)
        for j in range(count):
            block[j] = values32[j]


@inline
def flat_block(source, number, start, count, scratch):
    """Address of `count` float64 values of a contiguous piece from flat index `start` on: where they are, or a copy."""
    if number == FLOAT64:
        return source + 8 * start
    flat_copy(source, number, start, count, scratch)
    return scratch


@kernel("void(int64,int64,int64,int64,int64)")
def deliver(address, number, first, source, count):
    """Write (`first`) or add a contiguous block of float64 contributions to a contiguous piece of an adjoint."""
    values = f64(source, count)
    if number == FLOAT64:
        out = f64(address, count)
        if first:
            for j in range(count):
                out[j] = values[j]
        else:
            for j in range(count):
                out[j] += values[j]
    else:
        out32 = f32(address, count)
        if first:
            for j in range(count):
                out32[j] = values[j]
        else:
            for j in range(count):
                out32[j] += values[j]


@inline
def scaled_block(source, count, scale, scratch):
    """Address of the values times `scale`: where they are, if that changes nothing, or a copy."""
    if scale == 1.0:
        return source
    values, block = f64(source, count), f64(scratch, count)
    if source == scratch:  # a loop of its own: on one block for two the compiler's vectorised loop is not used
        for j in range(count):
            block[j] *= scale
    else:
        for j in range(count):
            block[j] = values[j] * scale
    return scratch
