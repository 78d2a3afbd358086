"""Sines and cosines of arrays, with the bits of glibc since 2.28 on processors that fuse products and sums.

Its arithmetic, several elements at once: an angle less a multiple of a quarter turn, which is subtracted in four parts; sine and
cosine of the nearest multiple of 1/128 from a table, of two numbers each; short polynomials for what is left (S. Gal and
B. Bachelis, "An accurate elementary mathematical library for the IEEE floating point standard", 1991). All branches of the C
library become choices, and angles that are too far for this reduction are left to it, a block at a time.
"""

from math import cos, sin

from tapegrad.compilation.jit import inline
from tapegrad.engine.function_rows import SINES
from tapegrad.engine.memory import bits_of, float_of, fused

BLOCK_OF_SINES, FEWEST_SINES = 256, 4  # elements of a block, and how many take less by the C library
SIGN_BIT = -9223372036854775808
QUARTER_TURN, QUARTER_TURN_REST = 1.5707963267948966, 6.123233995736766e-17
FIRST_OF_SINES, NEXT_OF_SINES, LAST_OF_SINES = 0.85546875, 2.4262638092041016, 105414336.0  # angles at which the way changes
ROUNDED, ROUNDED_BITS = 6755399441055744.0, 4843621399236968448  # a number plus the first one has its nearest integer in its bits
IN_128THS = 52776558133248.0  # and here the nearest multiple of 1/128


@inline
def are_angles_quick(x, count):
    """Whether all are finite, and no further than the reduction in four parts goes."""
    fine = True
    for j in range(count):
        fine &= abs(x[j]) < LAST_OF_SINES
    return fine


@inline
def reduce_angles(x, angles, rests, turns, count, quarters):
    """Angles as their distance from a multiple of a quarter turn, in two numbers of which the first is positive.

    Of `turns` the first bit is the sign of the result, and the last one says that its size is a cosine's. `quarters` is 0 for
    sines, and 1 for cosines.
    """
    for j in range(count):
        angle = abs(x[j])
        shifted = ROUNDED if angle < FIRST_OF_SINES else fused(angle, 0.6366197723675814, ROUNDED)
        turn, k = bits_of(shifted), ROUNDED - shifted
        first = fused(k, -1.3909067564377153e-08, fused(k, 1.5707963407039642, angle))
        second = fused(k, -4.97899623147991e-17, first)
        third = fused(k, -1.9034889620193266e-25, second)
        rest = fused(k, -4.97899623147991e-17, first - second) + fused(k, -1.9034889620193266e-25, second - third)
        # Between two angles the first quarter turn is subtracted from: the difference is exact.
        is_near_quarter = (angle >= FIRST_OF_SINES) & (angle < NEXT_OF_SINES)
        difference = QUARTER_TURN - angle
        if quarters == 0:
            third = difference if is_near_quarter else third
            rest = QUARTER_TURN_REST if is_near_quarter else rest
            turn = ROUNDED_BITS + 1 if is_near_quarter else turn
        else:
            whole = difference + QUARTER_TURN_REST
            third = whole if is_near_quarter else third
            rest = (difference - whole) + QUARTER_TURN_REST if is_near_quarter else rest
            turn = ROUNDED_BITS if is_near_quarter else turn + 1
        sign, is_cosine = bits_of(third) & SIGN_BIT, turn & 1
        angles[j], rests[j] = abs(third), float_of(bits_of(rest) ^ sign)
        negative = (turn << 62) ^ (0 if is_cosine else sign)
        if quarters == 0:
            negative ^= bits_of(x[j])
        turns[j] = (negative & SIGN_BIT) | is_cosine


@inline
def take_sines(rows, angles, turns, count):
    """Four numbers of the table for each angle: of a sine, or from the third on, of a cosine."""
    for j in range(count):
        at = 8 * (bits_of(angles[j] + IN_128THS) & 127) + 2 * (turns[j] & 1)
        rows[4 * j], rows[4 * j + 1], rows[4 * j + 2], rows[4 * j + 3] = SINES[at], SINES[at + 1], SINES[at + 2], SINES[at + 3]


@inline
def combine_sines(out, rows, angles, rests, turns, count):
    """Sines or cosines of reduced angles: one formula for both, whose numbers change places."""
    for j in range(count):
        angle, rest = angles[j], rests[j]
        is_cosine = (turns[j] & 1) != 0
        apart = angle - ((angle + IN_128THS) - IN_128THS)
        apart = apart + rest if is_cosine else apart
        beside = 0.0 if is_cosine else rest
        square = apart * apart
        cubic = fused(0.008333332142857223, square, -0.16666666666666488)
        sine = fused(apart * square, cubic, apart if is_cosine else beside)
        sine = sine if is_cosine else apart + sine
        quartic = fused(fused(0.001388888740079376, square, -0.04166666666666644), square, 0.5)
        one_less = fused(apart, beside, square * quartic)
        value, value_rest, slope, slope_rest = rows[4 * j], rows[4 * j + 1], rows[4 * j + 2], rows[4 * j + 3]
        result = value + fused(sine, slope, fused(-one_less, value, fused(sine, slope_rest, value_rest)))
        # Sines of small angles have a series.
        square = angle * angle
        series = fused(fused(-2.5022014848318398e-08, square, 2.755729806860771e-06), square, -0.00019841269834414642)
        series = fused(fused(series, square, 0.008333333333332329), square, -0.16666666666666666)
        near = angle + fused(square, fused(series, angle, -(0.5 * rest)), rest)
        result = near if (angle < 0.126) & ~is_cosine else result
        out[j] = float_of(bits_of(result) ^ (turns[j] & SIGN_BIT))


@inline
def sines(out, x, rows, angles, rests, turns, count):
    """One block, by the C library if one of its elements needs that."""
    if count >= FEWEST_SINES and are_angles_quick(x, count):
        reduce_angles(x, angles, rests, turns, count, 0)
        take_sines(rows, angles, turns, count)
        combine_sines(out, rows, angles, rests, turns, count)
    else:
        for j in range(count):
            out[j] = sin(x[j])


@inline
def cosines(out, x, rows, angles, rests, turns, count):
    """The same of cosines."""
    if count >= FEWEST_SINES and are_angles_quick(x, count):
        reduce_angles(x, angles, rests, turns, count, 1)
        take_sines(rows, angles, turns, count)
        combine_sines(out, rows, angles, rests, turns, count)
    else:
        for j in range(count):
            out[j] = cos(x[j])
