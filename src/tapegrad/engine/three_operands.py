"""Operators of three operands, compiled: limits, interpolations, and activations with constants.

Common are tensors of small contiguous float64 arrays, of one shape or stretched to it, with numbers; where a rule only chooses by
an operand, that may hold truth values. Everything else, and every refusal, is left to the Python form.
"""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.engine.items import release_any
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_data,
    array_dimensions,
    array_is_contiguous,
    array_rank,
    array_size,
    array_type_number,
    call11_word,
    f64,
    is_float,
    retain,
    u8,
)
from tapegrad.engine.objects import (
    call_method_form,
    clear_error,
    data_of,
    handle_of,
    new_array,
    new_array_like,
    new_tensor,
    type_of,
)
from tapegrad.engine.operator_results import deliver_tensor, has_partial, is_block, length, number_in, recording, same_shape, step
from tapegrad.engine.operators import float_from, registered_handle
from tapegrad.engine.own_values import has_own_values, own_values
from tapegrad.engine.structs import doubles_at, words_at


@inline
def is_choice(tape, opcode, k, data):
    """Whether an operand is a small array of truth values by which a rule chooses."""
    if has_partial(tape, opcode, k) or array_type_number(data) != BOOL or array_rank(data) == 0:
        return False
    return array_is_contiguous(data) and array_size(data) <= LARGEST_BLOCK


@inline
def numbers_of(tape, data):
    """A new array of zeros and ones for truth values; 0 without memory."""
    made = new_array_like(tape, data)
    if made == 0:
        clear_error()
        return 0
    choices, numbers = u8(array_data(data), array_size(data)), doubles_at(array_data(made))
    for j in range(array_size(data)):
        numbers[j] = 1.0 if choices[j] != 0 else 0.0
    return made


@inline
def usual_operand(tape, opcode, k, obj):
    """A new reference to the float or array that an operand is; 0 for what is not common."""
    if type_of(obj) == tape.float_type:
        retain(obj)
        return obj
    if type_of(obj) != tape.plain_tensor:
        return float_from(tape, obj)
    data = data_of(tape, obj)
    if data == 0:
        return 0
    if not is_float(tape, data) and is_choice(tape, opcode, k, data):
        return numbers_of(tape, data)
    if not is_float(tape, data) and array_rank(data) == 0 and handle_of(tape, obj) == 0:
        return number_in(tape, data)
    if not is_float(tape, data) and not is_block(tape, data):
        return 0
    retain(data)
    return data


@inline
def may_be_tracked(tape, opcode, k, obj):
    """Whether an operand is untracked, or one of an array by which there is a derivative."""
    if type_of(obj) != tape.plain_tensor or handle_of(tape, obj) == 0:
        return True
    data = data_of(tape, obj)
    return data != 0 and not is_float(tape, data) and has_partial(tape, opcode, k)


@inline
def handle_of_operand(tape, obj, tracking):
    """The handle of an operand, which is registered if it is a new leaf."""
    if tracking == 0 or type_of(obj) != tape.plain_tensor:
        return 0
    return registered_handle(tape, obj, handle_of(tape, obj))


@inline
def extent(tape, obj, rank, d):
    """The length of a number or an array along a dimension of something of this rank."""
    return 1 if is_float(tape, obj) else length(obj, rank, d)


@inline
def rank_of(tape, obj):
    """How many dimensions a number or an array has."""
    return 0 if is_float(tape, obj) else array_rank(obj)


@inline
def rank_of_all(tape, opcode, a, b, c):
    """Rank of operands together, whose lengths are written to `LENGTHS`; 0 if all are numbers, they do not fit, or are large.

    Arrays are of one shape, unless the rule rounds in the same way in whichever loop.
    """
    rank, size = max(rank_of(tape, a), rank_of(tape, b), rank_of(tape, c)), 1
    if rank > MOST_LENGTHS:
        return 0
    for d in range(rank):
        most = 1
        for k in (extent(tape, a, rank, d), extent(tape, b, rank, d), extent(tape, c, rank, d)):
            if k != 1 and most != 1 and k != most:
                return 0
            most = k if k != 1 else most
        tape.lengths[d] = most
        size *= most
        if size > LARGEST_BLOCK:
            return 0
    if tape.loops[opcode].data == BY_OWN_LOOP:
        return rank
    has_all = has_lengths(tape, a, rank) and has_lengths(tape, b, rank) and has_lengths(tape, c, rank)
    return rank if has_all else 0


@inline
def has_lengths(tape, obj, rank):
    """Whether an operand is a number, or an array of the shape in `LENGTHS`."""
    if is_float(tape, obj):
        return True
    if array_rank(obj) != rank:
        return False
    for d in range(rank):
        if array_dimensions(obj)[d] != tape.lengths[d]:
            return False
    return True


@inline
def stretched_run(out, place, own, count):
    """The elements along the last dimension, or one number for all of them."""
    values = f64(place, count if own != 0 else 1)
    if own == 0:
        for j in range(count):
            out[j] = values[0]
    else:
        for j in range(count):
            out[j] = values[j]


