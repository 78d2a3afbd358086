"""Loops over whole blocks for functions that NumPy computes by the C library, an element at a time: of the form that NumPy's have.

A loop is given addresses of the operands, the number of elements, byte strides and one word more. Elements are worked on in blocks;
those that do not stand one after the other are copied to a block before, and from one after.
"""

from tapegrad.compilation.jit import entry, inline, kernel
from tapegrad.compilation.vector_types import VECTOR_LENGTH
from tapegrad.engine.hypotenuses import lengths
from tapegrad.engine.log_sums import BLOCK_OF_SUMS, log2_sums, log_sums
from tapegrad.engine.memory import array_data, array_size, call_loop, f64, i64, load_f64, load_i64, stack_words, store_f64
from tapegrad.engine.sines import BLOCK_OF_SINES, sines

room_of_pairs, room_of_sines = stack_words(4 * BLOCK_OF_SUMS), stack_words(5 * BLOCK_OF_SINES)
OF_HYPOT, OF_LOGADDEXP, OF_LOGADDEXP2 = range(3)


@inline
def copied(address, stride, room, count):
    """Address of elements in a block, where they were copied to."""
    block = f64(room, count)
    for j in range(count):
        block[j] = load_f64(address + j * stride)
    return room


@inline
def gathered(address, stride, room, count):
    """Address of elements that stand one after the other: their own, or that of copies in a block."""
    return address if stride == 8 else copied(address, stride, room, count)


@inline
def scatter(block, address, stride, count):
    """Bring elements of a block to where they belong, if they do not stand there already."""
    if block != address:
        values = f64(block, count)
        for j in range(count):
            store_f64(address + j * stride, values[j])


@inline
def loop_of_pairs(operands, counts, strides, how, function):
    """A loop of two operands."""
    n, room, size = load_i64(counts), room_of_pairs(), 8 * BLOCK_OF_SUMS
    at, steps = i64(operands, 3), i64(strides, 3)
    for start in range(0, n, BLOCK_OF_SUMS):
        count = min(n - start, BLOCK_OF_SUMS)
        x = f64(gathered(at[0] + start * steps[0], steps[0], room, count), count)
        y = f64(gathered(at[1] + start * steps[1], steps[1], room + size, count), count)
        place = at[2] + start * steps[2]
        to = place if steps[2] == 8 else room + 2 * size
        out, between = f64(to, count), f64(room + 3 * size, count)
        if function == OF_HYPOT:
            lengths(out, x, y, count)
        elif function == OF_LOGADDEXP:
            log_sums(out, x, y, between, count, how)
        else:
            log2_sums(out, x, y, between, count, how)
        scatter(to, place, steps[2], count)


@inline
def loop_of_angles(operands, counts, strides, of_cosines):
    """A loop of one operand."""
    n, room, size = load_i64(counts), room_of_sines(), 8 * BLOCK_OF_SINES
    at, steps = i64(operands, 2), i64(strides, 2)
    for start in range(0, n, BLOCK_OF_SINES):
        count = min(n - start, BLOCK_OF_SINES)
        x, out = at[0] + start * steps[0], at[1] + start * steps[1]
        lacking = -count & (VECTOR_LENGTH - 1)
        if lacking or steps[0] != 8:
            x = copied(x, steps[0], room, count)
            padding = f64(room + 8 * count, lacking)
            for j in range(lacking):
                padding[j] = 0.0
        to = room + size if lacking or steps[1] != 8 else out
        sines(to, x, count, room + 2 * size, of_cosines)
        scatter(to, out, steps[1], count)


@kernel("void(int64,int64,int64,int64)", wide=True)
def hypot_loop(operands, counts, strides, how):
    """`numpy.hypot`."""
    loop_of_pairs(operands, counts, strides, how, OF_HYPOT)


@kernel("void(int64,int64,int64,int64)", wide=True)
def logaddexp_loop(operands, counts, strides, how):
    """`numpy.logaddexp`."""
    loop_of_pairs(operands, counts, strides, how, OF_LOGADDEXP)


@kernel("void(int64,int64,int64,int64)", wide=True)
def logaddexp2_loop(operands, counts, strides, how):
    """`numpy.logaddexp2`."""
    loop_of_pairs(operands, counts, strides, how, OF_LOGADDEXP2)


@kernel("void(int64,int64,int64,int64)", wide=True)
def sin_loop(operands, counts, strides, how):
    """`numpy.sin`."""
    loop_of_angles(operands, counts, strides, False)


@kernel("void(int64,int64,int64,int64)", wide=True)
def cos_loop(operands, counts, strides, how):
    """`numpy.cos`."""
    loop_of_angles(operands, counts, strides, True)


@entry("int64(int64,int64,int64,int64,int64,int64)", nogil=True)
def call_function(pz, px, py, function, how, is_binary):
    """Call such a loop for contiguous float64 arrays, of which one may be a single number; without `is_binary`, y is left out."""
    count = array_size(pz)
    x_step, y_step = 8 if array_size(px) == count else 0, 8 if array_size(py) == count else 0
    call_loop(function, how, count, array_data(px), x_step, array_data(py), y_step, array_data(pz), 8, is_binary)
    return 0
