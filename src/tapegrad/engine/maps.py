"""The reverse steps of strided linear maps (views, sums, broadcasting) and of concatenations."""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.engine.adjoints import (
    claim,
    contribute_uniform,
    fill,
    read_first,
    target_size,
    target_type,
)
from tapegrad.engine.layout import *
from tapegrad.engine.memory import call5, call9, float_of, get, load_i64, store_f64, store_i64
from tapegrad.engine.owned import argument_count, argument_row
from tapegrad.engine.plan import wanted
from tapegrad.engine.strided import flat_block, scaled_block


@inline
def is_dense(rank, dimensions, strides):
    """Whether a map (strides in elements) visits consecutive elements, one after the other."""
    step = 1
    for d in range(rank - 1, -1, -1):
        extent = load_i64(dimensions + 8 * d)
        if extent != 1 and load_i64(strides + 8 * d) != step:
            return False
        step *= extent
    return True


@inline
def byte_strides(out, strides, rank, item):
    """Strides in bytes from strides in elements."""
    for d in range(rank):
        store_i64(out + 8 * d, item * load_i64(strides + 8 * d))


@inline
def map_elements(rank, dimensions):
    """Number of elements of these dimensions."""
    elements = 1
    for d in range(rank):
        elements *= load_i64(dimensions + 8 * d)
    return elements


@inline
def map_source(record):
    """Type of a map's result, rank and offset of the map, addresses of its dimensions and strides, and its factor."""
    geometry = record + 8 * (ARGUMENTS + 2 + (get(record, DTYPE) >> 8))
    rank, offset, scale = get(geometry, 0), get(geometry, 1), float_of(get(record, SCALE))
    return get(record, DTYPE) & 255, rank, offset, geometry + 16, geometry + 16 + 8 * rank, scale


@kernel("void(int64,int64,int64,int64)")
def gather_step(tape, sweep, record, adjoint):
    """Transpose of ``z[i] = scale * x[offset + strides . i]``: scatter the adjoint."""
    slot = argument_row(record, 0)
    address, first = claim(tape, sweep, slot)
    number, rank, offset, dimensions, strides, scale = map_source(record)
    own, size, elements = target_type(tape, slot), target_size(tape, slot), map_elements(rank, dimensions)
    item = 8 if own == FLOAT64 else 4
    dense = elements > 0 and is_dense(rank, dimensions, strides)
    if first and dense:
        fill(sweep, address, own, 0.0, offset)
        fill(sweep, address + item * (offset + elements), own, 0.0, size - offset - elements)
    elif first:
        fill(sweep, address, own, 0.0, size)
    counter, block, kernels = get(sweep, WORK) + 8 * 100, get(sweep, SCRATCH), get(sweep, KERNELS)
    target = address + item * offset
    byte_strides(get(sweep, WORK), strides, rank, item)
    for start in range(0, elements, BLOCK):
        count = min(BLOCK, elements - start)
        values = scaled_block(flat_block(adjoint, number, start, count, block), count, scale, block)
        if dense:
            call5(get(kernels, DELIVER), target + item * start, own, 1 if first else 0, values, count)
        else:
            call9(
                get(kernels, SCATTER_BLOCK),
                target,
                own,
                values,
                rank,
                dimensions,
                get(sweep, WORK),
                counter,
                start,
                count,
            )


@kernel("void(int64,int64,int64,int64)")
def scatter_step(tape, sweep, record, adjoint):
    """Transpose of ``z[offset + strides . i] += scale * x[i]``: gather the adjoint."""
    slot = argument_row(record, 0)
    address, first = claim(tape, sweep, slot)
    number, rank, offset, dimensions, strides, scale = map_source(record)
    own, elements = target_type(tape, slot), map_elements(rank, dimensions)
    source, item = adjoint + offset * (8 if number == FLOAT64 else 4), 8 if own == FLOAT64 else 4
    counter, block, kernels = get(sweep, WORK) + 8 * 100, get(sweep, SCRATCH), get(sweep, KERNELS)
    if first and rank == 1 and load_i64(strides) == 0:  # the sum of all elements
        store_f64(block, read_first(source, number) * scale)
        contribute_uniform(tape, sweep, slot, address, block)
        return
    byte_strides(get(sweep, WORK), strides, rank, 8 if number == FLOAT64 else 4)
    direct = first and own == FLOAT64
    for start in range(0, elements, BLOCK):
        count = min(BLOCK, elements - start)
        values = address + 8 * start if direct else block
        call9(
            get(kernels, GATHER_BLOCK),
            values,
            source,
            number,
            rank,
            dimensions,
            get(sweep, WORK),
            counter,
            start,
            count,
        )
        scaled_block(values, count, scale, values)
        if not direct:
            call5(get(kernels, DELIVER), address + item * start, own, 1 if first else 0, values, count)


@kernel("void(int64,int64,int64,int64)")
def join_step(tape, sweep, record, adjoint):
    """Cut the adjoint of a concatenation into the pieces of its inputs."""
    arguments, number = argument_count(record), get(record, DTYPE) & 255
    item = 8 if number == FLOAT64 else 4
    widths = record + 8 * (ARGUMENTS + 2 * arguments + (get(record, DTYPE) >> 8))
    inner = 0
    for k in range(arguments):
        inner += get(widths, k)
    outer = get(record, SIZE) // inner if inner > 0 else 0
    block = get(sweep, SCRATCH)
    before = 0
    for k in range(arguments):
        slot, width = argument_row(record, k), get(widths, k)
        if wanted(sweep, slot):
            address, first = claim(tape, sweep, slot)
            own = target_type(tape, slot)
            own_item = 8 if own == FLOAT64 else 4
            for o in range(outer):
                source = adjoint + item * (o * inner + before)
                for start in range(0, width, BLOCK):
                    count = min(BLOCK, width - start)
                    values = flat_block(source, number, start, count, block)
                    target = address + own_item * (o * width + start)
                    call5(get(get(sweep, KERNELS), DELIVER), target, own, 1 if first else 0, values, count)
        before += width
