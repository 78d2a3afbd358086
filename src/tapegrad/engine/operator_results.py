"""What an operator of `Tensor` gives, compiled: the value of an elementwise operation, its row, and the new tensor.

Operands are float64 scalars and small contiguous float64 arrays, of one shape or stretched to one, with Python numbers. Nothing
here raises: a zero in the place of a tensor is a refusal, and left to the Python form.
"""

from tapegrad.compilation.jit import inline
from tapegrad.compilation.memory_types import address_of, from_element
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    OBJECT,
    array_data,
    array_dimensions,
    array_is_contiguous,
    array_rank,
    array_size,
    array_strides,
    array_type_number,
    call2,
    call11_word,
    call_loop,
    call_primal,
    float_value,
    is_float,
    load_f64,
    release,
    store_i64,
)
from tapegrad.engine.objects import call_object0, clear_error, new_array, new_array_like, new_float, set_handle
from tapegrad.engine.own_values import has_own_values, own_values
from tapegrad.engine.record_scalars import record_scalars
from tapegrad.engine.rule_loops import has_loops, value_by_loop


@inline
def recording(tape):
    """Whether this thread records, -1 for an exception; asks Python only while some thread does not."""
    if tape.recording_off == 0:
        return 1
    answer = call_object0(tape.is_recording)
    if answer == 0:
        return -1  # a signal's handler may raise there, on Ctrl-C for one
    release(answer)
    return 1 if answer == tape.true else 0


@inline
def forms_of(tape, opcode):
    """Bits that say which compiled forms a rule's value has."""
    return tape.rules[opcode].uses


@inline
def has_scalar_form(tape, opcode):
    """Whether a rule's value on scalars can be computed here."""
    return forms_of(tape, opcode) & HAS_SCALAR != 0 and has_loops(tape, opcode)


@inline
def value_of(tape, opcode, x, y):
    """A rule's value on scalars."""
    return call_primal(tape.primal, opcode, x, y) if opcode < COMMON else value_by_loop(tape, opcode, x, y)


@inline
def is_doubles_in_order(obj):
    """Whether data is an array that loops can read as one block."""
    return array_type_number(obj) == FLOAT64 and array_is_contiguous(obj) and array_rank(obj) != 0


@inline
def is_block(tape, obj):
    """Whether data is a small array that loops can read as one block."""
    return is_doubles_in_order(obj) and array_size(obj) <= LARGEST_BLOCK


@inline
def number_in(tape, obj):
    """A new float for data without dimensions, such as an element taken from a tensor; 0 for other data, or without memory."""
    if is_float(tape, obj) or array_rank(obj) != 0 or array_type_number(obj) != FLOAT64:
        return 0
    number = new_float(load_f64(array_data(obj)))
    if number == 0:
        clear_error()
    return number


@inline
def same_shape(obj, other):
    """Whether two arrays have the same lengths."""
    if array_rank(obj) != array_rank(other):
        return False
    for d in range(array_rank(obj)):
        if array_dimensions(obj)[d] != array_dimensions(other)[d]:
            return False
    return True


@inline
def deliver_tensor(tape, t, data, handle):
    """Put value and handle into a new tensor. 0 if the tape refused or memory is out: then nothing is left of it."""
    if data != 0 and handle >= 0:
        store_i64(t + tape.data_at, data)
        if handle == 0 or set_handle(tape, t, handle):
            return t
        clear_error()
        call2(tape.give_back, tape, handle)
        release(t)
        return 0
    if data != 0:
        release(data)
    else:
        clear_error()
    release(t)
    return 0


@inline
def has_numpys_form(tape, opcode):
    """Whether a rule's value on numbers of NumPy's is that of a loop of NumPy's."""
    return forms_of(tape, opcode) & BY_NUMPY != 0 and tape.loops[opcode].function != 0 and has_loops(tape, opcode)


