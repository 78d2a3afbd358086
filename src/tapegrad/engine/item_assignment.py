"""``x[key] = value``, compiled, for parts that numbers and slices without a step name.

Rows are those of the Python form: the part as a view, the copy into it, and what it is a part of. The tensor of the part is
not made, since nobody sees it.
"""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.engine.handles import slot_of
from tapegrad.engine.items import name_of_part, whole_key
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_is_contiguous, array_rank, array_size, array_strides, load_i64, release, retain
from tapegrad.engine.objects import (
    attribute,
    call_method_form,
    call_object,
    change_attribute,
    clear_error,
    data_of,
    handle_of,
    item_of,
    type_of,
)
from tapegrad.engine.operator_results import recording, same_shape
from tapegrad.engine.record_operation import describe_input, new_payload
from tapegrad.engine.record_scalars import operand_row
from tapegrad.engine.structs import words_at
from tapegrad.engine.view_families import release_any, way_to
from tapegrad.engine.whole_writes import is_copied
from tapegrad.engine.write_operands import (
    given_number,
    is_same_operand,
    is_same_target,
    slices_payload,
    tracked_handle,
    written_and_followed,
)
from tapegrad.engine.written_targets import (
    abandon,
    base_of,
    count_write,
    counts_writes,
    gather_row,
    go_on_from,
    has_room_for,
    hosted_row,
    is_array_of_doubles,
    is_operand,
    is_target,
    next_count,
    slices_row,
    views_that_follow,
)


@inline
def is_that_part(tape, t, source, part, value):
    """Whether a value is the very part that it is assigned to, as after ``x[key] *= 2``."""
    if not is_operand(tape, value) or base_of(tape, value) != base_of(tape, t) or value == base_of(tape, t):
        return False
    if (handle_of(tape, t) == 0) != (handle_of(tape, base_of(tape, t)) == 0):
        return False
    meta = load_i64(value + tape.meta_at)
    if attribute(tape, meta, META_MADE_WITHOUT_GRAD) != tape.no_text or array_data(source) != array_data(part):
        return False
    if (handle_of(tape, value) == 0) != (handle_of(tape, t) == 0) or not same_shape(source, part):
        return False
    for d in range(array_rank(part)):
        if array_strides(source)[d] != array_strides(part)[d]:
            return False
    return True


@inline
def part_rows(tape, base, data, part, name, value, payload, way, x_handle, y_handle):
    """The rows of a write to a part; False without memory, and then there are none."""
    given = operand_row(tape, y_handle, data_of(tape, value)) if y_handle > 0 else -1
    before = gather_row(tape, name, x_handle, data, part) if x_handle > 0 else -1
    slot = hosted_row(tape, tape.copy_operation, payload, 2, before, given, part)
    first = slot_of(tape, handle_of(tape, base)) if handle_of(tape, base) > 0 else -1
    last = slices_row(tape, way, first, slot, data_of(tape, base), part)
    if go_on_from(tape, base, last):
        return True
    abandon(tape, last)
    return False


@inline
def part_written_now(tape, t, base, data, part, name, value, source, payload, way, x_handle, y_handle):
    """Write to a part when all objects are there: 1 if that is done, 0 if it is left to Python."""
    tracked = x_handle > 0 or y_handle > 0
    views = views_that_follow(tape, base, tracked)
    if views < 0 or (tracked and not has_room_for(tape, views)):
        return 0
    number, clock = next_count(tape, t), tape.clock
    if number == 0:
        return 0
    if tracked and not part_rows(tape, base, data, part, name, value, payload, way, x_handle, y_handle):
        release(number)
        return 0
    return written_and_followed(tape, t, base, views, number, clock, source, part, tracked)


@inline
def counted_only(tape, t):
    """Count a write of what is there already; as `part_written_now` answers."""
    if not counts_writes(tape, t):
        return 0
    number = next_count(tape, t)
    if number == 0:
        return 0
    count_write(tape, t, number, tape.clock)
    return 1


