"""Functions of rule text in vectors: which are written out where they are called, and which have a form for blocks.

The second ones are quick for common arguments and go through the others one by one. Both have the bits of the function of a number.
"""

from __future__ import annotations

__all__ = ["BLOCK_TEXT", "BY_BITS", "WRITTEN_OUT"]

# Texts without a branch: a loop that calls them becomes vector instructions, if the compiler does not leave the call where it is.
WRITTEN_OUT = frozenset([
    "_cubes", "_erfinv_centre", "_falling", "_half_turn", "_mills", "_near", "_tail", "_times_power", "_upper",
    "_zeta_of_three", "_zeta_of_two", "digamma_near", "erf", "erfc", "erfinv_near", "gelu_slope", "inverse_mills_near",
    "log_ndtr_near", "logarithm", "mish_slope", "ndtr", "sinc_near", "sinc_slope_near", "tetragamma_near", "trigamma_near",
])  # fmt: skip

# What compiled code does among the bits of a number (`tapegrad.engine.memory`).
BY_BITS = frozenset(["exponent_of", "two_to"])

_OF_ONE = """
@inline
def {name}_block(n, xs, out):
    quick = True
    for j in range(n):
        x = xs[j]
        quick &= ({least} <= x) & (x <= {largest})
        out[j] = {name}_near(x)
    if not quick:
        for j in range(n):
            if not ({least} <= xs[j] <= {largest}):
                out[j] = {name}(xs[j])
"""

BLOCK_TEXT = (
    _OF_ONE.format(name="erfinv", least="-ERFINV_NEAR", largest="ERFINV_NEAR")
    + _OF_ONE.format(name="digamma", least="GAMMA_LEAST", largest="GAMMA_LARGEST")
    + _OF_ONE.format(name="inverse_mills", least="NDTR_LEAST", largest="1.7976931348623157e308")
    + _OF_ONE.format(name="log_ndtr", least="NDTR_LEAST", largest="1.7976931348623157e308")
    + _OF_ONE.format(name="sinc", least="-SINC_LARGEST", largest="SINC_LARGEST")
    + """
@inline
def sinc_derivative_block(n, orders, xs, out):
    quick = True
    for j in range(n):
        quick &= (orders[j] == 1.0) & (abs(xs[j]) <= SINC_LARGEST)
    if quick:
        for j in range(n):
            out[j] = sinc_slope_near(xs[j])
    else:
        for j in range(n):
            out[j] = sinc_derivative(orders[j], xs[j])


@inline
def polygamma_block(n, orders, xs, out):
    first, second, quick = True, True, True
    for j in range(n):
        first &= orders[j] == 1.0
        second &= orders[j] == 2.0
        quick &= (GAMMA_LEAST <= xs[j]) & (xs[j] <= GAMMA_LARGEST)
    if first & quick:
        for j in range(n):
            out[j] = trigamma_near(xs[j])
    elif second & quick:
        for j in range(n):
            out[j] = tetragamma_near(xs[j])
    else:
        for j in range(n):
            out[j] = polygamma(orders[j], xs[j])


@inline
def remainder_block(n, xs, ys, out):
    quick = True
    for j in range(n):
        quick &= (abs(xs[j] / ys[j]) < 4503599627370496.0) & (abs(ys[j]) <= 1.7976931348623157e308)
    if quick:
        for j in range(n):
            x, y = xs[j], ys[j]
            rest = fused(-floor(x / y), y, x)
            rest = rest + y if (rest < 0) != (y < 0) and rest != 0 else rest
            out[j] = rest if rest != 0 else math.copysign(0.0, y)
    else:
        for j in range(n):
            out[j] = remainder(xs[j], ys[j])
"""
)