@inline
def numpys_value(tape, opcode, count, a, b):
    """A rule's value on floats by NumPy's loop, of one element as NumPy calls it: without steps."""
    loop, place = tape.loops[opcode], address_of(tape, VALUE_OF_LOOP)
    call_loop(loop.function, loop.data, 1, a + OBJECT, 0, b + OBJECT, 0, place, 8, count - 1)
    return tape.value_of_loop


@inline
def scalar_result(tape, opcode, t, count, a, b, x_handle, y_handle, by_numpy, exponent):
    """Compute and record on two floats, or one; as `deliver_tensor` answers.

    Where one of them is a number of NumPy's, the value has NumPy's bits; there the rule may stand for a power with an exponent.
    """
    tracked = x_handle != 0 or y_handle != 0
    by_loop = by_numpy and has_numpys_form(tape, opcode)
    if not (by_loop or has_scalar_form(tape, opcode)) or (tracked and tape.scalars_ready == 0):
        return deliver_tensor(tape, t, 0, 0)
    x, y = float_value(a), float_value(b)
    if by_loop:
        z = numpys_value(tape, opcode, count, a, b)
    elif exponent != 0.0:
        z = call_primal(tape.primal, POWER, x, exponent)
    else:
        z = value_of(tape, opcode, x, y)
    data = new_float(z)
    handle = 0
    if data != 0 and tracked:
        handle = record_scalars(tape, opcode, count, x_handle, x, y_handle, y, z)
    return deliver_tensor(tape, t, data, handle)


@inline
def start_of(tape, obj):
    """Address of the first number of a float or an array."""
    return obj + OBJECT if is_float(tape, obj) else array_data(obj)


@inline
def compute(tape, opcode, count, a, b, out):
    """Values on small arrays: by NumPy's own loop, by a loop of ours that has the same bits, or by the compiled primal where
    that rounds in the same way.

    False if the rule has none.
    """
    n, x, y, z = array_size(out), start_of(tape, a), start_of(tape, b), doubles_at(array_data(out))
    x_stride, y_stride = (0 if is_float(tape, a) else 8), (0 if is_float(tape, b) else 8)
    loop = tape.loops[opcode]
    if loop.function != 0:
        call_loop(loop.function, loop.data, n, x, x_stride, y, y_stride, z, 8, count - 1)
    elif has_own_values(tape, opcode):
        own_values(tape, opcode, a, b, b, out)
    elif forms_of(tape, opcode) & HAS_EXACT != 0 and has_loops(tape, opcode):
        for j in range(n):
            value = value_of(tape, opcode, load_f64(x + x_stride * j), load_f64(y + y_stride * j))
            z[j] = value
    else:
        return False
    return True


@inline
def recorded_result(tape, opcode, t, count, a, b, x_handle, y_handle, data, is_computed):
    """A result on small arrays that was computed, recorded; as `deliver_tensor` answers."""
    handle = 0
    if data != 0:
        if not is_computed:
            handle = UNSUPPORTED
        elif x_handle != 0 or y_handle != 0:
            handle = call11_word(tape.elementwise_row, tape, opcode, 0, count, x_handle, a, y_handle, b, 0, 0, data)
    return deliver_tensor(tape, t, data, handle)


@inline
def has_partial(tape, opcode, k):
    """Whether a rule has a derivative by an operand."""
    return tape.rules[opcode].partials[k] != -1


@inline
def can_be_recorded(tape, opcode, x_handle, y_handle):
    """Whether nothing is tracked, or rows of arrays can be written and there is a derivative."""
    if (x_handle != 0 and not has_partial(tape, opcode, 0)) or (y_handle != 0 and not has_partial(tape, opcode, 1)):
        return False
    return x_handle >= 0 and y_handle >= 0 and ((x_handle == 0 and y_handle == 0) or tape.elementwise_row != 0)


@inline
def array_result(tape, opcode, t, count, a, b, x_handle, y_handle):
    """Result on small arrays; `b` is `a` again if there is one operand."""
    if not can_be_recorded(tape, opcode, x_handle, y_handle):
        return deliver_tensor(tape, t, 0, 0)
    data = new_array_like(tape, b if is_float(tape, a) else a)
    is_computed = data != 0 and compute(tape, opcode, count, a, b, data)
    return recorded_result(tape, opcode, t, count, a, b, x_handle, y_handle, data, is_computed)


