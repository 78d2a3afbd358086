"""Scalar functions that rule text uses and that neither `math` nor NumPy offers in the form needed.

Plain Python in the subset that Numba compiles: the kernels jit these very functions. Arguments and results are floats.
"""

from __future__ import annotations

import math

__all__ = [
    "digamma", "erfinv", "exp2", "fmax", "fmin", "logaddexp", "maximum", "minimum", "mul0", "polygamma", "sigmoid", "sign", "sinc",
    "sinc_derivative", "where",
]  # fmt: skip


def mul0(x: float, y: float) -> float:
    """Product that is zero if either factor is zero, whatever the other one is."""
    return 0.0 if x == 0.0 or y == 0.0 else x * y


def where(condition: bool, x: float, y: float) -> float:
    """`x` if the condition holds, else `y`; both are evaluated."""
    return x if condition else y


def sign(x: float) -> float:
    """-1, 0 or 1; nan for nan."""
    return 1.0 if x > 0.0 else -1.0 if x < 0.0 else x * 0.0


def maximum(x: float, y: float) -> float:
    """The larger argument; nan if either is nan."""
    return x if x > y or x != x else y


def minimum(x: float, y: float) -> float:
    """The smaller argument; nan if either is nan."""
    return x if x < y or x != x else y


def fmax(x: float, y: float) -> float:
    """The larger argument; the other one if one is nan."""
    return x if x >= y or y != y else y


def fmin(x: float, y: float) -> float:
    """The smaller argument; the other one if one is nan."""
    return x if x <= y or y != y else y


def exp2(x: float) -> float:
    """Two to the power `x`."""
    return math.pow(2.0, x)


def sigmoid(x: float) -> float:
    """Logistic function; the exponential is taken of a negative number, so it never overflows.

    One exponential for both signs: a branch between two, which random signs take at random, costs 5 of 19 ns.
    """
    e = math.exp(-abs(x))
    return (1.0 if x >= 0.0 else e) / (1.0 + e)


def logaddexp(x: float, y: float) -> float:
    """Logarithm of ``exp(x) + exp(y)``; equal infinities stay what they are."""
    if x == y:
        return x + 0.6931471805599453
    d = x - y
    return x + math.log1p(math.exp(-d)) if d > 0.0 else y + math.log1p(math.exp(d))


def digamma(x: float) -> float:
    """Logarithmic derivative of the gamma function.

    Reflection for negative arguments, upward recurrence to 10, then the asymptotic series
    (Abramowitz and Stegun 6.3.7, 6.3.5, 6.3.18); relative error a few units in the last place away from zeros.
    """
    if x == 0.0:
        return -math.copysign(math.inf, x)
    shift = 0.0
    if x < 0.0:
        if x == math.floor(x):
            return math.nan
        fraction = x - math.floor(x)
        shift = -math.pi / math.tan(math.pi * fraction)
        x = 1.0 - x
    while x < 10.0:
        shift -= 1.0 / x
        x += 1.0
    if x == math.inf:
        return x
    r = 1.0 / (x * x)
    series = r * (
        1.0 / 12.0
        - r * (1.0 / 120.0 - r * (1.0 / 252.0 - r * (1.0 / 240.0 - r * (1.0 / 132.0 - r * (691.0 / 32760.0 - r / 12.0)))))
    )
    return math.log(x) - 0.5 / x - series + shift


def polygamma(n: float, x: float) -> float:
    """Derivative of order `n` of `digamma`: ``(-1)**(n+1) * n! * zeta(n+1, x)``.

    The Hurwitz zeta function is summed directly up to ``x + 12`` and completed by Euler-Maclaurin (Abramowitz and Stegun
    6.4.10, 23.2.16), for ``x > 0``; negative arguments are carried up by the recurrence 6.4.6 of the same tables.
    """
    if n == 0.0:
        return digamma(x)
    if n < 0.0 or n != math.floor(n):
        return math.nan
    if x <= 0.0 and x == math.floor(x):
        return math.inf
    odd = n - 2.0 * math.floor(n / 2.0) == 1.0
    if n > 1000.0:  # the factorial overflows, and the sum below would not end
        return math.inf if odd else -math.inf
    s = n + 1.0
    total = 0.0
    while x < 12.0 + s:
        total += math.pow(x, -s)
        x += 1.0
    if x == math.inf:
        return 0.0
    term = math.pow(x, -s)
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
    factorial = math.gamma(s)
    return total * factorial if odd else -total * factorial


def erfinv(x: float) -> float:
    """Inverse of the error function.

    Winitzki's closed form ("A handy approximation for the error function and its inverse", 2008) is right to 0.2 per cent; each of
    Halley's steps then triples the digits. Beyond one half they are taken on the complementary function, which keeps the digits of
    ``1 - x``.
    """
    a = abs(x)
    if not a < 1.0:
        return math.copysign(math.inf, x) if a == 1.0 else math.nan
    tail = 0.5 * math.log1p(-a * a)
    middle = 2.0 / (math.pi * 0.147) + tail
    z = math.sqrt(math.sqrt(middle * middle - tail * (2.0 / 0.147)) - middle)
    for _ in range(3):
        error = math.erf(z) - a if a < 0.5 else (1.0 - a) - math.erfc(z)
        step = error * (0.5 * math.sqrt(math.pi)) * math.exp(z * z)
        z = z - step / (1.0 + z * step)
    return math.copysign(z, x)


def sinc(x: float) -> float:
    """``sin(pi * x) / (pi * x)``, continued by its limit."""
    return sinc_derivative(0.0, x)


def sinc_derivative(n: float, x: float) -> float:
    """Derivative of order `n` of `sinc`, with ``y = pi * x``.

    Near 0 by the Taylor series, which loses few digits there; elsewhere by Leibniz's rule for the derivatives of
    ``y * (sin(y) / y)``, a recurrence that is stable as long as ``abs(y) > n``.
    """
    y = math.pi * x
    order = int(n)
    if abs(y) <= max(3.0, n):
        first = (order + 1) // 2
        term = (y if order % 2 == 1 else 1.0) * (1.0 if first % 2 == 0 else -1.0)
        value = term / (2 * first + 1)
        # terms fall faster than (bound / power)**2 from there on
        for k in range(first + 1, first + 12 + 2 * max(3, order)):
            power = 2 * k - order
            term = term * (-y * y / (power * (power - 1)))
            value = value + term / (2 * k + 1)
    else:
        s, c = math.sin(y), math.cos(y)
        value = s / y
        for k in range(1, order + 1):
            s, c = c, -s
            value = (s - k * value) / y
    return value * math.pow(math.pi, n)
