"""What a structural row is: for each of its arguments a strided linear map (a view, a sum, a place in something larger).

A row of gathers reads its argument in strides, ``z[i] = scale * x[offset + strides . i]``, and others write in strides,
``z[offset + strides . i] += scale * x[i]``. `map_of` alone says which map that is: the step of the plain sweep, which is here, the
recorded sweep (by `maps_of_row`) and linear tapes turn the same map round.
"""

from tapegrad.compilation.jit import entry, inline, kernel
from tapegrad.compilation.memory_types import from_element
from tapegrad.engine.adjoints import (
    adjoint_address,
    claim,
    contribute_uniform,
    counter_of,
    fill,
    read_first,
    scratch_block,
    sums_exactly,
    target_size,
    target_type,
)
from tapegrad.engine.layout import *
from tapegrad.engine.memory import call5, call9, float_of
from tapegrad.engine.owned import argument_count, argument_row, record_dimensions
from tapegrad.engine.plan import record_of, wanted
from tapegrad.engine.strided import flat_block, is_dense, scaled_block
from tapegrad.engine.structs import doubles_at

SIDE_BY_SIDE = 8  # rows
LONG_RUN = 32  # elements: shorter runs are gathered to a block first, which is a call for 512 elements instead of one for each run


@inline
def runs_of(rank, dimensions, strides):
    """A map as runs of neighbours, a step apart and in order: how many, their length and the step; none if they are short."""
    length, count, d = 1, 1, rank - 1
    while d >= 0 and (dimensions[d] == 1 or strides[d] == length):
        length *= dimensions[d]
        d -= 1
    step = length
    while d >= 0:
        if dimensions[d] != 1:
            if count == 1:
                step = strides[d]
            if strides[d] != count * step:
                return 0, 0, 0
            count *= dimensions[d]
        d -= 1
    if length < (1 if count == 1 else LONG_RUN) or step < length:
        return 0, 0, 0
    return count, length, step


@inline
def clear_around_runs(sweep, address, number, size, offset, count, length, step):
    """Zeros in the elements of an array that runs leave out."""
    item, end = 8 if number == FLOAT64 else 4, offset
    fill(sweep, address, number, 0.0, offset)
    for run in range(count):
        end = offset + run * step + length
        if step > length and run < count - 1:
            fill(sweep, address + item * end, number, 0.0, step - length)
    fill(sweep, address + item * end, number, 0.0, size - end)


@inline
def put_in_runs(address, size, offset, count, length, step, value):
    """One number in the elements of an array that are in runs, and zeros in all others."""
    out, end = doubles_at(address), 0
    for run in range(count):
        start = offset + run * step
        for j in range(end, start):
            out[j] = 0.0
        end = start + length
        for j in range(start, end):
            out[j] = value
    for j in range(end, size):
        out[j] = 0.0


@inline
def byte_strides(out, strides, rank, item):
    """Strides in bytes from strides in elements."""
    for d in range(rank):
        out[d] = item * strides[d]


@inline
def map_elements(rank, dimensions):
    """Number of elements of these dimensions."""
    elements = 1
    for d in range(rank):
        elements *= dimensions[d]
    return elements


@inline
def joined_width(record, kind):
    """How many elements the arguments of a concatenation have together at each outer index."""
    inner = 0
    if kind == JOIN:
        widths = from_element(record_dimensions(record), record.dtype >> 8)
        for k in range(argument_count(record)):
            inner += widths[k]
    return inner


@inline
def map_of(record, kind, k, inner, before, room):
    """The map of argument k: rank, offset, dimensions, strides in elements, and where that of the next argument begins.

    A concatenation's arguments are side by side: `inner` elements together at each outer index, `before` before this one. Its
    dimensions and strides are written to `room`.
    """
    geometry = from_element(record_dimensions(record), record.dtype >> 8)
    if kind == JOIN:
        width = geometry[k]
        room[0], room[1] = record.size // inner if inner > 0 else 0, width
        room[2], room[3] = inner, 1
        return 2, before, room, from_element(room, 2), before + width
    rank = geometry[0]
    return rank, geometry[1], from_element(geometry, 2), from_element(geometry, 2 + rank), 0


@inline
def map_room(sweep):
    """Room for the dimensions and strides of a map that a record does not hold."""
    return from_element(sweep.work, 200)


@entry("int64(Tape,int64,Words)")
def maps_of_row(tape, slot, out):
    """For each argument of a structural row: rank and offset of its map, dimensions, strides."""
    record, kind = record_of(tape, slot), tape.opcode[slot] - WIDE
    inner, before = joined_width(record, kind), 0
    for k in range(argument_count(record)):
        rank, offset, dimensions, strides, before = map_of(record, kind, k, inner, before, from_element(out, 2))
        out[0], out[1] = rank, offset
        for d in range(rank):
            out[2 + d], out[2 + rank + d] = dimensions[d], strides[d]
        out = from_element(out, 2 + 2 * rank)
    return 0


