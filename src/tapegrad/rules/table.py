"""The rule table: every elementwise derivative, written once, as text.

A row gives the primal and one partial derivative per argument as expressions in the arguments ``x``, ``y``, ``w`` and the
result ``z``. The jitted sweep, the recorded derivative of ``create_graph=True``, the public functions and the tests are all
made from these rows, so adding an operation is adding one line here.

There are two tables. Compiled code branches on the numbers of the first one's rules, which every process compiles or loads together; each
rule of the second one has loops of its own, which cost nothing until it is used. A new rule goes to the end of the second.

The expressions may use the names of other rows, of `math`, NumPy and `tapegrad.rules.special`, the four arithmetic operators, comparisons and
``where``. They must not use ``**`` (``pow`` is the same everywhere) nor ``and``/``or`` (nest ``where`` instead).
A partial is multiplied into the adjoint with the absolute-zero product: zero if either factor is zero. Text that could form
``0 * inf`` inside a partial uses `mul0` for the same reason.

Conventions at kinks follow PyTorch:

======================  ==================================================
``abs``, ``relu``       derivative 0 at 0
``clamp`` and its kin   derivative 1 at the bounds, 0 where the value is nan
``copysign``            0 where the magnitude is 0
``maximum``/``minimum`` half to each side where they tie
``pow``                 0 at base 0 for every exponent >= 0, except x**1
``hypot``               0 at the origin
``floor``, ``sign``, …  0 everywhere
``softplus``            linear above 20
``logit``               nan where the value is
======================  ==================================================
"""

from __future__ import annotations

from typing import Self

from tapegrad.named_tuples import Named

__all__ = ["COMMON", "POWERS", "RULES", "Rule"]

Interval = tuple[float, float]


class Rule(Named):
    """One elementwise operation.

    Attributes
    ----------
    name : str
        Name of the function in the package; a leading underscore keeps it private.
    args : tuple of str
        Argument names, a prefix of ``("x", "y", "w")``.
    primal : str
        The value, in terms of the arguments.
    partials : tuple of str or None
        Derivative with respect to each argument; None where there is none.
    domain : tuple of (float, float)
        Interval from which tests sample each argument.
    node : str
        PyTorch's node name; three names where it depends on which operand is a plain number: none, the first, the last.
    doc : str
        One line for the docstring.
    keeps_integers : bool
        Whether integer arguments give an integer; else they are turned into the default float first.
    """

    __slots__ = ()
    name: str
    args: tuple[str, ...]
    primal: str
    partials: tuple[str | None, ...]
    domain: tuple[Interval, ...]
    node: str
    doc: str
    keeps_integers: bool

    def __new__(
        cls,
        name: str,
        args: tuple[str, ...],
        primal: str,
        partials: tuple[str | None, ...],
        domain: tuple[Interval, ...],
        node: str,
        doc: str,
        keeps_integers: bool = False,
    ) -> Self:
        """The operation of these."""
        return tuple.__new__(cls, (name, args, primal, partials, domain, node, doc, keeps_integers))


X, XY, XYW = ("x",), ("x", "y"), ("x", "y", "w")
ANY, POS, UNIT, MILD = (-3.0, 3.0), (0.1, 4.0), (-0.9, 0.9), (-1.4, 1.4)
BIT = (0.0, 1.0)

