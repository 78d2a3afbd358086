"""Running the steps of a trace again: values alone, in memory that belongs to the trace.

A step is a few words: what to do, how many elements, and where operands and result stand, with the bytes from one element to the
next. What is neither an elementwise operation, a sum nor a copy is left to Python, and so is the rest once an answer differs.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    OBJECT,
    array_data,
    array_dimensions,
    array_rank,
    call_loop,
    call_primal,
    float_of,
    float_value,
    load_f64,
    load_i32,
    load_i64,
)
from tapegrad.engine.objects import item_of_tuple, length_of_tuple
from tapegrad.engine.rule_loops import value_by_loop
from tapegrad.engine.structs import bytes_at, doubles_at, program_steps_at, words_at


@inline
def number_of(tape, step):
    """A rule's value on numbers."""
    x, y = load_f64(step.x), load_f64(step.y)
    return call_primal(tape.primal, step.function, x, y) if step.function < COMMON else value_by_loop(tape, step.function, x, y)


@inline
def holds(step):
    """Whether two numbers compare as a step says: below, not above, above, not below, equal, different."""
    x, y = load_f64(step.x), load_f64(step.y)
    how = step.function
    if how == 0:
        return x < y
    if how == 1:
        return x <= y
    if how == 2:
        return x > y
    if how == 3:
        return x >= y
    return x == y if how == 4 else x != y


@inline
def copy_elements(step):
    """Copy numbers from one stride to another."""
    x, z = step.x, step.z
    for _ in range(step.count):
        doubles_at(z)[0] = load_f64(x)
        x += step.x_stride
        z += step.z_stride


@inline
def sum_elements(tape, step):
    """Sum of the elements of a contiguous array, by NumPy's loop, divided where a mean is asked for."""
    place = doubles_at(step.z)
    place[0] = float_of(tape.sum_start)
    call_loop(tape.sum_loop, tape.sum_loop_data, step.count, step.z, 0, step.x, 8, step.z, 0, 1)
    if step.function > 1:
        place[0] = place[0] / step.function


@entry("int64(Tape,int64,int64,int64)")
def replay(tape, code, first, count):
    """Do steps from the first one on; which one Python is to do, or whose answer differs, or how many there are."""
    steps = program_steps_at(code)
    for k in range(first, count):
        step = steps[k]
        kind = step.kind
        if kind == NUMBER_STEP:
            value = number_of(tape, step)
            doubles_at(step.z)[0] = value
        elif kind == LOOP_STEP:
            x_stride, y_stride = step.x_stride, step.y_stride
            call_loop(step.function, step.data, step.count, step.x, x_stride, step.y, y_stride, step.z, step.z_stride, step.extra)
        elif kind == COPY_STEP:
            copy_elements(step)
        elif kind == SUM_STEP:
            sum_elements(tape, step)
        elif kind == COMPARE_STEP:
            bytes_at(step.z)[0] = 1 if holds(step) else 0
        elif kind == GUARD_STEP:
            if bytes_at(step.x)[0] != step.extra:
                return k
        else:
            return k
    return count


@inline
def fits(value, words):
    """Whether an object is of the class that words say, and an array of their dtype and lengths, in C order and aligned."""
    if load_i64(value + OBJECT - 8) != words[INPUT_CLASS]:
        return False
    if words[INPUT_DTYPE] == 0:
        return True
    if load_i64(value + OBJECT + 40) != words[INPUT_DTYPE] or array_rank(value) != words[INPUT_RANK]:
        return False
    dimensions = array_dimensions(value)
    for d in range(words[INPUT_RANK]):
        if dimensions[d] != words[INPUT_LENGTHS + d]:
            return False
    return load_i32(value + OBJECT + 48) & IN_ORDER == IN_ORDER


@entry("int64(int64,int64)")
def take_inputs(expected, arguments):
    """Copy numbers and arrays from a tuple to where a program reads them, or note where they stand.

    1, or 0 if there is another number of them, or one is of another kind; some are copied then.
    """
    words = words_at(expected)
    count = words[0]
    if length_of_tuple(arguments) != count:
        return 0
    place = expected + 8
    for k in range(count):
        value = item_of_tuple(arguments, k)
        words = words_at(place)
        if not fits(value, words):
            return 0
        if words[INPUT_DTYPE] == 0:
            doubles_at(words[INPUT_PLACE])[0] = float_value(value)
        elif words[INPUT_COUNT] < 0:
            words_at(words[INPUT_PLACE])[0] = array_data(value)
        else:
            source, target = array_data(value), words[INPUT_PLACE]
            for n in range(words[INPUT_COUNT]):
                doubles_at(target)[n] = load_f64(source + 8 * n)
        place += 8 * (INPUT_LENGTHS + words[INPUT_RANK])
    return 1
