"""Remainders and whole quotients of arrays, with the bits of NumPy's, which calls the C library for each element.

A remainder is an exact number. Where the quotient is less than 2^52, a fused product and sum of the dividend, the divisor and the
quotient without its fraction gives it, or one divisor too little where the quotient was rounded up to a whole number. Blocks with
other elements are left to the C library.
"""

from math import copysign

from numpy import floor, trunc

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.memory import array_data, array_size, f64, fused

BLOCK_OF_REMAINDERS = 512
AS_THE_DIVIDEND, AS_THE_DIVISOR, QUOTIENTS = range(3)  # whose sign the remainder has, or that it is not asked for


@inline
def are_quick(x, y, count):
    """Whether all quotients are of finite numbers, and have all their digits before the point."""
    fine = True
    for j in range(count):
        size = abs(y[j])
        fine &= (abs(x[j]) / size < 4503599627370496.0) & (size <= 1.7976931348623157e308)
    return fine


@inline
def quick_remainders(out, x, y, count):
    """Remainders with the sign of the dividend."""
    for j in range(count):
        a, b = x[j], y[j]
        rest = fused(-trunc(a / b), b, a)
        rest = rest + copysign(b, a) if ((rest < 0) != (a < 0)) & (rest != 0) else rest
        out[j] = copysign(rest, a)


@inline
def finish(out, x, y, count, wanted):
    """What is wanted, by such remainders, as NumPy computes it; no branches, so that several elements are done at once."""
    if wanted == AS_THE_DIVISOR:
        for j in range(count):
            b, rest = y[j], out[j]
            moved = rest + b if (b < 0) != (rest < 0) else rest
            moved = copysign(0.0, b) if rest == 0 else moved
            out[j] = rest if b == 0 else moved
    else:
        for j in range(count):
            a, b, rest = x[j], y[j], out[j]
            quotient, exact = (a - rest) / b, a / b
            quotient = quotient - 1.0 if (rest != 0) & ((b < 0) != (rest < 0)) else quotient
            whole = floor(quotient)
            whole = whole + 1.0 if quotient - whole > 0.5 else whole
            whole = copysign(0.0, exact) if quotient == 0 else whole
            out[j] = exact if b == 0 else whole


@entry("int64(int64,int64,int64,int64)", nogil=True)
def remainders_of(pz, px, py, wanted):
    """``numpy.fmod``, ``remainder`` or ``floor_divide`` of contiguous float64 arrays, of which one may be a block of one number."""
    count = array_size(pz)
    x_step, y_step = 8 if array_size(px) == count else 0, 8 if array_size(py) == count else 0
    for start in range(0, count, BLOCK_OF_REMAINDERS):
        part = min(count - start, BLOCK_OF_REMAINDERS)
        x, y = f64(array_data(px) + start * x_step, part), f64(array_data(py) + start * y_step, part)
        out = f64(array_data(pz) + 8 * start, part)
        if are_quick(x, y, part):
            quick_remainders(out, x, y, part)
        else:
            for j in range(part):
                out[j] = copysign(abs(x[j]) % abs(y[j]), x[j])
        if wanted != AS_THE_DIVIDEND:
            finish(out, x, y, part, wanted)
    return 0
