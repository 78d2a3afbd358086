"""NumPy's functions of complex numbers that are differentiated, by what they do with real and imaginary part."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.numpy_arrays.array import as_arrays
from tapegrad.numpy_arrays.complex_arithmetic import absolute, conjugate
from tapegrad.numpy_arrays.complex_arrays import complex_values, is_complex, made, parts, written_into
from tapegrad.numpy_arrays.numbers import as_array
from tapegrad.numpy_arrays.untracked import constant, values_of, with_digits
from tapegrad.numpy_protocol.operands import one
from tapegrad.tensors.tensor import Tensor

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


# Arguments that stand beside elements, of which each part takes its own.
_BESIDE = frozenset(["initial", "prepend", "append", "values", "constant_values", "end_values"])


@functools.cache
def _names(function: Any) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # NumPy says nothing of some functions of C, which take none of these
        return ()
    return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))


def _linear(function: Any) -> Callable[..., Any]:
    """A function that does the same with both parts: what moves elements, and sums."""

    def call(z: Any, *args: Any, **kwargs: Any) -> Any:
        names = _names(function)
        if (len(args) > 1 or function in (np.append, np.trapezoid)) and len(names) > len(args):
            kwargs |= dict(zip(names[1:], args, strict=False))
            args = ()
        if any(map(is_complex, args)):
            raise TypeError(f"numpy.{function.__name__} takes no second complex operand beside what is differentiated")
        out, dtype = kwargs.pop("out", None), kwargs.pop("dtype", None)
        of_parts: list[dict[str, Any]] = [{}, {}]
        for name, value in kwargs.items():
            pair = _both(value) if name in _BESIDE and value is not None else (value, value)
            if name not in _BESIDE and is_complex(value):
                raise TypeError(f"numpy.{function.__name__} takes no complex {name} beside what is differentiated")
            for given, part in zip(of_parts, pair, strict=True):
                given[name] = part
        several = isinstance(z, (list, tuple))
        pairs = [_both(x) for x in z] if several else [_both(z)]
        real, imag = ([pair[k] for pair in pairs] for k in (0, 1))
        found = [function(part if several else part[0], *args, **own) for part, own in zip((real, imag), of_parts, strict=True)]
        if isinstance(found[0], (list, tuple)):
            return type(found[0])(made(*pair) for pair in zip(*found, strict=True))
        whole: Any = made(*found) if dtype is None else made(*found).astype(dtype)
        return whole if out is None else written_into(out, whole)

    return call


def _each(function: Any) -> Callable[..., Any]:
    """A function of one array or of several."""

    def call(*arrays: Any) -> Any:
        found = [_linear(function)(x) if is_complex(x) else function(x) for x in arrays]
        return found[0] if len(found) == 1 else tuple(found)

    return call


def _both(x: Any) -> tuple[Any, Any]:
    a, b = parts(x)
    return a, (b + np.zeros(np.shape(a), getattr(a, "dtype", None)) if type(b) is float and hasattr(a, "dtype") else b)


def bilinear(function: Any) -> Callable[..., Any]:
    """A function that is linear in each of two operands."""

    def call(x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        def of(first: Any, second: Any) -> Any:
            return function(first, second, *args, **kwargs)

        if not is_complex(x) or not is_complex(y):
            return made(*[of(part, y) for part in _both(x)] if is_complex(x) else [of(x, part) for part in _both(y)])
        (a, b), (c, d) = _both(x), _both(y)
        pair = of(a, c) - of(b, d), of(a, d) + of(b, c)
        return made(*(map(as_array, pair) if function is np.tensordot else pair))

    return call


def _filled(z: Any, value: Any, dtype: Any = None, order: str = "K", subok: bool = True, *, shape: Any = None) -> Any:
    """An array like another one, full of a value; what is differentiated can be written into it."""
    shape = z.shape if shape is None else shape
    kind = np.dtype(z.dtype if dtype is None else dtype)
    real = np.dtype(f"f{kind.itemsize // 2}") if kind.kind == "c" else kind
    new: Any = (as_array(as_arrays(one(np.zeros(shape, real)))) for _ in range(2))
    found = made(*new) if kind.kind == "c" else next(new)
    found[...] = value
    return found


def _where(condition: Any, x: Any, y: Any) -> Any:
    condition = complex_values(condition) != 0 if is_complex(condition) else condition
    if not is_complex(x) and not is_complex(y):
        return _np.where(condition, x, y)
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


def _vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    return np.linalg.vector_norm(absolute(x), axis=axis, keepdims=keepdims, ord=ord)


def _matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return _norm(x, ord, (-2, -1), keepdims)


def _interp(x: Any, xp: Any, fp: Any, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs or is_complex(x) or is_complex(xp):
        raise TypeError("numpy.interp takes real points, and no left, right or period, where complex numbers are differentiated")
    return made(*(_np.interp(x, xp, part) for part in _both(fp)))


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


def _cumprod(z: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    z = _plain_arguments("cumprod", z, dtype, out)
    z = np.ravel(z) if axis is None else z
    axis = axis or 0
    rows = np.moveaxis(z, axis, 0)
    products = [rows[:1]]
    for k in range(1, len(rows)):
        products.append(products[-1] * rows[k : k + 1])
    return _in_digits(np.moveaxis(np.concatenate(products), 0, axis), np.cumprod(complex_values(z), axis))


def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    return bilinear(_np.correlate)(a, conjugate(v) if is_complex(v) else v, mode)


def _polyval(p: Any, x: Any) -> Any:
    p, x = (a if isinstance(a, Tensor) or is_complex(a) else np.asarray(a)[()] for a in (p, x))
    found: Any = 0.0
    for coefficient in p:
        found = found * x + coefficient
    return _in_digits(found, np.polyval(complex_values(p), complex_values(x)))


def _sinc(z: Any) -> Any:
    y = np.pi * np.where(complex_values(z) == 0, 1.0e-20, z)
    return np.sin(y) / y


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    written_into(dst, src if where is True else np.where(where, src, dst))


def _pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    if mode in ("maximum", "minimum", "median") or callable(mode):
        raise TypeError(f"numpy.pad: mode={mode!r} is not covered for complex numbers that are differentiated")
    return _linear(np.pad)(array, pad_width, mode=mode, **kwargs)


def _of_values(function: Any) -> Callable[..., Any]:
    """What has no derivative: NumPy's own, of the numbers."""

    def call(*operands: Any, **kwargs: Any) -> Any:
        given = (complex_values(x) if is_complex(x) else values_of(x) for x in operands)
        return constant(function(*given, **kwargs))

    return call


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


