"""Operations whose derivative is Python, compiled: `apply`, and products of matrices and vectors.

Only what is usual: tensors of float64 arrays, given by position, while no mode, hook or observer must see anything. For all
else, and for every refusal of the tape, the Python form is called, which also says what is wrong.
"""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    OBJECT,
    array_data,
    array_dimensions,
    array_rank,
    array_type_number,
    call2,
    float_value,
    is_float,
    load_f64,
    load_i64,
    release,
    retain,
)
from tapegrad.engine.new_leaves import register_new
from tapegrad.engine.objects import (
    call_object,
    call_with_words,
    clear_error,
    data_of,
    handle_of,
    integer_value,
    is_common,
    item_of_tuple,
    length_of_tuple,
    new_float,
    new_tuple,
    set_handle,
    set_item_of_tuple,
    tensor_around,
    type_of,
)
from tapegrad.engine.record_operation import row_of_operation
from tapegrad.engine.record_structural import write_sum
from tapegrad.engine.structs import words_at


@inline
def result_of(tape, value):
    """A computed value in the form tensors keep, a new reference; 0 for what is left to Python."""
    if type_of(value) == tape.number_class:
        return new_float(load_f64(value + OBJECT))
    if not is_float(tape, value):
        if type_of(value) != tape.array_type:
            return 0
        if array_rank(value) == 0 and array_type_number(value) == FLOAT64:
            return new_float(load_f64(array_data(value))) if load_i64(value + OBJECT + 40) == tape.double else 0
    retain(value)
    return value


@inline
def register_inputs(tape, inputs):
    """Give new leaves among operands their rows."""
    for k in range(length_of_tuple(inputs)):
        t = item_of_tuple(inputs, k)
        if type_of(t) == tape.plain_tensor and handle_of(tape, t) < 0:
            register_new(tape, t)


@inline
def recorded(tape, op, inputs, extra, attrs, data):
    """New tensor of a value, whose reference is taken over, with the row of its operation; 0 if that is left to Python."""
    if tape.hosts_ready == 0:
        release(data)
        return 0
    handle = row_of_operation(tape, op, inputs, extra, attrs, data)
    if handle == NEW_LEAF:
        register_inputs(tape, inputs)
        handle = row_of_operation(tape, op, inputs, extra, attrs, data)
    if handle < 0:
        release(data)
        return 0
    t = tensor_around(tape, data)
    if handle > 0 and (t == 0 or not set_handle(tape, t, handle)):
        clear_error()
        call2(tape.give_back, tape, handle)
        if t != 0:
            release(t)
        return 0
    return t


@kernel("int64(Tape,int64,int64,int64)")
def apply_operation(tape, owner, operands, given):
    """`apply`, of operation, inputs, value, attributes, and what is saved besides inputs: a new tensor, 0 for an exception."""
    words = words_at(operands)
    if given == 5 and type_of(words[1]) == tape.tuple_type and type_of(words[4]) == tape.tuple_type:
        data = result_of(tape, words[2])
        if data != 0:
            t = recorded(tape, words[0], words[1], words[4], words[3], data)
            if t != 0:
                return t
        clear_error()
    return call_with_words(tape.apply_form, operands, given)


@inline
def is_factor(tape, data):
    """Whether data are a float64 vector or matrix."""
    if data == 0 or type_of(data) != tape.array_type:
        return False
    return array_rank(data) > 0 and array_rank(data) < 3 and array_type_number(data) == FLOAT64


@inline
def multiplied(tape, function, a, b):
    """The product of two arrays by a function of NumPy's, a new reference; 0 with an exception."""
    token = call_object(tape.enter, 1, tape.ignoring, 0)
    if token == 0:
        return 0
    z = call_object(function, 2, a, b)
    ended = call_object(tape.leave, 1, token, 0)
    release(token)
    if ended == 0:
        if z != 0:
            release(z)
        return 0
    release(ended)
    return z


@inline
def fit_for_product(a, b):
    """Whether the inner sizes agree."""
    return array_dimensions(a)[array_rank(a) - 1] == array_dimensions(b)[0]


@inline
def pair_of_operands(x, y):
    """A tuple of two operands; 0 without memory."""
    pair = new_tuple(2)
    if pair == 0:
        clear_error()
        return 0
    retain(x)
    set_item_of_tuple(pair, 0, x)
    retain(y)
    set_item_of_tuple(pair, 1, y)
    return pair


@inline
def product_of(tape, x, y):
    """New tensor of the product of two vectors or matrices, recorded; 0 if that is left to Python."""
    if tape.tensor_type != tape.plain_tensor or tape.recording_off != 0 or not is_common(tape, x) or not is_common(tape, y):
        return 0
    a, b = data_of(tape, x), data_of(tape, y)
    if not is_factor(tape, a) or not is_factor(tape, b) or not fit_for_product(a, b):
        return 0
    op = tape.product_operations[2 * array_rank(a) + array_rank(b) - 3]
    inputs, t = pair_of_operands(x, y), 0
    z = multiplied(tape, tape.dot, a, b) if inputs != 0 else 0
    data = result_of(tape, z) if z != 0 else 0
    if z != 0:
        release(z)
    if data != 0:
        t = recorded(tape, op, inputs, tape.no_tensors, tape.none, data)
    if inputs != 0:
        release(inputs)
    if t == 0:
        clear_error()
    return t


@kernel("int64(Tape,int64,int64,int64)")
def product_form(tape, owner, operands, given):
    """The product of two operands: a new tensor, 0 for an exception."""
    if given == 2:
        t = product_of(tape, words_at(operands)[0], words_at(operands)[1])
        if t != 0:
            return t
    return call_with_words(tape.product_form, operands, given)


@inline
def reduced(tape, x, name, axes, scale, value):
    """New tensor of a sum along dimensions, recorded; 0 if that is left to Python."""
    if tape.tensor_type != tape.plain_tensor or tape.recording_off != 0 or tape.sums_ready == 0 or not is_common(tape, x):
        return 0
    if handle_of(tape, x) < 0:
        register_new(tape, x)
    handle, data = handle_of(tape, x), data_of(tape, x)
    result = result_of(tape, value) if handle > 0 and data != 0 else 0
    t = tensor_around(tape, result) if result != 0 else 0
    if t == 0:
        return 0
    if handle_of(tape, x) == handle and data_of(tape, x) == data:  # else the collector ran
        row = write_sum(tape, name, handle, data, axes, scale, result)
        if row > 0 and set_handle(tape, t, row):
            return t
        clear_error()
        if row > 0:
            call2(tape.give_back, tape, row)
    release(t)
    return 0


@kernel("int64(Tape,int64,int64,int64)")
def reduced_form(tape, owner, operands, given):
    """Of tensor, number of a node's name, bits of the axes, factor and value: a new tensor, None if that is left to Python."""
    words = words_at(operands)
    if given == 5 and is_float(tape, words[3]):
        t = reduced(tape, words[0], integer_value(words[1]), integer_value(words[2]), float_value(words[3]), words[4])
        if t != 0:
            return t
    clear_error()
    retain(tape.none)
    return tape.none
