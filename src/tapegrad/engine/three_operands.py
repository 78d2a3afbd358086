"""Operators of three operands, compiled: limits, interpolations, and activations with constants.

Common are tensors of small contiguous float64 arrays of one shape, with numbers; where a rule only chooses by an operand, that may
hold truth values. Everything else, and every refusal, is left to the Python form.
"""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.engine.items import release_any
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_data,
    array_is_contiguous,
    array_rank,
    array_size,
    array_type_number,
    call11_word,
    float_value,
    is_float,
    release,
    retain,
    u8,
)
from tapegrad.engine.objects import call_method_form, clear_error, data_of, handle_of, new_array_like, new_tensor, type_of
from tapegrad.engine.operator_results import deliver_tensor, has_partial, is_block, recording, same_shape
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
def shape_of_all(tape, a, b, c):
    """The array whose shape operands have together, all but numbers; 0 if there is none, or they differ."""
    shaped = a if not is_float(tape, a) else b if not is_float(tape, b) else c
    if is_float(tape, shaped):
        return 0
    if (is_float(tape, b) or same_shape(shaped, b)) and (is_float(tape, c) or same_shape(shaped, c)):
        return shaped
    return 0


@inline
def fit_in_shape(tape, opcode, x, y, w):
    """Whether an operation on these cannot fail: new leaves get rows from operations that succeed."""
    a, b, c = usual_operand(tape, opcode, 0, x), usual_operand(tape, opcode, 1, y), usual_operand(tape, opcode, 2, w)
    fit = a != 0 and b != 0 and c != 0 and shape_of_all(tape, a, b, c) != 0
    release_any(a)
    release_any(b)
    release_any(c)
    return fit


@inline
def value_and_row(tape, opcode, t, a, b, c, x_handle, y_handle, w_handle):
    """Compute and record; as `deliver_tensor` answers."""
    shaped = shape_of_all(tape, a, b, c) if a != 0 and b != 0 and c != 0 else 0
    tracked = x_handle != 0 or y_handle != 0 or w_handle != 0
    if shaped == 0 or x_handle < 0 or y_handle < 0 or w_handle < 0 or (tracked and tape.elementwise_row == 0):
        return deliver_tensor(tape, t, 0, 0)
    data, handle = new_array_like(tape, shaped), 0
    if data != 0:
        own_values(tape, opcode, a, b, c, data)
        if tracked:
            handle = call11_word(tape.elementwise_row, tape, opcode, 0, 3, x_handle, a, y_handle, b, w_handle, c, data)
    return deliver_tensor(tape, t, data, handle)


@inline
def result_of_three(tape, opcode, x, y, w):
    """New tensor of an operation; 0 if this is not a common case, -1 if an exception is set."""
    if tape.tensor_type != tape.plain_tensor or not has_own_values(tape, opcode):
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
