"""Scalar functions that rule text uses and that neither `math` nor NumPy offers in the form needed.

Plain Python in the subset that Numba compiles: the kernels jit these very functions. Arguments and results are floats.
"""

from __future__ import annotations

import math

from tapegrad.rules.error_functions import erf, erfc, erfinv, gelu_slope, inverse_mills, log_ndtr, mish_slope, ndtr
from tapegrad.rules.gamma_functions import digamma, polygamma

__all__ = [
    "digamma", "erf", "erfc", "erfinv", "exp2", "fmax", "fmin", "gelu_slope", "inverse_mills", "log_ndtr", "logaddexp",
    "maximum", "minimum", "mish_slope", "mul0", "ndtr", "polygamma", "sigmoid", "sign", "sinc", "sinc_derivative", "where",
]  # fmt: skip


def mul0(x: float, y: float) -> float:
    """Product that is zero if either factor is zero, whatever the other one is."""
    return 0.0 if x == 0.0 or y == 0.0 else x * y


def where(condition: bool, x: float, y: float) -> float:
    """`x` if the condition holds, else `y`; both are evaluated."""
    return x if condition else y


def sign(x: float) -> float:
    """-1, 0 or 1; nan for nan."""
    return 1.0 if x > 0.0 else -1.0 if x < 0.0 else x + 0.0


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


SINC_LARGEST = 1e15  # beyond, there is hardly an odd integer left between numbers


def _half_turn(x: float) -> tuple[float, float]:
    """The distance from the nearest integer n, which is exact, and ``(-1)**n``."""
    n = (x + 6755399441055744.0) - 6755399441055744.0
    half = 0.5 * n
    odd = half - ((half + 6755399441055744.0) - 6755399441055744.0)
    return x - n, 1.0 - 8.0 * (odd * odd)


def sinc_near(x: float) -> float:
    """`sinc` up to `SINC_LARGEST`, by a polynomial in the distance from the nearest integer."""
    r, sign = _half_turn(x)
    w = r * r
    w2 = w * w
    low = (-1.6449340668482264 + 0.8117424252833393 * w) + (-0.19075182412149644 + 0.02614784780555513 * w) * w2
    high = (-0.0023460808954978212 + 0.00014842784157086 * w) + (-6.972100014912123e-06 + 2.450297703458085e-07 * w) * w2
    value = 1.0 + w * (low + w2 * w2 * high)
    far = sign * value * (r / (x if abs(x) > 0.5 else 1.0))
    return value if abs(x) <= 0.5 else far


def sinc_slope_near(x: float) -> float:
    """Its first derivative there: ``(cos(pi * x) - sinc(x)) / x``, and up to 1/2, where that would cancel, a polynomial."""
    r, sign = _half_turn(x)
    w = r * r
    w2 = w * w
    low = (-4.934802200544676 + 4.058712126416498 * w) + (-1.3352627688434533 + 0.23533063012962502 * w) * w2
    high = (-0.025806888737756172 + 0.0019295562758921013 * w) + (-0.0001045665614038835 + 4.149571992124663e-06 * w) * w2
    cosine = 1.0 + w * (low + w2 * w2 * high)
    low = (-3.289868133696453 + 3.2469697011334144 * w) + (-1.1445109447324986 + 0.20918278254096154 * w) * w2
    high = (-0.023460810348858812 + 0.0017811454504530497 * w) + (-9.766178318925702e-05 + 4.048171115128579e-06 * w) * w2
    high = high - 1.27676626085718e-07 * (w2 * w2)
    near = x * (low + w2 * w2 * high)
    far = (sign * cosine - sinc_near(x)) / (x if abs(x) > 0.5 else 1.0)
    return near if abs(x) <= 0.5 else far


def sinc(x: float) -> float:
    """``sin(pi * x) / (pi * x)``, continued by its limit."""
    return sinc_derivative(0.0, x)


def sinc_derivative(n: float, x: float) -> float:
    """Derivative of order `n` of `sinc`, with ``y = pi * x``.

    The first two by polynomials; others near 0 by the Taylor series, which loses few digits there, and elsewhere by Leibniz's rule
    for the derivatives of ``y * (sin(y) / y)``, a recurrence that is stable as long as ``abs(y) > n``.
    """
    if abs(x) <= SINC_LARGEST and n <= 1.0:
        return sinc_near(x) if n == 0.0 else sinc_slope_near(x)
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
