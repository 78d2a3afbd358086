"""Logarithms of sums of two exponentials, of whole arrays, with the bits of `numpy.logaddexp` and `numpy.logaddexp2`.

NumPy's loop branches on which operand is larger, which random signs mispredict at every other element, and calls the C library's
exponential and logarithm of one more. One exponential of the distance does for both orders. Where the C library is glibc, its
arithmetic is done here, several elements at once: the exponential by a table of 128 powers and a polynomial, the logarithm by the
series of an inverse hyperbolic tangent (as in P.-T. P. Tang, "Table-driven implementation of the exponential function", 1989, and
W. J. Cody and W. Waite, "Software manual for the elementary functions", 1980). Versions of glibc differ in which products and sums
are fused; an argument of the loop says that.
"""

from math import exp, log1p

from tapegrad.compilation.jit import always_inline, entry, inline
from tapegrad.engine.function_rows import POWERS_OF_TWO
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, bits_of, f64, float_of, fused

BLOCK_OF_SUMS = 512  # elements that stay near while three loops go over them
FUSED_LOGARITHM, FUSED_POWER = 1, 2  # which functions have fused products and sums; the exponential has them always


@always_inline
def times_plus(x, y, z, is_fused):
    """``x * y + z``, rounded once or twice."""
    return fused(x, y, z) if is_fused else x * y + z


@always_inline
def exponential(x):
    """The C library's ``exp(x)``, from -512 to 512."""
    shifted = fused(184.6649652337873, x, 6755399441055744.0)
    bits, k = bits_of(shifted), shifted - 6755399441055744.0
    rest = fused(k, -1.2864023111638346e-14, fused(k, -0.005415212348111709, x))
    at = 2 * (bits & 127)
    scale = float_of(POWERS_OF_TWO[at + 1] + (bits << 45))
    square = rest * rest
    low = fused(fused(rest, 0.16666666666665886, 0.49999999999996786), square, rest + float_of(POWERS_OF_TWO[at]))
    high = fused(rest, 0.008333335853059549, 0.0416666808410674)
    return fused(scale, fused(square * square, high, low), scale)


@always_inline
def power_of_two(x, is_fused):
    """The C library's ``exp2(x)``, from -928 to 928."""
    shifted = x + 52776558133248.0
    bits, rest = bits_of(shifted), x - (shifted - 52776558133248.0)
    at = 2 * (bits & 127)
    scale = float_of(POWERS_OF_TWO[at + 1] + (bits << 45))
    square = rest * rest
    first = times_plus(rest, 0.6931471805599453, float_of(POWERS_OF_TWO[at]), is_fused)
    second = times_plus(rest, 0.0555041086686087, 0.24022650695909065, is_fused)
    third = times_plus(rest, 0.0013332074570119598, 0.009618131975721055, is_fused)
    low = times_plus(square, second, first, is_fused)
    return times_plus(scale, times_plus(square * square, third, low, is_fused), scale, is_fused)


@always_inline
def logarithm_of_one_more(x, is_fused):
    """The C library's ``log1p(x)``, from 0 to 1."""
    whole = 1.0 + x
    is_halved = x >= 0.4142136573791504
    lost = (1.0 - (whole - x) if whole >= 2.0 else x - (whole - 1.0)) / whole
    f = 0.5 * whole - 1.0 if is_halved else x
    half_square = 0.5 * f * f
    s = f / (2.0 + f)
    z = s * s
    z2 = z * z
    z4 = z2 * z2
    second = times_plus(z, 0.2857142874366239, 0.3999999999940942, is_fused)
    third = times_plus(z, 0.1818357216161805, 0.22222198432149784, is_fused)
    fourth = times_plus(z, 0.14798198605116586, 0.15313837699209373, is_fused)
    series = times_plus(z, 0.6666666666666735, z2 * second, is_fused)
    series = times_plus(z4, third, series, is_fused)
    series = times_plus(z2 * z4, fourth, series, is_fused)
    product, low = s * (half_square + series), 1.9082149292705877e-10 + lost
    # Near a power of two there is no series; near zero only the square counts.
    edge = half_square * times_plus(f, -0.6666666666666666, 1.0, is_fused)
    top = edge - low if whole >= 1.9999971389770508 else half_square - (product + low)
    of_half = 0.6931471803691238 - (top - f)
    of_whole = x - half_square if x < 1.862645149230957e-09 else f - (half_square - product)
    return of_half if is_halved else of_whole