# fmt: off
# What every process needs. Compiled code branches on their numbers, so they are compiled together, for everyone.
_COMMON: tuple[Rule, ...] = (
    Rule("_alias", X, "x", ("1.0",), (ANY,), "AliasBackward0", "The value unchanged.", True),
    Rule("_mul0", XY, "mul0(x, y)", ("y", "x"), (ANY, ANY), "MulBackward0", "Product that is zero if either factor is zero.", True),
    Rule("add", XY, "x + y", ("1.0", "1.0"), (ANY, ANY), "AddBackward0", "Sum ``x + y``.", True),
    Rule("sub", XY, "x - y", ("1.0", "-1.0"), (ANY, ANY), "SubBackward0 RsubBackward1 SubBackward0", "Difference ``x - y``.", True),
    Rule("mul", XY, "x * y", ("y", "x"), (ANY, ANY), "MulBackward0", "Product ``x * y``.", True),
    Rule("div", XY, "x / y", ("1.0 / y", "-((x / y) / y)"), (ANY, POS), "DivBackward0", "Quotient ``x / y``."),
    Rule("pow", XY, "pow(x, y)", ("mul0(y, pow(x, y - 1.0))", "where(x == 0.0, where(y >= 0.0, 0.0, z * log(x)), z * log(x))"), (POS, ANY), "PowBackward1 PowBackward2 PowBackward0", "Power ``x ** y``.", True),
    Rule("neg", X, "-x", ("-1.0",), (ANY,), "NegBackward0", "Negative ``-x``.", True),
    Rule("abs", X, "abs(x)", ("sign(x)",), (ANY,), "AbsBackward0", "Absolute value.", True),
    Rule("sign", X, "sign(x)", ("0.0",), (ANY,), "SignBackward0", "Sign: -1, 0 or 1.", True),
    Rule("reciprocal", X, "1.0 / x", ("-(z * z)",), (POS,), "ReciprocalBackward0", "Reciprocal ``1 / x``."),
    Rule("square", X, "x * x", ("2.0 * x",), (ANY,), "PowBackward0", "Square ``x * x``.", True),
    Rule("_cube", X, "x * x * x", ("3.0 * (x * x)",), (ANY,), "PowBackward0", "Third power."),
    Rule("_root", X, "sqrt(x)", ("0.5 / z",), (POS,), "PowBackward0", "Power one half."),
    Rule("_inverse", X, "1.0 / x", ("-(z * z)",), (POS,), "PowBackward0", "Power minus one."),
    Rule("sqrt", X, "sqrt(x)", ("0.5 / z",), (POS,), "SqrtBackward0", "Square root."),
    Rule("exp", X, "exp(x)", ("z",), (ANY,), "ExpBackward0", "Exponential."),
    Rule("expm1", X, "expm1(x)", ("z + 1.0",), (ANY,), "Expm1Backward0", "``exp(x) - 1``, accurate near 0."),
    Rule("log", X, "log(x)", ("1.0 / x",), (POS,), "LogBackward0", "Natural logarithm."),
    Rule("log1p", X, "log1p(x)", ("1.0 / (1.0 + x)",), (POS,), "Log1PBackward0", "``log(1 + x)``, accurate near 0."),
    Rule("sin", X, "sin(x)", ("cos(x)",), (ANY,), "SinBackward0", "Sine of an angle in radians."),
    Rule("cos", X, "cos(x)", ("-sin(x)",), (ANY,), "CosBackward0", "Cosine of an angle in radians."),
    Rule("tan", X, "tan(x)", ("1.0 + z * z",), (MILD,), "TanBackward0", "Tangent of an angle in radians."),
    Rule("asin", X, "asin(x)", ("1.0 / sqrt(1.0 - x * x)",), (UNIT,), "AsinBackward0", "Inverse sine, in radians."),
    Rule("acos", X, "acos(x)", ("-1.0 / sqrt(1.0 - x * x)",), (UNIT,), "AcosBackward0", "Inverse cosine, in radians."),
    Rule("atan", X, "atan(x)", ("1.0 / (1.0 + x * x)",), (ANY,), "AtanBackward0", "Inverse tangent, in radians."),
    Rule("atan2", XY, "atan2(x, y)", ("where(x * x + y * y == 0.0, 0.0, y / (x * x + y * y))", "where(x * x + y * y == 0.0, 0.0, -x / (x * x + y * y))"), (ANY, POS), "Atan2Backward0", "Angle of the point ``(y, x)``, in radians."),
    Rule("sinh", X, "sinh(x)", ("cosh(x)",), (ANY,), "SinhBackward0", "Hyperbolic sine."),
    Rule("cosh", X, "cosh(x)", ("sinh(x)",), (ANY,), "CoshBackward0", "Hyperbolic cosine."),
    Rule("tanh", X, "tanh(x)", ("1.0 - z * z",), (ANY,), "TanhBackward0", "Hyperbolic tangent."),
    Rule("asinh", X, "asinh(x)", ("1.0 / sqrt(x * x + 1.0)",), (ANY,), "AsinhBackward0", "Inverse hyperbolic sine."),
    Rule("acosh", X, "acosh(x)", ("1.0 / sqrt(x * x - 1.0)",), ((1.1, 4.0),), "AcoshBackward0", "Inverse hyperbolic cosine."),
    Rule("atanh", X, "atanh(x)", ("1.0 / (1.0 - x * x)",), (UNIT,), "AtanhBackward0", "Inverse hyperbolic tangent."),
    Rule("hypot", XY, "hypot(x, y)", ("where(z == 0.0, 0.0, x / z)", "where(z == 0.0, 0.0, y / z)"), (ANY, POS), "HypotBackward0", "Length ``sqrt(x**2 + y**2)`` without overflow."),
    Rule("sigmoid", X, "sigmoid(x)", ("z * (1.0 - z)",), (ANY,), "SigmoidBackward0", "Logistic function ``1 / (1 + exp(-x))``."),
    Rule("logsigmoid", X, "where(x < 0.0, x, 0.0) - log1p(exp(-abs(x)))", ("sigmoid(-x)",), (ANY,), "LogSigmoidBackward0", "Logarithm of `sigmoid`, without overflow."),
    Rule("softplus", X, "where(x > 20.0, x, log1p(exp(where(x > 20.0, 20.0, x))))", ("where(x > 20.0, 1.0, sigmoid(x))",), (ANY,), "SoftplusBackward0", "``log(1 + exp(x))``, linear above 20."),
    Rule("relu", X, "where(x <= 0.0, 0.0, x)", ("where(z <= 0.0, 0.0, 1.0)",), (ANY,), "ReluBackward0", "Positive part.", True),
    Rule("_leaky_relu", XY, "where(x > 0.0, x, x * y)", ("where(x > 0.0, 1.0, y)", "where(x > 0.0, 0.0, x)"), (ANY, POS), "PreluKernelBackward0 LeakyReluBackward0 LeakyReluBackward0", "``x`` where positive, else ``x * y``."),
    Rule("silu", X, "x * sigmoid(x)", ("sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x)))",), (ANY,), "SiluBackward0", "``x * sigmoid(x)``."),
    Rule("logaddexp", XY, "logaddexp(x, y)", ("sigmoid(x - y)", "sigmoid(y - x)"), (ANY, ANY), "LogaddexpBackward0", "``log(exp(x) + exp(y))`` without overflow."),
    Rule("maximum", XY, "maximum(x, y)", ("where(x == y, 0.5, where(x < y, 0.0, 1.0))", "where(x == y, 0.5, where(y < x, 0.0, 1.0))"), (ANY, ANY), "MaximumBackward0", "The larger of two values.", True),
    Rule("minimum", XY, "minimum(x, y)", ("where(x == y, 0.5, where(x > y, 0.0, 1.0))", "where(x == y, 0.5, where(y > x, 0.0, 1.0))"), (ANY, ANY), "MinimumBackward0", "The smaller of two values.", True),
    Rule("_clamp", XYW, "minimum(w, maximum(y, x))", ("where(x >= y, where(x <= w, 1.0, 0.0), 0.0)", "where(x < y, where(y < w, 1.0, 0.0), 0.0)", "where(maximum(x, y) > w, 1.0, 0.0)"), (ANY, (-1.0, -0.5), (0.5, 1.0)), "ClampBackward0 ClampBackward0 ClampBackward1", "``x`` limited to the interval from ``y`` to ``w``.", True),
    Rule("clamp_min", XY, "maximum(x, y)", ("where(x >= y, 1.0, 0.0)", "where(x < y, 1.0, 0.0)"), (ANY, (-0.5, 0.5)), "ClampMinBackward1 ClampMinBackward1 ClampMinBackward0", "``x``, but not less than ``y``.", True),
    Rule("clamp_max", XY, "minimum(x, y)", ("where(x <= y, 1.0, 0.0)", "where(x > y, 1.0, 0.0)"), (ANY, (-0.5, 0.5)), "ClampMaxBackward1 ClampMaxBackward1 ClampMaxBackward0", "``x``, but not more than ``y``.", True),
    Rule("where", XYW, "where(x != 0.0, y, w)", (None, "where(x != 0.0, 1.0, 0.0)", "where(x != 0.0, 0.0, 1.0)"), (BIT, ANY, ANY), "WhereBackward0", "``y`` where the condition ``x`` holds, else ``w``.", True),
    Rule("remainder", XY, "remainder(x, y)", ("1.0", "-round((x - remainder(x, y)) / y)"), (ANY, POS), "RemainderBackward1 RemainderBackward1 RemainderBackward0", "Remainder with the sign of the divisor.", True),
    Rule("floor", X, "floor(x)", ("0.0",), (ANY,), "FloorBackward0", "Largest integer not above.", True),
    Rule("ceil", X, "ceil(x)", ("0.0",), (ANY,), "CeilBackward0", "Smallest integer not below.", True),
    Rule("trunc", X, "trunc(x)", ("0.0",), (ANY,), "TruncBackward0", "Integer part.", True),
    Rule("round", X, "round(x)", ("0.0",), (ANY,), "RoundBackward0", "Nearest integer, halves to even.", True),
)

