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


def _is_pole(x: float) -> bool:
    """Whether a number is zero or a negative integer; those that an int64 cannot hold are."""
    return x <= 0.0 and (x <= -4503599627370496.0 or x == math.floor(x))


def digamma(x: float) -> float:
    """Logarithmic derivative of the gamma function.

    Reflection for negative arguments, upward recurrence to 10, then the asymptotic series
    (Abramowitz and Stegun 6.3.7, 6.3.5, 6.3.18); relative error a few units in the last place away from zeros.
    """
    if x == 0.0:
        return -math.copysign(math.inf, x)
    shift = 0.0
    if x < 0.0:
        if _is_pole(x):
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


def _square_or_cube(x: float, n: float) -> float:
    return x * x if n == 2.0 else x * x * x


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


def _erfinv_centre(t: float) -> float:
    """``erfinv(a) / a`` at ``t = -log(1 - a**2) - 3.125``, below 6.25 of that logarithm."""
    u = t * t
    even = ((-3.3795536525485224e-22 * u + 1.8739434875095462e-20) * u + 6.396664855709971e-19) * u - 1.226305743260548e-16
    even = ((even * u + 6.525767922399858e-15) * u - 8.074665167507013e-14) * u - 1.2978692479994892e-11
    even = ((even * u + 1.051223070748762e-09) * u - 2.907039074871087e-08) * u - 1.3654691764135042e-06
    even = ((even * u + 0.0001867342080200925) * u - 0.006033670871426909) * u + 1.6536545626831027
    odd = ((-1.9123778045391186e-23 * u + 4.357475280244854e-21) * u - 3.7848217521105335e-19) * u + 1.5992591736199305e-17
    odd = ((odd * u - 4.417003393665373e-17) * u - 3.998852309540432e-14) * u + 2.6303859148085384e-12
    odd = ((odd * u - 5.4142609576164565e-11) * u - 4.112661266924503e-09) * u + 4.234788178266526e-07
    odd = ((odd * u - 1.3882523394637344e-05) * u - 0.0007407025341544301) * u + 0.2401581824255883
    return even + t * odd


def _erfinv_middle(t: float) -> float:
    """The same at ``t = sqrt(-log(1 - a**2)) - 3.25``, from 2.5 to 4 of that root."""
    u = t * t
    even = ((7.602734181548034e-09 * u - 2.069721217948336e-08) * u - 2.4575721605517875e-07) * u + 1.4817686493076977e-06
    even = ((even * u + 2.9325103785542764e-06) * u - 4.732066388775043e-05) * u + 2.4031510350318603e-05
    even = ((even * u + 0.000953289341795833) * u + 0.002491442097947516) * u + 0.005370914553555193
    even = even * u + 3.0838856104922208
    odd = ((-1.4414402902576647e-09 * u - 1.1037793186805448e-08) * u + 1.2617019273822622e-07) * u - 2.3768438869458365e-08
    odd = ((odd * u - 3.987383279152877e-06) * u + 1.2465490012885596e-05) * u + 6.828703766281446e-05
    odd = ((odd * u - 0.00035503780550499826) * u - 0.001688275535921936) * u - 0.003751208508212327
    odd = odd * u + 1.0052589676941652
    return even + t * odd


def _erfinv_end(t: float) -> float:
    """The same at ``t = sqrt(-log(1 - a**2)) - 5.05``, up to the last float below 1."""
    u = t * t
    even = ((-8.833815860414354e-13 * u - 1.081294158446201e-11) * u + 6.725461472373095e-11) * u + 1.0606230814977225e-09
    even = ((even * u + 5.7970895159121965e-09) * u + 2.1825643098280298e-08) * u + 2.0161809214857595e-07
    even = ((even * u + 4.19385388531186e-06) * u + 7.12403154143952e-05) * u - 0.00016985809149326622
    even = even * u + 4.90042105144364
    odd = ((-5.496691902449169e-14 * u + 5.3292500401665336e-12) * u + 1.8703191663348743e-12) * u - 3.278452574000714e-10
    odd = ((odd * u - 2.701867267986206e-09) * u - 1.1156911150704883e-08) * u - 5.495383011035073e-08
    odd = ((odd * u - 9.070804711691369e-07) * u - 1.8374536903752086e-05) * u - 0.00020031200663240018
    odd = odd * u + 1.0102850175977713
    return even + t * odd


def erfinv(x: float) -> float:
    """Inverse of the error function.

    Its ratio to `x` is smooth in ``-log(1 - x**2)``, and beyond 6.25 in the root of that: three polynomials, from interpolation at
    Chebyshev's points with fifty digits, are right to 1e-16. Even and odd powers are two sums, which a processor adds up at once.
    """
    a = abs(x)
    if not a < 1.0:
        return math.copysign(math.inf, x) if a == 1.0 else math.nan
    w = -math.log((1.0 - a) * (1.0 + a))
    if w < 6.25:
        return x * _erfinv_centre(w - 3.125)
    root = math.sqrt(w)
    return x * _erfinv_middle(root - 3.25) if root < 4.0 else x * _erfinv_end(root - 5.05)


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
