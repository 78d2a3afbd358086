"""The reverse steps of strided linear maps (views, sums, broadcasting) and of concatenations."""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.compilation.memory_types import from_element
from tapegrad.engine.adjoints import (
    claim,
    contribute_uniform,
    counter_of,
    fill,
    read_first,
    scratch_block,
    target_size,
    target_type,
)
from tapegrad.engine.layout import *
from tapegrad.engine.memory import call5, call9, float_of
from tapegrad.engine.owned import argument_count, argument_row
from tapegrad.engine.plan import wanted
from tapegrad.engine.strided import flat_block, scaled_block


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
def map_source(record):
    """Type of a map's result, rank and offset of the map, addresses of its dimensions and strides, and its factor."""
    geometry = from_element(record, ARGUMENTS + 2 + (record.dtype >> 8))
    rank, offset, scale = geometry[0], geometry[1], float_of(record.scale)
    return record.dtype & 255, rank, offset, from_element(geometry, 2), from_element(geometry, 2 + rank), scale


@kernel("void(Tape,Sweep,Record,int64)")
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
    counter, block, kernels = counter_of(sweep), scratch_block(sweep, 0), sweep.kernels
    target = address + item * offset
    byte_strides(sweep.work, strides, rank, item)
    for start in range(0, elements, BLOCK):
        count = min(BLOCK, elements - start)
        values = scaled_block(flat_block(adjoint, number, start, count, block), count, scale, block)
        if dense:
            call5(kernels[DELIVER], target + item * start, own, 1 if first else 0, values, count)
        else:
            call9(
                kernels[SCATTER_BLOCK],
                target,
                own,
                values,
                rank,
                dimensions,
                sweep.work,
                counter,
                start,
                count,
            )


@kernel("void(Tape,Sweep,Record,int64)")
def scatter_step(tape, sweep, record, adjoint):
    """Transpose of ``z[offset + strides . i] += scale * x[i]``: gather the adjoint."""
    slot = argument_row(record, 0)
    address, first = claim(tape, sweep, slot)
    number, rank, offset, dimensions, strides, scale = map_source(record)
    own, elements = target_type(tape, slot), map_elements(rank, dimensions)
    source, item = adjoint + offset * (8 if number == FLOAT64 else 4), 8 if own == FLOAT64 else 4
    counter, block, kernels = counter_of(sweep), scratch_block(sweep, 0), sweep.kernels
    if first and rank == 1 and strides[0] == 0:  # the sum of all elements
        sweep.scratch[0] = read_first(source, number) * scale
        contribute_uniform(tape, sweep, slot, address, block)
        return
    byte_strides(sweep.work, strides, rank, 8 if number == FLOAT64 else 4)
    direct = first and own == FLOAT64
    for start in range(0, elements, BLOCK):
        count = min(BLOCK, elements - start)
        values = address + 8 * start if direct else block
        call9(
            kernels[GATHER_BLOCK],
            values,
            source,
            number,
            rank,
            dimensions,
            sweep.work,
            counter,
            start,
            count,
        )
        scaled_block(values, count, scale, values)
        if not direct:
            call5(kernels[DELIVER], address + item * start, own, 1 if first else 0, values, count)


@kernel("void(Tape,Sweep,Record,int64)")
def join_step(tape, sweep, record, adjoint):
    """Cut the adjoint of a concatenation into the pieces of its inputs."""
    arguments, number = argument_count(record), record.dtype & 255
    item = 8 if number == FLOAT64 else 4
    widths = from_element(record, ARGUMENTS + 2 * arguments + (record.dtype >> 8))
    inner = 0
    for k in range(arguments):
        inner += widths[k]
    outer = record.size // inner if inner > 0 else 0
    block = scratch_block(sweep, 0)
    before = 0
    for k in range(arguments):
        slot, width = argument_row(record, k), widths[k]
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
                    call5(sweep.kernels[DELIVER], target, own, 1 if first else 0, values, count)
        before += width
