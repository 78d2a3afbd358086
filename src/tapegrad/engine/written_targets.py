"""What is written in place by compiled code: which tensors may be, counting a write, and rows of views that follow it.

Common are tensors of contiguous float64 and their views while nobody looks at each operation. All objects are made first, since
making them may let the collector run, and with it any code; what was read is looked at again after that.
"""

from tapegrad.compilation.jit import inline
from tapegrad.engine.handles import slot_of, take_handle
from tapegrad.engine.items import complete, meta_of
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_data,
    array_dimensions,
    array_is_contiguous,
    array_is_writeable,
    array_rank,
    array_strides,
    array_type_number,
    call2,
    is_float,
    load_i64,
    owner,
    release,
)
from tapegrad.engine.objects import (
    allocate,
    append_to_list,
    attribute,
    call_object0,
    change_attribute,
    clear_error,
    data_of,
    handle_of,
    integer_value,
    item_of_list,
    length_of_list,
    new_integer,
    new_list,
    set_attribute,
    set_handle,
    set_in_dict,
    set_slice_of_list,
    type_of,
)
from tapegrad.engine.record_operation import put_operand
from tapegrad.engine.record_structural import begin_map_record
from tapegrad.engine.records import begin_record, primal_of
from tapegrad.engine.reference_counts import hold, note_unreferenced, unhold
from tapegrad.engine.rows import refuse, write_row
from tapegrad.engine.written import note_written, written_is_full

MOST_TIMES = 64  # of latest writes that a counter keeps, for messages


@inline
def is_operand(tape, obj):
    """Whether an object is a tensor or an array, and of no other subclass."""
    return type_of(obj) == tape.plain_tensor or type_of(obj) == tape.array_class


@inline
def base_of(tape, t):
    """The tensor that `t` is a view of; itself if it is none."""
    meta = load_i64(t + tape.meta_at)
    if meta == tape.none or attribute(tape, meta, META_BASE) == tape.none:
        return t
    return attribute(tape, meta, META_BASE)


@inline
def is_usual(tape, t, tracking):
    """Whether a tensor is no leaf that requires grad, if something is recorded, and nobody is told of its newest row."""
    meta = load_i64(t + tape.meta_at)
    if tracking > 0 and handle_of(tape, t) < 0:
        return False
    if meta == tape.none:
        return True
    if type_of(meta) != tape.meta_class:
        return False
    return tracking == 0 or (
        attribute(tape, meta, META_LEAF) == tape.none
        and attribute(tape, meta, META_RETAINED) == tape.none
        and attribute(tape, meta, META_ONE_OF_MANY) == tape.no_text
        and attribute(tape, meta, META_MADE_WITHOUT_GRAD) == tape.no_text
    )


@inline
def is_array_of_doubles(tape, data):
    """Whether data are an array of float64."""
    return data != 0 and type_of(data) == tape.array_type and array_type_number(data) == FLOAT64


@inline
def is_doubles(tape, data):
    """Whether data are an array of float64 in C order."""
    return is_array_of_doubles(tape, data) and array_is_contiguous(data)


@inline
def is_target(tape, t, tracking):
    """Whether a tensor's array may be written, whoever it is a view of."""
    data, base = data_of(tape, t), base_of(tape, t)
    if not is_doubles(tape, data) or not array_is_writeable(data) or written_is_full(tape) or not is_usual(tape, t, tracking):
        return False
    return base == t or (is_operand(tape, base) and is_usual(tape, base, tracking) and is_doubles(tape, data_of(tape, base)))


@inline
def new_counter(tape):
    """A counter of no writes; 0 without memory."""
    counter = allocate(tape.version_class, 0)
    if counter == 0:
        return 0
    times = new_list(0)
    if times == 0:
        release(counter)
        return 0
    set_attribute(tape, counter, VERSION_COUNT, new_integer(0))
    set_attribute(tape, counter, VERSION_TIMES, times)
    return counter


@inline
def counts_writes(tape, t):
    """Let a tensor have a counter of writes, unless it has one; whether it has one then. The collector may run."""
    meta = meta_of(tape, t)
    if meta != 0 and attribute(tape, meta, META_VERSION) == tape.none:
        complete(tape, meta, META_VERSION, new_counter(tape))
    if meta == 0 or attribute(tape, meta, META_VERSION) == tape.none:
        clear_error()
        return False
    return True


@inline
def next_count(tape, t):
    """The number of writes with one more, a new reference; 0 without memory, or without a counter."""
    meta = load_i64(t + tape.meta_at)
    if meta == tape.none or attribute(tape, meta, META_VERSION) == tape.none:
        return 0
    counter = attribute(tape, meta, META_VERSION)
    number = new_integer(integer_value(attribute(tape, counter, VERSION_COUNT)) + 1)
    if number == 0:
        clear_error()
    return number


