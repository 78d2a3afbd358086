"""Tables of powers of two and of sines, in two numbers each, as C libraries of today have them: calculated with whole numbers.

Of each value the first number is the nearest one, and the second is what that lacks.
"""

import math

import numpy as np

PRECISE = 256  # binary digits behind the point


def _powers_of_two():
    """Of ``2**(k / 128)``: what the number lacks, relative to it, and its bits without those that the exponent adds."""
    one = 1 << PRECISE
    root = 2 * one
    for _ in range(7):
        root = math.isqrt(root * one)
    rows, value = np.empty((128, 2)), one
    for k in range(128):
        rows[k, 1] = value / one
        above, below = rows[k, 1].item().as_integer_ratio()
        rows[k, 0] = (value * below - above * one) / (above * one)
        value = value * root // one
    bits = rows.view(np.int64)
    bits[:, 1] -= np.arange(128) << 45
    return bits.ravel()


# Units of the last digit by which the second numbers of glibc's sines and cosines differ from the nearest ones.
_UNITS_OF_SINES = {2: 1, 10: 1, 23: 39, 27: 1, 33: 1, 34: 1, 36: 1, 40: -2, 75: 1, 85: 1, 90: -2, 94: 1, 107: 1}
_UNITS_OF_COSINES = {26: 1, 44: 1, 70: 1, 75: -2, 79: 1}


def _sines():
    """Rows of eight numbers for ``k / 128``: sine and cosine, the negative sine, each as two numbers, and two zeros."""
    one = 1 << PRECISE
    parts, term = [0, 0, 0, 0], one
    for k in range(40):
        parts[k % 4] += term
        term //= 128 * (k + 1)
    c, s = parts[0] - parts[2], parts[1] - parts[3]
    rows, sine, cosine = np.zeros((128, 8)), 0, one
    for k in range(110):
        for at, value, units in ((0, sine, _UNITS_OF_SINES), (2, cosine, _UNITS_OF_COSINES)):
            rows[k, at] = value / one
            above, below = rows[k, at].item().as_integer_ratio()
            rows[k, at + 1] = (value * below - above * one) / (below * one)
            rows.view(np.int64)[k, at + 1] += units.get(k, 0)
        rows[k, 4:6] = -rows[k, :2]
        sine, cosine = (sine * c + cosine * s) // one, (cosine * c - sine * s) // one
    return rows.ravel()


POWERS_OF_TWO = _powers_of_two()
SINES = _sines()
