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
from tapegrad.numpy_arrays.numbers import like
from tapegrad.numpy_arrays.promotion import PAIRS
from tapegrad.numpy_arrays.untracked import values_of
from tapegrad.numpy_protocol.operands import one, stacked
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["ComplexArray", "complex_values", "is_complex", "made", "parts", "written_into"]

_np: Any = np


class ComplexArray:
    """Two arrays of one shape, the real and the imaginary part.

    Parameters
    ----------
    real, imag : Array
    """

    __slots__ = ("_imag", "_real")
    __array_priority__ = 2000.0

    def __init__(self, real: Any, imag: Any) -> None:
        self._real, self._imag = real, imag

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of NumPy's value in its place, which `isinstance` asks for."""
        real = self._real
        return np.ndarray if np.ndim(real) or real.__class__ is np.ndarray else self.dtype.type

    @property
    def real(self) -> Any:
        """The real part, a view: what is written into it goes into the complex array."""
        return self._real

    @real.setter
    def real(self, value: Any) -> None:
        self._real[...] = _real_values(value)

    @property
    def imag(self) -> Any:
        """The imaginary part, a view."""
        return self._imag

    @imag.setter
    def imag(self, value: Any) -> None:
        self._imag[...] = _real_values(value)

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
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.dtype.itemsize * self.size

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each dimension, as of the numbers that the pairs stand for."""
        return tuple(2 * step for step in array_of(self.real).strides)

    @property
    def T(self) -> ComplexArray:
        """The axes in reverse order."""
        return ComplexArray(self.real.T, self.imag.T)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "at" and ufunc in (np.add, np.subtract) and inputs[0] is self:
            for part, change in zip((self.real, self.imag), parts(inputs[2]), strict=True):
                ufunc.at(part, inputs[1], change)
            return None
        out = kwargs.pop("out", (None,))
        if (ufunc, method) in _BY_FUNCTIONS:
            function = _BY_FUNCTIONS[ufunc, method]
            axis = {"axis": 0} | kwargs | ({"axis": inputs[1]} if len(inputs) > 1 else {})
            found = look_up("numpy_arrays.complex_functions:function_for")(function)(inputs[0], **axis)
        elif method == "__call__" and not kwargs and len(out) == 1:
            # Of copies where a result is written: what derivatives need of the operands is overwritten next.
            found = _ufunc(ufunc, *(inputs if out[0] is None else map(_apart, inputs)))
        elif method == "outer" and not kwargs and ufunc in look_up("numpy_arrays.complex_arithmetic:UFUNCS"):
            first, second = (x if isinstance(x, (ComplexArray, Array)) else np.asarray(x)[()] for x in inputs)
            found = _ufunc(ufunc, first[(..., *(None,) * np.ndim(second))] if np.ndim(second) else first, second)
        else:
            raise TypeError(
                f"numpy.{ufunc.__name__}, {method} with these arguments, is not covered for complex numbers that are differentiated"
            )
        return found if out[0] is None else written_into(out[0], found)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return look_up("numpy_arrays.complex_functions:function_for")(function)(*args, **kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError(
            "complex numbers that are being differentiated cannot become an array of NumPy's; take real parts (z.real, z.imag, "
            "np.abs(z)), or tg.stop_gradient(z.real) where constants are meant"
        )

    def __getattr__(self, name: str) -> Any:
        if hasattr(np.ndarray, name) and not name.startswith("__"):
            raise AttributeError(
                f"{name} is not covered for complex numbers that are differentiated; write it with real and imaginary parts "
                "(z.real, z.imag, np.abs(z)), or with tg.stop_gradient(z.real) where constants are meant"
            )
        raise AttributeError(f"complex arrays have no attribute {name!r}")

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return look_up("numpy_arrays.interchange:array_namespace")(self.real, api_version=api_version)

    @property
    def device(self) -> str:
        """The processor, where all arrays are."""
        return str(self.real.device)

    def to_device(self, device: str, /, *, stream: Any = None) -> ComplexArray:
        """The array itself, if the device is the processor."""
        self.real.to_device(device, stream=stream)
        return self

    def item(self, *args: Any) -> Any:
        """Refused: a number of Python's would have no derivative.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            "this takes a number out of a complex array that is being differentiated, so what is made of it would have no "
            "derivative; z[k] keeps it, and tg.stop_gradient(z.real) is a constant"
        )

    tolist = __complex__ = item

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """A copy of another precision.

        Raises
        ------
        TypeError
            If it is not complex: the imaginary part would be lost.
        """
        kind = np.dtype(dtype)
        if kind.kind != "c":
            raise TypeError(f"astype({kind}) would discard the imaginary part of complex numbers; write z.real, or np.abs(z)")
        part = np.dtype(f"f{kind.itemsize // 2}")
        return ComplexArray(self.real.astype(part), self.imag.astype(part))

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


def _real_values(value: Any) -> Any:
    if is_complex(value):
        raise TypeError("a real or an imaginary part takes real numbers; write value.real, value.imag or np.abs(value)")
    return value


def _apart(x: Any) -> Any:
    """An operand with memory of its own."""
    return x.copy() if isinstance(x, (ComplexArray, Array)) else x


def written_into(out: Any, found: Any) -> Any:
    """Write a result into what was given for it.

    Raises
    ------
    TypeError
        If it is complex and that is not.
    """
    if isinstance(found, ComplexArray) and not isinstance(out, ComplexArray):
        raise TypeError(
            f"Cannot cast a complex result to {getattr(out, 'dtype', type(out).__name__)} memory that holds no derivative; "
            "leave out= away, or make it with np.zeros_like(z)"
        )
    out[...] = found
    return out