@inline
def note_time(tape, counter, clock):
    """Note when a write was, for messages: without memory they say less."""
    times, time = attribute(tape, counter, VERSION_TIMES), new_integer(clock)
    if time == 0 or append_to_list(times, time) != 0:
        clear_error()
    if time != 0:
        release(time)
    if length_of_list(times) > MOST_TIMES and set_slice_of_list(times, 0, MOST_TIMES // 2, 0) != 0:
        clear_error()


@inline
def count_write(tape, t, number, clock):
    """Count a write at a moment of the tape's clock, after which what was saved from this memory is stale."""
    counter, data = attribute(tape, load_i64(t + tape.meta_at), META_VERSION), data_of(tape, t)
    tape.writes += 1
    change_attribute(tape, counter, VERSION_COUNT, number)
    note_time(tape, counter, clock)
    if is_float(tape, data):
        return
    note_written(tape, data, clock)
    key = new_integer(owner(tape.array_type, data))
    if key == 0 or set_in_dict(attribute(tape, tape.tape_object, TAPE_VERSIONS), key, counter) != 0:
        clear_error()
    if key != 0:
        release(key)


@inline
def follows(tape, view, base, tracked):
    """Whether a view gets a new row when its base was written: 1, 0, or -1 if that is left to Python."""
    meta = load_i64(view + tape.meta_at)
    if meta == tape.none or attribute(tape, meta, META_BASE) != base:
        return 0
    if not tracked:
        return 0 if handle_of(tape, view) == 0 else -1
    usual = is_operand(tape, view) and handle_of(tape, view) > 0 and is_usual(tape, view, 1)
    return 1 if usual and is_array_of_doubles(tape, data_of(tape, view)) else -1


@inline
def views_that_follow(tape, base, tracked):
    """How many living views of a tensor get new rows when it was written; -1 if one of them is left to Python."""
    meta, count = load_i64(base + tape.meta_at), 0
    if meta == tape.none or attribute(tape, meta, META_VIEWS) == tape.none:
        return 0
    views = attribute(tape, meta, META_VIEWS)
    for k in range(length_of_list(views)):
        view = call_object0(item_of_list(views, k))
        if view == 0:
            clear_error()
            return -1
        one = follows(tape, view, base, tracked) if view != tape.none else 0
        release(view)
        if one < 0:
            return -1
        count += one
    return count


@inline
def repoint(tape, handle, slot):
    """Let a handle stand for another row."""
    before = slot_of(tape, handle)
    hold(tape, slot)
    tape.handle[handle] = slot
    if unhold(tape, before) == 0:
        note_unreferenced(tape, before)


@inline
def gather_row(tape, name, handle, data, part):
    """Write the row of a part of an array; its slot. There is room."""
    rank = array_rank(part)
    places = max(rank, 1)
    start, _ = begin_map_record(tape, name, handle, data, places, 1.0, part)
    record, at = tape.side[start], ARGUMENTS + 2 + rank
    record[at], record[at + 1] = places, (array_data(part) - array_data(data)) // 8
    record[at + 2], record[at + 2 + places] = 1, 1
    for d in range(rank):
        record[at + 2 + d] = array_dimensions(part)[d]
        record[at + 2 + places + d] = array_strides(part)[d] // 8
    return write_row(tape, GATHER | WIDE, start, -1, primal_of(tape, part))


@inline
def follow(tape, base, count):
    """Take as many views anew from a tensor that has a new row."""
    if count == 0:
        return
    views, handle, data = attribute(tape, load_i64(base + tape.meta_at), META_VIEWS), handle_of(tape, base), data_of(tape, base)
    for k in range(length_of_list(views)):
        view = call_object0(item_of_list(views, k))
        if view == 0:
            clear_error()
            continue
        if view != tape.none and follows(tape, view, base, True) > 0:
            repoint(tape, handle_of(tape, view), gather_row(tape, tape.strided_name, handle, data, data_of(tape, view)))
        release(view)


@inline
def has_room_for(tape, views):
    """Whether there is room for the rows of a write and of so many views."""
    return not (refuse(tape, 16 + 4 * views, 512 + 256 * views) or tape.saved_bytes > tape.saved_limit)


@inline
def hosted_record(tape, op, payload, count, x, y, result, extra):
    """Write the record of an operation that saves nothing, on rows `x` and `y` (-1: untracked), with words behind its lengths."""
    name = integer_value(attribute(tape, op, OPERATION_NUMBER))
    start = begin_record(tape, name, count, result, payload, extra)
    record = tape.side[start]
    put_operand(tape, record, 0, x, result, False)
    if count > 1:
        put_operand(tape, record, 1, y, result, False)
    return start


@inline
def hosted_row(tape, op, payload, count, x, y, result):
    """Write the row of an operation that saves nothing; its slot. There is room."""
    start = hosted_record(tape, op, payload, count, x, y, result, 0)
    return write_row(tape, HOST | WIDE, start, -1, primal_of(tape, result))


@inline
def slices_row(tape, payload, x, y, data, part):
    """Write the row of an array in which a part was written, and where that part is; its slot. There is room."""
    rank, whole = array_rank(part), array_rank(data)
    start = hosted_record(tape, tape.slices_operation, payload, 2, x, y, data, 2 + 2 * rank)
    record, at = tape.side[start], ARGUMENTS + 4 + whole
    record[at], record[at + 1] = rank, (array_data(part) - array_data(data)) // 8
    for d in range(rank):
        record[at + 2 + d] = array_dimensions(part)[d]
        record[at + 2 + rank + d] = array_strides(part)[d] // 8
    return write_row(tape, HOST | WIDE, start, -1, primal_of(tape, data))


@inline
def go_on_from(tape, t, slot):
    """Let a tensor have this row; False without memory for the number of a first one."""
    handle = handle_of(tape, t)
    if handle > 0:
        repoint(tape, handle, slot)
        return True
    if tape.handle_free < 0:
        return False
    handle = take_handle(tape, slot)
    if set_handle(tape, t, handle):
        return True
    clear_error()
    call2(tape.give_back, tape, handle)
    return False


@inline
def abandon(tape, slot):
    """Give up a row that nothing refers to."""
    if tape.held[slot] == 0:
        note_unreferenced(tape, slot)
    call2(tape.give_back, tape, 0)
