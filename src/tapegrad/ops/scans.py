"""Running sums and products, and running sums of exponentials.

The derivative of a running product is a linear recurrence, and the derivative of a linear recurrence is one in the
other direction. So there are three maps whose derivatives are made of each other, no division occurs, and zeros are
exact in every order. The derivative of a running sum of exponentials, relative to that sum, is such a recurrence too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.arrays.addresses import address_of
from tapegrad.arrays.dtypes import accumulation_dtype, type_name
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.ops import elementwise
from tapegrad.recording.axes import axis
from tapegrad.recording.casting import cast
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, array_of, make, wrap

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["cumprod", "cumsum", "logcumsumexp"]

Array = np.ndarray[Any, Any]
FEW = 4  # elements of a slice, below which NumPy's loop along a column is as fast


def cumsum(x: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """Running sums along a dimension.

    Parameters
    ----------
    x : Tensor
    dim : int
    dtype : dtype, optional
        Cast to it first. Integers and bools are summed as ``int64`` unless it is given.

    Returns
    -------
    Tensor, of the shape of `x`

    Examples
    --------
    >>> tg.cumsum(tg.tensor([1.0, 2.0, 3.0]), 0)
    tensor([1., 3., 6.])
    """
    return _scan(x, dim, dtype, running_sum)


def cumprod(x: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """Running products along a dimension.

    Parameters
    ----------
    x : Tensor
    dim : int
    dtype : dtype, optional
        Cast to it first. Integers and bools are multiplied as ``int64`` unless it is given.

    Returns
    -------
    Tensor, of the shape of `x`

    Notes
    -----
    Derivatives take linear time and are exact where elements are zero, in every order.

    Examples
    --------
    >>> tg.cumprod(tg.tensor([1.0, 2.0, 3.0]), 0)
    tensor([1., 2., 6.])
    """
    return _scan(x, dim, dtype, running_product)


def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    """Logarithms of the running sums of exponentials along a dimension, without overflow.

    Parameters
    ----------
    x : Tensor, of a floating point dtype
    dim : int

    Returns
    -------
    Tensor, of the shape of `x`

    Raises
    ------
    NotImplementedError
        If the dtype is not a floating point one.

    Notes
    -----
    Derivatives take linear time; the weights in them are never formed from exponentials that overflow. Where the sum is zero or
    infinite they are zero.

    Examples
    --------
    >>> tg.logcumsumexp(tg.tensor([0.0, 0.0, 0.0]), 0)
    tensor([0.0000, 0.6931, 1.0986])
    """
    data = array_of(x)
    if data.dtype.kind != "f":
        raise NotImplementedError(
            f"\"logcumsumexp_out_cpu\" not implemented for '{type_name(data.dtype)}'. Convert the tensor to a floating point dtype."
        )
    position = axis(dim, data.ndim)
    return apply(_LOGCUMSUMEXP, (x,), _accumulated(np.logaddexp, data, position), position)


def _accumulated(ufunc: Any, data: Array, position: int, backwards: bool = False) -> Array:
    result = np.empty_like(data, order="C")
    if ufunc in (np.add, np.multiply) and data.size > SMALL and data.dtype == np.float64 and data.flags.c_contiguous:
        inner = math.prod(data.shape[position + 1 :])
        if inner >= FEW or (inner == 1 and data.size >= 4 * data.shape[position]):
            ARRAY_KERNELS.running_sums(id(result), id(data), data.shape[position], inner, int(backwards), int(ufunc is np.multiply))
            return result
    with quiet():
        ufunc.accumulate(_directed(data, position, backwards), position, None, _directed(result, position, backwards))
    return result


def _again(ufunc: Any, arrays: Sequence[Array], attrs: Any) -> Array:
    position, backwards = attrs if isinstance(attrs, tuple) else (attrs, False)
    return _accumulated(ufunc, arrays[0], position, backwards)


def _logcumsumexp_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    # z[k] depends on x[i] by the weight exp(x[i] - z[k]), so the cotangent of x[i] is exp(x[i] - z[i]) times
    # s[i] = g[i] + exp(z[i] - z[i+1]) * s[i+1], whose factors are at most one.
    position = ctx.attrs
    x, z = ctx.inputs[0], ctx.result
    value = array_of(z)
    if not x._row and not np.isinf(value).any():  # where it is differentiated, the sums keep their order
        s = recurrence(elementwise.exp(z - shift(z, position, True, np.inf)), g, position, True)
        return (elementwise._mul0(s, elementwise.exp(x - z)),)
    finite = wrap(~np.isinf(value))
    here = elementwise.where(wrap(value != np.inf), z, 0.0)
    next_one = shift(elementwise.where(wrap(value != -np.inf), z, 0.0), position, True, np.inf)
    s = recurrence(elementwise.exp(here - next_one), g, position, True)
    x, z = elementwise.where(finite, x, -np.inf), elementwise.where(finite, z, 0.0)
    return (elementwise._mul0(s, elementwise.exp(x - z)),)


def _scan(x: Tensor, dim: int, dtype: DTypeLike | None, scan: Any) -> Tensor:
    x = cast(x, accumulation_dtype(array_of(x).dtype) if dtype is None else dtype)
    return scan(x, axis(dim, array_of(x).ndim))


def _directed(array: Array, position: int, backwards: bool) -> Array:
    if not array.ndim:
        return array.reshape(1)
    return array[(*(slice(None),) * position, slice(None, None, -1))] if backwards else array


def running_sum(x: Tensor, position: int, backwards: bool = False) -> Tensor:
    """`cumsum` from the front or from the back."""
    return apply(_SUM, (x,), _accumulated(np.add, array_of(x), position, backwards), (position, backwards))


def _sum_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    position, backwards = ctx.attrs
    return (running_sum(g, position, not backwards),)


def running_product(x: Tensor, position: int, backwards: bool = False) -> Tensor:
    """`cumprod` from the front or from the back."""
    return apply(_PRODUCT, (x,), _accumulated(np.multiply, array_of(x), position, backwards), (position, backwards))


def _product_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    # z[k] depends on x[i] through z[i-1] * x[i] * x[i+1] ... x[k], so the cotangent of x[i] is z[i-1] times
    # s[i] = g[i] + x[i+1] * s[i+1].
    position, backwards = ctx.attrs
    x, z = ctx.inputs[0], ctx.result
    s = recurrence(shift(x, position, not backwards, 0.0), g, position, not backwards)
    return (elementwise._mul0(s, shift(z, position, backwards, 1.0)),)


def exclusive_product(x: Tensor, position: int, backwards: bool) -> Tensor:
    """Running product of the elements before each one (after it, if `backwards`)."""
    return shift(running_product(x, position, backwards), position, backwards, 1.0)


def shift(x: Tensor, position: int, backwards: bool, fill: float) -> Tensor:
    """Every element moved on by one place (back, if `backwards`); the last falls out and `fill` comes in."""
    data = array_of(x)
    result = np.empty_like(data, order="C")
    source, target = _directed(data, position, backwards), _directed(result, position, backwards)
    before = (slice(None),) * position
    target[(*before, slice(1, None))] = source[(*before, slice(None, -1))]
    target[(*before, slice(1))] = fill
    return apply(_SHIFT, (x,), result, (position, backwards))


def _shift_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    position, backwards = ctx.attrs
    return (shift(g, position, not backwards, 0.0),)


def recurrence(a: Tensor, b: Tensor, position: int, backwards: bool) -> Tensor:
    """``r[i] = b[i] + a[i] * r[i-1]`` along a dimension, with nothing before the first; from the end if `backwards`."""
    coefficients, terms = array_of(a), array_of(b)
    shape = terms.shape or (1,)
    result = np.empty(terms.shape)
    if result.size:
        outer = math.prod(shape[:position])
        operands = np.ascontiguousarray(coefficients, np.float64), np.ascontiguousarray(terms, np.float64), result
        inner = result.size // (outer * shape[position])
        x, y, z = map(address_of, operands)
        TAPE.solve_recurrence(x, y, z, outer, shape[position], inner, int(backwards))
    if terms.itemsize != 8:
        with quiet():
            result = result.astype(terms.dtype, copy=False)
    return apply(_RECURRENCE, (a, b), result, (position, backwards))


def _recurrence_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    position, backwards = ctx.attrs
    a, r = ctx.inputs[0], ctx.result
    b_bar = recurrence(shift(a, position, not backwards, 0.0), g, position, not backwards)
    return elementwise._mul0(b_bar, shift(r, position, backwards, 0.0)) if ctx.needs[0] else None, b_bar


def _sums_of_many(x_dot: Array, ctx: Context, shape: tuple[int, ...]) -> Array:
    return array_of(running_sum(make(x_dot, 0), *ctx.attrs)) if shape else x_dot


def _many_shifted(x_dot: Array, ctx: Context, shape: tuple[int, ...]) -> Array:
    position, backwards = ctx.attrs
    return array_of(shift(make(x_dot, 0), position, backwards, 0.0)) if shape else np.zeros_like(x_dot)


def _many_recurrences(x_dot: Array, ctx: Context, shape: tuple[int, ...]) -> Array:
    a = array_of(ctx.inputs[0])
    return array_of(recurrence(make(np.stack([a] * x_dot.shape[-1], -1), 0), make(x_dot, 0), *ctx.attrs)) if shape else x_dot


_SUM = Structural("CumsumBackward0", ((),), _sum_vjp, linear=(_sums_of_many,))
_PRODUCT = Structural("CumprodBackward0", ((0, "z"),), _product_vjp, forward=partial(_again, np.multiply))
_LOGCUMSUMEXP = Structural("LogcumsumexpBackward0", ((0, "z"),), _logcumsumexp_vjp, forward=partial(_again, np.logaddexp))
_SHIFT = Structural("ShiftBackward0", ((),), _shift_vjp, linear=(_many_shifted,))
_RECURRENCE = Structural("RecurrenceBackward0", ((0, "z"), (0,)), _recurrence_vjp, linear=(None, _many_recurrences))
