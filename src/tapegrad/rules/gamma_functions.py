"""Derivatives of the logarithm of the gamma function.

Up to the third the common arguments have texts without branches, which a compiler makes vector instructions of.
"""

from __future__ import annotations

import math

from tapegrad.rules.binary_exponents import logarithm

__all__ = ["digamma", "polygamma"]

# Where those texts hold: what they multiply neither overflows nor underflows.
GAMMA_LEAST, GAMMA_LARGEST = 1e-100, 1e100


def _is_pole(x: float) -> bool:
    """Whether a number is zero or a negative integer; those that an int64 cannot hold are."""
    return x <= 0.0 and (x <= -4503599627370496.0 or x == math.floor(x))


def digamma_near(x: float) -> float:
    """`digamma` from `GAMMA_LEAST` to `GAMMA_LARGEST`.

    Below 10 the ten steps of the upward recurrence are one quotient, pairs of them first, and the asymptotic series follows there
    (Abramowitz and Stegun 6.3.5, 6.3.18).
    """
    y = 1.0 if x >= 10.0 else x
    y2, twice = y * y, y + y
    n1, d1 = twice + 1.0, y2 + y
    n2, d2 = twice + 5.0, (y2 + 5.0 * y) + 6.0
    n3, d3 = twice + 9.0, (y2 + 9.0 * y) + 20.0
    n4, d4 = twice + 13.0, (y2 + 13.0 * y) + 42.0
    n5, d5 = twice + 17.0, (y2 + 17.0 * y) + 72.0
    n3, d3 = n3 * d2 + n2 * d3, d2 * d3
    n5, d5 = n5 * d4 + n4 * d5, d4 * d5
    n5, d5 = n5 * d3 + n3 * d5, d3 * d5
    steps = (n1 * d5 + n5 * d1) / (d1 * d5)
    above = x + 10.0
    steps = 0.0 if x >= 10.0 else steps
    z = x if x >= 10.0 else above
    q = 1.0 / z
    r = q * q
    high = (1.0 / 240.0 - 1.0 / 132.0 * r) + (691.0 / 32760.0 - 1.0 / 12.0 * r) * (r * r)
    series = r * ((1.0 / 12.0 - 1.0 / 120.0 * r) + (r * r) * (1.0 / 252.0 - r * high))
    return logarithm(z) - ((0.5 * q + series) + steps)


def digamma(x: float) -> float:
    """Logarithmic derivative of the gamma function; negative arguments by reflection (Abramowitz and Stegun 6.3.7).

    Relative error a few units in the last place away from zeros.
    """
    if GAMMA_LEAST <= x <= GAMMA_LARGEST:
        return digamma_near(x)
    if x == 0.0:
        return -math.copysign(math.inf, x)
    shift = 0.0
    if x < 0.0:
        if _is_pole(x):
            return math.nan
        fraction = x - math.floor(x + 0.5)  # of either sign: just below an integer it is small, and not next to one
        shift = -math.pi / math.tan(math.pi * fraction)
        x = 1.0 - x
    if GAMMA_LEAST <= x <= GAMMA_LARGEST:
        return digamma_near(x) + shift
    return math.log(x) if x != x or x > 1.0 else -1.0 / x


def _square_or_cube(x: float, n: float) -> float:
    return x * x if n == 2.0 else x * x * x


def _zeta_of_two(x: float) -> float:
    """Sum of ``(x + k)**-2`` over all ``k >= 0``, for x from `GAMMA_LEAST` to `GAMMA_LARGEST`.

    Below 10 the first ten terms are two quotients.
    """
    y = 1.0 if x >= 10.0 else x
    y2 = y * y
    d1 = y2 + y
    d2, d3 = (y2 + 5.0 * y) + 6.0, (y2 + 9.0 * y) + 20.0
    d4, d5 = (y2 + 13.0 * y) + 42.0, (y2 + 17.0 * y) + 72.0
    n1 = y2 + (y + 1.0) * (y + 1.0)
    n2, n3 = (y + 2.0) * (y + 2.0) + (y + 3.0) * (y + 3.0), (y + 4.0) * (y + 4.0) + (y + 5.0) * (y + 5.0)
    n4, n5 = (y + 6.0) * (y + 6.0) + (y + 7.0) * (y + 7.0), (y + 8.0) * (y + 8.0) + (y + 9.0) * (y + 9.0)
    d1, d2, d3, d4, d5 = d1 * d1, d2 * d2, d3 * d3, d4 * d4, d5 * d5
    n3, d3 = n3 * d2 + n2 * d3, d2 * d3
    n5, d5 = n5 * d4 + n4 * d5, d4 * d5
    steps = (n1 / d1) + (n5 * d3 + n3 * d5) / (d3 * d5)
    above = x + 10.0
    steps = 0.0 if x >= 10.0 else steps
    q = 1.0 / (x if x >= 10.0 else above)
    r = q * q
    r2 = r * r
    low = (1.0 / 6.0 - 1.0 / 30.0 * r) + (1.0 / 42.0 - 1.0 / 30.0 * r) * r2
    high = (5.0 / 66.0 - 691.0 / 2730.0 * r) + (7.0 / 6.0 - 3617.0 / 510.0 * r) * r2 + 43867.0 / 798.0 * (r2 * r2)
    return ((q + 0.5 * r) + q * r * (low + (r2 * r2) * high)) + steps


