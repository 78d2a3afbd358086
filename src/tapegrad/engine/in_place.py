"""Elementwise operations in place, compiled: value, row and version in one call.

Common are tensors of contiguous float64, and numbers, with numbers and tensors that fit to them, while nobody looks at each
operation. Everything else, and every refusal of the tape, is left to the Python form, which is always right; until a write is
certain, nothing is changed that anybody sees.
"""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.engine.handles import slot_of
from tapegrad.engine.layout import *
from tapegrad.engine.long_values import copy_doubles, has_long_values, large_like, write_long_values
from tapegrad.engine.memory import (
    array_data,
    array_dimensions,
    array_rank,
    array_size,
    call2,
    call11_word,
    float_value,
    is_float,
    load_f64,
    release,
    retain,
    store_f64,
    store_i64,
)
from tapegrad.engine.objects import call_method_form, clear_error, data_of, handle_of, new_array_like, new_float, type_of
from tapegrad.engine.operator_results import (
    common_shape,
    compute,
    forms_of,
    has_partial,
    has_scalar_form,
    is_doubles_in_order,
    recording,
    same_shape,
    stretched_values,
    value_of,
)
from tapegrad.engine.own_values import has_own_values, own_values
from tapegrad.engine.record_scalars import record_scalars
from tapegrad.engine.rule_loops import has_loops
from tapegrad.engine.structs import words_at
from tapegrad.engine.vacating import note_overwritten
from tapegrad.engine.view_families import release_any
from tapegrad.engine.write_operands import (
    adopt_value,
    given_number,
    is_same_operand,
    is_same_target,
    shares_memory,
    tracked_handle,
    way_payload,
)
from tapegrad.engine.written_targets import (
    base_of,
    count_write,
    counts_writes,
    follow,
    go_on_from,
    has_room_for,
    is_target,
    is_usual,
    next_count,
    repoint,
    views_that_follow,
)


@inline
def way_to_combine(tape, opcode, a, b):
    """Whether an array can be combined with another one into its own place: 1 element by element, 2 stretched, 0 not."""
    if type_of(b) != tape.array_type or not is_doubles_in_order(b) or shares_memory(tape, a, b):
        return 0
    if same_shape(a, b):
        return 1
    rounds_alike = forms_of(tape, opcode) & HAS_EXACT != 0 and has_loops(tape, opcode)
    if array_size(b) > LARGEST_BLOCK or not rounds_alike or common_shape(tape, a, b) != array_rank(a):
        return 0
    for d in range(array_rank(a)):
        if tape.lengths[d] != array_dimensions(a)[d]:
            return 0
    return 2


@inline
def element_value(tape, opcode, a, b, out):
    """The value of an element as a number, by the rule's value on scalars."""
    x = load_f64(array_data(a))
    store_f64(array_data(out), value_of(tape, opcode, x, float_value(b) if is_float(tape, b) else x))


@inline
def write_values(tape, opcode, count, how, is_large, old, b, c, data):
    """Write the values of a rule of what was there, `old`, into an array; if that is large, `old` is the array or gets what was."""
    if is_large:
        write_long_values(tape, opcode, count, old, b, c, data)
    elif count == 3:
        own_values(tape, opcode, old, b, c, data)
    elif array_rank(data) == 0:
        element_value(tape, opcode, old, b, data)
    elif how == 2:
        stretched_values(tape, opcode, old, b, data)
    else:
        compute(tape, opcode, count, old, b, data)


@inline
def can_compute(tape, opcode, data, is_large):
    """Whether a rule's values can be computed here."""
    if array_rank(data) == 0:
        return opcode != POWER and has_scalar_form(tape, opcode)
    if is_large:
        return has_long_values(tape, opcode)
    return (
        tape.loops[opcode].function != 0
        or has_own_values(tape, opcode)
        or (forms_of(tape, opcode) & HAS_EXACT != 0 and has_loops(tape, opcode))
    )


@inline
def has_derivatives(tape, opcode, x_handle, y_handle, w_handle):
    """Whether a rule has derivatives by the operands that are tracked."""
    if x_handle > 0 and not has_partial(tape, opcode, 0):
        return False
    return (y_handle == 0 or has_partial(tape, opcode, 1)) and (w_handle == 0 or has_partial(tape, opcode, 2))


@inline
def reads_target(tape, opcode, x_handle, y_handle, w_handle):
    """Whether a derivative that is wanted reads what was there."""
    uses = tape.rules[opcode].uses
    wanted_uses = (uses if x_handle > 0 else 0) | (uses >> 4 if y_handle > 0 else 0) | (uses >> 8 if w_handle > 0 else 0)
    return wanted_uses & 1 != 0