@inline
def part_payloads(tape, t, base, part, source, key):
    """What the rows of a write to a part keep in Python: of the copy into it, and of what it is a part of; zeros without memory."""
    way = slices_payload(tape, base, part)
    take = way_to(tape, load_i64(t + tape.meta_at), call_object(tape.take_class, 1, key, key)) if way != 0 else 0
    payload = new_payload(tape, tape.copy_operation, 2, tape.none) if take != 0 else 0
    if payload == 0 or not describe_input(tape, payload, 0, part) or not describe_input(tape, payload, 1, source):
        clear_error()
        release_any(way)
        release_any(take)
        release_any(payload)
        return 0, 0
    change_attribute(tape, way, PAYLOAD_ATTRS, take)
    return payload, way


@inline
def part_written(tape, t, data, part, name, key, value, source, tracking):
    """Write `source`, the data of `value`, to a part of an array; as `part_written_now` answers."""
    base = base_of(tape, t)
    retain(base)  # whatever destructors do that the collector runs
    done = part_of_base_written(tape, t, base, data, part, name, key, value, source, tracking)
    release(base)
    return done


@inline
def part_of_base_written(tape, t, base, data, part, name, key, value, source, tracking):
    """The same with a reference to what the array is a view of."""
    y_handle = tracked_handle(tape, value, tracking)
    if y_handle < 0 or not counts_writes(tape, t):
        return 0
    x_handle = handle_of(tape, t) if tracking > 0 else 0
    payload, way, done = 0, 0, 0
    tracked = x_handle > 0 or y_handle > 0
    if tracked:
        payload, way = part_payloads(tape, t, base, part, source, key)
        if payload == 0:
            return 0
    if is_same_target(tape, t, tracking, data, base, x_handle, tracked) and is_same_operand(
        tape, 2, value, source, tracking, y_handle
    ):
        done = part_written_now(tape, t, base, data, part, name, value, source, payload, way, x_handle, y_handle)
    release_any(payload)
    release_any(way)
    return done


@inline
def value_written(tape, t, data, part, name, key, value, tracking):
    """Write a number or a tensor to a part of an array; as `part_written_now` answers."""
    source = data_of(tape, value) if is_operand(tape, value) else 0
    is_array = is_array_of_doubles(tape, source)
    if is_array and tracking > 0 and is_that_part(tape, t, source, part, value):
        return counted_only(tape, t)
    number = given_number(tape, value)
    if number != 0:
        done = part_written(tape, t, data, part, name, key, value, number, tracking)
        release(number)
        return done
    if not is_array or not array_is_contiguous(part) or not is_copied(tape, part, source):
        return 0
    retain(source)
    done = part_written(tape, t, data, part, name, key, value, source, tracking)
    release(source)
    return done


@inline
def item_written(tape, t, key, value):
    """``t[key] = value``: 1 if it is done, 0 if that is left to Python, -1 if an exception is set."""
    if tape.tensor_type != tape.plain_tensor or not is_operand(tape, t):
        return 0
    tracking = recording(tape)
    if tracking < 0:
        return -1
    if not is_target(tape, t, tracking) or array_rank(data_of(tape, t)) == 0:
        return 0
    if tracking > 0 and (tape.hosts_ready == 0 or tape.items_ready == 0):
        return 0
    whole = whole_key(tape, key)
    if whole == 0:
        return 0
    data = data_of(tape, t)
    retain(data)
    part, done = item_of(data, whole), 0
    if part == 0:
        clear_error()  # the Python form says what is wrong
    elif 0 < array_size(part) <= LARGEST_BLOCK:
        name = name_of_part(tape, whole, type_of(key) == tape.slice_type, data, part)
        done = value_written(tape, t, data, part, name, whole, value, tracking)
    release_any(part)
    release(data)
    release(whole)
    return done


@kernel("int64(Tape,int64,int64,int64)")
def write_item(tape, t, operands, given):
    """The method ``__setitem__``: None, 0 if the Python form raised."""
    if given == 2:
        done = item_written(tape, t, words_at(operands)[0], words_at(operands)[1])
        if done != 0:
            if done < 0:
                return 0
            retain(tape.none)
            return tape.none
    form = tape.writing_forms[RULE_COUNT + WHOLE_WRITES + (1 if type_of(t) == tape.array_class else 0)]
    return call_method_form(form, t, operands, given, 0)
