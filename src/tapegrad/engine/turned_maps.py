"""The map of a structural row, turned round for a small adjoint and recorded: a step of a recorded pass.

Values are those that Python's form computes; where several elements are added up in one place, that is left to it.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import from_element
from tapegrad.engine.layout import *
from tapegrad.engine.maps import map_elements
from tapegrad.engine.memory import array_size, float_of, is_float, release
from tapegrad.engine.objects import append_to_list, clear_error, new_array, new_float, new_tensor
from tapegrad.engine.operator_results import deliver_tensor, is_block, start_of
from tapegrad.engine.owned import argument_count, argument_row, record_dimensions
from tapegrad.engine.plan import record_of
from tapegrad.engine.record_structural import write_map
from tapegrad.engine.recorded_rows import is_double_row
from tapegrad.engine.structs import doubles_at


@inline
def leads_to_different_places(rank, dimensions, strides):
    """Whether no two indices of a map meet: each stride exceeds all that the smaller ones can reach."""
    left = 0
    for d in range(rank):
        if dimensions[d] > 1:
            left += 1
    reach = 0
    for _ in range(left):
        step, extent = 0, 0
        for d in range(rank):
            own = abs(strides[d])
            if dimensions[d] > 1 and own > reach and (extent == 0 or own < step):
                step, extent = own, dimensions[d]
        if extent == 0:
            return False
        reach += step * (extent - 1)
    return True


@inline
def place_in_map(index, rank, dimensions, strides):
    """Where a map leads from an index that is counted through."""
    place = 0
    for d in range(rank - 1, -1, -1):
        above = index // dimensions[d]
        place += (index - above * dimensions[d]) * strides[d]
        index = above
    return place


@inline
def read_by_map(target, source, elements, rank, dimensions, strides, scale):
    """``target[i] = scale * source[strides . i]``."""
    for j in range(elements):
        value = source[place_in_map(j, rank, dimensions, strides)]
        target[j] = value if scale == 1.0 else value * scale


@inline
def write_by_map(target, size, source, elements, offset, rank, dimensions, strides, scale):
    """``target[offset + strides . i] = scale * source[i]``, and zeros elsewhere."""
    for j in range(size):
        target[j] = 0.0
    for j in range(elements):
        value = source[j] if scale == 1.0 else source[j] * scale
        target[offset + place_in_map(j, rank, dimensions, strides)] += value


@inline
def elements_of_row(tape, slot):
    """How many elements a row's result has."""
    return 1 if tape.opcode[slot] & WIDE == 0 else record_of(tape, slot).size


@inline
def data_for(tape, slot):
    """New data of the shape of a row's result, whose numbers are still to be set; 0 without memory."""
    if tape.opcode[slot] & WIDE == 0 or record_of(tape, slot).dtype >> 8 == 0:
        return new_float(0.0)
    record = record_of(tape, slot)
    return new_array(tape, FLOAT64, record.dtype >> 8, record_dimensions(record))


@inline
def turned(tape, slot, name, handle, px, t):
    """Put what a map sends back into a tensor, and record it; the row of the argument, or `UNSUPPORTED`, and then `t` is gone."""
    record, kind = record_of(tape, slot), tape.opcode[slot] - WIDE
    row, data, own = -1, 0, -1
    if (kind == GATHER or kind == SCATTER) and argument_count(record) == 1 and record.dtype & 255 == FLOAT64:
        row = argument_row(record, 0)
    if row >= 0 and is_double_row(tape, row) and record.size == (1 if is_float(tape, px) else array_size(px)):
        geometry = from_element(record_dimensions(record), record.dtype >> 8)
        rank, offset = geometry[0], geometry[1]
        dimensions, strides = from_element(geometry, 2), from_element(geometry, 2 + rank)
        elements, size, scale = map_elements(rank, dimensions), elements_of_row(tape, row), float_of(record.scale)
        if kind == SCATTER:
            fits = elements == size
        else:
            fits = elements == record.size and leads_to_different_places(rank, dimensions, strides)
        if fits and size <= LARGEST_BLOCK:
            data = data_for(tape, row)
        if data != 0:
            target, source = doubles_at(start_of(tape, data)), doubles_at(start_of(tape, px))
            if kind == SCATTER:
                read_by_map(target, from_element(source, offset), elements, rank, dimensions, strides, scale)
            else:
                write_by_map(target, size, source, elements, offset, rank, dimensions, strides, scale)
            own = 0
            if handle != 0:
                own = write_map(tape, 1 if kind == GATHER else 0, name, handle, px, geometry, scale, data)
    return row if deliver_tensor(tape, t, data, own) != 0 else UNSUPPORTED


@entry("int64(Tape,int64,int64,int64,int64,int64)")
def turn_map(tape, slot, name, handle, px, found):
    """Append to a list what a row of one map sends to its argument for an adjoint, recorded under a name; the argument's row.

    `UNSUPPORTED`, with nothing done, if that is left to Python.
    """
    if handle < 0 or tape.tensor_type != tape.plain_tensor or not (is_float(tape, px) or is_block(tape, px)):
        return UNSUPPORTED
    t = new_tensor(tape)  # before anything is looked at: the collector may run
    if t == 0:
        clear_error()
        return UNSUPPORTED
    if tape.flags[slot] & FREED != 0:
        release(t)
        return UNSUPPORTED
    row = turned(tape, slot, name, handle, px, t)
    if row < 0:
        return UNSUPPORTED
    failed = append_to_list(found, t)
    release(t)
    if failed != 0:
        clear_error()
        return UNSUPPORTED
    return row
