"""Sines and cosines of arrays, with the bits of glibc since 2.28 on processors that fuse products and sums.

Its arithmetic, several elements at once: an angle less a multiple of a quarter turn, which is subtracted in four parts; sine and
cosine of the nearest multiple of 1/128 from a table, of two numbers each; short polynomials for what is left (S. Gal and
B. Bachelis, "An accurate elementary mathematical library for the IEEE floating point standard", 1991). All branches of the C
library become choices, and angles that are too far for this reduction are left to it, a block at a time.
"""

from math import cos, sin

from tapegrad.compilation.jit import always_inline
from tapegrad.compilation.vector_types import *
from tapegrad.engine.function_rows import SINES
from tapegrad.engine.memory import f64

BLOCK_OF_SINES, FEWEST_SINES = 256, 4  # elements of a block, and how many take less by the C library
QUARTER_TURN, QUARTER_TURN_REST = 1.5707963267948966, 6.123233995736766e-17
FIRST_OF_SINES, NEXT_OF_SINES, LAST_OF_SINES = 0.85546875, 2.4262638092041016, 105414336.0  # angles at which the way changes
ROUNDED = 6755399441055744.0  # a number plus the first one has its nearest integer in its bits
IN_128THS = 52776558133248.0  # and here the nearest multiple of 1/128


@always_inline
def reduce_angles(x, angles, rests, places, count, of_cosines):
    """Angles as their distance from a multiple of a quarter turn, in two numbers; whether all are near enough for that.

    The first number would be positive and has the sign of the result. A place is that of four numbers of the table, in bytes: of
    a sine, or 16 bytes on, of a cosine.
    """
    are_quick = are_less(vector_of(0.0), vector_of(LAST_OF_SINES))
    for j in range(0, 8 * count, VECTOR_BYTES):
        given = vector_at(x + j)
        angle = magnitudes(given)
        are_quick = both(are_quick, are_less(angle, vector_of(LAST_OF_SINES)))
        shifted = fused_vectors(angle, vector_of(0.6366197723675814), vector_of(ROUNDED))
        shifted = chosen(are_less(angle, vector_of(FIRST_OF_SINES)), vector_of(ROUNDED), shifted)
        k = vector_of(ROUNDED) - shifted
        first = fused_vectors(k, vector_of(-1.3909067564377153e-08), fused_vectors(k, vector_of(1.5707963407039642), angle))
        second = fused_vectors(k, vector_of(-4.97899623147991e-17), first)
        third = fused_vectors(k, vector_of(-1.9034889620193266e-25), second)
        rest = fused_vectors(k, vector_of(-4.97899623147991e-17), first - second)
        rest = rest + fused_vectors(k, vector_of(-1.9034889620193266e-25), second - third)
        # Between two angles the first quarter turn is subtracted from: the difference is exact.
        is_quarter = both(not_less(angle, vector_of(FIRST_OF_SINES)), are_less(angle, vector_of(NEXT_OF_SINES)))
        difference = vector_of(QUARTER_TURN) - angle
        if of_cosines:
            whole = difference + vector_of(QUARTER_TURN_REST)
            third = chosen(is_quarter, whole, third)
            rest = chosen(is_quarter, (difference - whole) + vector_of(QUARTER_TURN_REST), rest)
            turn = chosen(is_quarter, vector_of(ROUNDED), shifted + vector_of(1.0))
        else:
            third = chosen(is_quarter, difference, third)
            rest = chosen(is_quarter, vector_of(QUARTER_TURN_REST), rest)
            turn = chosen(is_quarter, vector_of(ROUNDED + 1.0), shifted)
        # Of a turn the last bit says that the size is a cosine's, and the one before that the sign is the other one.
        is_cosine = have_common_bits(turn, vector_of_bits(1))
        sign = bits_in_both(third, vector_of(-0.0))
        negative = bits_apart(bits_shifted(turn, 62), chosen(is_cosine, vector_of(0.0), sign))
        if not of_cosines:
            negative = bits_apart(negative, given)
        angle = magnitudes(third)
        place = bits_in_both(bits_shifted(angle + vector_of(IN_128THS), 6), vector_of_bits(127 << 6))
        write_vector(angles + j, bits_in_either(angle, bits_in_both(negative, vector_of(-0.0))))
        write_vector(rests + j, bits_apart(rest, sign))
        write_vector(places + j, bits_in_either(place, chosen(is_cosine, vector_of_bits(16), vector_of(0.0))))
    return all_of(are_quick)


@always_inline
def combine_sines(out, angles, rests, places, count):
    """Sines or cosines of reduced angles: one formula for both, whose numbers change places."""
    for j in range(0, 8 * count, VECTOR_BYTES):
        given, rest = vector_at(angles + j), vector_at(rests + j)
        is_cosine = have_common_bits(vector_at(places + j), vector_of_bits(16))
        value, value_rest, slope, slope_rest = columns_of_four(SINES.ctypes.data, places + j)
        angle = magnitudes(given)
        apart = angle - ((angle + vector_of(IN_128THS)) - vector_of(IN_128THS))
        apart = chosen(is_cosine, apart + rest, apart)
        beside = chosen(is_cosine, vector_of(0.0), rest)
        square = apart * apart
        cubic = fused_vectors(vector_of(0.008333332142857223), square, vector_of(-0.16666666666666488))
        sine = fused_vectors(apart * square, cubic, chosen(is_cosine, apart, beside))
        sine = chosen(is_cosine, sine, apart + sine)
        quartic = fused_vectors(vector_of(0.001388888740079376), square, vector_of(-0.04166666666666644))
        one_less = fused_vectors(apart, beside, square * fused_vectors(quartic, square, vector_of(0.5)))
        lack = fused_vectors(-one_less, value, fused_vectors(sine, slope_rest, value_rest))
        result = value + fused_vectors(sine, slope, lack)
        # Sines of small angles have a series.
        square = angle * angle
        series = fused_vectors(vector_of(-2.5022014848318398e-08), square, vector_of(2.755729806860771e-06))
        series = fused_vectors(series, square, vector_of(-0.00019841269834414642))
        series = fused_vectors(series, square, vector_of(0.008333333333332329))
        series = fused_vectors(series, square, vector_of(-0.16666666666666666))
        near = fused_vectors(series, angle, -(vector_of(0.5) * rest))
        near = angle + fused_vectors(square, near, rest)
        result = chosen(is_cosine, result, chosen(are_less(angle, vector_of(0.126)), near, result))
        write_vector(out + j, bits_apart(result, bits_in_both(given, vector_of(-0.0))))


@always_inline
def sines(out, x, count, room, of_cosines):
    """One block, by the C library if one of its elements needs that; its length is rounded up to a multiple of eight."""
    rests, places = room + 8 * BLOCK_OF_SINES, room + 16 * BLOCK_OF_SINES
    if count >= FEWEST_SINES and reduce_angles(x, room, rests, places, count, of_cosines):
        combine_sines(out, room, rests, places, count)
    else:
        values, results = f64(x, count), f64(out, count)
        for j in range(count):
            results[j] = cos(values[j]) if of_cosines else sin(values[j])