def is_complex(x: Any) -> bool:
    """Whether an operand, or a part of a list, is complex."""
    if isinstance(x, Tensor):
        return array_of(x).dtype.kind == "c"
    if isinstance(x, (ComplexArray, complex)):
        return True
    if isinstance(x, (list, tuple)):
        return any(map(is_complex, x))
    return getattr(getattr(x, "dtype", None), "kind", "") == "c"


def parts(x: Any) -> tuple[Any, Any]:
    """Real and imaginary part of anything."""
    if isinstance(x, ComplexArray):
        return x.real, x.imag
    if isinstance(x, Array) and not is_complex(x):
        return x, 0.0
    if _holds_tracked(x):
        pairs = list(map(parts, x))
        return as_arrays(stacked([a for a, _ in pairs])), as_arrays(stacked([b for _, b in pairs]))
    if issubclass(type(x), (int, float, complex)) and not issubclass(type(x), np.generic):
        return float(x.real), float(x.imag)  # which takes the precision of what it meets
    values = np.asarray(values_of(x))
    return (values.real[()], values.imag[()]) if values.dtype.kind == "c" else (values[()], 0.0)


def _holds_tracked(values: Any) -> bool:
    """Whether there is something in nested lists that may be differentiated by."""
    return isinstance(values, (list, tuple)) and any(isinstance(x, (Tensor, ComplexArray)) or _holds_tracked(x) for x in values)


def made(real: Any, imag: Any) -> ComplexArray:
    """Two parts, of which one may be a number or broadcast."""
    if np.shape(real) != np.shape(imag):
        shape = np.broadcast_shapes(np.shape(real), np.shape(imag))
        dtype = next((x.dtype for x in (real, imag) if np.shape(x) == shape and hasattr(x, "dtype")), np.float64)
        real, imag = (x if np.shape(x) == shape else x + np.zeros(shape, dtype) for x in (real, imag))
    real, imag = (x if isinstance(x, Tensor) else as_arrays(one(np.asarray(x))) for x in (real, imag))
    if real.dtype != imag.dtype:
        wider = np.result_type(real.dtype, imag.dtype)
        real, imag = (x if x.dtype == wider else x.astype(wider) for x in (real, imag))
    return ComplexArray(real, imag)


def complex_values(x: Any) -> Any:
    """The numbers as NumPy has them."""
    if issubclass(type(x), (int, float, complex)) and not issubclass(type(x), np.generic):
        return x
    a, b = (np.asarray(values_of(part)) for part in parts(x))
    values = np.empty(np.broadcast_shapes(a.shape, b.shape), np.result_type(a, np.complex64))
    values.real, values.imag = a, b  # a sum with 1j * b would make nan of infinity
    return values


# Methods


def _ufunc(ufunc: Any, *inputs: Any) -> Any:
    return look_up("numpy_arrays.complex_arithmetic:complex_ufunc")(ufunc, *inputs)


def _method(function: Any) -> Callable[..., Any]:
    def method(z: ComplexArray, *args: Any, **kwargs: Any) -> Any:
        if function in (np.reshape, np.transpose) and len(args) != 1:
            args = (args,) if args else ()
        return look_up("numpy_arrays.complex_functions:function_for")(function)(z, *args, **kwargs)

    return method


def _operator(ufunc: Any, exchanged: bool = False) -> Callable[..., Any]:
    def operate(z: Any, *other: Any) -> Any:
        return _ufunc(ufunc, *other, z) if exchanged else _ufunc(ufunc, z, *other)

    return operate


def _in_place(ufunc: Any) -> Callable[[ComplexArray, Any], Any]:
    def update(z: ComplexArray, other: Any) -> ComplexArray:
        if issubclass(z.__class__, np.generic):
            return _ufunc(ufunc, z, other)  # numbers are not written into
        # Of copies: what derivatives need of the operands is overwritten next.
        before = ComplexArray(_np.copy(z.real), _np.copy(z.imag))
        z[...] = _ufunc(ufunc, before, before if other is z else other)
        return z

    return update


def _copied(z: ComplexArray, order: str = "C") -> ComplexArray:
    return ComplexArray(*(like(part, _np.copy(part, order)) for part in (z.real, z.imag)))


_BY_FUNCTIONS: dict[tuple[Any, str], Any] = {
    (np.add, "reduce"): np.sum, (np.multiply, "reduce"): np.prod, (np.add, "accumulate"): np.cumsum,
    (np.multiply, "accumulate"): np.cumprod,
}  # fmt: skip
_METHODS = """
all any argmax argmin cumprod cumsum diagonal dot max mean min nonzero prod ravel repeat reshape round squeeze std sum swapaxes
take trace transpose var
"""
for _name in _METHODS.split():
    setattr(ComplexArray, _name, _method(getattr(np, _name)))
ComplexArray.flatten = lambda z, order="C": _method(np.ravel)(_method(np.copy)(z), order)  # type: ignore[attr-defined]
ComplexArray.copy = ComplexArray.__copy__ = _copied  # type: ignore[attr-defined]
ComplexArray.conj = ComplexArray.conjugate = _operator(np.conjugate)  # type: ignore[attr-defined]
_PAIRS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "pow": np.power, "matmul": np.matmul,
}  # fmt: skip
for _name, _function in _PAIRS.items():
    setattr(ComplexArray, f"__{_name}__", _operator(_function))
    setattr(ComplexArray, f"__r{_name}__", _operator(_function, True))
    setattr(ComplexArray, f"__i{_name}__", _in_place(_function))
_OTHERS = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "eq": np.equal, "ne": np.not_equal}
for _name, _function in _OTHERS.items():
    setattr(ComplexArray, f"__{_name}__", _operator(_function))