@inline
def length(obj, rank, d):
    """An array's length along a dimension of one of this rank; 1 where it has none."""
    own = d - (rank - array_rank(obj))
    return array_dimensions(obj)[own] if own >= 0 else 1


@inline
def step(obj, rank, d):
    """Bytes from one element to the next along such a dimension; 0 where the array is stretched."""
    own = d - (rank - array_rank(obj))
    if own < 0 or array_dimensions(obj)[own] == 1:
        return 0
    return array_strides(obj)[own]


@inline
def common_shape(tape, a, b):
    """Rank of two arrays together, whose lengths are written to `LENGTHS`; -1 if they do not fit, or the result is large."""
    rank, size = max(array_rank(a), array_rank(b)), 1
    if rank > MOST_LENGTHS:
        return -1
    for d in range(rank):
        n, m = length(a, rank, d), length(b, rank, d)
        if n != m and n != 1 and m != 1:
            return -1
        tape.lengths[d] = m if n == 1 else n
        size *= m if n == 1 else n
        if size > LARGEST_BLOCK:
            return -1
    return rank


@inline
def stretched_row(tape, opcode, n, x, x_step, y, y_step, z):
    """Values along the last dimension."""
    loop = tape.loops[opcode]
    if loop.function != 0:
        call_loop(loop.function, loop.data, n, x, x_step, y, y_step, z, 8, 1)
        return
    for j in range(n):
        z[j] = value_of(tape, opcode, load_f64(x + x_step * j), load_f64(y + y_step * j))


@inline
def stretched_values(tape, opcode, a, b, out):
    """Values where one array is stretched along another."""
    rank, size = array_rank(out), array_size(out)
    n = array_dimensions(out)[rank - 1]
    x_step, y_step = step(a, rank, rank - 1), step(b, rank, rank - 1)
    for row in range(size // n if n > 0 else 0):
        x, y, rest = array_data(a), array_data(b), row
        for d in range(rank - 2, -1, -1):
            extent = array_dimensions(out)[d]
            index = rest % extent
            rest = rest // extent
            x += index * step(a, rank, d)
            y += index * step(b, rank, d)
        stretched_row(tape, opcode, n, x, x_step, y, y_step, from_element(doubles_at(array_data(out)), n * row))


@inline
def stretched_result(tape, opcode, t, a, b, x_handle, y_handle):
    """Result on two small arrays of shapes that fit together, for rules that round in the same way in whichever loop."""
    rank = -1
    if forms_of(tape, opcode) & HAS_EXACT != 0 and has_loops(tape, opcode) and can_be_recorded(tape, opcode, x_handle, y_handle):
        rank = common_shape(tape, a, b)
    if rank < 0:
        return deliver_tensor(tape, t, 0, 0)
    data = new_array(tape, FLOAT64, rank, tape.lengths)
    if data != 0:
        stretched_values(tape, opcode, a, b, data)
    return recorded_result(tape, opcode, t, 2, a, b, x_handle, y_handle, data, True)


@inline
def computed(tape, opcode, count, t, a, b, x_handle, y_handle, by_numpy, exponent):
    """Compute and record on numbers and small arrays; as `deliver_tensor` answers."""
    if is_float(tape, a) and is_float(tape, b):
        return scalar_result(tape, opcode, t, count, a, b, x_handle, y_handle, by_numpy, exponent)
    if is_float(tape, a):
        fitting = is_block(tape, b)
    else:
        fitting = is_block(tape, a) and (is_float(tape, b) or a == b or (same_shape(a, b) and is_block(tape, b)))
    if fitting:
        return array_result(tape, opcode, t, count, a, b, x_handle, y_handle)
    if count == 2 and not is_float(tape, a) and not is_float(tape, b) and is_block(tape, a) and is_block(tape, b):
        return stretched_result(tape, opcode, t, a, b, x_handle, y_handle)
    release(t)
    return 0
