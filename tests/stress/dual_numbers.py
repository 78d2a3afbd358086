"""Numbers that carry their first and second derivatives: an oracle that knows nothing of tapes, rows or rules.

A `Dual` is a value, a gradient and a Hessian by the numbers that `inputs` made. Programs run on them as plain Python, so branches,
aliasing and ties are those of the values, and at kinks the conventions are those of the documentation, written down here once more.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import polygamma

NAN, INF = math.nan, math.inf


def _times(factor: float, part: Any) -> Any:
    """The product that is zero if either factor is zero; None stands for zero."""
    if part is None or factor == 0.0:
        return None
    if factor == 1.0:
        return part
    if math.isfinite(factor):
        return np.where(part == 0.0, 0.0, factor * part) if not np.isfinite(part).all() else factor * part
    return np.where(part == 0.0, 0.0, factor * part)


def _plus(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


class Dual:
    """A float64 with its derivatives."""

    __slots__ = ("first", "second", "value")
    __array_ufunc__ = None  # NumPy leaves arithmetic with it to the methods below
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: float, first: Any = None, second: Any = None) -> None:
        self.value, self.first, self.second = float(value), first, second

    def __repr__(self) -> str:
        return f"Dual({self.value!r}, {self.first!r})"

    def __bool__(self) -> bool:
        return self.value != 0.0

    def __int__(self) -> int:
        return int(self.value)

    @property
    def is_constant(self) -> bool:
        """Whether it has no derivatives; where the slope is zero, the second one need not be."""
        return self.first is None and self.second is None

    @property
    def real(self) -> Dual:
        """The number itself."""
        return self

    def item(self) -> Dual:
        """The number itself."""
        return self


def lift(x: Any) -> Dual:
    """Any number as a dual number."""
    return x if isinstance(x, Dual) else Dual(float(x))


def value(x: Any) -> float:
    """A number without derivatives."""
    return x.value if isinstance(x, Dual) else float(x)


def is_real(x: Any) -> bool:
    """Whether something is a number."""
    return isinstance(x, (Dual, int, float, np.number, np.bool_))


def inputs(values: Sequence[float]) -> list[Dual]:
    """Numbers by which derivatives are taken."""
    return [Dual(v, row, None) for v, row in zip(values, np.eye(len(values)), strict=True)]


def depends(z: float, parts: Sequence[tuple[Dual, float]], seconds: Sequence[tuple[Dual, Dual, float]] = ()) -> Dual:
    """A value with its partials, and its second partials by pairs of arguments (each unordered pair once)."""
    if math.isnan(z) and not parts:
        return Dual(z)
    first = second = None
    for x, partial in parts:
        first = _plus(first, _times(partial, x.first))
        second = _plus(second, _times(partial, x.second))
    for x, y, bend in seconds:
        if x.first is None or y.first is None or bend == 0.0:
            continue
        square = np.outer(x.first, y.first)
        second = _plus(second, _times(bend, square if x is y else square + square.T))
    return Dual(z, first, second)


def _safe(function: Callable[..., float], *args: float) -> float:
    """What C gives: nan outside of a domain, infinity at a pole and beyond the largest number."""
    try:
        with np.errstate(all="ignore"):
            return float(function(*args))
    except OverflowError:
        return INF
    except (ValueError, ZeroDivisionError):
        return NAN


def _power(x: float, y: float) -> float:
    return _safe(np.power, x, y)


def _over(x: float, y: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(x) / np.float64(y))


def _remainder(x: float, y: float) -> float:
    return _safe(np.remainder, x, y)


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))


def _sign(x: float) -> float:
    return x if x != x else float((x > 0) - (x < 0))


ROOT_PI = 2.0 / math.sqrt(math.pi)
LN2, LN10 = math.log(2.0), math.log(10.0)

# name: value, first and second derivative, of x and the value z
UNARY: dict[str, tuple[Any, Any, Any]] = {
    "neg": (operator.neg, lambda x, z: -1.0, lambda x, z: 0.0),
    "abs": (abs, lambda x, z: _sign(x), lambda x, z: 0.0),
    "sqrt": (np.sqrt, lambda x, z: _over(0.5, z), lambda x, z: _over(-0.25, z * x)),
    "cbrt": (np.cbrt, lambda x, z: _over(1.0, 3 * z * z), lambda x, z: _over(-2.0, 9 * z**5)),
    "exp": (np.exp, lambda x, z: z, lambda x, z: z),
    "exp2": (np.exp2, lambda x, z: LN2 * z, lambda x, z: LN2 * LN2 * z),
    "expm1": (np.expm1, lambda x, z: z + 1.0, lambda x, z: z + 1.0),
    "log": (np.log, lambda x, z: _over(1.0, x), lambda x, z: -_over(1.0, x * x)),
    "log2": (np.log2, lambda x, z: _over(1.0, x * LN2), lambda x, z: -_over(1.0, x * x * LN2)),
    "log10": (np.log10, lambda x, z: _over(1.0, x * LN10), lambda x, z: -_over(1.0, x * x * LN10)),
    "log1p": (np.log1p, lambda x, z: _over(1.0, 1 + x), lambda x, z: -_over(1.0, (1 + x) ** 2)),
    "sin": (np.sin, lambda x, z: np.cos(x), lambda x, z: -z),
    "cos": (np.cos, lambda x, z: -np.sin(x), lambda x, z: -z),
    "tan": (np.tan, lambda x, z: 1 + z * z, lambda x, z: 2 * z * (1 + z * z)),
    "arcsin": (np.arcsin, lambda x, z: _over(1.0, math.sqrt(1 - x * x)), lambda x, z: _over(x, (1 - x * x) ** 1.5)),
    "arccos": (np.arccos, lambda x, z: -_over(1.0, math.sqrt(1 - x * x)), lambda x, z: -_over(x, (1 - x * x) ** 1.5)),
    "arctan": (np.arctan, lambda x, z: 1 / (1 + x * x), lambda x, z: -2 * x / (1 + x * x) ** 2),
    "sinh": (np.sinh, lambda x, z: np.cosh(x), lambda x, z: z),
    "cosh": (np.cosh, lambda x, z: np.sinh(x), lambda x, z: z),
    "tanh": (np.tanh, lambda x, z: 1 - z * z, lambda x, z: -2 * z * (1 - z * z)),
    "arcsinh": (np.arcsinh, lambda x, z: 1 / math.sqrt(1 + x * x), lambda x, z: -x / (1 + x * x) ** 1.5),
    "arctanh": (np.arctanh, lambda x, z: _over(1.0, 1 - x * x), lambda x, z: _over(2 * x, (1 - x * x) ** 2)),
    "erf": (math.erf, lambda x, z: ROOT_PI * math.exp(-x * x), lambda x, z: -2 * x * ROOT_PI * math.exp(-x * x)),
    "erfc": (math.erfc, lambda x, z: -ROOT_PI * math.exp(-x * x), lambda x, z: 2 * x * ROOT_PI * math.exp(-x * x)),
    "square": (lambda x: x * x, lambda x, z: 2 * x, lambda x, z: 2.0),
    "reciprocal": (lambda x: _over(1.0, x), lambda x, z: -z * z, lambda x, z: 2 * z * z * z),
    "degrees": (np.degrees, lambda x, z: 180 / math.pi, lambda x, z: 0.0),
    "radians": (np.radians, lambda x, z: math.pi / 180, lambda x, z: 0.0),
    "positive": (operator.pos, lambda x, z: 1.0, lambda x, z: 0.0),
}
STEPS: dict[str, Any] = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "sign": _sign}


def unary(name: str) -> Callable[[Any], Dual]:
    """A function of one number, by its name in NumPy."""
    if name in STEPS:
        step = STEPS[name]
        return lambda x: Dual(_safe(step, value(x)))
    function, slope, bend = UNARY[name]

    def call(x: Any) -> Dual:
        x = lift(x)
        z = _safe(function, x.value)
        if x.is_constant:
            return Dual(z)
        return depends(z, [(x, _safe(slope, x.value, z))], [(x, x, _safe(bend, x.value, z))])

    return call


def add(x: Any, y: Any) -> Dual:
    """Sum."""
    x, y = lift(x), lift(y)
    return depends(x.value + y.value, [(x, 1.0), (y, 1.0)])


def sub(x: Any, y: Any) -> Dual:
    """Difference."""
    x, y = lift(x), lift(y)
    return depends(x.value - y.value, [(x, 1.0), (y, -1.0)])


def mul(x: Any, y: Any) -> Dual:
    """Product."""
    x, y = lift(x), lift(y)
    if x is y:
        return depends(x.value * x.value, [(x, 2 * x.value)], [(x, x, 2.0)])
    return depends(x.value * y.value, [(x, y.value), (y, x.value)], [(x, y, 1.0)])


def div(x: Any, y: Any) -> Dual:
    """Quotient, as NumPy has it."""
    x, y = lift(x), lift(y)
    z, r = _over(x.value, y.value), _over(1.0, y.value)
    return depends(z, [(x, r), (y, -_over(z, y.value))], [(x, y, -r * r), (y, y, 2 * z * r * r if z else 0.0)])


def divided(x: Any, y: Any) -> Dual:
    """Quotient, as Python has it."""
    if value(y) == 0.0:
        raise ZeroDivisionError("division by zero")
    return div(x, y)


def power(x: Any, y: Any) -> Dual:
    """Power: at base zero its derivatives are zero, except for the first power."""
    x, y = lift(x), lift(y)
    a, b = x.value, y.value
    z = _power(a, b)
    by_x = b * _power(a, b - 1) if b else 0.0
    bend = b * (b - 1) * _power(a, b - 2) if b * (b - 1) else 0.0
    if y.is_constant:
        return depends(z, [(x, by_x)], [(x, x, bend)])
    log = _safe(np.log, a)
    by_y = 0.0 if a == 0.0 and b >= 0.0 else z * log
    cross = _power(a, b - 1) * (1 + b * log) if a else NAN
    return depends(z, [(x, by_x), (y, by_y)], [(x, x, bend), (y, y, z * log * log if a else 0.0), (x, y, cross)])


def remainder(x: Any, y: Any) -> Dual:
    """Remainder with the sign of the divisor."""
    x, y = lift(x), lift(y)
    z = _remainder(x.value, y.value)
    return depends(z, [(x, 1.0), (y, -float(np.rint(_over(x.value - z, y.value))))])


def fmod(x: Any, y: Any) -> Dual:
    """Remainder with the sign of the dividend."""
    x, y = lift(x), lift(y)
    z = _safe(np.fmod, x.value, y.value)
    return depends(z, [(x, 1.0), (y, -float(np.rint(_over(x.value - z, y.value))))])


def floordiv(x: Any, y: Any) -> Dual:
    """Quotient rounded downwards."""
    return Dual(_safe(np.floor_divide, value(x), value(y)))


def _extreme(choose: Callable[[float, float], bool], nan_wins: bool) -> Callable[[Any, Any], Dual]:
    """Where two numbers are equal, both have a share of `maximum`, and the first one all of `fmax`, which lets no nan win."""

    def call(x: Any, y: Any) -> Dual:
        x, y = lift(x), lift(y)
        if x.value == y.value:
            return depends(x.value, [(x, 0.5), (y, 0.5)] if nan_wins else [(x, 1.0)])
        if math.isnan(x.value) or math.isnan(y.value):
            x_is = math.isnan(x.value)
            return (x if x_is else y) if nan_wins else (y if x_is else x)
        return x if choose(x.value, y.value) else y

    return call


maximum, minimum = _extreme(operator.gt, True), _extreme(operator.lt, True)
fmax, fmin = _extreme(operator.gt, False), _extreme(operator.lt, False)


def hypot(x: Any, y: Any) -> Dual:
    """Length, with derivatives zero at the origin."""
    x, y = lift(x), lift(y)
    a, b = x.value, y.value
    z = math.hypot(a, b)
    if z == 0.0:
        return Dual(z)
    return depends(z, [(x, a / z), (y, b / z)], [(x, x, b * b / z**3), (y, y, a * a / z**3), (x, y, -a * b / z**3)])


def arctan2(y: Any, x: Any) -> Dual:
    """Angle, with derivatives zero at the origin."""
    y, x = lift(y), lift(x)
    a, b = y.value, x.value
    s = a * a + b * b
    z = math.atan2(a, b)
    if s == 0.0:
        return Dual(z)
    seconds = [(y, y, -2 * a * b / s**2), (x, x, 2 * a * b / s**2), (y, x, (a * a - b * b) / s**2)]
    return depends(z, [(y, b / s), (x, -a / s)], seconds)


def copysign(x: Any, y: Any) -> Dual:
    """The magnitude of one number with the sign of another."""
    x, y = lift(x), lift(y)
    slope = 0.0 if x.value == 0.0 else math.copysign(1.0, x.value) * math.copysign(1.0, y.value)
    return depends(math.copysign(x.value, y.value), [(x, slope)])


def logaddexp(x: Any, y: Any) -> Dual:
    """Logarithm of a sum of exponentials."""
    x, y = lift(x), lift(y)
    p, q = _sigmoid(x.value - y.value), _sigmoid(y.value - x.value)
    return depends(_safe(np.logaddexp, x.value, y.value), [(x, p), (y, q)], [(x, x, p * q), (y, y, p * q), (x, y, -p * q)])


def lgamma(x: Any) -> Dual:
    """Logarithm of the gamma function."""
    x = lift(x)
    a = x.value
    return depends(math.lgamma(a), [(x, float(polygamma(0, a)))], [(x, x, float(polygamma(1, a)))])


def sinc(x: Any) -> Dual:
    """sin(pi x) / (pi x)."""
    x = mul(x, math.pi)
    a = x.value
    if abs(a) < 1e-3:
        return depends(1 - a * a / 6, [(x, -a / 3)], [(x, x, a * a / 10 - 1 / 3)])
    s, c = math.sin(a), math.cos(a)
    return depends(s / a, [(x, (a * c - s) / a**2)], [(x, x, ((2 - a * a) * s - 2 * a * c) / a**3)])


BINARY: dict[str, Callable[[Any, Any], Dual]] = {
    "add": add, "subtract": sub, "multiply": mul, "divide": div, "true_divide": div, "power": power, "remainder": remainder,
    "mod": remainder, "fmod": fmod, "floor_divide": floordiv, "maximum": maximum, "minimum": minimum, "fmax": fmax, "fmin": fmin,
    "hypot": hypot, "arctan2": arctan2, "copysign": copysign, "logaddexp": logaddexp,
}  # fmt: skip


def _operators() -> None:
    """The operators of Python on dual numbers; an array on the other side takes over."""

    def binary(function: Callable[[Any, Any], Any], swapped: bool) -> Callable[[Any, Any], Any]:
        def method(self: Dual, other: Any) -> Any:
            if isinstance(other, np.ndarray):
                from dual_arrays import elementwise

                whole = div if function is divided else function
                return elementwise(whole, other, self) if swapped else elementwise(whole, self, other)
            if not is_real(other):
                return NotImplemented
            return function(other, self) if swapped else function(self, other)

        return method

    table = {"add": add, "sub": sub, "mul": mul, "truediv": divided, "pow": power, "mod": remainder, "floordiv": floordiv}
    for name, function in table.items():
        setattr(Dual, f"__{name}__", binary(function, False))
        setattr(Dual, f"__r{name}__", binary(function, True))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        compare = getattr(operator, name)
        setattr(Dual, f"__{name}__", binary(lambda x, y, compare=compare: compare(value(x), value(y)), False))
    for name, of in (("neg", "neg"), ("abs", "abs"), ("pos", "positive")):
        setattr(Dual, f"__{name}__", unary(of))


_operators()