@inline
def is_large_transpose(rank, offset, dimensions, strides, size):
    """Whether a map reads a large matrix by columns."""
    if rank != 2 or offset != 0 or size <= LARGEST_BLOCK or dimensions[0] * dimensions[1] != size:
        return False
    return strides[0] == 1 and strides[1] == dimensions[0] and dimensions[1] != 1


@inline
def put_transposed(source, target, rows, columns, value, scale):
    """``value + scale * x``, transposed: rows are read side by side, so that what is written fills lines of the cache."""
    for first in range(0, rows, SIDE_BY_SIDE):
        count = min(SIDE_BY_SIDE, rows - first)
        for j in range(columns):
            x, out = doubles_at(source + 8 * (first * columns + j)), doubles_at(target + 8 * (j * rows + first))
            for i in range(count):
                out[i] = value + scale * x[i * columns]


@inline
def scatter_adjoint(tape, sweep, slot, adjoint, number, rank, offset, dimensions, strides, scale):
    """``x_bar[offset + strides . i] += scale * z_bar[i]``."""
    own, size, elements = target_type(tape, slot), target_size(tape, slot), map_elements(rank, dimensions)
    if own == FLOAT64 and number == FLOAT64 and is_large_transpose(rank, offset, dimensions, strides, size):
        word = sweep.offset[slot]
        if word & (UNWRITTEN | UNIFORM) != 0:
            address = adjoint_address(sweep, word)
            value = 0.0 if word & UNWRITTEN else read_first(address, FLOAT64)
            sweep.offset[slot] = word - (UNWRITTEN if word & UNWRITTEN else UNIFORM)
            put_transposed(adjoint, address, dimensions[0], dimensions[1], value, scale)
            return
    address, first = claim(tape, sweep, slot)
    if first and address == adjoint and elements > 0:  # the row only passes elements on, and they stand there already
        return
    item = 8 if own == FLOAT64 else 4
    counter, block, kernels = counter_of(sweep), scratch_block(sweep, 0), sweep.kernels
    target, runs, length, step = address + item * offset, 0, 0, 0
    if elements > 0:
        runs, length, step = runs_of(rank, dimensions, strides)
    if first and runs > 0:
        clear_around_runs(sweep, address, own, size, offset, runs, length, step)
    elif first:
        fill(sweep, address, own, 0.0, size)
    for run in range(runs):
        source, to = adjoint + run * length * (8 if number == FLOAT64 else 4), target + item * run * step
        for start in range(0, length, BLOCK):
            count = min(BLOCK, length - start)
            values = scaled_block(flat_block(source, number, start, count, block), count, scale, block)
            call5(kernels[DELIVER], to + item * start, own, 1 if first else 0, values, count)
    if runs > 0:
        return
    # What goes to few elements of float32 is added up in float64, so that it is rounded once, and not for each row.
    sums, summed = scratch_block(sweep, SUM_BLOCKS), own != FLOAT64 and elements > size and size <= BLOCK
    if summed:
        fill(sweep, sums, FLOAT64, 0.0, size)
        target, item = sums + 8 * offset, 8
    byte_strides(sweep.work, strides, rank, item)
    for start in range(0, elements, BLOCK):
        count = min(BLOCK, elements - start)
        values = scaled_block(flat_block(adjoint, number, start, count, block), count, scale, block)
        call9(
            kernels[SCATTER_BLOCK], target, FLOAT64 if summed else own, values, rank, dimensions, sweep.work, counter, start, count
        )
    if summed:
        call5(kernels[DELIVER], address, own, 0, sums, size)


