"""Recording an operation whose derivative is Python in one call: its payload, and its row.

Only what is usual: tensors without a mode or hook that somebody must see. All objects are made first, since making them may let the
collector run, and with it any code; after that nothing can fail.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.handles import slot_of, take_handle
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    OBJECT,
    array_dimensions,
    array_rank,
    array_size,
    array_type_number,
    bits_of,
    float_value,
    is_float,
    item_bytes,
    load_i64,
    release,
    retain,
)
from tapegrad.engine.objects import (
    allocate,
    attribute,
    clear_error,
    data_of,
    handle_of,
    integer_value,
    item_of_tuple,
    length_of_tuple,
    new_integer,
    new_tuple,
    set_attribute,
    set_item_of_tuple,
    type_of,
)
from tapegrad.engine.record_scalars import operand_row
from tapegrad.engine.records import begin_record, primal_of, put_argument, save_array
from tapegrad.engine.rows import refuse, write_row
from tapegrad.engine.structs import words_at

MOST_INPUTS = 60
RESULT_BIT = 62


@inline
def data_at(tape, tensors, k):
    """The data of a tensor in a tuple."""
    return data_of(tape, item_of_tuple(tensors, k))


@inline
def tracked_inputs(tape, inputs, count):
    """Bit k says whether input k is tracked, `NEW_LEAF` that one has no row yet."""
    tracked, unregistered = 0, False
    for k in range(count):
        t = item_of_tuple(inputs, k)
        if type_of(t) != tape.plain_tensor and type_of(t) != tape.array_class:
            return UNSUPPORTED
        handle = handle_of(tape, t)
        if handle != 0:
            tracked |= 1 << k
            unregistered = unregistered or handle < 0
    return NEW_LEAF if unregistered else tracked


@inline
def needed_values(tape, op, tracked):
    """Bit k says whether cotangents of tracked inputs need the value of input k, `RESULT_BIT` whether they need the result."""
    table, needed, k = words_at(integer_value(attribute(tape, op, OPERATION_USES))), 0, 0
    last = table[0] - 1
    while tracked >> k != 0:
        if (tracked >> k) & 1 != 0:
            needed |= table[1 + min(k, last)]
        k += 1
    return needed


@inline
def shape_of_data(tape, data):
    """A tuple of lengths; 0 without memory."""
    rank = 0 if is_float(tape, data) else array_rank(data)
    shape = new_tuple(rank)
    if shape == 0:
        return 0
    for d in range(rank):
        extent = new_integer(array_dimensions(data)[d])
        if extent == 0 or set_item_of_tuple(shape, d, extent) != 0:
            release(shape)
            return 0
    return shape


@inline
def dtype_of_data(tape, data):
    """The dtype object of an array, or that of floats."""
    dtype = tape.double if is_float(tape, data) else load_i64(data + OBJECT + 40)
    retain(dtype)
    return dtype


@inline
def new_payload(tape, op, count, attrs):
    """What the row keeps in Python, without shapes and dtypes of the inputs; 0 without memory."""
    payload = allocate(attribute(tape, op, OPERATION_PAYLOAD_CLASS), 0)
    if payload == 0:
        return 0
    retain(op)
    set_attribute(tape, payload, PAYLOAD_OP, op)
    retain(attrs)
    set_attribute(tape, payload, PAYLOAD_ATTRS, attrs)
    number, shapes, dtypes = new_integer(count), new_tuple(count), new_tuple(count)
    set_attribute(tape, payload, PAYLOAD_INPUTS, number)
    set_attribute(tape, payload, PAYLOAD_SHAPES, shapes)
    set_attribute(tape, payload, PAYLOAD_DTYPES, dtypes)
    if number == 0 or shapes == 0 or dtypes == 0:
        release(payload)
        return 0
    return payload


@inline
def describe_input(tape, payload, k, data):
    """Tell a payload the shape and the dtype of an input; False without memory."""
    shape = shape_of_data(tape, data)
    if shape == 0 or set_item_of_tuple(attribute(tape, payload, PAYLOAD_SHAPES), k, shape) != 0:
        return False
    return set_item_of_tuple(attribute(tape, payload, PAYLOAD_DTYPES), k, dtype_of_data(tape, data)) == 0


@inline
def payload_of(tape, op, inputs, count, attrs):
    """What the row of an operation on tensors in a tuple keeps in Python; 0 without memory."""
    payload = new_payload(tape, op, count, attrs)
    for k in range(count if payload != 0 else 0):
        if not describe_input(tape, payload, k, data_at(tape, inputs, k)):
            release(payload)
            return 0
    return payload


@inline
def put_operand(tape, record, place, slot, data, saves):
    """Write an argument, with its value if that is needed."""
    if not saves:
        put_argument(tape, record, place, slot, NOTHING, 0)
    elif is_float(tape, data):
        put_argument(tape, record, place, slot, NUMBER, bits_of(float_value(data)))
    else:
        save_array(tape, record, place, slot, data)


@inline
def write_operation(tape, op, inputs, count, extra, more, needed, payload, result):
    """Write record and row; the handle, or `FULL`."""
    rank = 0 if is_float(tape, result) else array_rank(result)
    everything = count + more
    if refuse(tape, 1 + count, ARGUMENTS + 2 * everything + rank) or tape.saved_bytes > tape.saved_limit:
        return FULL
    for k in range(count):
        operand_row(tape, handle_of(tape, item_of_tuple(inputs, k)), data_at(tape, inputs, k))
    name = integer_value(attribute(tape, op, OPERATION_NUMBER))
    start = begin_record(tape, name, everything, result, payload, 0)
    record = tape.side[start]
    for k in range(count):
        slot = slot_of(tape, handle_of(tape, item_of_tuple(inputs, k)))
        put_operand(tape, record, k, slot, data_at(tape, inputs, k), (needed >> k) & 1 != 0)
    for k in range(more):
        put_operand(tape, record, count + k, -1, data_at(tape, extra, k), True)
    if (needed >> RESULT_BIT) & 1 != 0 and not is_float(tape, result):
        retain(result)
        record.result = result
        tape.saved_bytes = tape.saved_bytes + array_size(result) * item_bytes(array_type_number(result))
    return take_handle(tape, write_row(tape, HOST | WIDE, start, -1, primal_of(tape, result)))


@inline
def row_of_operation(tape, op, inputs, extra, attrs, result):
    """Record that an operation made an array or float of tensors, in tuples: the inputs, and what is saved besides them.

    The handle; 0 if the result is untracked, `UNSUPPORTED` if this is left to Python.
    """
    if tape.tensor_type != tape.plain_tensor or tape.recording_off != 0:
        return UNSUPPORTED
    count, more = length_of_tuple(inputs), length_of_tuple(extra)
    if count < 0 or more < 0 or count > MOST_INPUTS:
        clear_error()
        return UNSUPPORTED
    tracked = tracked_inputs(tape, inputs, count)
    if tracked <= 0:
        return tracked
    for k in range(more):
        if type_of(item_of_tuple(extra, k)) != tape.plain_tensor:
            return UNSUPPORTED
    if not is_float(tape, result):
        if type_of(result) != tape.array_type:
            return UNSUPPORTED
        number = array_type_number(result)
        if number != FLOAT64 and number != FLOAT32:
            return 0 if number <= UINT64 else UNSUPPORTED  # floats of other widths are refused there
    payload = payload_of(tape, op, inputs, count, attrs)
    if payload == 0:
        clear_error()
        return UNSUPPORTED
    if tracked_inputs(tape, inputs, count) != tracked:  # the collector ran
        release(payload)
        return UNSUPPORTED
    needed = needed_values(tape, op, tracked)
    handle = write_operation(tape, op, inputs, count, extra, more, needed, payload, result)
    release(payload)
    return handle


@entry("int64(Tape,int64,int64,int64,int64,int64)")
def operation_row(tape, op, inputs, extra, attrs, result):
    """As `row_of_operation`."""
    return row_of_operation(tape, op, inputs, extra, attrs, result)
