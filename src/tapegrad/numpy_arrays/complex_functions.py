"""NumPy's functions of complex numbers that are differentiated, by what they do with real and imaginary part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.numpy_arrays.array import as_arrays
from tapegrad.numpy_arrays.complex_arrays import absolute, conjugate, is_complex, made, parts
from tapegrad.numpy_protocol.operands import one

__all__ = ["bilinear", "function_for"]

_np: Any = np


def _real(z: Any) -> Any:
    return parts(z)[0]


def _imag(z: Any) -> Any:
    return parts(z)[1]


def _angle(z: Any, deg: bool = False) -> Any:
    a, b = parts(z)
    found = _np.arctan2(b, a)
    return found * (180.0 / np.pi) if deg else found


def _linear(function: Any) -> Callable[..., Any]:
    """A function that does the same with both parts: what moves elements, and sums."""

    def call(z: Any, *args: Any, **kwargs: Any) -> Any:
        several = isinstance(z, (list, tuple))
        pairs = [_both(x) for x in z] if several else [_both(z)]
        real, imag = ([pair[k] for pair in pairs] for k in (0, 1))
        found = [function(part if several else part[0], *args, **kwargs) for part in (real, imag)]
        if isinstance(found[0], (list, tuple)):
            return type(found[0])(made(*pair) for pair in zip(*found, strict=True))
        return made(*found)

    return call


def _both(x: Any) -> tuple[Any, Any]:
    a, b = parts(x)
    return a, (np.zeros(np.shape(a), getattr(a, "dtype", None)) if b.__class__ is float else b)


def bilinear(function: Any) -> Callable[..., Any]:
    """A function that is linear in each of two operands."""

    def call(x: Any, y: Any, *args: Any) -> Any:
        if not is_complex(x) or not is_complex(y):
            if is_complex(x):
                return _linear(lambda part: function(part, y, *args))(x)
            return _linear(lambda part: function(x, part, *args))(y)
        (a, b), (c, d) = _both(x), _both(y)
        return made(function(a, c, *args) - function(b, d, *args), function(a, d, *args) + function(b, c, *args))

    return call


def _filled(z: Any, value: Any, dtype: Any = None) -> Any:
    """An array like another one, full of a value; what is differentiated can be written into it."""
    kind = np.dtype(z.dtype if dtype is None else dtype)
    real = np.dtype(f"f{kind.itemsize // 2}") if kind.kind == "c" else kind
    new: Any = (as_arrays(one(np.zeros(z.shape, real))) for _ in range(2))
    found = made(*new) if kind.kind == "c" else next(new)
    found[...] = value
    return found


def _where(condition: Any, x: Any, y: Any) -> Any:
    (a, b), (c, d) = parts(x), parts(y)
    return made(_np.where(condition, a, c), _np.where(condition, b, d))


def _vdot(x: Any, y: Any) -> Any:
    return bilinear(_np.dot)(_np.ravel(conjugate(x)), _np.ravel(y))


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    size = absolute(x)
    if ord not in (None, 2, "fro") or (ord == 2 and axis is None and size.ndim > 1):
        raise TypeError(f"norms of order {ord!r} are not covered for complex numbers that are differentiated")
    return _np.sqrt(_np.sum(size * size, axis=axis, keepdims=keepdims))


_LINEAR = (
    "append broadcast_to column_stack concatenate copy cumsum diag diagonal diff expand_dims fft.fftshift fft.ifftshift "
    "flip fliplr flipud hsplit hstack matrix_transpose mean moveaxis pad permute_dims ravel repeat reshape roll rot90 split "
    "squeeze stack sum swapaxes take tile trace transpose tril triu vsplit vstack"
)
_BILINEAR = "convolve dot inner kron outer tensordot"


def _found(name: str) -> Any:
    place: Any = np
    for part in name.split("."):
        place = getattr(place, part)
    return place


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.real: _real, np.imag: _imag, np.angle: _angle, np.where: _where, np.vdot: _vdot, np.linalg.norm: _norm,
    np.shape: lambda z: z.shape, np.ndim: lambda z: z.ndim, np.size: lambda z: z.size,
    np.iscomplexobj: lambda z: True, np.isrealobj: lambda z: False,
    np.zeros_like: lambda z, dtype=None, *a, **k: _filled(z, 0.0, dtype),
    np.ones_like: lambda z, dtype=None, *a, **k: _filled(z, 1.0, dtype),
    np.empty_like: lambda z, dtype=None, *a, **k: _filled(z, 0.0, dtype),
    np.full_like: lambda z, fill_value, dtype=None, *a, **k: _filled(z, fill_value, dtype),
}  # fmt: skip
FUNCTIONS |= {_found(name): _linear(_found(name)) for name in _LINEAR.split()}
FUNCTIONS |= {_found(name): bilinear(_found(name)) for name in _BILINEAR.split()}


def function_for(function: Any) -> Callable[..., Any]:
    """What answers for a function of NumPy's.

    Raises
    ------
    TypeError
        If none does.
    """
    if function.__module__ == "numpy.fft" and function not in FUNCTIONS:
        FUNCTIONS.update(look_up("numpy_arrays.fourier:FOURIER"))
    if function not in FUNCTIONS:
        raise TypeError(
            f"{function.__module__}.{function.__name__} is not covered for complex numbers that are differentiated; write it with "
            "real and imaginary parts (z.real, z.imag, np.abs(z))"
        )
    return FUNCTIONS[function]
