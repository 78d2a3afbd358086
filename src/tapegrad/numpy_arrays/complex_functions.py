"""NumPy's functions of complex numbers that are differentiated, by what they do with real and imaginary part."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.numpy_arrays.array import as_arrays
from tapegrad.numpy_arrays.complex_arrays import absolute, complex_values, conjugate, is_complex, made, parts
from tapegrad.numpy_arrays.untracked import constant, with_digits
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
    return a, (b + np.zeros(np.shape(a), getattr(a, "dtype", None)) if b.__class__ is float and np.ndim(a) else b)


def bilinear(function: Any) -> Callable[..., Any]:
    """A function that is linear in each of two operands."""

    def call(x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        def of(first: Any, second: Any) -> Any:
            return function(first, second, *args, **kwargs)

        if not is_complex(x) or not is_complex(y):
            return made(*[of(part, y) for part in _both(x)] if is_complex(x) else [of(x, part) for part in _both(y)])
        (a, b), (c, d) = _both(x), _both(y)
        return made(of(a, c) - of(b, d), of(a, d) + of(b, c))

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


def _iscomplex(z: Any) -> Any:
    return constant(np.iscomplex(complex_values(z)))


def _isreal(z: Any) -> Any:
    return constant(np.isreal(complex_values(z)))


def _vdot(x: Any, y: Any) -> Any:
    return bilinear(_np.dot)(_np.ravel(conjugate(x)), _np.ravel(y))


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    size = absolute(x)
    of_matrices = size.ndim == 2 if axis is None else isinstance(axis, (tuple, list)) and len(axis) == 2
    if ord in (None, "fro"):
        return _np.sqrt(_np.sum(size * size, axis=axis, keepdims=keepdims))
    if of_matrices and ord in (2, -2, "nuc"):
        found = look_up("numpy_arrays.complex_decompositions:norm_by_singular_values")(x, ord, axis, keepdims)
        return with_digits(found * 1.0, np.linalg.norm(complex_values(x), ord, axis, keepdims))
    return _np.linalg.norm(size, ord, axis, keepdims)


def _real_if_close(z: Any, tol: float = 100.0) -> Any:
    return z if np.iscomplexobj(np.real_if_close(complex_values(z), tol)) else parts(z)[0]


def _axes(z: Any, axis: Any) -> tuple[int, ...]:
    return tuple(range(z.ndim)) if axis is None else tuple(k % z.ndim for k in (axis if isinstance(axis, tuple) else (axis,)))


def _prod(z: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """The product of two halves, each a product."""
    z = _plain_arguments("prod", z, dtype, out)
    axes = _axes(z, axis)
    shape = [1 if k in axes else extent for k, extent in enumerate(z.shape)]
    kept = [extent for k, extent in enumerate(z.shape) if k not in axes]
    rows = np.reshape(np.moveaxis(z, axes, range(len(axes))), (-1, *kept))
    count = len(rows)
    if not count:
        return made(np.ones(shape if keepdims else kept), np.zeros(shape if keepdims else kept))
    while count > 1:
        half = count // 2
        product = rows[:half] * rows[half : 2 * half]
        rows = np.concatenate([product, rows[2 * half :]]) if count % 2 else product
        count = half + count % 2
    return _in_digits(np.reshape(rows[0], shape) if keepdims else rows[0], np.prod(complex_values(z), axis=axis, keepdims=keepdims))


def _in_digits(z: Any, exact: Any) -> Any:
    return made(with_digits(z.real, exact.real), with_digits(z.imag, exact.imag))


def _plain_arguments(name: str, z: Any, dtype: Any, out: Any) -> Any:
    if dtype is not None or out is not None:
        raise TypeError(f"numpy.{name}: dtype and out are not covered for complex numbers that are differentiated")
    return z


def _var(z: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    z = _plain_arguments("var", z, dtype, out)
    rest = z - np.mean(z, axis=axis, keepdims=True)
    a, b = parts(rest)
    count = math.prod(z.shape[k] for k in _axes(z, axis)) - ddof
    return _np.sum(a * a + b * b, axis=axis, keepdims=keepdims) / count


def _std(z: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    return _np.sqrt(_var(z, axis, dtype, out, ddof, keepdims))


def _extreme(function: Any) -> Callable[..., Any]:
    """The largest or smallest number by NumPy's order, the real part first; of several such an equal part of each."""

    def extreme(z: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        z = _plain_arguments(function.__name__, z, None, out)
        values = complex_values(z)
        chosen = values == function(values, axis=axis, keepdims=True)
        share = np.asarray(chosen / chosen.sum(axis=axis, keepdims=True), values.real.dtype)
        found = np.sum(z * share, axis=axis, keepdims=keepdims)
        return _in_digits(found, function(values, axis=axis, keepdims=keepdims))

    return extreme


def _einsum(subscripts: Any, *operands: Any, optimize: Any = False) -> Any:
    """The sum over all choices of a real or an imaginary part of each complex operand."""
    if not isinstance(subscripts, str):
        raise TypeError("numpy.einsum of complex numbers that are differentiated takes its subscripts as text")
    choices: list[list[tuple[Any, int]]] = [
        [(part, k) for k, part in enumerate(_both(x))] if is_complex(x) else [(x, 0)] for x in operands
    ]
    sums: list[Any] = [None, None]
    for chosen in itertools.product(*choices):
        turns = sum(k for _, k in chosen)  # of a quarter
        term = _np.einsum(subscripts, *(part for part, _ in chosen))
        term = -term if turns % 4 in (2, 3) else term
        sums[turns % 2] = term if sums[turns % 2] is None else sums[turns % 2] + term
    return made(*sums)


_LINEAR = (
    "append atleast_1d atleast_2d atleast_3d "
    "broadcast_to column_stack concatenate copy cumsum diag diagonal diff expand_dims fft.fftshift fft.ifftshift "
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
    np.real_if_close: _real_if_close, np.prod: _prod, np.var: _var, np.std: _std,
    np.max: _extreme(np.max), np.min: _extreme(np.min), np.einsum: _einsum,
    np.iscomplexobj: lambda z: True, np.isrealobj: lambda z: False,
    np.iscomplex: _iscomplex, np.isreal: _isreal,
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
    if function.__module__ == "numpy.linalg" and function not in FUNCTIONS:
        FUNCTIONS.update(look_up("numpy_arrays.complex_decompositions:DECOMPOSITIONS"))
    if function not in FUNCTIONS:
        raise TypeError(
            f"{function.__module__}.{function.__name__} is not covered for complex numbers that are differentiated; write it with "
            "real and imaginary parts (z.real, z.imag, np.abs(z))"
        )
    return FUNCTIONS[function]