@inline
def stretched_to(tape, obj, out):
    """A new reference to a number or an array, written out in the shape of another one; 0 without memory."""
    if is_float(tape, obj) or same_shape(obj, out):
        retain(obj)
        return obj
    made = new_array_like(tape, out)
    if made == 0:
        clear_error()
        return 0
    rank, size = array_rank(out), array_size(out)
    n = array_dimensions(out)[rank - 1]
    own = step(obj, rank, rank - 1)
    for row in range(size // n if n > 0 else 0):
        place, rest = array_data(obj), row
        for d in range(rank - 2, -1, -1):
            count = array_dimensions(out)[d]
            place += (rest % count) * step(obj, rank, d)
            rest = rest // count
        stretched_run(f64(array_data(made) + 8 * n * row, n), place, own, n)
    return made


@inline
def values_of_three(tape, opcode, a, b, c, out):
    """Write the values of operands that fit to the result; False without memory."""
    x, y, w = stretched_to(tape, a, out), stretched_to(tape, b, out), stretched_to(tape, c, out)
    done = x != 0 and y != 0 and w != 0
    if done:
        own_values(tape, opcode, x, y, w, out)
    release_any(x)
    release_any(y)
    release_any(w)
    return done


@inline
def fit_in_shape(tape, opcode, x, y, w):
    """Whether an operation on these cannot fail: new leaves get rows from operations that succeed."""
    a, b, c = usual_operand(tape, opcode, 0, x), usual_operand(tape, opcode, 1, y), usual_operand(tape, opcode, 2, w)
    fit = a != 0 and b != 0 and c != 0 and rank_of_all(tape, opcode, a, b, c) > 0
    release_any(a)
    release_any(b)
    release_any(c)
    return fit


@inline
def value_and_row(tape, opcode, t, a, b, c, x_handle, y_handle, w_handle):
    """Compute and record; as `deliver_tensor` answers."""
    rank = rank_of_all(tape, opcode, a, b, c) if a != 0 and b != 0 and c != 0 else 0
    tracked = x_handle != 0 or y_handle != 0 or w_handle != 0
    if rank == 0 or x_handle < 0 or y_handle < 0 or w_handle < 0 or (tracked and tape.elementwise_row == 0):
        return deliver_tensor(tape, t, 0, 0)
    data, handle = new_array(tape, FLOAT64, rank, tape.lengths), 0
    if data != 0:
        if not values_of_three(tape, opcode, a, b, c, data):
            handle = UNSUPPORTED
        elif tracked:
            handle = call11_word(tape.elementwise_row, tape, opcode, 0, 3, x_handle, a, y_handle, b, w_handle, c, data)
    return deliver_tensor(tape, t, data, handle)


@inline
def holds_doubles(tape, obj):
    """Whether an operand is a tensor of float64: of numbers and truth values alone the dtype is another question."""
    if type_of(obj) != tape.plain_tensor:
        return False
    data = data_of(tape, obj)
    return data != 0 and (is_float(tape, data) or array_type_number(data) == FLOAT64)


@inline
def result_of_three(tape, opcode, x, y, w):
    """New tensor of an operation; 0 if this is not a common case, -1 if an exception is set."""
    if tape.tensor_type != tape.plain_tensor or not has_own_values(tape, opcode):
        return 0
    if not (holds_doubles(tape, x) or holds_doubles(tape, y) or holds_doubles(tape, w)):
        return 0
    tracking = recording(tape)  # first, because this may run Python
    if tracking < 0:
        return -1
    if tracking > 0:
        for k, obj in ((0, x), (1, y), (2, w)):
            if not may_be_tracked(tape, opcode, k, obj):
                return 0
    if not fit_in_shape(tape, opcode, x, y, w):
        return 0
    t = new_tensor(tape)  # before data are read, because destructors that the collector runs may change the operands
    if t == 0:
        clear_error()
        return 0
    hx, hy, hw = handle_of_operand(tape, x, tracking), handle_of_operand(tape, y, tracking), handle_of_operand(tape, w, tracking)
    a, b, c = usual_operand(tape, opcode, 0, x), usual_operand(tape, opcode, 1, y), usual_operand(tape, opcode, 2, w)
    t = value_and_row(tape, opcode, t, a, b, c, hx, hy, hw)
    release_any(a)
    release_any(b)
    release_any(c)
    return t


@kernel("int64(Tape,int64,int64,int64,int64)")
def operate_three(tape, opcode, x, operands, given):
    """Operator of a tensor and two more operands, in words; a new reference, 0 if the Python form raised."""
    if given == 2:
        others = words_at(operands)
        t = result_of_three(tape, opcode, x, others[0], others[1])
        if t != 0:
            return 0 if t == -1 else t
    return call_method_form(tape.fallbacks[2 * opcode], x, operands, given, 0)
