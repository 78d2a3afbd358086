"""The error function and its kin: texts without branches, which a compiler makes vector instructions of.

The C library's take 10 ns an element, most of it in branches that random arguments take at random. These take 3 and are right to
three units of the last digit. Loops over blocks and numbers by themselves have the same bits: it is one text.
"""

from __future__ import annotations

import math

from tapegrad.rules.binary_exponents import logarithm, two_to

__all__ = ["erf", "erfc", "erfinv", "gelu_slope", "inverse_mills", "log_ndtr", "mish_slope", "ndtr"]


def _tail(a: float, unit: float, weight: float, square: float, rest: float) -> tuple[float, float, float]:
    """``exp(t**2) * erfc(t) * exp(-square - rest)`` times ``weight / unit``, for ``t = a / unit`` from 0 to 28.

    The first two factors vary little beside ``1 / (t + 0.8)`` (Shepherd and Laframboise, "Chebyshev approximation of
    (1 + 2x) exp(x**2) erfc x in 0 <= x < infinity", Mathematics of Computation 36, 1981): a polynomial in ``1 / (t + 3.5)`` by
    Chebyshev's points with forty digits. Powers are summed in groups, which a processor adds up at once.

    Returns
    -------
    float
        The product divided by a power of two.
    float
        The same of the exponential.
    float
        The power's exponent.
    """
    u = 7.875 * unit / (a + 3.5 * unit) - 1.25
    u2 = u * u
    u4 = u2 * u2
    p = (0.15195956481022913 + 0.048919821589599254 * u) + (-0.012408352792421461 - 0.03126452813178019 * u) * u2
    q = (-0.025270854692994 - 0.013042657306363304 * u) + (-0.004387415347944429 - 0.0007060055453648238 * u) * u2
    v = (0.0001308908058200884 + 9.460168446866004e-05 * u) + (7.797940013218937e-06 - 7.86044064941888e-06 * u) * u2
    w = (-1.7917941281161198e-06 + 6.716030930476474e-07 * u) + (2.382718868385906e-07 - 6.993252462357175e-08 * u) * u2
    y = (-2.821319581411508e-08 + 8.926469736240691e-09 * u) + (2.9257867883218144e-09 - 1.1402658924991328e-09 * u) * u2
    z = -1.9773781985361766e-10 + 9.403233860753444e-11 * u
    u8 = u4 * u4
    c = 0.6859759668839708 * weight
    bend = u * weight * ((p + q * u4) + u8 * ((v + w * u4) + u8 * (y + z * u4)))
    less_one, k = _falling(square, rest)
    product = c + (c * less_one + (bend + bend * less_one))  # of c + bend and the exponential, rounded where it is small
    return product / (a + 0.8 * unit), 1.0 + less_one, k


