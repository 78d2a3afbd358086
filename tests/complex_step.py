"""The complex step for functions that were written for floats: they run as Python, where floats are complex numbers.

``f(x + ih)`` has the derivative in its imaginary part and no difference is taken, so it is exact to rounding. What people write for
floats is read anew: `math` and NumPy get forms that continue real functions to complex numbers, and branches look at real parts.
"""

from __future__ import annotations

import builtins
import cmath
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

STEP = 1e-30


def _array(value: Any) -> Any:
    return value.astype(complex) if isinstance(value, np.ndarray) and value.dtype == np.float64 else value


def _real(value: Any) -> Any:
    return np.real(value)


def _continued(choose: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that is plus or minus the identity, by the sign of the real part."""
    return lambda x: np.where(choose(np.real(x)), x, -x)[()]


def _absolute(x: Any) -> Any:
    return _continued(lambda real: real >= 0.0)(x)


def _larger(x: Any, y: Any) -> Any:
    return np.where(np.real(x) > np.real(y), x, y)[()]


def _smaller(x: Any, y: Any) -> Any:
    return np.where(np.real(x) < np.real(y), x, y)[()]


def _fold(pair: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def function(*values: Any) -> Any:
        values = tuple(values[0]) if len(values) == 1 else values
        result = values[0]
        for value in values[1:]:
            result = pair(result, value)
        return result

    return function


def _angle(y: Any, x: Any) -> Any:
    return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))


def _made(name: str) -> Callable[..., Any]:
    """An array maker of NumPy that makes complex arrays where it would make floats."""
    make = getattr(np, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        return _array(make(*args, **kwargs))

    return function


class _NumPy:
    """NumPy with complex numbers for floats."""

    abs = absolute = fabs = staticmethod(_absolute)
    maximum, minimum = staticmethod(_larger), staticmethod(_smaller)
    arctan2 = staticmethod(_angle)
    float64 = staticmethod(lambda value: value)

    def __getattr__(self, name: str) -> Any:
        if name in ("zeros", "ones", "empty", "full", "arange", "linspace", "eye"):
            return _made(name)
        return getattr(np, name)


class _Math:
    """`math` for complex numbers."""

    pi, e, inf, nan = math.pi, math.e, math.inf, math.nan
    fabs = staticmethod(_absolute)
    atan2 = staticmethod(_angle)
    hypot = staticmethod(lambda x, y: np.sqrt(x * x + y * y))
    pow = staticmethod(pow)

    def __getattr__(self, name: str) -> Any:
        if name in ("floor", "ceil", "isnan", "isinf"):
            return lambda x: getattr(math, name)(float(np.real(x)))
        return getattr(cmath, name, None) or getattr(np, name)


BUILTINS = {
    "abs": _absolute,
    "max": _fold(_larger),
    "min": _fold(_smaller),
    "float": lambda x: x,
    "int": lambda x: int(np.real(x)),
    "round": lambda x, *digits: round(float(np.real(x)), *digits),
}


def continued(function: Any, known: dict[Any, Any] | None = None) -> Any:
    """A function of floats as one of complex numbers, with the functions that it calls."""
    known = {} if known is None else known
    function = getattr(function, "py_func", function)
    if function in known:
        return known[function]
    names = {**function.__globals__, "__builtins__": {**vars(builtins), **BUILTINS}}
    found = known[function] = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, _cells(function, known)
    )
    for name in function.__code__.co_names:
        if name in names:
            names[name] = _substitute(names[name], known)
    return found


def _cells(function: Any, known: dict[Any, Any]) -> Any:
    return tuple(types.CellType(_substitute(cell.cell_contents, known)) for cell in function.__closure__ or ()) or None


def _substitute(value: Any, known: dict[Any, Any]) -> Any:
    if value is np:
        return _NumPy()
    if value is math:
        return _Math()
    if hasattr(value, "py_func") or (isinstance(value, types.FunctionType) and value.__module__ == "builtins"):
        return continued(value, known)
    return _array(value)


def complex_step(function: Any, args: tuple[Any, ...]) -> Any:
    """The gradient with respect to the first argument."""
    twin = continued(function)
    point = args[0]
    out = np.empty(np.shape(point))
    for place in np.ndindex(out.shape):
        shifted = np.array(point, complex)
        shifted[place] += STEP * 1j
        given = [_array(arg.copy()) if isinstance(arg, np.ndarray) else arg for arg in args[1:]]
        with np.errstate(all="ignore"):
            out[place] = np.imag(twin(shifted if out.shape else shifted[()], *given)) / STEP
    return out
