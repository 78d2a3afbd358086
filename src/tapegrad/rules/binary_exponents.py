"""Numbers as a fraction and a power of two. Compiled code reads and writes exponents where they stand among the bits."""

from __future__ import annotations

import math

__all__ = ["exponent_of", "logarithm", "two_to"]


def two_to(k: float) -> float:
    """Two to the power of an integer from -1022 to 1023; anything for other numbers."""
    return math.ldexp(1.0, int(k)) if abs(k) < 1024.0 else math.nan


def exponent_of(x: float) -> float:
    """The integer power of two that a positive normal number is at least, and twice which it is below; anything for others."""
    return math.frexp(x)[1] - 1.0


def logarithm(x: float) -> float:
    """Natural logarithm of a normal number below 1e300, without a branch.

    Twice the inverse hyperbolic tangent of ``(m - 1) / (m + 1)`` for a fraction m around 1: 2e-16 off at most, or so much of it.
    """
    k = exponent_of(1.4142135623730951 * x)
    m = x * two_to(-k)
    s = (m - 1.0) / (m + 1.0)
    w = s * s
    w2 = w * w
    low = (0.6666666666666765 + 0.39999999999299163 * w) + (0.2857142876129969 + 0.22222196991874563 * w) * w2
    high = (0.18183634960064682 + 0.15312445921542459 * w) + 0.1481051999082406 * w2
    rest = s * w * (low + w2 * w2 * high)
    return k * 6.93147180369123816490e-01 + ((k * 1.90821492927058770002e-10 + rest) + 2.0 * s)