_LINEAR = """
append around array_split broadcast_to column_stack concatenate copy cumsum delete diag diagflat diagonal diff dstack
expand_dims fft.fftshift fft.ifftshift flip fliplr flipud gradient hsplit hstack insert matrix_transpose mean moveaxis
nan_to_num nansum permute_dims ravel repeat reshape roll rollaxis rot90 round split squeeze stack sum swapaxes take tile trace
transpose trapezoid tril triu vsplit vstack
"""
_WITHOUT_DERIVATIVE = "all allclose any argmax argmin array_equal count_nonzero isclose linalg.matrix_rank nonzero"
_BILINEAR = "convolve cross dot inner kron outer tensordot"


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
    np.zeros_like: lambda z, *a, **k: _filled(z, 0.0, *a, **k), np.ones_like: lambda z, *a, **k: _filled(z, 1.0, *a, **k),
    np.empty_like: lambda z, *a, **k: _filled(z, 0.0, *a, **k), np.full_like: _filled,
    np.cumprod: _cumprod, np.correlate: _correlate, np.polyval: _polyval, np.sinc: _sinc, np.copyto: _copyto, np.pad: _pad,
    np.linalg.multi_dot: lambda arrays: functools.reduce(np.matmul, arrays),
    np.linalg.vector_norm: _vector_norm, np.linalg.matrix_norm: _matrix_norm, np.interp: _interp,
    np.compress: lambda condition, a, axis=None: (np.ravel(a) if axis is None else a)[
        (slice(None),) * (axis or 0) + (np.flatnonzero(condition),)
    ],
    np.atleast_1d: _each(np.atleast_1d), np.atleast_2d: _each(np.atleast_2d), np.atleast_3d: _each(np.atleast_3d),
}  # fmt: skip
FUNCTIONS |= {_found(name): _of_values(_found(name)) for name in _WITHOUT_DERIVATIVE.split()}
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