@inline
def kept_target(tape, data, is_large, is_read):
    """A new array for what was there, or the target itself if it is large and not read; 0 without memory, or if that raised."""
    if not is_large:
        return new_array_like(tape, data)
    if is_read:
        return large_like(tape, data)
    retain(data)
    return data


@inline
def array_written(tape, opcode, count, t, y, b, w, c, tracking, how, is_large):
    """Write a rule's values into an array; `b` and `c` are the data of `y` and `w`, if there are so many operands.

    1 if that is done, 0 if it is left to Python, -1 if an exception is set.
    """
    data, base = data_of(tape, t), base_of(tape, t)
    retain(data)  # whatever destructors do that the collector runs
    retain(base)
    done = held_array_written(tape, opcode, count, t, base, data, y, b, w, c, tracking, how, is_large)
    release(base)
    release(data)
    return done


@inline
def held_array_written(tape, opcode, count, t, base, data, y, b, w, c, tracking, how, is_large):
    """The same with references to the target's array and to what it is a view of."""
    y_handle = tracked_handle(tape, y, tracking) if count > 1 else 0
    w_handle = tracked_handle(tape, w, tracking) if count > 2 else 0
    if y_handle < 0 or w_handle < 0 or not counts_writes(tape, t):
        return 0
    x_handle = handle_of(tape, t) if tracking > 0 else 0
    tracked = x_handle > 0 or y_handle > 0 or w_handle > 0
    if not has_derivatives(tape, opcode, x_handle, y_handle, w_handle):
        return 0
    payload = way_payload(tape, t, base, data, tracked)
    if payload == 0:
        return 0
    old = kept_target(tape, data, is_large, is_large and reads_target(tape, opcode, x_handle, y_handle, w_handle))
    if old == 0:
        release(payload)
        if is_large:
            return -1
        clear_error()
        return 0
    done, is_same = 0, is_same_target(tape, t, tracking, data, base, x_handle, tracked)
    is_same = is_same and is_same_operand(tape, count, y, b, tracking, y_handle)
    if is_same and (count < 3 or is_same_operand(tape, count, w, c, tracking, w_handle)):
        handles = x_handle, y_handle, w_handle
        done = array_written_now(tape, opcode, count, t, base, data, old, b, c, handles, payload, how, is_large)
    release(old)
    release(payload)
    return done


@inline
def array_written_now(tape, opcode, count, t, base, data, old, b, c, handles, payload, how, is_large):
    """The same when all objects are there with which the collector could come; `b` and `c` are 0 if there are no such operands.

    What was there is kept in `old`, which is the target's array itself if nobody reads it.
    """
    x_handle, y_handle, w_handle = handles
    tracked = x_handle > 0 or y_handle > 0 or w_handle > 0
    views = views_that_follow(tape, base, tracked)
    if views < 0 or (tracked and not has_room_for(tape, views)):
        return 0
    number = next_count(tape, t)
    if number == 0:
        return 0
    if not is_large:
        copy_doubles(array_data(data), array_data(old), array_size(data))
    second, third, clock, handle = b if count > 1 else old, c if count > 2 else 0, tape.clock, 0
    if tracked:
        handle = call11_word(tape.elementwise_row, tape, opcode, 1, count, x_handle, old, y_handle, second, w_handle, third, data)
        if handle <= 0 or not adopt_value(tape, t, base, slot_of(tape, handle), payload):
            if handle > 0:
                call2(tape.give_back, tape, handle)
            release(number)
            return 0
    count_write(tape, t, number, clock)
    write_values(tape, opcode, count, how, is_large, old, second, third, data)
    if tracked:
        follow(tape, base, views)
        call2(tape.give_back, tape, handle)
    return 1


@inline
def given_operand(tape, opcode, data, y):
    """A new reference to the float or array that an operand beside a target is, and how they are combined; 0 for others."""
    number = given_number(tape, y)
    if number != 0:
        return number, 1
    if type_of(y) != tape.plain_tensor or array_rank(data) == 0:
        return 0, 0
    b = data_of(tape, y)
    how = way_to_combine(tape, opcode, data, b) if b != 0 and not is_float(tape, b) else 0
    if how == 0:
        return 0, 0
    retain(b)
    return b, how


@inline
def rule_on_array(tape, opcode, count, t, y, w, tracking):
    """An elementwise operation into an array; as `array_written` answers."""
    data = data_of(tape, t)
    is_large = array_size(data) > LARGEST_BLOCK
    if not is_target(tape, t, tracking) or not can_compute(tape, opcode, data, is_large):
        return 0
    if tracking > 0 and tape.elementwise_row == 0:
        return 0
    if base_of(tape, t) != t and tape.hosts_ready == 0:
        return 0
    if count == 1:
        return array_written(tape, opcode, count, t, t, 0, t, 0, tracking, 1, is_large)
    b, how = given_operand(tape, opcode, data, y)
    if b == 0:
        return 0
    c, other, done = 0, 1, 0
    if count == 3:
        c, other = given_operand(tape, opcode, data, w)
    if count == 2 or (c != 0 and how == 1 and other == 1):
        done = array_written(tape, opcode, count, t, y, b, w, c, tracking, how, is_large)
    release_any(c)
    release(b)
    return done


