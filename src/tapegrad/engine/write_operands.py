"""What writes in place are given and record: numbers, handles of operands, and what rows of views keep in Python."""

from tapegrad.compilation.jit import inline
from tapegrad.engine.handles import slot_of
from tapegrad.engine.layout import *
from tapegrad.engine.long_values import copy_doubles
from tapegrad.engine.memory import (
    array_data,
    array_dimensions,
    array_is_contiguous,
    array_rank,
    array_size,
    array_strides,
    array_type_number,
    bits_of,
    call2,
    float_value,
    is_float,
    load_i64,
    owner,
    release,
    retain,
    store_f64,
)
from tapegrad.engine.new_leaves import register_new
from tapegrad.engine.objects import attribute, change_attribute, clear_error, data_of, handle_of, is_subtype, new_float, type_of
from tapegrad.engine.operator_results import number_in
from tapegrad.engine.operators import float_from
from tapegrad.engine.record_operation import describe_input, new_payload
from tapegrad.engine.structs import doubles_at
from tapegrad.engine.written_targets import base_of, count_write, follow, go_on_from, is_operand, is_target, slices_row


@inline
def float_of_subclass(tape, value):
    """A new float for one of a subclass, such as NumPy's; 0 for what is none."""
    if is_subtype(type_of(value), tape.float_type) == 0:
        return 0
    number = new_float(float_value(value))
    if number == 0:
        clear_error()
    return number


@inline
def given_number(tape, value):
    """A new reference to the float that an operand is: a float, an integer, or an array without dimensions; 0 for others."""
    if type_of(value) == tape.float_type:
        retain(value)
        return value
    if type_of(value) == tape.int_type:
        return float_from(tape, value)
    if not is_operand(tape, value):
        return float_of_subclass(tape, value)
    data = data_of(tape, value)
    if data == 0:
        return 0
    if is_float(tape, data):
        retain(data)
        return data
    return number_in(tape, data) if type_of(data) == tape.array_type else 0


@inline
def tracked_handle(tape, value, tracking):
    """The handle of an operand: 0 if it is untracked, negative if it cannot be used here. The collector may run."""
    if tracking == 0 or not is_operand(tape, value):
        return 0
    if handle_of(tape, value) < 0:
        register_new(tape, value)
    return handle_of(tape, value)


@inline
def has_data(tape, value, given):
    """Whether an operand still has the data that were taken from it, which may be a number out of an array."""
    data = data_of(tape, value)
    if data == given or not is_float(tape, given):
        return data == given
    if data == 0 or is_float(tape, data) or array_rank(data) != 0 or array_type_number(data) != FLOAT64:
        return False
    return load_i64(array_data(data)) == bits_of(float_value(given))


@inline
def is_same_operand(tape, count, value, given, tracking, handle):
    """Whether code that ran meanwhile has left a second operand, if there is one, as it was."""
    if count == 1 or not is_operand(tape, value):
        return True
    return tracked_handle(tape, value, tracking) == handle and has_data(tape, value, given)


@inline
def shares_memory(tape, a, b):
    """Whether two arrays in C order may have memory in common; owners differ where it came to NumPy twice."""
    if owner(tape.array_type, a) == owner(tape.array_type, b):
        return True
    start, other = array_data(a), array_data(b)
    return start < other + 8 * array_size(b) and other < start + 8 * array_size(a)


@inline
def slices_payload(tape, base, data):
    """What the row of a write to a part keeps in Python, without how the part is taken; 0 without memory."""
    payload = new_payload(tape, tape.slices_operation, 2, tape.none)
    if payload == 0:
        clear_error()
    elif not describe_input(tape, payload, 0, data_of(tape, base)) or not describe_input(tape, payload, 1, data):
        clear_error()
        release(payload)
        return 0
    return payload


@inline
def adopt_value(tape, t, base, slot, payload):
    """Let a tensor, or what it is a view of, have the row of its new value; False without memory."""
    if base == t:
        return go_on_from(tape, t, slot)
    handle, data = handle_of(tape, base), data_of(tape, base)
    return go_on_from(tape, base, slices_row(tape, payload, slot_of(tape, handle), slot, data, data_of(tape, t)))


@inline
def way_payload(tape, t, base, data, tracked):
    """The payload of a write to a view; None if there is no need of one, 0 without memory."""
    if base == t or not tracked:
        retain(tape.none)
        return tape.none
    payload = slices_payload(tape, base, data)
    if payload != 0:
        way = attribute(tape, load_i64(t + tape.meta_at), META_REPLAY)
        retain(way)
        change_attribute(tape, payload, PAYLOAD_ATTRS, way)
    return payload


@inline
def is_same_target(tape, t, tracking, data, base, handle, tracked):
    """Whether code that ran meanwhile has left a target as it was, and its row can be followed."""
    if data_of(tape, t) != data or base_of(tape, t) != base or not is_target(tape, t, tracking):
        return False
    if tracking > 0 and handle_of(tape, t) != handle:
        return False
    return not tracked or base == t or (handle_of(tape, t) > 0 and handle_of(tape, base) > 0)


@inline
def fill_whole(data, number):
    """Write one number into all elements of an array in C order."""
    z, value = doubles_at(array_data(data)), float_value(number)
    for j in range(array_size(data)):
        z[j] = value


@inline
def fill_any(part, number):
    """Write one number into all elements of an array, however they stand."""
    if array_is_contiguous(part):
        fill_whole(part, number)
        return
    rank, value = array_rank(part), float_value(number)
    for place in range(array_size(part)):
        address, rest = array_data(part), place
        for d in range(rank - 1, -1, -1):
            extent = array_dimensions(part)[d]
            address += (rest % extent) * array_strides(part)[d]
            rest = rest // extent
        store_f64(address, value)


@inline
def written_and_followed(tape, t, base, views, number, clock, source, target, tracked):
    """Write a number, or the elements of another array, of which the rows are there; views of the base follow. Gives 1."""
    count_write(tape, t, number, clock)
    if is_float(tape, source):
        fill_any(target, source)
    else:
        copy_doubles(array_data(source), array_data(target), array_size(target))
    if tracked:
        follow(tape, base, views)
        call2(tape.give_back, tape, 0)
    return 1
