"""An operation of one tensor with several outputs, compiled: its row, and those of the outputs, in one call.

Only what is usual: small contiguous float64 arrays and numbers. All else, and every refusal of the tape, is left to Python.
"""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.engine.handles import slot_of
from tapegrad.engine.hosted_results import register_inputs, result_of
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    OBJECT,
    array_data,
    array_is_contiguous,
    array_rank,
    array_size,
    array_type_number,
    call2,
    load_f64,
    release,
    retain,
    store_i64,
)
from tapegrad.engine.objects import (
    attribute,
    call_with_words,
    change_attribute,
    clear_error,
    handle_of,
    integer_value,
    item_of_tuple,
    length_of_tuple,
    new_array,
    new_integer,
    new_meta,
    new_tuple,
    set_handle,
    set_item_of_tuple,
    tensor_around,
    type_of,
)
from tapegrad.engine.record_operation import row_of_operation, shape_of_data
from tapegrad.engine.record_structural import write_map
from tapegrad.engine.rows import refuse
from tapegrad.engine.structs import doubles_at, words_at

MOST_PIECES = 8


@inline
def output_size(tape, value):
    """Elements of an output; -1 if it is left to Python."""
    if type_of(value) == tape.number_class:
        return 1
    if type_of(value) != tape.array_type or array_type_number(value) != FLOAT64 or not array_is_contiguous(value):
        return -1
    return array_size(value)


@inline
def size_of_all(tape, values):
    """Elements of all outputs; -1 if one is left to Python, or they are many."""
    total = 0
    for k in range(length_of_tuple(values)):
        size = output_size(tape, item_of_tuple(values, k))
        if size < 0:
            return -1
        total += size
    return total if total <= LARGEST_BLOCK else -1


@inline
def packed(tape, values, total):
    """A new vector of all outputs, one after the other; 0 without memory."""
    tape.lengths[0] = total
    data = new_array(tape, FLOAT64, 1, tape.lengths)
    if data == 0:
        clear_error()
        return 0
    target, at = doubles_at(array_data(data)), 0
    for k in range(length_of_tuple(values)):
        value = item_of_tuple(values, k)
        source = doubles_at(value + OBJECT if type_of(value) == tape.number_class else array_data(value))
        for j in range(output_size(tape, value)):
            target[at + j] = source[j]
        at += output_size(tape, value)
    return data


@inline
def attributes(tape, values, options):
    """A tuple of the shapes of all outputs, and the options; 0 without memory."""
    count = length_of_tuple(values)
    whole, shapes = new_tuple(2), new_tuple(count)
    if whole == 0 or shapes == 0:
        clear_error()
        if whole != 0:
            release(whole)
        if shapes != 0:
            release(shapes)
        return 0
    set_item_of_tuple(whole, 0, shapes)
    retain(options)
    set_item_of_tuple(whole, 1, options)
    for k in range(count):
        value = item_of_tuple(values, k)
        shape = new_tuple(0) if type_of(value) == tape.number_class else shape_of_data(tape, value)
        if shape == 0 or set_item_of_tuple(shapes, k, shape) != 0:
            clear_error()
            release(whole)
            return 0
    return whole


@inline
def output(tape, op, handle, data, start, size, value, number):
    """New tensor of an output, of which a row of all of them has its place; 0 if that is left to Python."""
    own = result_of(tape, value)
    t = tensor_around(tape, own) if own != 0 else 0
    meta = new_meta(tape) if t != 0 else 0
    if meta == 0:
        clear_error()
        if t != 0:
            release(t)
        return 0
    release(tape.none)
    store_i64(t + tape.meta_at, meta)
    retain(number)
    change_attribute(tape, meta, META_OUTPUT_NR, number)
    geometry = tape.lengths
    geometry[0], geometry[1], geometry[2], geometry[3] = 1, start, size, 1
    name = integer_value(attribute(tape, op, OPERATION_NUMBER))
    row = write_map(tape, 0, name, handle, data, geometry, 1.0, own)
    if row > 0:
        tape.second[slot_of(tape, row)] = integer_value(number)
        if set_handle(tape, t, row):
            return t
        clear_error()
        call2(tape.give_back, tape, row)
    release(t)
    return 0


@inline
def handed_out(tape, op, handle, data, values, numbers):
    """A tuple of the outputs that have a number; 0 if that is left to Python."""
    count, wanted = length_of_tuple(values), 0
    for k in range(count):
        if item_of_tuple(numbers, k) != tape.none:
            wanted += 1
    outputs, place, start = new_tuple(wanted), 0, 0
    if outputs == 0:
        clear_error()
        return 0
    for k in range(count):
        value, number = item_of_tuple(values, k), item_of_tuple(numbers, k)
        size = output_size(tape, value)
        if number != tape.none:
            t = output(tape, op, handle, data, start, size, value, number)
            if t == 0:
                release(outputs)
                return 0
            set_item_of_tuple(outputs, place, t)
            place += 1
        start += size
    return outputs


@inline
def joined(tape, op, inputs, values, options, numbers, extra):
    """A tuple of outputs, recorded; 0 if that is left to Python."""
    total, count = size_of_all(tape, values), length_of_tuple(values)
    kernels = tape.kernel_table
    if total <= 0 or count > MOST_PIECES or count != length_of_tuple(numbers) or length_of_tuple(inputs) != 1:
        return 0
    if tape.hosts_ready == 0 or kernels[MAP_STEP] == 0 or kernels[GATHER_BLOCK] == 0 or tape.tensor_type != tape.plain_tensor:
        return 0
    register_inputs(tape, inputs)
    if handle_of(tape, item_of_tuple(inputs, 0)) <= 0 or tape.recording_off != 0:
        return 0
    data, attrs, outputs = packed(tape, values, total), attributes(tape, values, options), 0
    # Room for all, since a refusal half way would leave rows that nobody has.
    if data != 0 and attrs != 0 and not refuse(tape, 4 * count + 4, (ARGUMENTS + 2 * MOST_LENGTHS) * (count + 1)):
        handle = row_of_operation(tape, op, inputs, extra, attrs, data)
        if handle > 0:
            outputs = handed_out(tape, op, handle, data, values, numbers)
            call2(tape.give_back, tape, handle)
    if data != 0:
        release(data)
    if attrs != 0:
        release(attrs)
    return outputs


@kernel("int64(Tape,int64,int64,int64)")
def outputs_form(tape, owner, operands, given):
    """Of operation, operand in a tuple, outputs, options, numbers, and what is saved besides: a tuple of tensors, or None.

    None where this is left to Python.
    """
    words, outputs = words_at(operands), 0
    fitting = given == 6
    for k in range(6 if fitting else 0):
        if k != 0 and k != 3 and type_of(words[k]) != tape.tuple_type:
            fitting = False
    if fitting:
        outputs = joined(tape, words[0], words[1], words[2], words[3], words[4], words[5])
    if outputs != 0:
        return outputs
    clear_error()
    retain(tape.none)
    return tape.none
