"""Arithmetic of complex numbers that are differentiated, by the arithmetic of their parts.

A zero imaginary part, that of a real operand, is left out of products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.numpy_arrays.array import as_arrays
from tapegrad.numpy_arrays.complex_arrays import ComplexArray, complex_values, is_complex, made, parts
from tapegrad.numpy_arrays.untracked import with_digits
from tapegrad.numpy_protocol.operands import one
from tapegrad.tensors.tensor import Tensor

__all__ = ["UFUNCS", "absolute", "complex_ufunc", "conjugate", "multiply"]

_np: Any = np


def _add(x: Any, y: Any) -> ComplexArray:
    (a, b), (c, d) = parts(x), parts(y)
    return made(a + c, b + d)


def _subtract(x: Any, y: Any) -> ComplexArray:
    (a, b), (c, d) = parts(x), parts(y)
    return made(a - c, b - d)


def multiply(x: Any, y: Any) -> ComplexArray:
    """The product."""
    (a, b), (c, d) = parts(x), parts(y)
    if not is_complex(x):
        return made(a * c, a * d)
    if not is_complex(y):
        return made(a * c, b * c)
    return made(a * c - b * d, a * d + b * c)


def _divide(x: Any, y: Any) -> ComplexArray:
    (a, b), (c, d) = parts(x), parts(y)
    if not is_complex(y):
        return made(a / c, b / c)
    size = c * c + d * d
    return made((a * c + b * d) / size, (b * c - a * d) / size)


def _power(x: Any, y: Any) -> ComplexArray:
    if issubclass(type(y), (int, np.integer)) and 0 <= y <= 64:
        shape, dtype = np.shape(parts(x)[0]), getattr(parts(x)[0], "dtype", np.float64)
        found: Any = made(np.ones(shape, dtype), np.zeros(shape, dtype))
        for bit in f"{int(y):b}":
            found = multiply(found, found)
            found = multiply(found, x) if bit == "1" else found
        return found
    return _exp(multiply(y, _log(x)))


def _square(x: Any) -> ComplexArray:
    return multiply(x, x)


def _negative(x: Any) -> ComplexArray:
    a, b = parts(x)
    return made(-a, -b)


def _positive(x: Any) -> ComplexArray:
    a, b = parts(x)
    return made(+a, +b)


def conjugate(x: Any) -> ComplexArray:
    """The imaginary part with the other sign."""
    a, b = parts(x)
    return made(+a, -b)


def _reciprocal(x: Any) -> ComplexArray:
    return _divide(1.0, x)


def _sign(x: Any) -> ComplexArray:
    size = absolute(x)
    return _divide(x, _np.where(size == 0.0, 1.0, size))


def _exp(x: Any) -> ComplexArray:
    a, b = parts(x)
    size = np.exp(a)
    return made(size * np.cos(b), size * np.sin(b))


def _log(x: Any) -> ComplexArray:
    return made(np.log(absolute(x)), _np.arctan2(*parts(x)[::-1]))


def _arccosh(x: Any) -> ComplexArray:
    roots = (complex_ufunc(np.sqrt, _add(x, shift)) for shift in (1.0, -1.0))
    return _log(_add(x, multiply(*roots)))


def absolute(x: Any) -> Any:
    """Distance from zero."""
    return _np.hypot(*parts(x))


def _matmul(x: Any, y: Any) -> ComplexArray:
    return look_up("numpy_arrays.complex_functions:bilinear")(_np.matmul)(x, y)


def _of_values(function: Any) -> Callable[..., Any]:
    def call(*operands: Any) -> Any:
        return as_arrays(one(function(*map(complex_values, operands))))

    return call


UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: _add, np.subtract: _subtract, np.multiply: multiply, np.divide: _divide, np.power: _power, np.square: _square,
    np.negative: _negative, np.positive: _positive, np.conjugate: conjugate, np.reciprocal: _reciprocal, np.exp: _exp, np.log: _log,
    np.sign: _sign,
    np.arccosh: _arccosh, np.absolute: absolute, np.matmul: _matmul,
    np.equal: _of_values(np.equal), np.not_equal: _of_values(np.not_equal), np.isfinite: _of_values(np.isfinite),
    np.isinf: _of_values(np.isinf), np.isnan: _of_values(np.isnan),
}  # fmt: skip


# NumPy rounds less often than their composition of real operations. A product with a real number has zeros of other signs there: on
# which side of a cut it stands depends on them.
ROUNDED_ONCE = frozenset(
    [np.sign, np.multiply, np.divide, np.power, np.square, np.reciprocal, np.exp, np.log, np.absolute, np.arccosh]
)


def complex_ufunc(ufunc: Any, *inputs: Any) -> Any:
    """A ufunc with a complex operand.

    Raises
    ------
    TypeError
        If it is not covered.
    """
    if ufunc not in UFUNCS and len(inputs) == 1 and look_up("numpy_arrays.holomorphic_functions:rule_of")(ufunc):
        return look_up("numpy_arrays.holomorphic_functions:holomorphic")(ufunc, *inputs)
    if ufunc not in UFUNCS:
        known = [*UFUNCS, *look_up("numpy_arrays.holomorphic_functions:HOLOMORPHIC")]
        raise TypeError(
            f"{ufunc.__name__} is not covered for complex numbers that are differentiated; covered are "
            f"{', '.join(sorted(function.__name__ for function in known))}. "
            "Write it with these, or with real and imaginary part (z.real, z.imag, np.abs(z))"
        )
    found = UFUNCS[ufunc](*inputs)
    if ufunc in ROUNDED_ONCE:
        with np.errstate(all="ignore"):
            values = ufunc(*map(complex_values, inputs))
        for part, exact in (
            [(found, values)] if isinstance(found, Tensor) else [(found.real, values.real), (found.imag, values.imag)]
        ):
            with_digits(part, exact)
    return found
