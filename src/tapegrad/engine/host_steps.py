"""Rows whose derivative is Python, from the sweep's side: what their vjp is given, and where its cotangents go.

Only what is usual is done here; Python does the rest, and says what is wrong. Allocating may let the collector run, and with it any
code, which may record: records are looked up anew after each allocation, and what was read is used only if no other pass has freed
the row meanwhile. What it freed lives on, as the tape is pinned.
"""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.compilation.memory_types import address_of
from tapegrad.engine.adjoints import (
    adjoint_address,
    claim,
    contribute_uniform,
    counter_of,
    has_shape_of,
    scratch_block,
    target_size,
    target_type,
)
from tapegrad.engine.large_cotangents import becomes_adjoint, copy_numbers, forget_handed, large_cotangent
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_data,
    array_dimensions,
    array_is_contiguous,
    array_rank,
    array_size,
    array_strides,
    array_type_number,
    call5,
    call9,
    float_of,
    float_value,
    is_float,
    load_f64,
    release,
    retain,
)
from tapegrad.engine.objects import (
    attribute,
    clear_error,
    data_of,
    integer_value,
    item_of_tuple,
    length_of_tuple,
    new_array,
    new_float,
    new_integer,
    new_tuple,
    set_attribute,
    set_item_of_tuple,
    tensor_around,
    type_of,
)
from tapegrad.engine.owned import argument_count, argument_kind, argument_row, record_dimensions
from tapegrad.engine.plan import record_of, wanted
from tapegrad.engine.strided import read


@inline
def numbers_at(tape, address, number, rank, dimensions, size):
    """A float or a new array with the numbers of an adjoint; 0 without memory."""
    if rank == 0 and number == FLOAT64:
        return new_float(load_f64(address))
    array = new_array(tape, number, rank, dimensions)
    if array != 0:
        copy_numbers(address, array_data(array), number, size)
    return array


@inline
def saved_value(tape, slot, k):
    """A new tensor of what argument k saved, None if it saved nothing; 0 without memory."""
    record = record_of(tape, slot)
    kind, word = argument_kind(record, k), record[ARGUMENTS + 2 * k + 1]
    if kind == ARRAY:
        retain(word)
        return tensor_around(tape, word)
    if kind == NUMBER:
        return tensor_around(tape, new_float(float_of(word)))
    retain(tape.none)
    return tape.none


@inline
def saved_values(tape, slot, first, count):
    """A tuple of what so many arguments saved; 0 without memory."""
    values = new_tuple(count)
    if values == 0:
        clear_error()
        return 0
    for k in range(count):
        value = saved_value(tape, slot, first + k)
        if value == 0 or set_item_of_tuple(values, k, value) != 0:
            release(values)
            return 0
    return values


@inline
def saved_result(tape, slot):
    """A new tensor of the row's result, None if that was not saved; 0 without memory."""
    record = record_of(tape, slot)
    result = record.result
    if result != 0:
        retain(result)
        return tensor_around(tape, result)
    if record.dtype == FLOAT64:  # without dimensions: it stands in the row
        return tensor_around(tape, new_float(tape.value[slot]))
    retain(tape.none)
    return tape.none


@inline
def needs_of(tape, sweep, slot, count):
    """A tuple of which arguments' cotangents are wanted; 0 without memory."""
    needs = new_tuple(count)
    if needs == 0:
        clear_error()
        return 0
    for k in range(count):
        answer = tape.true if wanted(sweep, argument_row(record_of(tape, slot), k)) else tape.false
        retain(answer)
        if set_item_of_tuple(needs, k, answer) != 0:
            release(needs)
            return 0
    return needs


@inline
def hand_on(tape, given, which, payload, attribute_of_payload):
    """Give a vjp what the payload has."""
    value = attribute(tape, payload, attribute_of_payload)
    retain(value)
    set_attribute(tape, given, which, value)


@inline
def give(tape, given, which, value):
    """Give a vjp something new; whether there was memory for it."""
    if value == 0:
        return False
    set_attribute(tape, given, which, value)
    return True