def _cubes(y: float) -> tuple[float, float]:
    """Numerator and denominator of ``y**-3 + (y + 1)**-3``."""
    z = y + 1.0
    d = y * z
    return y * y * y + z * z * z, d * d * d


def _zeta_of_three(x: float) -> float:
    """The same of ``(x + k)**-3``."""
    y = 1.0 if x >= 10.0 else x
    n1, d1 = _cubes(y)
    n2, d2 = _cubes(y + 2.0)
    n3, d3 = _cubes(y + 4.0)
    n4, d4 = _cubes(y + 6.0)
    n5, d5 = _cubes(y + 8.0)
    n3, d3 = n3 * d2 + n2 * d3, d2 * d3
    n5, d5 = n5 * d4 + n4 * d5, d4 * d5
    steps = (n1 / d1) + (n5 * d3 + n3 * d5) / (d3 * d5)
    above = x + 10.0
    steps = 0.0 if x >= 10.0 else steps
    q = 1.0 / (x if x >= 10.0 else above)
    r = q * q
    r2 = r * r
    low = (0.25 - 1.0 / 12.0 * r) + (1.0 / 12.0 - 3.0 / 20.0 * r) * r2
    high = (5.0 / 12.0 - 691.0 / 420.0 * r) + (35.0 / 4.0 - 3617.0 / 60.0 * r) * r2
    high = high + (43867.0 / 84.0 - 1222277.0 / 220.0 * r) * (r2 * r2)
    return ((0.5 * r + 0.5 * q * r) + r2 * (low + (r2 * r2) * high)) + steps


def trigamma_near(x: float) -> float:
    """``polygamma(1, x)`` from `GAMMA_LEAST` to `GAMMA_LARGEST`."""
    return _zeta_of_two(x)


def tetragamma_near(x: float) -> float:
    """``polygamma(2, x)`` from `GAMMA_LEAST` to `GAMMA_LARGEST`."""
    return -2.0 * _zeta_of_three(x)


def _hurwitz_zeta(s: float, x: float) -> float:
    """Sum of ``(x + k)**-s`` over all ``k >= 0``: directly up to ``x + 12``, and the rest by Euler-Maclaurin.

    Abramowitz and Stegun 23.2.16.
    """
    total = 0.0
    while x < 12.0 + s:
        if s <= 3.0:  # two terms at once: a division takes as long as ten products, and a power as five of them
            first, second = _square_or_cube(x, s), _square_or_cube(x + 1.0, s)
            total += (first + second) / (first * second)
            x += 2.0
        else:
            total += math.pow(x, -s)
            x += 1.0
    term = 1.0 / _square_or_cube(x, s) if s <= 3.0 else math.pow(x, -s)
    total += term * x / (s - 1.0) + 0.5 * term
    # Bernoulli numbers B2, B4, ... over (2k)!, times s (s+1) ... (s+2k-2) x**(-s-2k+1)
    rising = s / x
    r = 1.0 / (x * x)
    tail = rising / 12.0
    rising *= (s + 1.0) * (s + 2.0) * r
    tail -= rising / 720.0
    rising *= (s + 3.0) * (s + 4.0) * r
    tail += rising / 30240.0
    rising *= (s + 5.0) * (s + 6.0) * r
    tail -= rising / 1209600.0
    rising *= (s + 7.0) * (s + 8.0) * r
    tail += rising / 47900160.0
    rising *= (s + 9.0) * (s + 10.0) * r
    tail -= rising * 691.0 / 1307674368000.0
    total += term * tail
    return total


def polygamma(n: float, x: float) -> float:
    """Derivative of order `n` of `digamma`: ``(-1)**(n+1) * n! * zeta(n+1, x)``.

    Abramowitz and Stegun 6.4.10. Negative arguments are carried up by the recurrence 6.4.6 of the same tables; far out, where
    that would not end, the sum over all integers on both sides is known by the fraction alone.
    """
    if n == 0.0:
        return digamma(x)
    if (n == 1.0 or n == 2.0) and GAMMA_LEAST <= x <= GAMMA_LARGEST:
        return trigamma_near(x) if n == 1.0 else tetragamma_near(x)
    below_all_even = n < 9007199254740992.0
    if n < 0.0 or n != n or (below_all_even and n != math.floor(n)):
        return math.nan
    odd = below_all_even and n - 2.0 * math.floor(n / 2.0) == 1.0
    # At poles, seen from the right; and where the factorial overflows, and the sum would not end.
    if n > 1000.0 or _is_pole(x):
        return math.inf if odd else -math.inf
    if x == math.inf:
        return 0.0
    s = n + 1.0
    if x < -1000.0:
        fraction = x - math.floor(x)
        below = _hurwitz_zeta(s, 1.0 - fraction) - _hurwitz_zeta(s, 1.0 - x)
        total = _hurwitz_zeta(s, fraction) + (below if odd else -below)
    else:
        total = _hurwitz_zeta(s, x)
    factorial = math.gamma(s)
    return total * factorial if odd else -total * factorial