@inline
def are_distances_quick(x, y, count, largest, none):
    """Whether the exponential of no distance is scaled, or subnormal; from some distance on it is zero."""
    fine = True
    for j in range(count):
        distance = abs(x[j] - y[j])
        fine &= ~((distance >= largest) & (distance < none))
    return fine


@inline
def quick_log_sums(out, x, y, room, count, is_fused):
    """One block, to the base e; no branches, so that several elements are done at once."""
    for j in range(count):
        distance = abs(x[j] - y[j])
        room[j] = 0.0 if distance >= 746.0 else exponential(-distance)
    for j in range(count):
        a, b = x[j], y[j]
        larger = max(a, b)
        # Also of equal infinities, whose distance is nan.
        out[j] = a + 0.6931471805599453 if a == b else larger + logarithm_of_one_more(room[j], is_fused)


@inline
def quick_log2_sums(out, x, y, room, count, is_fused):
    """The same to the base 2, from powers of two that are there."""
    for j in range(count):
        a, b = x[j], y[j]
        larger = max(a, b)
        out[j] = a + 1.0 if a == b else larger + 1.4426950408889634 * logarithm_of_one_more(room[j], is_fused)


@inline
def powers_of_distances(x, y, room, count, is_fused):
    """Powers of two of one block's negative distances."""
    for j in range(count):
        distance = abs(x[j] - y[j])
        room[j] = 0.0 if distance >= 1076.0 else power_of_two(-distance, is_fused)


@inline
def add_exponentials(out, x, y, room, count):
    """One block, by the C library."""
    for j in range(count):
        room[j] = exp(-abs(x[j] - y[j]))
    for j in range(count):
        room[j] = log1p(room[j])
    for j in range(count):
        a, b = x[j], y[j]
        larger = max(b, a)
        out[j] = a + 0.6931471805599453 if a == b else larger + room[j]


@inline
def log_sums(out, x, y, room, count, how):
    """One block to the base e, by the C library if one of its elements needs that."""
    if not are_distances_quick(x, y, count, 512.0, 746.0):
        add_exponentials(out, x, y, room, count)
    elif how & FUSED_LOGARITHM:
        quick_log_sums(out, x, y, room, count, True)
    else:
        quick_log_sums(out, x, y, room, count, False)


@inline
def log2_sums(out, x, y, room, count, how):
    """One block to the base 2."""
    if not are_distances_quick(x, y, count, 928.0, 1076.0):
        for j in range(count):
            a, b = x[j], y[j]
            larger = max(a, b)
            out[j] = a + 1.0 if a == b else larger + 1.4426950408889634 * log1p(np.exp2(-abs(a - b)))
        return
    if how & FUSED_POWER:
        powers_of_distances(x, y, room, count, True)
    else:
        powers_of_distances(x, y, room, count, False)
    if how & FUSED_LOGARITHM:
        quick_log2_sums(out, x, y, room, count, True)
    else:
        quick_log2_sums(out, x, y, room, count, False)


@entry("int64(int64,int64,int64)")
def log_add_exponentials(pz, px, py):
    """``log(exp(x) + exp(y))`` of contiguous float64 arrays by the C library, of which one may be a block of one number."""
    count = array_size(pz)
    x_step, y_step = 8 if array_size(px) == count else 0, 8 if array_size(py) == count else 0
    for start in range(0, count, BLOCK_OF_SUMS):
        part = min(count - start, BLOCK_OF_SUMS)
        x, y = f64(array_data(px) + start * x_step, part), f64(array_data(py) + start * y_step, part)
        out = f64(array_data(pz) + 8 * start, part)
        add_exponentials(out, x, y, out, part)
    return 0