@inline
def number_recorded(tape, opcode, count, x_handle, x, y_handle, y, z):
    """Rows of a number that is written: the value that is there gets a row of its own, which the derivative may read.

    Two handles, 0 where there is none; a negative second one: refused.
    """
    before = 0
    if x_handle > 0:
        before = record_scalars(tape, 0, 1, x_handle, x, 0, 0.0, x)
        if before <= 0:
            return 0, -1
    handle = record_scalars(tape, opcode, count, before, x, y_handle, y, z)
    if handle <= 0:
        if before > 0:
            call2(tape.give_back, tape, before)
        return 0, -1
    return before, handle


@inline
def number_written(tape, opcode, count, t, y, other, tracking):
    """Write a rule's value into a tensor that holds a number, with the number `other`; as `array_written` answers."""
    y_handle = tracked_handle(tape, y, tracking) if count == 2 else 0
    if y_handle < 0 or not counts_writes(tape, t) or not is_usual(tape, t, tracking) or base_of(tape, t) != t:
        return 0
    held = data_of(tape, t)
    x_handle = handle_of(tape, t) if tracking > 0 else 0
    tracked = x_handle > 0 or y_handle > 0
    if held == 0 or not is_float(tape, held) or (tracked and tape.scalars_ready == 0):
        return 0
    if not is_same_operand(tape, count, y, other, tracking, y_handle):
        return 0
    x = float_value(held)
    y_value = float_value(other) if count == 2 else x
    data, number = new_float(value_of(tape, opcode, x, y_value)), next_count(tape, t)
    before, handle, clock = 0, 0, tape.clock
    if data == 0 or number == 0 or views_that_follow(tape, t, tracked) != 0:
        clear_error()
        handle = -1
    elif tracked:
        before, handle = number_recorded(tape, opcode, count, x_handle, x, y_handle, y_value, float_value(data))
        if handle > 0 and x_handle == 0 and not go_on_from(tape, t, slot_of(tape, handle)):
            call2(tape.give_back, tape, handle)
            handle = -1
    if handle < 0:
        if before > 0:
            call2(tape.give_back, tape, before)
        release_any(data)
        release_any(number)
        return 0
    count_write(tape, t, number, clock)
    store_i64(t + tape.data_at, data)
    release(held)
    if handle_of(tape, t) > 0 and (x_handle > 0 or not tracked):
        note_overwritten(tape, handle_of(tape, t))
    if x_handle > 0:
        repoint(tape, x_handle, slot_of(tape, handle))
    call2(tape.give_back, tape, before)
    call2(tape.give_back, tape, handle)
    return 1


@inline
def rule_on_number(tape, opcode, count, t, y, tracking):
    """An elementwise operation into a number; as `array_written` answers."""
    if count == 3 or opcode == POWER or (y == t and count == 2) or not has_scalar_form(tape, opcode):
        return 0
    if count == 1:
        return number_written(tape, opcode, count, t, t, 0, tracking)
    other = given_number(tape, y)
    if other == 0:
        return 0
    done = number_written(tape, opcode, count, t, y, other, tracking)
    release(other)
    return done


@inline
def rule_written(tape, opcode, count, t, operands, given, names):
    """An elementwise operation in place: 1 if it is done, 0 if that is left to Python, -1 if an exception is set."""
    if tape.tensor_type != tape.plain_tensor or type_of(t) != tape.plain_tensor or names != 0 or given != count - 1:
        return 0
    y = words_at(operands)[0] if count > 1 else t
    w = words_at(operands)[1] if count > 2 else t
    if (count > 1 and type_of(y) == tape.array_class) or (count > 2 and type_of(w) == tape.array_class):
        return 0  # which may mean numbers of NumPy's, with other bits
    tracking = recording(tape)
    if tracking < 0:
        return -1
    data = data_of(tape, t)
    if data == 0:
        return 0
    if is_float(tape, data):
        return rule_on_number(tape, opcode, count, t, y, tracking)
    return rule_on_array(tape, opcode, count, t, y, w, tracking)


@kernel("int64(Tape,int64,int64,int64,int64,int64,int64)")
def write_rule(tape, opcode, count, t, operands, given, names):
    """An in-place method of a rule: the tensor, a new reference; 0 if the Python form raised."""
    done = rule_written(tape, opcode, count, t, operands, given, names)
    if done == 0:
        return call_method_form(tape.writing_forms[opcode], t, operands, given, names)
    if done < 0:
        return 0
    retain(t)
    return t