@inline
def gather_adjoint(tape, sweep, slot, adjoint, number, rank, offset, dimensions, strides, scale):
    """``x_bar[i] += scale * z_bar[offset + strides . i]``."""
    address, first = claim(tape, sweep, slot)
    own, elements, kernels = target_type(tape, slot), map_elements(rank, dimensions), sweep.kernels
    source, item = adjoint + offset * (8 if number == FLOAT64 else 4), 8 if own == FLOAT64 else 4
    counter, block = counter_of(sweep), scratch_block(sweep, 0)
    if first and rank == 1 and strides[0] == 0 and elements > 0:  # the sum of all elements
        sweep.scratch[0] = read_first(source, number) * scale
        contribute_uniform(tape, sweep, slot, address, block)
        return
    in_order = is_dense(rank, dimensions, strides)
    if in_order or (rank == 2 and strides[1] == 1 and dimensions[1] >= LONG_RUN):
        length = elements if in_order else dimensions[1]
        for run in range(elements // max(length, 1)):
            run_at = source + run * strides[0] * (8 if number == FLOAT64 else 4)
            for start in range(0, length, BLOCK):
                count = min(BLOCK, length - start)
                values = scaled_block(flat_block(run_at, number, start, count, block), count, scale, block)
                target = address + item * (run * length + start)
                call5(kernels[DELIVER], target, own, 1 if first else 0, values, count)
        return
    byte_strides(sweep.work, strides, rank, 8 if number == FLOAT64 else 4)
    direct = first and own == FLOAT64
    for start in range(0, elements, BLOCK):
        count = min(BLOCK, elements - start)
        values = address + 8 * start if direct else block
        call9(kernels[GATHER_BLOCK], values, source, number, rank, dimensions, sweep.work, counter, start, count)
        scaled_block(values, count, scale, values)
        if not direct:
            call5(kernels[DELIVER], address + item * start, own, 1 if first else 0, values, count)


@inline
def times_read(rank, dimensions, strides, size):
    """How often a map reads each of so many elements, in whichever order, if it reads all of them equally often; else 0.

    Its strides are those of a number system, up to sign, besides those that stretch it.
    """
    times, step = 1, 1
    for d in range(rank):
        if strides[d] == 0:
            times *= dimensions[d]
    if map_elements(rank, dimensions) != size * times:
        return 0
    while step != 0 and step < size:
        extent = 0
        for d in range(rank):
            if dimensions[d] != 1 and abs(strides[d]) == step:
                extent = dimensions[d]
        step *= extent
    return times if step == size else 0


@inline
def pass_one_number_on(tape, sweep, slot, kind, rank, dimensions, strides, value):
    """A first contribution that is the same for every element of the argument; False if this is none."""
    if sweep.offset[slot] & UNWRITTEN == 0:
        return False
    if kind == GATHER:
        times = times_read(rank, dimensions, strides, target_size(tape, slot))
        if times == 0:
            return False
        if times > 1:
            if target_type(tape, slot) != FLOAT64 or not sums_exactly(value, times):
                return False
            value = 0.0 + times * value
    address, _ = claim(tape, sweep, slot)
    sweep.scratch[0] = value
    contribute_uniform(tape, sweep, slot, address, scratch_block(sweep, 0))
    return True


@inline
def contribute_one_number(tape, sweep, slot, kind, rank, offset, dimensions, strides, value):
    """One number to each element that a map reads, or that it writes from, without an array of them."""
    address, first = claim(tape, sweep, slot)
    size, own, elements = target_size(tape, slot), target_type(tape, slot), map_elements(rank, dimensions)
    item = 8 if own == FLOAT64 else 4
    target, runs, length, step = address, 1, elements, elements
    if kind == GATHER:
        target += item * offset
        runs, length, step = runs_of(rank, dimensions, strides) if elements > 0 else (0, 0, 0)
    if own == FLOAT64 and runs > 1 and first:
        put_in_runs(address, size, offset, runs, length, step, value)
        return
    if first and runs > 0:
        clear_around_runs(sweep, address, own, size, offset if kind == GATHER else 0, runs, length, step)
    elif first:
        fill(sweep, address, own, 0.0, size)
    block, at = scratch_block(sweep, 0), sweep.scratch
    for j in range(min(BLOCK, elements)):
        at[j] = value
    for run in range(runs):
        to = target + item * run * step
        for start in range(0, length, BLOCK):
            call5(sweep.kernels[DELIVER], to + item * start, own, 1 if first else 0, block, min(BLOCK, length - start))
    if runs > 0:
        return
    byte_strides(sweep.work, strides, rank, item)
    for start in range(0, elements, BLOCK):
        count = min(BLOCK, elements - start)
        call9(sweep.kernels[SCATTER_BLOCK], target, own, block, rank, dimensions, sweep.work, counter_of(sweep), start, count)


@kernel("void(Tape,Sweep,Record,int64,int64)")
def map_step(tape, sweep, record, kind, word):
    """The transposes of a row's maps: what was read in strides is written in strides, and the other way round."""
    number, scale, room = record.dtype & 255, float_of(record.scale), map_room(sweep)
    adjoint, inner, before = adjoint_address(sweep, word), joined_width(record, kind), 0
    value = read_first(adjoint, number) * scale if word & UNIFORM else 0.0
    for k in range(argument_count(record)):
        rank, offset, dimensions, strides, before = map_of(record, kind, k, inner, before, room)
        slot = argument_row(record, k)
        if word & UNIFORM:
            if wanted(sweep, slot) and not pass_one_number_on(tape, sweep, slot, kind, rank, dimensions, strides, value):
                contribute_one_number(tape, sweep, slot, kind, rank, offset, dimensions, strides, value)
        elif kind == GATHER:
            scatter_adjoint(tape, sweep, slot, adjoint, number, rank, offset, dimensions, strides, scale)
        elif wanted(sweep, slot):
            gather_adjoint(tape, sweep, slot, adjoint, number, rank, offset, dimensions, strides, scale)
