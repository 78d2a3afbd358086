"""Exponentials and sigmoids of arrays, with the bits of NumPy's where it calls Intel's library of short vectors, on AVX-512.

Its arithmetic (``exp8_ha`` of github.com/numpy/SVML, as of NumPy 1.22): of ``x / log(2)`` the whole sixteenths are a power of two
and the row of a table; ``log(2)`` is subtracted as often, in two parts; a polynomial of degree six gives what the rest adds. The
table has two numbers of ``2**(k / 16)`` each, which are every eighth of glibc's. What differs from NumPy's own loop is speed: that
calls a function for eight elements at a time, which loads its constants anew.

Where the result is nearly subnormal or overflows, that library goes another way: those elements are left to NumPy's loop, with
the block that they stand in. From some number on, and so of a mask's negative infinities, nothing is left.
"""

from tapegrad.compilation.jit import always_inline, inline, kernel
from tapegrad.compilation.vector_types import *
from tapegrad.engine.function_rows import POWERS_OF_TWO
from tapegrad.engine.memory import call_loop, f64, i64, load_i64, stack_words

BLOCK_OF_EXPONENTIALS = 256
room_of_exponentials, room_of_last = stack_words(2 * BLOCK_OF_EXPONENTIALS), stack_words(VECTOR_LENGTH)

LARGEST_EXPONENT, LEAST_EXPONENT = 707.7, -746.0  # sizes that are computed here, and what has no power any more
BIASED_SIXTEENTHS = 422212465067007.0  # added, a number has its whole sixteenths and an exponent's bias in its last bits
SCALES = POWERS_OF_TWO[1::16] - (1023 << 52)  # bits without the exponent that is added, and what they lack, relative to them
LACKS = POWERS_OF_TWO[::16].copy()


@always_inline
def exponential_vector(x, scales, more_scales, lacks, more_lacks):
    """The exponentials of eight numbers, whose sizes are at most `LARGEST_EXPONENT`."""
    shifted = rounded_down(x, vector_of(1.4426950408889634), vector_of(BIASED_SIXTEENTHS))
    sixteenths = shifted - vector_of(BIASED_SIXTEENTHS)
    rest = fused_vectors(sixteenths, vector_of(-0.6931471805599453), x)
    rest = fused_vectors(sixteenths, vector_of(-2.3190468138462996e-17), rest)
    square = rest * rest
    high = fused_vectors(rest, vector_of(0.0014193283516881214), vector_of(0.008331512908898442))
    middle = fused_vectors(rest, vector_of(0.0416667205488057), vector_of(0.1666666658485894))
    low = fused_vectors(rest, vector_of(0.5000000000059126), vector_of(0.999999999999984))
    series = fused_vectors(fused_vectors(high, square, middle), square, low)
    scale = times_power_in(of_sixteen(scales, more_scales, shifted), shifted)
    return fused_vectors(scale, fused_vectors(series, rest, of_sixteen(lacks, more_lacks, shifted)), scale)


@always_inline
def write_exponentials(out, x, count, of_sigmoid):
    """Exponentials or sigmoids of so many elements, a multiple of eight; whether all are what they should be."""
    scales, more_scales = vector_at(SCALES.ctypes.data), vector_at(SCALES.ctypes.data + VECTOR_BYTES)
    lacks, more_lacks = vector_at(LACKS.ctypes.data), vector_at(LACKS.ctypes.data + VECTOR_BYTES)
    worst, one = vector_of(0.0), vector_of(1.0)
    for j in range(0, 8 * count, VECTOR_BYTES):
        values = vector_at(x + j)
        given = negative_sizes(values) if of_sigmoid else values
        worst = larger_of(worst, magnitudes(zero_below(given, given, LEAST_EXPONENT)))
        found = zero_below(exponential_vector(given, scales, more_scales, lacks, more_lacks), given, LEAST_EXPONENT)
        write_vector(out + j, one_unless_negative(values, found) / (one + found) if of_sigmoid else found)
    return all_between(worst, 0.0, LARGEST_EXPONENT)


@inline
def copy_block(source, target, count):
    """Numbers copied from one address to another."""
    values, out = f64(source, count), f64(target, count)
    for j in range(count):
        out[j] = values[j]


@always_inline
def write_last_exponentials(out, x, count, room, of_sigmoid):
    """The same of less than eight elements, in a room of eight."""
    padded = f64(room, VECTOR_LENGTH)
    for j in range(VECTOR_LENGTH):
        padded[j] = 0.0
    copy_block(x, room, count)
    are_right = write_exponentials(room, room, VECTOR_LENGTH, of_sigmoid)
    copy_block(room, out, count)
    return are_right


@inline
def write_by_numpys_loop_of(numpys, out, x, count, given, of_sigmoid):
    """The same of one block by NumPy's exponentials; `given` has room for one more."""
    if not of_sigmoid:
        call_loop(numpys, 0, count, x, 8, x, 8, out, 8, 0)
        return
    values, sizes, results = f64(x, count), f64(given, count), f64(out, count)
    for j in range(count):
        sizes[j] = -abs(values[j])
    call_loop(numpys, 0, count, given, 8, given, 8, out, 8, 0)
    for j in range(count):
        e = results[j]
        results[j] = (1.0 if values[j] >= 0.0 else e) / (1.0 + e)


@always_inline
def write_blocks(out, x, n, room, numpys, of_sigmoid):
    """Exponentials or sigmoids of elements that stand one after the other, in blocks; such that are left go by NumPy's loop."""
    for start in range(0, n, BLOCK_OF_EXPONENTIALS):
        count, source, to = min(n - start, BLOCK_OF_EXPONENTIALS), x + 8 * start, out + 8 * start
        if x == out:  # they may have to be read again
            copy_block(source, room, count)
            source = room
        whole = count & -VECTOR_LENGTH
        are_right = write_exponentials(to, source, whole, of_sigmoid)
        if whole < count:
            last = 8 * whole
            are_right &= write_last_exponentials(to + last, source + last, count - whole, room_of_last(), of_sigmoid)
        if not are_right:
            write_by_numpys_loop_of(numpys, to, source, count, room + 8 * BLOCK_OF_EXPONENTIALS, of_sigmoid)


@kernel("void(int64,int64,int64,int64)", wide=True)
def exp_loop(operands, counts, strides, numpys):
    """`numpy.exp`, whose own loop is at the address `numpys`; that goes by the C library, where operands overlap or turn back."""
    n, at, steps = load_i64(counts), i64(operands, 2), i64(strides, 2)
    x, out = at[0], at[1]
    if steps[0] == 8 and steps[1] == 8 and (x == out or abs(x - out) >= 8 * n):
        write_blocks(out, x, n, room_of_exponentials(), numpys, False)
    else:
        call_loop(numpys, 0, n, x, steps[0], x, steps[0], out, steps[1], 0)


@kernel("void(int64,int64,int64,int64)", wide=True)
def sigmoid_loop(operands, counts, strides, numpys):
    """Sigmoids of elements that stand one after the other, with the bits that `numpy.exp` gives them in the loops of rules."""
    at = i64(operands, 2)
    write_blocks(at[1], at[0], load_i64(counts), room_of_exponentials(), numpys, True)