# The rest: each has loops of its own, which cost nothing until the rule is used. A new rule goes here.
_OTHERS: tuple[Rule, ...] = (
    Rule("copysign", XY, "copysign(x, y)", ("where(x == 0.0, 0.0, copysign(1.0, x) * copysign(1.0, z))", "0.0"), (POS, ANY), "CopysignBackward0 CopysignBackward0 CopysignBackward1", "The magnitude of ``x`` with the sign of ``y``."),
    Rule("rsqrt", X, "1.0 / sqrt(x)", ("-0.5 * z * z * z",), (POS,), "RsqrtBackward0", "Reciprocal of the square root."),
    Rule("exp2", X, "exp2(x)", ("0.6931471805599453 * z",), (ANY,), "Exp2Backward0", "Power of two."),
    Rule("log2", X, "log2(x)", ("1.4426950408889634 / x",), (POS,), "Log2Backward0", "Logarithm to base 2."),
    Rule("log10", X, "log10(x)", ("0.4342944819032518 / x",), (POS,), "Log10Backward0", "Logarithm to base 10."),
    Rule("erf", X, "erf(x)", ("1.1283791670955126 * exp(-(x * x))",), (ANY,), "ErfBackward0", "Error function."),
    Rule("erfc", X, "erfc(x)", ("-1.1283791670955126 * exp(-(x * x))",), (ANY,), "ErfcBackward0", "Complementary error function."),
    Rule("lgamma", X, "lgamma(x)", ("digamma(x)",), (POS,), "LgammaBackward0", "Logarithm of the absolute value of the gamma function."),
    Rule("digamma", X, "digamma(x)", ("polygamma(1.0, x)",), (POS,), "DigammaBackward0", "Derivative of `lgamma`."),
    Rule("polygamma", XY, "polygamma(x, y)", (None, "polygamma(x + 1.0, y)"), ((1.0, 1.0), POS), "PolygammaBackward0", "Derivative of order ``x`` (a number) of `digamma` at ``y``."),
    Rule("logit", X, "log(x / (1.0 - x))", ("where(x * (1.0 - x) < 0.0, sqrt(x * (1.0 - x)), 1.0 / (x * (1.0 - x)))",), ((0.1, 0.9),), "LogitBackward0", "Logarithm of the odds ``x / (1 - x)``, inverse of `sigmoid`."),
    Rule("gelu", X, "x * ndtr(x)", ("gelu_slope(x)",), (ANY,), "GeluBackward0", "Gaussian error linear unit."),
    Rule("xlogy", XY, "where(x == 0.0, where(y == y, 0.0, y), x * log(y))", ("where(x == 0.0, where(y <= 0.0, 0.0, log(y)), log(y))", "x / y"), (ANY, POS), "XlogyBackward0", "``x * log(y)``, zero where ``x`` is zero."),
    Rule("lerp", XYW, "x + w * (y - x)", ("1.0 - w", "w", "y - x"), (ANY, ANY, BIT), "LerpBackward1 LerpBackward1 LerpBackward0", "Linear interpolation from ``x`` to ``y`` with weight ``w``."),
    Rule("fmod", XY, "fmod(x, y)", ("1.0", "-round((x - sign(x) * remainder(abs(x), abs(y))) / y)"), (ANY, POS), "FmodBackward1 FmodBackward1 FmodBackward0", "Remainder with the sign of the dividend.", True),
    Rule("frac", X, "x - trunc(x)", ("1.0",), (ANY,), "FracBackward0", "Fractional part, with the sign of ``x``."),
    Rule("deg2rad", X, "0.017453292519943295 * x", ("0.017453292519943295",), (ANY,), "Deg2RadBackward0", "Degrees to radians."),
    Rule("rad2deg", X, "57.29577951308232 * x", ("57.29577951308232",), (ANY,), "Rad2DegBackward0", "Radians to degrees."),
    Rule("cbrt", X, "cbrt(x)", ("0.3333333333333333 / z / z",), (POS,), "CbrtBackward0", "Real cube root."),
    Rule("erfinv", X, "erfinv(x)", ("0.8862269254527579 * exp(erfinv(x) * erfinv(x))",), (UNIT,), "ErfinvBackward0", "Inverse of `erf`: infinite at -1 and 1, nan beyond."),
    Rule("sinc", X, "sinc(x)", ("sinc_derivative(1.0, x)",), (ANY,), "SincBackward0", "``sin(pi * x) / (pi * x)``, 1 at 0; derivatives of every order keep their digits near 0."),
    Rule("_sinc_derivative", XY, "sinc_derivative(x, y)", (None, "sinc_derivative(x + 1.0, y)"), ((1.0, 1.0), ANY), "SincBackward0", "Derivative of order ``x`` (a number) of `sinc` at ``y``."),
    Rule("logaddexp2", XY, "logaddexp2(x, y)", ("sigmoid(0.6931471805599453 * (x - y))", "sigmoid(0.6931471805599453 * (y - x))"), (ANY, ANY), "Logaddexp2Backward0", "``log2(2**x + 2**y)`` without overflow."),
    Rule("fmax", XY, "fmax(x, y)", ("where(x >= y, 1.0, where(y == y, 0.0, 1.0))", "where(x >= y, 0.0, where(y == y, 1.0, 0.0))"), (ANY, ANY), "FmaxBackward0", "The larger of two values, and the other one where one is nan; where they tie, the first one gets the gradient.", True),
    Rule("fmin", XY, "fmin(x, y)", ("where(x <= y, 1.0, where(y == y, 0.0, 1.0))", "where(x <= y, 0.0, where(y == y, 1.0, 0.0))"), (ANY, ANY), "FminBackward0", "The smaller of two values, and the other one where one is nan; where they tie, the first one gets the gradient.", True),
    Rule("_finite_or", XY, "where(x - x == 0.0, x, y)", ("where(x - x == 0.0, 1.0, 0.0)", None), (ANY, ANY), "NanToNumBackward0", "``x`` where it is finite, else ``y``."),
    Rule("_hardtanh", XYW, "where(x < y, y, where(x > w, w, x))", ("where(x <= y, 0.0, where(x >= w, 0.0, 1.0))", None, None), (ANY, (-1.0, -0.5), (0.5, 1.0)), "HardtanhBackward0", "``x`` between two bounds, at which the derivative is 0.", True),
    Rule("_threshold", XYW, "where(x <= y, w, x)", ("where(x <= y, 0.0, 1.0)", None, None), (ANY, (-1.0, 1.0), (-1.0, 1.0)), "ThresholdBackward0", "``x`` where it exceeds ``y``, else ``w``.", True),
    Rule("_hardshrink", XY, "where(abs(x) <= y, 0.0, x)", ("where(abs(x) <= y, 0.0, 1.0)", None), (ANY, (0.5, 1.0)), "HardshrinkBackward0", "``x`` where it is further than ``y`` from 0, else 0."),
    Rule("_softshrink", XY, "where(abs(x) <= y, 0.0, x - copysign(y, x))", ("where(abs(x) <= y, 0.0, 1.0)", None), (ANY, (0.5, 1.0)), "SoftshrinkBackward0", "``x`` moved towards 0 by ``y``, and 0 where it is no further away than that."),
    Rule("_hardsigmoid", X, "minimum(maximum(x + 3.0, 0.0), 6.0) / 6.0", ("where(x > -3.0, where(x < 3.0, 0.16666666666666666, 0.0), 0.0)",), ((-6.0, 6.0),), "HardsigmoidBackward0", "A straight line from 0 at -3 to 1 at 3, constant outside."),
    Rule("_hardswish", X, "x * minimum(maximum(x + 3.0, 0.0), 6.0) / 6.0", ("where(x <= -3.0, 0.0, where(x < 3.0, x / 3.0 + 0.5, 1.0))",), ((-6.0, 6.0),), "HardswishBackward0", "``x`` times the value of `_hardsigmoid`."),
    Rule("_rrelu", XY, "where(x > 0.0, x, x * y)", ("where(x > 0.0, 1.0, y)", None), (ANY, POS), "RreluWithNoiseBackward0", "``x`` where positive, else ``x`` times a slope that was chosen for it."),
    Rule("_elu", XYW, "where(x <= 0.0, expm1(minimum(x, 0.0)) * y, x * w)", ("where(x <= 0.0, exp(where(x <= 0.0, x, 0.0)) * y, w)", None, None), (ANY, POS, POS), "EluBackward0", "``w * x`` where positive, else ``y * (exp(x) - 1)``."),
    Rule("_celu", XYW, "where(x <= 0.0, expm1(minimum(x, 0.0) * w) * y, x)", ("where(x <= 0.0, exp(where(x <= 0.0, x, 0.0) * w) * (y * w), 1.0)", None, None), (ANY, (2.0, 2.0), (0.5, 0.5)), "CeluBackward0", "``x`` where positive, else ``y * (exp(w * x) - 1)``."),
    Rule("_mish", X, "x * tanh(log1p(exp(x)))", ("mish_slope(x)",), (ANY,), "MishBackward0", "``x * tanh(softplus(x))``."),
    Rule("_gelu_tanh", X, "x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))) / 2.0", ("0.5 * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * (x * x) * x))) + mul0(0.5 * x * (1.0 - tanh(0.7978845608028654 * (x + 0.044715 * (x * x) * x)) * tanh(0.7978845608028654 * (x + 0.044715 * (x * x) * x))), 0.7978845608028654 * (1.0 + 0.134145 * (x * x)))",), (ANY,), "GeluBackward0", "`gelu` with a hyperbolic tangent in the place of the error function."),
    Rule("_angle", X, "where(x < 0.0, 3.141592653589793, where(x == x, 0.0, x))", ("0.0",), (ANY,), "AngleBackward0", "The angle of a number in the complex plane: pi where it is negative, else 0."),
    Rule("_ndtr", X, "ndtr(x)", ("0.3989422804014327 * exp(-0.5 * (x * x))",), (ANY,), "NdtrBackward0", "Standard normal distribution function."),
    Rule("_scaled_softplus", XYW, "where(x * w > y, x, log1p(exp(minimum(x * w, y))) / w)", ("where(x * w > y, 1.0, sigmoid(x * w))", None, None), (ANY, (0.5, 1.0), (0.5, 2.0)), "SoftplusBackward0", "``log(1 + exp(w * x)) / w``, linear where ``w * x`` exceeds ``y``."),
    Rule("_limited_logit", XY, "log(minimum(maximum(x, y), 1.0 - y) / (1.0 - minimum(maximum(x, y), 1.0 - y)))", ("where(x < y, 0.0, where(x > 1.0 - y, 0.0, 1.0 / (x * (1.0 - x))))", None), ((0.0, 1.0), (0.1, 0.2)), "LogitBackward0", "`logit` of ``x`` limited to the interval from ``y`` to ``1 - y``."),
    Rule("_log_ndtr", X, "log_ndtr(x)", ("inverse_mills(x)",), (ANY,), "LogNdtrBackward0", "Logarithm of `_ndtr`, without underflow."),
    Rule("_inverse_mills", X, "inverse_mills(x)", ("mul0(-z, x + z)",), (ANY,), "LogNdtrBackward0", "Derivative of `_log_ndtr`."),
    Rule("_mish_slope", X, "mish_slope(x)", ("mul0(4.0 * (sigmoid(-x) * sigmoid(-x)) * sigmoid(x) / ((1.0 + sigmoid(-x) * sigmoid(-x)) * (1.0 + sigmoid(-x) * sigmoid(-x))), 2.0 + x * (sigmoid(-x) - 2.0 * sigmoid(x) * (sigmoid(x) * (1.0 + sigmoid(-x)) / (1.0 + sigmoid(-x) * sigmoid(-x)))))",), (ANY,), "MishBackward0", "Derivative of `_mish`."),
    Rule("_gelu_slope", X, "gelu_slope(x)", ("mul0(2.0 - x * x, 0.3989422804014327 * exp(-0.5 * (x * x)))",), (ANY,), "GeluBackward0", "Derivative of `gelu`."),
)
# fmt: on

RULES = _COMMON + _OTHERS
COMMON = len(_COMMON)

# Powers that are products or roots: exact, and several times cheaper than the general power.
POWERS = {2.0: "square", 3.0: "_cube", 0.5: "_root", -1.0: "_inverse"}