@kernel("int64(Tape,Sweep,int64,int64)")
def give_operands(tape, sweep, slot, given):
    """Set the attributes of a context that has none yet; 0 if this is left to Python."""
    record = record_of(tape, slot)
    payload, size, extra = record.payload, record.size, 0
    op = attribute(tape, payload, PAYLOAD_OP)
    if type_of(payload) != attribute(tape, op, OPERATION_PAYLOAD_CLASS):
        return 0
    if tape.tensor_type != tape.plain_tensor:
        return 0
    count, is_ours = integer_value(attribute(tape, payload, PAYLOAD_INPUTS)), type_of(payload) == tape.payload_class
    hand_on(tape, given, GIVEN_OP, payload, PAYLOAD_OP)
    hand_on(tape, given, GIVEN_ATTRS, payload, PAYLOAD_ATTRS)
    hand_on(tape, given, GIVEN_SHAPES, payload, PAYLOAD_SHAPES)
    hand_on(tape, given, GIVEN_DTYPES, payload, PAYLOAD_DTYPES)
    extra = argument_count(record) - count
    if size > LARGEST_BLOCK:
        g = large_cotangent(tape, sweep, slot, not is_ours)
    else:
        form, address = record.dtype, adjoint_address(sweep, sweep.offset[slot])
        g = numbers_at(tape, address, form & 255, form >> 8, record_dimensions(record), size)
    filled = give(tape, given, GIVEN_G, tensor_around(tape, g)) and give(
        tape, given, GIVEN_NEEDS, needs_of(tape, sweep, slot, count)
    )
    if not is_ours:  # custom functions take what they saved when they ask for it
        filled = (
            filled
            and give(tape, given, GIVEN_SLOT, new_integer(slot))
            and give(tape, given, GIVEN_SWEEP, new_integer(address_of(sweep, 0)))
        )
    else:
        filled = (
            filled
            and give(tape, given, GIVEN_INPUTS, saved_values(tape, slot, 0, count))
            and give(tape, given, GIVEN_EXTRA, saved_values(tape, slot, count, extra))
            and give(tape, given, GIVEN_RESULT, saved_result(tape, slot))
        )
    if not filled or tape.flags[slot] & FREED != 0:
        return 0
    forget_handed(sweep, slot)
    return 1


@inline
def add_block(sweep, address, number, first, block, count):
    """Write or add contiguous float64 numbers to an adjoint."""
    call5(sweep.kernels[DELIVER], address, number, 1 if first else 0, block, count)


@inline
def repeats_one_number(obj):
    """Whether an array is a number that is stretched."""
    for d in range(array_rank(obj)):
        if array_dimensions(obj)[d] != 1 and array_strides(obj)[d] != 0:
            return False
    return array_size(obj) > 1


@inline
def add_data(tape, sweep, slot, obj):
    """Add a float, or an array of the row's own size, to the adjoint of a row."""
    number, size = target_type(tape, slot), target_size(tape, slot)
    address, first = claim(tape, sweep, slot)
    block, flat = scratch_block(sweep, 0), sweep.work
    if is_float(tape, obj):
        sweep.scratch[0] = float_value(obj)
        add_block(sweep, address, number, first, block, 1)
        return
    if array_is_contiguous(obj) and array_type_number(obj) == FLOAT64:
        if size > 0:
            add_block(sweep, address, number, first, array_data(obj), size)
        return
    if first and repeats_one_number(obj):
        sweep.scratch[0] = read(array_data(obj), array_type_number(obj))
        contribute_uniform(tape, sweep, slot, address, block)
        return
    rank, dimensions, strides = array_rank(obj), array_dimensions(obj), array_strides(obj)
    if rank == 0:
        flat[0] = 1
        rank, dimensions, strides = 1, flat, flat
    item = 8 if number == FLOAT64 else 4
    for start in range(0, size, BLOCK):
        count = min(BLOCK, size - start)
        call9(
            sweep.kernels[GATHER_BLOCK],
            block,
            array_data(obj),
            array_type_number(obj),
            rank,
            dimensions,
            strides,
            counter_of(sweep),
            start,
            count,
        )
        add_block(sweep, address + item * start, number, first, block, count)


@kernel("int64(Tape,Sweep,int64,int64)")
def add_cotangents(tape, sweep, slot, cotangents):
    """Add what a vjp gave for each input, in a tuple, to their adjoints; False if a cotangent (`FIRST_ODD`) is left to Python."""
    record, given = record_of(tape, slot), length_of_tuple(cotangents)
    sweep.first_odd = 0
    if given < 0:
        clear_error()
        return 0
    count = min(given, integer_value(attribute(tape, record.payload, PAYLOAD_INPUTS)))
    for k in range(count):
        cotangent, to = item_of_tuple(cotangents, k), argument_row(record, k)
        if cotangent == tape.none or not wanted(sweep, to):
            continue
        sweep.first_odd = k
        if type_of(cotangent) != tape.plain_tensor:
            return 0
        data = data_of(tape, cotangent)
        if not has_shape_of(tape, to, data):
            return 0
        if target_size(tape, to) > LARGEST_BLOCK:
            if sweep.takes == 0 and sweep.aims_first != 0:  # which may become a gradient
                return 0
            if becomes_adjoint(tape, sweep, to, cotangents, k):
                record = record_of(tape, slot)
                continue
        add_data(tape, sweep, to, data)
    return 1
