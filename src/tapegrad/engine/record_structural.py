"""Recording leaves, strided maps, joins, and operations whose derivative Python computes."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.handles import slot_of, take_handle
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_data,
    array_dimensions,
    array_rank,
    array_size,
    array_strides,
    array_type_number,
    bits_of,
    float_value,
    is_float,
    item_bytes,
    retain,
)
from tapegrad.engine.objects import handle_of, item_of_tuple, length_of_tuple
from tapegrad.engine.record_scalars import operand_row
from tapegrad.engine.records import begin_record, primal_of, put_argument, save_array
from tapegrad.engine.rows import refuse, write_row


@entry("int64(Tape,int64,int64,int64,int64,int64,int64)")
def view_row(tape, name, handle, px, base, taken, pz):
    """Record a view: ``z[i] = x[offset + strides . i]`` in C order of x.

    `base` is a C-contiguous array of x's shape (x itself, or a stand-in where x is strided) and `taken` the same view of it;
    the map is read off their addresses and strides.
    """
    if handle < 0:
        return NEW_LEAF
    rank = array_rank(taken)
    places = max(rank, 1)
    if refuse(tape, 3, ARGUMENTS + 2 + 2 + 3 * places):
        return FULL
    slot = operand_row(tape, handle, px)
    start = begin_record(tape, name, 1, pz, 0, 2 + 2 * places)
    record = tape.side[start]
    put_argument(tape, record, 0, slot, NOTHING, 0)
    item = item_bytes(array_type_number(base))
    at = ARGUMENTS + 2 + rank
    record[at] = places
    record[at + 1] = (array_data(taken) - array_data(base)) // item
    for d in range(rank):
        record[at + 2 + d] = array_dimensions(taken)[d]
        record[at + 2 + places + d] = array_strides(taken)[d] // item
    if rank == 0:
        record[at + 2] = 1
        record[at + 3] = 1
    return take_handle(tape, write_row(tape, GATHER | WIDE, start, -1, primal_of(tape, pz)))


@inline
def begin_map_record(tape, name, handle, px, places, scale, pz):
    """Begin the record of a map in so many dimensions; where it starts, and the rank of its result. A start of -1: refused."""
    rank = 0 if is_float(tape, pz) else array_rank(pz)
    if refuse(tape, 3, ARGUMENTS + 2 + 2 + rank + 2 * places):
        return -1, rank
    slot = operand_row(tape, handle, px)
    start = begin_record(tape, name, 1, pz, 0, 2 + 2 * places)
    record = tape.side[start]
    put_argument(tape, record, 0, slot, NOTHING, 0)
    record.scale = bits_of(scale)
    return start, rank


@inline
def write_map(tape, scatters, name, handle, px, geometry, scale, pz):
    """Record a strided linear map given in words: rank, offset, dimensions, strides (elements)."""
    if handle < 0:
        return NEW_LEAF
    places = geometry[0]
    start, rank = begin_map_record(tape, name, handle, px, max(places, 1), scale, pz)
    if start < 0:
        return FULL
    record, at = tape.side[start], ARGUMENTS + 2 + rank
    for word in range(2 + 2 * places):
        record[at + word] = geometry[word]
    if places == 0:  # one element: others read a map of one dimension
        record[at] = record[at + 2] = record[at + 3] = 1
    opcode = SCATTER if scatters != 0 else GATHER
    return take_handle(tape, write_row(tape, opcode | WIDE, start, -1, primal_of(tape, pz)))


@entry("int64(Tape,int64,int64,int64,int64,Words,float64,int64)")
def map_row(tape, scatters, name, handle, px, geometry, scale, pz):
    """Record a strided linear map given in words: rank, offset, dimensions, strides (elements).

    Gather: ``z[i] = scale * x[offset + strides . i]``; scatter: ``z[offset + strides . i] += scale * x[i]``.
    """
    return write_map(tape, scatters, name, handle, px, geometry, scale, pz)


@inline
def write_sum(tape, name, handle, px, axes, scale, pz):
    """Record ``z = scale * sum(x)`` over the axes whose bits are set in `axes` (all: -1)."""
    if handle < 0:
        return NEW_LEAF
    scalar = is_float(tape, px)
    x_rank = 0 if scalar else array_rank(px)
    flat = axes == -1 or x_rank == 0
    places = 1 if flat else x_rank
    start, rank = begin_map_record(tape, name, handle, px, places, scale, pz)
    if start < 0:
        return FULL
    record, at = tape.side[start], ARGUMENTS + 2 + rank
    record[at] = places
    record[at + 1] = 0
    if flat:
        record[at + 2] = 1 if scalar else array_size(px)
        record[at + 3] = 0
    else:
        stride = 1
        for d in range(x_rank - 1, -1, -1):
            extent = array_dimensions(px)[d]
            record[at + 2 + d] = extent
            if (axes >> d) & 1:
                record[at + 2 + places + d] = 0
            else:
                record[at + 2 + places + d] = stride
                stride *= extent
    return take_handle(tape, write_row(tape, SCATTER | WIDE, start, -1, primal_of(tape, pz)))


@entry("int64(Tape,int64,int64,int64,int64,float64,int64)")
def reduce_row(tape, name, handle, px, axes, scale, pz):
    """Record ``z = scale * sum(x)`` over the axes whose bits are set in `axes` (all: -1)."""
    return write_sum(tape, name, handle, px, axes, scale, pz)


@inline
def elements_before(array, axis):
    """How many indices the dimensions of an array before an axis have together."""
    count = 1
    for d in range(axis):
        count *= array_dimensions(array)[d]
    return count


@entry("int64(Tape,int64,int64,int64,int64,int64)")
def join_row(tape, name, tensors, data, axis, pz):
    """Record a concatenation of tensors, whose data are arrays or floats, along an axis of the result; both are tuples."""
    count = length_of_tuple(tensors)
    for k in range(count):
        if handle_of(tape, item_of_tuple(tensors, k)) < 0:
            return NEW_LEAF
    rank = array_rank(pz)
    if refuse(tape, 1 + count, ARGUMENTS + 3 * count + rank):
        return FULL
    for k in range(count):
        operand_row(tape, handle_of(tape, item_of_tuple(tensors, k)), item_of_tuple(data, k))
    start = begin_record(tape, name, count, pz, 0, count)
    record = tape.side[start]
    at, outer = ARGUMENTS + 2 * count + rank, elements_before(pz, axis)
    for k in range(count):
        put_argument(tape, record, k, slot_of(tape, handle_of(tape, item_of_tuple(tensors, k))), NOTHING, 0)
        part = item_of_tuple(data, k)
        record[at + k] = 1 if is_float(tape, part) else (array_size(part) // outer if outer > 0 else 0)
    return take_handle(tape, write_row(tape, JOIN | WIDE, start, -1, 0.0))


@entry("int64(Tape,int64,int64,Words,Words,Words,int64,int64,int64)")
def host_row(tape, name, count, handles, objects, save, payload, save_result, pz):
    """Record an operation whose derivative Python computes; `payload` is the Python object that knows how.

    Word k of `save` says whether the value of input k (an array or a float) is needed.
    """
    for k in range(count):
        if handles[k] < 0:
            return NEW_LEAF
    rank = 0 if is_float(tape, pz) else array_rank(pz)
    if refuse(tape, 1 + count, ARGUMENTS + 2 * count + rank) or tape.saved_bytes > tape.saved_limit:
        return FULL
    for k in range(count):
        operand_row(tape, handles[k], objects[k])
    start = begin_record(tape, name, count, pz, payload, 0)
    record = tape.side[start]
    for k in range(count):
        slot = slot_of(tape, handles[k])
        obj = objects[k]
        if save[k] == 0:
            put_argument(tape, record, k, slot, NOTHING, 0)
        elif is_float(tape, obj):
            put_argument(tape, record, k, slot, NUMBER, bits_of(float_value(obj)))
        else:
            save_array(tape, record, k, slot, obj)
    if save_result != 0 and not is_float(tape, pz):
        retain(pz)
        record.result = pz
        tape.saved_bytes = tape.saved_bytes + array_size(pz) * item_bytes(array_type_number(pz))
    return take_handle(tape, write_row(tape, HOST | WIDE, start, -1, primal_of(tape, pz)))


@inline
def write_leaf(tape, payload, data):
    """Write the row of a leaf, from which `payload` leads back to its tensor; its handle, or `FULL`."""
    rank = 0 if is_float(tape, data) else array_rank(data)
    if refuse(tape, 1, ARGUMENTS + rank):
        return FULL
    start = begin_record(tape, 0, 0, data, payload, 0)
    tape.leaves = tape.leaves + 1
    return take_handle(tape, write_row(tape, LEAF | WIDE, start, -1, primal_of(tape, data)))


@entry("int64(Tape,int64,int64)")
def leaf_row(tape, payload, px):
    """As `write_leaf`."""
    return write_leaf(tape, payload, px)