def _falling(square: float, rest: float) -> tuple[float, float]:
    """The exponential of ``-square - rest``, of which the second is small, by a power of two: less one; and the exponent."""
    k = (6755399441055744.0 - square * 1.4426950408889634) - 6755399441055744.0  # the nearest integer
    r = ((-square - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10) - rest
    r2 = r * r
    low = (0.5000000000000001 + 0.1666666666666667 * r) + (0.04166666666662412 + 0.008333333333326134 * r) * r2
    high = (0.0013888888917215586 + 0.00019841269874822307 * r) + (2.4801521293463862e-05 + 2.755725539833871e-06 * r) * r2
    high = high + (2.762008948195459e-07 + 2.5105217695684516e-08 * r) * (r2 * r2)
    less_one = r + r2 * (low + r2 * r2 * high)
    return less_one, k


def _times_power(x: float, k: float) -> float:
    """Times two to the power of a whole number, in two steps, as it would be no normal number far out."""
    half = (k * 0.5 + 6755399441055744.0) - 6755399441055744.0
    return x * two_to(half) * two_to(k - half)


def _near(x: float) -> float:
    """`erf` up to 1/2."""
    w = x * x
    w2 = w * w
    low = (0.1283791670955126 - 0.37612638903183476 * w) + (0.11283791670925457 - 0.026866170632921058 * w) * w2
    high = (0.005223977373541688 - 0.0008548297798040537 * w) + (0.0001205333722055347 - 1.4845900835076994e-05 * w) * w2
    return x + x * (low + w2 * w2 * (high + 1.4726381026162853e-06 * (w2 * w2)))


def _upper(a: float) -> float:
    """`erfc` of a number from 0 to 28; its square is exact in two parts, as the exponential would enlarge what it is rounded by."""
    head = (a + 6442450944.0) - 6442450944.0
    tail, _, k = _tail(a, 1.0, 1.0, head * head, (a - head) * (a + head))
    return _times_power(tail, k)


def erf(x: float) -> float:
    """Error function."""
    a = abs(x)
    far = math.copysign(1.0 - _upper(min(a, 6.5)), x)
    near = _near(x)
    return near if a < 0.5 else far


def erfc(x: float) -> float:
    """Complementary error function ``1 - erf(x)``."""
    a = abs(x)
    far = _upper(min(a, 28.0))
    below = 2.0 - far
    near = 1.0 - _near(x)
    far = below if x < 0.0 else far
    return near if a < 0.5 else far


def ndtr(x: float) -> float:
    """Standard normal distribution function, right to the last digits in both tails.

    The root of two is rounded down here, with which the value at 0 is exact.
    """
    a = abs(x)
    a = min(a, 39.0)
    head = (a + 6442450944.0) - 6442450944.0
    tail, _, k = _tail(a, 1.414213562373095, 0.7071067811865476, 0.5 * head * head, 0.5 * (a - head) * (a + head))
    lower = _times_power(tail, k)
    upper = 1.0 - lower
    return upper if x > 0.0 else lower


def gelu_slope(x: float) -> float:
    """Derivative of ``x * ndtr(x)``: `ndtr` and x times the density, of which the exponential is there already."""
    a = min(abs(x), 39.0)
    head = (a + 6442450944.0) - 6442450944.0
    tail, density, k = _tail(a, 1.414213562373095, 0.7071067811865476, 0.5 * head * head, 0.5 * (a - head) * (a + head))
    lower = _times_power(tail - 0.3989422804014327 * a * density, k)
    upper = 1.0 - lower
    return upper if x > 0.0 else lower


def mish_slope(x: float) -> float:
    """Derivative of ``x * tanh(softplus(x))``, by the shares ``sigmoid(x)`` and ``sigmoid(-x)``."""
    a = min(abs(x), 750.0)  # beyond, the exponential is zero
    less_one, k = _falling(a, 0.0)
    e = _times_power(1.0 + less_one, k)
    larger, smaller = 1.0 / (1.0 + e), e / (1.0 + e)
    share, rest = larger if x >= 0.0 else smaller, smaller if x >= 0.0 else larger
    square = rest * rest
    d = 1.0 + square
    return (share * (1.0 + rest) + math.copysign(a, x) * share * (4.0 * square) / d) / d


NDTR_LEAST = -37.0


def _mills(x: float) -> tuple[float, float, float]:
    """Of a number's size a: its half square, the upper tail by ``exp(-a**2 / 2)``, and the tail, from -37 on."""
    a = min(abs(x), 39.0)
    head = (a + 6442450944.0) - 6442450944.0
    tail, density, k = _tail(a, 1.414213562373095, 0.7071067811865476, 0.5 * head * head, 0.5 * (a - head) * (a + head))
    return 0.5 * a * a, tail / density, _times_power(tail, k)


def log_ndtr_near(x: float) -> float:
    """`log_ndtr` from `NDTR_LEAST` on."""
    square, ratio, lower = _mills(x)
    upper = 1.0 - lower
    rest = ((1.0 - upper) - lower) / upper  # what the difference was rounded by
    return logarithm(upper if x > 0.0 else ratio) + (rest if x > 0.0 else -square)


def _far(x: float) -> float:
    """The ratio of the lower tail and the density times ``-x``, far below 0 (Abramowitz and Stegun 26.2.12)."""
    r = 1.0 / (x * x)
    return 1.0 - r * (1.0 - r * (3.0 - r * (15.0 - r * (105.0 - r * 945.0))))


def log_ndtr(x: float) -> float:
    """Logarithm of `ndtr`, without underflow."""
    if x >= NDTR_LEAST:
        return log_ndtr_near(x)
    return -0.5 * x * x - math.log(-x) + (math.log(_far(x)) - 0.9189385332046727) if x == x else x


def inverse_mills_near(x: float) -> float:
    """`inverse_mills` from `NDTR_LEAST` on."""
    _, ratio, lower = _mills(x)
    below = 0.3989422804014327 / ratio
    upper = below * lower / (1.0 - lower)
    return upper if x > 0.0 else below


def inverse_mills(x: float) -> float:
    """The standard normal density by the distribution function: the derivative of `log_ndtr`."""
    if x >= NDTR_LEAST:
        return inverse_mills_near(x)
    return -x / _far(x) if x == x else x


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


ERFINV_NEAR = 0.999


def erfinv_near(x: float) -> float:
    """`erfinv` where its argument is not so near to 1: up to `ERFINV_NEAR`."""
    a = abs(x)
    return x * _erfinv_centre(-logarithm((1.0 - a) * (1.0 + a)) - 3.125)


def erfinv(x: float) -> float:
    """Inverse of the error function.

    Its ratio to `x` is smooth in ``-log(1 - x**2)``, and beyond 6.25 in the root of that: three polynomials, from interpolation at
    Chebyshev's points with fifty digits, are right to 1e-16. Even and odd powers are two sums, which a processor adds up at once.
    """
    a = abs(x)
    if a <= ERFINV_NEAR:
        return erfinv_near(x)
    if not a < 1.0:
        return math.copysign(math.inf, x) if a == 1.0 else math.nan
    root = math.sqrt(-logarithm((1.0 - a) * (1.0 + a)))
    return x * _erfinv_middle(root - 3.25) if root < 4.0 else x * _erfinv_end(root - 5.05)
