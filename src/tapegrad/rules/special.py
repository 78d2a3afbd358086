"""Scalar functions that rule text uses and that neither `math` nor NumPy offers in the form needed.

Plain Python in the subset that Numba compiles: the kernels jit these very functions. Arguments and results are floats.
"""

from __future__ import annotations

import math

from tapegrad.rules.error_functions import erf, erfc, erfinv, gelu_slope, ndtr
from tapegrad.rules.gamma_functions import digamma, polygamma

__all__ = [
    "digamma", "erf", "erfc", "erfinv", "exp2", "fmax", "fmin", "gelu_slope", "logaddexp", "maximum", "minimum", "mul0",
    "ndtr", "polygamma", "sigmoid", "sign", "sinc", "sinc_derivative", "where",
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
