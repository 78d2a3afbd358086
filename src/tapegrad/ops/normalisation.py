"""Sums of exponentials that do not overflow: logsumexp, softmax and its logarithm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.arrays.dtypes import get_default_dtype, type_name
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.ops import elementwise
from tapegrad.ops.exponential_shares import values as by_loops
from tapegrad.ops.namespaces import TENSORS
from tapegrad.ops.reductions import add_reduce, reduced
from tapegrad.recording.axes import axis
from tapegrad.recording.casting import cast
from tapegrad.recording.primal_values import LARGE
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, wrap

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["log_softmax", "logsumexp", "softmax"]

Array = np.ndarray[Any, Any]
FLOAT64 = np.dtype(np.float64)
maximum_reduce: Any = np.maximum.reduce


def logsumexp(x: Tensor, dim: int | Sequence[int], keepdim: bool = False) -> Tensor:
    """Logarithm of the sum of exponentials along dimensions, without overflow.

    Parameters
    ----------
    x : Tensor
        Integers are converted to the default dtype.
    dim : int or sequence of int
    keepdim : bool
        Keep the dimensions, with size one.

    Returns
    -------
    Tensor
        ``-inf`` where all elements are ``-inf``, with zero derivative.

    Examples
    --------
    >>> tg.logsumexp(tg.tensor([1000.0, 1000.0]), 0)
    tensor(1000.6931)
    """
    if dim is None:
        raise TypeError("logsumexp(): argument 'dim' must be int or tuple of ints, not None")
    data = array_of(x)
    if data.dtype.kind != "f":
        x = cast(x, get_default_dtype())
        data = array_of(x)
    removed = reduced(dim, data.ndim)
    token = enter(IGNORING)
    try:
        result = logsumexp_again((data,), (removed, keepdim))
    finally:
        leave(token)
    return apply(_LOGSUMEXP, (x,), result, (removed, keepdim))


def logsumexp_again(arrays: Sequence[Any], attrs: Any) -> Any:
    (data,), (removed, keepdim) = arrays, attrs
    top = _finite_maximum(data, removed)
    total = add_reduce(_exponentials_less(data, top), removed, None, None, True)
    result = np.log(total) + top
    return result if keepdim else result.reshape([extent for k, extent in enumerate(data.shape) if k not in removed])


def _exponentials_less(data: Array, top: Array) -> Any:
    less = np.asarray(data - top)
    function = LARGE[np.exp] if data.dtype is FLOAT64 and data.size > SMALL else np.exp
    return function(less, out=less)


def _finite_maximum(data: Array, removed: tuple[int, ...]) -> Array:
    top = np.asarray(maximum_reduce(data, removed, None, None, True, -np.inf))
    if top.size == 1 and not math.isinf(top.item()):
        return top
    # inf - inf would be nan where the exponentials are plainly 0 or inf
    return np.where(np.isinf(top), 0.0, top).astype(data.dtype, copy=False)


def _logsumexp_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    removed, keepdim = ctx.attrs
    x = ctx.inputs[0]
    shape = ctx.shapes[0]
    g = on.restore(g, removed, keepdim, shape)
    z = on.restore(ctx.result, removed, keepdim, shape)
    value = array_of(z)
    if not (math.isinf(value.item()) if value.size == 1 else np.isinf(value).any()):
        return (elementwise._mul0(g, elementwise.exp(x - z)),)
    # All weights are 0 below -inf; under inf the infinite elements share the gradient.
    data = array_of(x)
    finite = wrap(~np.isinf(value))
    top = (data == np.inf) & (value == np.inf)
    share = wrap((top / np.maximum(add_reduce(top, removed, None, None, True), 1)).astype(data.dtype, copy=False))
    weights = elementwise.where(finite, elementwise.exp(x - elementwise.where(finite, z, np.inf)), share)
    return (elementwise._mul0(g, weights),)


def softmax(x: Tensor, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Exponentials along a dimension, scaled to sum to one.

    Parameters
    ----------
    x : Tensor, of a floating point dtype
    dim : int
    dtype : dtype, optional
        Cast to it first.

    Returns
    -------
    Tensor, of the shape of `x`

    Raises
    ------
    NotImplementedError
        If the dtype is not a floating point one.

    Examples
    --------
    >>> tg.softmax(tg.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    x, data, removed = _prepared(x, dim, dtype, "softmax")
    token = enter(IGNORING)
    try:
        result = softmax_again((data,), removed)
    finally:
        leave(token)
    return apply(_SOFTMAX, (x,), result, removed)


def softmax_again(arrays: Sequence[Any], removed: Any) -> Any:
    (data,) = arrays
    result = by_loops(data, removed, False)
    if result is None:
        result = np.exp(data - maximum_reduce(data, removed, None, None, True, -np.inf))
        result /= add_reduce(result, removed, None, None, True)
    return result


def _softmax_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (ctx.on.shares_back(g, ctx.result, ctx.attrs, False),)


def log_softmax(x: Tensor, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Logarithm of `softmax`, accurate where that is tiny; the same parameters and errors.

    Examples
    --------
    >>> tg.log_softmax(tg.tensor([0.0, -1000.0]), 0)
    tensor([    0., -1000.])
    """
    x, data, removed = _prepared(x, dim, dtype, "log_softmax")
    token = enter(IGNORING)
    try:
        result = log_softmax_again((data,), removed)
    finally:
        leave(token)
    return apply(_LOG_SOFTMAX, (x,), result, removed)


def log_softmax_again(arrays: Sequence[Any], removed: Any) -> Any:
    (data,) = arrays
    result = by_loops(data, removed, True)
    if result is not None:
        return result
    shifted = data - maximum_reduce(data, removed, None, None, True, -np.inf)
    return shifted - np.log(add_reduce(np.exp(shifted), removed, None, None, True))


def _log_softmax_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (ctx.on.shares_back(g, ctx.result, ctx.attrs, True),)


def shares_back(g: Tensor, result: Tensor, axes: tuple[int, ...], logarithm: bool, on: Any = TENSORS) -> Tensor:
    """The cotangent of the operand of `softmax`, or of `log_softmax`."""
    if logarithm:
        return g - elementwise._mul0(elementwise.exp(result), on.sum(g, axes, True))
    weighted = elementwise._mul0(g, result)
    return weighted - elementwise._mul0(result, on.sum(weighted, axes, True))


def _prepared(x: Tensor, dim: int, dtype: DTypeLike | None, name: str) -> tuple[Tensor, Array, tuple[int, ...]]:
    if dtype is not None:
        x = cast(x, dtype)
    data = array_of(x)
    if data.dtype.kind != "f":
        raise NotImplementedError(
            f"\"{name}\" not implemented for '{type_name(data.dtype)}'. Convert the tensor to a floating point dtype."
        )
    if dim is None:
        raise TypeError(f"{name}(): argument 'dim' must be int, not None")
    position = axis(dim, data.ndim)
    return x, data, (position,) if data.ndim else ()


_LOGSUMEXP = Structural("LogsumexpBackward0", ((0, "z"),), _logsumexp_vjp, forward=logsumexp_again)
_SOFTMAX = Structural("SoftmaxBackward0", (("z",),), _softmax_vjp, forward=softmax_again, takes_stretched=True)
_LOG_SOFTMAX = Structural("LogSoftmaxBackward0", (("z",),), _log_softmax_vjp, forward=log_softmax_again, takes_stretched=True)
