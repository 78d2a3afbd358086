"""Complex arrays of what is differentiated: a pair of real ones, as far as transforms and the arithmetic between them need it.

Rows of the tape are real. A product of complex numbers is four products of real ones, and every derivative that there is applies
as it stands; a loss is real in the end (``abs``, ``real``, ``angle``). Complex numbers that do not depend on what is differentiated
are NumPy's business, as all constants are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.numpy_arrays.array import Array, as_arrays
from tapegrad.numpy_arrays.promotion import PAIRS
from tapegrad.numpy_arrays.untracked import values_of, with_digits
from tapegrad.numpy_protocol.operands import one, stacked
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["ComplexArray", "complex_ufunc", "complex_values", "is_complex", "made", "multiply", "parts"]

_np: Any = np


class ComplexArray:
    """Two arrays of one shape, the real and the imaginary part.

    Parameters
    ----------
    real, imag : Array
    """

    __slots__ = ("imag", "real")
    __array_priority__ = 2000.0

    def __init__(self, real: Any, imag: Any) -> None:
        self.real, self.imag = real, imag

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions."""
        return tuple(np.shape(self.real))

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return np.ndim(self.real)

    @property
    def size(self) -> int:
        """Number of elements."""
        return np.size(self.real)

    @property
    def dtype(self) -> np.dtype[Any]:
        """complex128, or complex64 of single precision."""
        return np.result_type(self.real.dtype, np.complex64)

    @property
    def T(self) -> ComplexArray:
        """The axes in reverse order."""
        return ComplexArray(self.real.T, self.imag.T)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "at" and ufunc in (np.add, np.subtract) and inputs[0] is self:
            for part, change in zip((self.real, self.imag), parts(inputs[2]), strict=True):
                ufunc.at(part, inputs[1], change)
            return None
        if method != "__call__" or kwargs:
            raise TypeError(
                f"numpy.{ufunc.__name__}, {method} with keywords, is not covered for complex numbers that are differentiated"
            )
        return complex_ufunc(ufunc, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return look_up("numpy_arrays.complex_functions:function_for")(function)(*args, **kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError(
            "complex numbers that are being differentiated cannot become an array of NumPy's; take real parts (z.real, z.imag, "
            "np.abs(z)), or tg.stop_gradient(z.real) where constants are meant"
        )

    def __getitem__(self, key: Any) -> ComplexArray:
        return ComplexArray(self.real[key], self.imag[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.real[key], self.imag[key] = parts(value)

    def fill(self, value: Any) -> None:
        """Write one value into all elements."""
        self[...] = value

    def __len__(self) -> int:
        return len(self.real)

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    def __bool__(self) -> bool:
        return bool(array_of(one(self.real)) + 1j * array_of(one(self.imag)))

    def __repr__(self) -> str:
        return repr(array_of(one(self.real)) + 1j * array_of(one(self.imag)))

    __hash__ = None  # type: ignore[assignment]


PAIRS.add(ComplexArray)


def is_complex(x: Any) -> bool:
    """Whether an operand, or a part of a list, is complex."""
    if isinstance(x, (ComplexArray, complex)):
        return True
    if isinstance(x, (list, tuple)):
        return any(map(is_complex, x))
    dtype = array_of(x).dtype if isinstance(x, Tensor) else getattr(x, "dtype", None)
    return getattr(dtype, "kind", "") == "c"


def parts(x: Any) -> tuple[Any, Any]:
    """Real and imaginary part of anything."""
    if isinstance(x, ComplexArray):
        return x.real, x.imag
    if isinstance(x, Array) and not is_complex(x):
        return x, 0.0
    if _holds_tracked(x):
        pairs = list(map(parts, x))
        return as_arrays(stacked([a for a, _ in pairs])), as_arrays(stacked([b for _, b in pairs]))
    values = np.asarray(values_of(x))
    if values.dtype.kind == "c":
        return (values.real, values.imag) if values.ndim else (float(values.real), float(values.imag))
    return (values, 0.0) if values.ndim else (float(values), 0.0)


def _holds_tracked(values: Any) -> bool:
    """Whether there is something in nested lists that may be differentiated by."""
    return isinstance(values, (list, tuple)) and any(isinstance(x, (Tensor, ComplexArray)) or _holds_tracked(x) for x in values)


def made(real: Any, imag: Any) -> ComplexArray:
    """Two parts, of which one may be a number or broadcast."""
    if np.shape(real) != np.shape(imag):
        shape = np.broadcast_shapes(np.shape(real), np.shape(imag))
        dtype = next((x.dtype for x in (real, imag) if np.shape(x) == shape and hasattr(x, "dtype")), np.float64)
        real, imag = (x if np.shape(x) == shape else x + np.zeros(shape, dtype) for x in (real, imag))
    return ComplexArray(*(x if isinstance(x, Tensor) else as_arrays(one(np.asarray(x))) for x in (real, imag)))


# Arithmetic. A zero imaginary part, that of a real operand, is left out of products.


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
    if isinstance(y, (int, np.integer)) and 0 <= y <= 64:
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


def complex_values(x: Any) -> Any:
    """The numbers as NumPy has them."""
    a, b = (np.asarray(values_of(part)) for part in parts(x))
    values = np.empty(np.broadcast_shapes(a.shape, b.shape), np.result_type(a, np.complex64))
    values.real, values.imag = a, b  # a sum with 1j * b would make nan of infinity
    return values


UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: _add, np.subtract: _subtract, np.multiply: multiply, np.divide: _divide, np.power: _power, np.square: _square,
    np.negative: _negative, np.positive: _positive, np.conjugate: conjugate, np.reciprocal: _reciprocal, np.exp: _exp, np.log: _log,
    np.arccosh: _arccosh, np.absolute: absolute, np.matmul: _matmul,
    np.equal: _of_values(np.equal), np.not_equal: _of_values(np.not_equal), np.isfinite: _of_values(np.isfinite),
    np.isinf: _of_values(np.isinf), np.isnan: _of_values(np.isnan),
}  # fmt: skip


# NumPy rounds less often than their composition of real operations. A product with a real number has zeros of other signs there: on
# which side of a cut it stands depends on them.
ROUNDED_ONCE = frozenset([np.multiply, np.divide, np.power, np.square, np.reciprocal, np.exp, np.log, np.absolute, np.arccosh])


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


# Methods


def _method(function: Any) -> Callable[..., Any]:
    def method(z: ComplexArray, *args: Any, **kwargs: Any) -> Any:
        if function in (np.reshape, np.transpose) and len(args) != 1:
            args = (args,) if args else ()
        return look_up("numpy_arrays.complex_functions:function_for")(function)(z, *args, **kwargs)

    return method


def _operator(ufunc: Any, exchanged: bool = False) -> Callable[..., Any]:
    def operate(z: Any, *other: Any) -> Any:
        return complex_ufunc(ufunc, *other, z) if exchanged else complex_ufunc(ufunc, z, *other)

    return operate


def _in_place(ufunc: Any) -> Callable[[ComplexArray, Any], Any]:
    def update(z: ComplexArray, other: Any) -> ComplexArray:
        # Of copies: what derivatives need of the operands is overwritten next.
        before = ComplexArray(_np.copy(z.real), _np.copy(z.imag))
        z[...] = complex_ufunc(ufunc, before, before if other is z else other)
        return z

    return update


_METHODS = "cumsum diagonal dot mean ravel repeat reshape squeeze sum swapaxes take trace transpose"
for _name in _METHODS.split():
    setattr(ComplexArray, _name, _method(getattr(np, _name)))
ComplexArray.flatten, ComplexArray.copy = _method(np.ravel), _method(np.copy)  # type: ignore[attr-defined]
ComplexArray.conj = ComplexArray.conjugate = _operator(np.conjugate)  # type: ignore[attr-defined]
_PAIRS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "pow": np.power, "matmul": np.matmul,
}  # fmt: skip
for _name, _ufunc in _PAIRS.items():
    setattr(ComplexArray, f"__{_name}__", _operator(_ufunc))
    setattr(ComplexArray, f"__r{_name}__", _operator(_ufunc, True))
    setattr(ComplexArray, f"__i{_name}__", _in_place(_ufunc))
_OTHERS = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "eq": np.equal, "ne": np.not_equal}
for _name, _ufunc in _OTHERS.items():
    setattr(ComplexArray, f"__{_name}__", _operator(_ufunc))
