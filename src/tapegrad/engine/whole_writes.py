"""Writes to whole tensors, compiled: `zero_`, `fill_` and `copy_`, where elementwise operations in place are (`in_place`)."""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.engine.handles import slot_of
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_size, release, retain
from tapegrad.engine.objects import call_method_form, clear_error, data_of, handle_of, type_of
from tapegrad.engine.operator_results import is_block, recording, same_shape
from tapegrad.engine.record_operation import describe_input, new_payload
from tapegrad.engine.record_scalars import operand_row
from tapegrad.engine.structs import words_at
from tapegrad.engine.view_families import release_any
from tapegrad.engine.write_operands import (
    adopt_value,
    given_number,
    is_same_operand,
    is_same_target,
    shares_memory,
    tracked_handle,
    way_payload,
    written_and_followed,
)
from tapegrad.engine.written_targets import (
    abandon,
    base_of,
    counts_writes,
    has_room_for,
    hosted_row,
    is_target,
    next_count,
    views_that_follow,
)


@inline
def whole_operation(tape, which, value):
    """The operation that fills or copies."""
    if which == WRITE_ZERO:
        return tape.zero_operation
    if which == WRITE_COPY:
        return tape.copy_operation
    return tape.fill_tensor_operation if type_of(value) == tape.plain_tensor else tape.fill_operation


@inline
def whole_written_now(tape, op, inputs, t, base, data, value, source, payload, way, x_handle, y_handle):
    """Write a number, or the elements of another array, when all objects are there; as `array_written` answers."""
    tracked = x_handle > 0 or y_handle > 0
    views = views_that_follow(tape, base, tracked)
    if views < 0 or (tracked and not has_room_for(tape, views)):
        return 0
    number, clock = next_count(tape, t), tape.clock
    if number == 0:
        return 0
    if tracked:
        y = operand_row(tape, y_handle, data_of(tape, value)) if y_handle > 0 else -1
        slot = hosted_row(tape, op, payload, inputs, slot_of(tape, x_handle), y, data)
        if not adopt_value(tape, t, base, slot, way):
            abandon(tape, slot)
            release(number)
            return 0
    return written_and_followed(tape, t, base, views, number, clock, source, data, tracked)


@inline
def whole_on_array(tape, op, inputs, t, value, source, tracking):
    """Write `source`, a number or an array, which is the data of `value`; as `array_written` answers."""
    data, base = data_of(tape, t), base_of(tape, t)
    retain(data)
    retain(base)
    done = whole_on_held_array(tape, op, inputs, t, base, data, value, source, tracking)
    release(base)
    release(data)
    return done


@inline
def whole_on_held_array(tape, op, inputs, t, base, data, value, source, tracking):
    """The same with references to the target's array and to what it is a view of."""
    y_handle = tracked_handle(tape, value, tracking) if inputs == 2 else 0
    if y_handle < 0 or not counts_writes(tape, t):
        return 0
    x_handle = handle_of(tape, t) if tracking > 0 else 0
    tracked = x_handle > 0 or y_handle > 0
    way = way_payload(tape, t, base, data, tracked)
    if way == 0:
        return 0
    payload = new_payload(tape, op, inputs, tape.none) if tracked else 0
    described = payload != 0 and describe_input(tape, payload, 0, data)
    described = described and (inputs == 1 or describe_input(tape, payload, 1, source))
    done = 0
    if tracked and not described:
        clear_error()
    elif is_same_target(tape, t, tracking, data, base, x_handle, tracked) and is_same_operand(
        tape, inputs, value, source, tracking, y_handle
    ):
        done = whole_written_now(tape, op, inputs, t, base, data, value, source, payload, way, x_handle, y_handle)
    release(way)
    release_any(payload)
    return done


@inline
def is_copied(tape, data, source):
    """Whether an array's elements can be copied to another one's in their order."""
    if type_of(source) != tape.array_type or not is_block(tape, source) or not same_shape(data, source):
        return False
    return not shares_memory(tape, data, source)


@inline
def whole_written(tape, which, t, operands, given, names):
    """A write to a whole tensor; as `rule_written` answers."""
    if tape.tensor_type != tape.plain_tensor or type_of(t) != tape.plain_tensor or names != 0:
        return 0
    if given != (0 if which == WRITE_ZERO else 1):
        return 0
    tracking = recording(tape)
    if tracking < 0:
        return -1
    value = words_at(operands)[0] if given == 1 else tape.float_zero
    if type_of(value) == tape.array_class or not is_target(tape, t, tracking) or array_size(data_of(tape, t)) > LARGEST_BLOCK:
        return 0
    if tracking > 0 and tape.hosts_ready == 0:
        return 0
    op = whole_operation(tape, which, value)
    inputs = 2 if which == WRITE_COPY or op == tape.fill_tensor_operation else 1
    number = given_number(tape, value)
    if number != 0:
        done = whole_on_array(tape, op, inputs, t, value, number, tracking)
        release(number)
        return done
    if which != WRITE_COPY or type_of(value) != tape.plain_tensor:
        return 0
    source = data_of(tape, value)
    if source == 0 or not is_copied(tape, data_of(tape, t), source):
        return 0
    retain(source)
    done = whole_on_array(tape, op, inputs, t, value, source, tracking)
    release(source)
    return done


@kernel("int64(Tape,int64,int64,int64,int64,int64)")
def write_whole(tape, which, t, operands, given, names):
    """A method that fills or copies: the tensor, a new reference; 0 if the Python form raised."""
    done = whole_written(tape, which, t, operands, given, names)
    if done == 0:
        return call_method_form(tape.writing_forms[RULE_COUNT + which], t, operands, given, names)
    if done < 0:
        return 0
    retain(t)
    return t
