"""Sums, means, extremes and what else makes one number of many, with NumPy's names and arguments.

All arguments of NumPy's are here, in its order: `where` leaves elements out, for which the neutral element stands, and `initial`
is one element more.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.errors import ShapeError
from tapegrad.numpy_protocol.functions import Axis, every, real
from tapegrad.numpy_protocol.operands import NotCovered, one
from tapegrad.ops.reductions import count
from tapegrad.ops.views import part
from tapegrad.recording.axes import axes_in_order
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import Tensor, array_of
from tapegrad.tensors.tracers import makes_constants_of_shapes

__all__ = ["REDUCTIONS"]


def _refuse_out(out: Any) -> None:
    if out is not None:
        raise NotCovered("give out by its name")


def _is_default(value: Any) -> bool:
    return value is None or value is np._NoValue


def _masked(x: Tensor, where: Any, neutral: float) -> Tensor:
    """The elements that count, with a neutral one in the place of the others."""
    if where is True or where is np._NoValue:
        return x
    mask = one(where)
    if mask.dtype.kind != "b":
        raise TypeError(f"where must be of bools, not {mask.dtype}")
    filled: Tensor = tg.where(mask, x, _as_neutral(neutral, x.dtype))
    return filled


@makes_constants_of_shapes
def _as_neutral(value: float, dtype: Any) -> Tensor:
    return one(np.asarray(value, dtype))


def _dims(axis: Any) -> Axis:
    return tuple(int(k) for k in axis) if isinstance(axis, (tuple, list)) else axis


def _sum(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    if out is None and initial is None and where is True:
        return _added(tg.sum, one(a), axis, dtype, keepdims)
    _refuse_out(out)
    found = _added(tg.sum, _masked(one(a), where, 0), axis, dtype, keepdims)
    return found if _is_default(initial) else found + initial


def _mean(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    _refuse_out(out)
    x = real(a)
    if where is True or where is np._NoValue:
        return _added(tg.mean, x, axis, dtype, keepdims)
    return _sum(x, axis, dtype, None, keepdims, None, where) / _counted(x, axis, keepdims, where)


def _counted(x: Tensor, axis: Axis, keepdims: Any, where: Any) -> Any:
    """How many elements count; nan for none."""
    mask = np.broadcast_to(array_of(one(where)), x.shape)
    number = np.sum(mask, _dims(axis), keepdims=_is_kept(keepdims))
    return one(np.where(number == 0, np.nan, number).astype(x.dtype))


def _is_kept(keepdims: Any) -> bool:
    return bool(keepdims) and keepdims is not np._NoValue


def _nansum(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    return _sum(_present(a, 0.0), axis, dtype, out, keepdims, initial, where)


def _nanprod(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    return _prod(_present(a, 1.0), axis, dtype, out, keepdims, initial, where)


def _nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    return _cumsum(_present(a, 0.0), axis, dtype, out)


def _nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    return _cumprod(_present(a, 1.0), axis, dtype, out)


def _present(a: Any, neutral: float) -> Tensor:
    x = one(a)
    return _masked(x, tg.logical_not(tg.isnan(x)), neutral) if x.dtype.kind == "f" else x


def _nanmean(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    _refuse_out(out)
    if where is True or where is np._NoValue:
        return _added(tg.nanmean, real(a), axis, dtype, keepdims)
    x = real(a)
    present = np.broadcast_to(array_of(one(where)), x.shape) & ~np.isnan(array_of(x))
    return _mean(x, axis, dtype, None, keepdims, where=present)


def _added(function: Any, x: Tensor, axis: Axis, dtype: Any, keepdims: Any) -> Any:
    if axis == ():
        return x.clone() if dtype is None else x.to(dtype)
    return function(x, _dims(axis), _is_kept(keepdims), dtype=dtype)


def _prod(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    _refuse_out(out)
    x = one(a)
    x = _masked(x if dtype is None else x.to(dtype), where, 1)
    keepdims = _is_kept(keepdims)
    if axis == ():
        x = tg.clone(x)
    elif axis is None and not keepdims:
        x = tg.prod(x)
    else:
        for k in sorted(every(x, _dims(axis)), reverse=True):
            x = tg.prod(x, k, keepdims)
    return x if _is_default(initial) else x * initial


def _var(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = False, *, where: Any = True,
    mean: Any = None, correction: Any = None,
) -> Any:  # fmt: skip
    _refuse_out(out)
    ddof = ddof if _is_default(correction) else correction
    if axis != () and (where is True or where is np._NoValue) and _is_default(mean):
        return _spread(tg.var, a, axis, dtype, ddof, keepdims)
    x = real(a) if dtype is None else one(a).to(dtype)
    around = _mean(x, axis, None, None, True, where=where) if _is_default(mean) else one(mean)
    squares = _sum((x - around) ** 2, axis, None, None, keepdims, None, where)
    number = array_of(_counted(x, axis, keepdims, True if where is np._NoValue else where)) - ddof
    return squares / one(np.maximum(np.nan_to_num(number), 0).astype(x.dtype))


def _std(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = False, *, where: Any = True,
    mean: Any = None, correction: Any = None,
) -> Any:  # fmt: skip
    _refuse_out(out)
    ddof = ddof if _is_default(correction) else correction
    if axis != () and (where is True or where is np._NoValue) and _is_default(mean):
        return _spread(tg.std, a, axis, dtype, ddof, keepdims)
    variance = _var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean)
    none = variance == 0  # without spread the gradient is zero
    return tg.where(none, 0.0, tg.sqrt(tg.where(none, 1.0, variance)))


def _spread(function: Any, a: Any, axis: Axis, dtype: Any, correction: float, keepdims: Any) -> Any:
    x = real(a) if dtype is None else one(a).to(dtype)
    return function(x, _dims(axis), correction=correction, keepdim=_is_kept(keepdims))


def _max(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True) -> Any:
    return _bounded(tg.amax, tg.maximum, -np.inf, a, axis, out, keepdims, initial, where)


def _min(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True) -> Any:
    return _bounded(tg.amin, tg.minimum, np.inf, a, axis, out, keepdims, initial, where)


def _bounded(function: Any, pair: Any, least: float, a: Any, axis: Axis, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    _refuse_out(out)
    x = one(a)
    if _is_default(initial):
        if where is not True and where is not np._NoValue:
            raise ValueError("reduction operation does not have an identity, so to use a where mask one has to specify 'initial'")
        return _extreme(function, x, axis, keepdims)
    axes, kept = every(x, _dims(axis)), _is_kept(keepdims)
    if count(x.shape, axes):
        return pair(_extreme(function, _masked(x, where, least), axis, keepdims), one(np.asarray(initial, x.dtype)))
    shape = [1 if k in axes else n for k, n in enumerate(x.shape) if kept or k not in axes]
    return tg.full(shape, initial, dtype=x.dtype)


def _extreme(function: Any, x: Tensor, axis: Axis, keepdims: Any) -> Any:
    if 0 in x.shape and count(x.shape, every(x, axis)) == 0:
        raise ValueError("zero-size array to reduction operation which has no identity")
    return x.clone() if axis == () else function(x, _dims(axis), _is_kept(keepdims))


def _ptp(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False) -> Any:
    return _max(a, axis, out, keepdims) - _min(a, axis, out, keepdims)


def _cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    _refuse_out(out)
    return along(tg.cumsum, a, axis, dtype=dtype)


def _cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    _refuse_out(out)
    return along(tg.cumprod, a, axis, dtype=dtype)


def _cumulative(function: Any, first: float) -> Callable[..., Any]:
    def cumulative(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
        x = one(x)
        if axis is None:
            if x.ndim > 1:
                raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
            axis = 0
        found = function(x, axis, dtype)
        if not include_initial:
            return found
        shape = tuple(1 if k == axis % x.ndim else n for k, n in enumerate(x.shape))
        return tg.cat([tg.full(shape, first, dtype=found.dtype), found], axis)

    return cumulative


def along(function: Any, a: Any, axis: int | None, **options: Any) -> Any:
    """A function along one axis, of the flattened array without one."""
    x = one(a)
    return function(x.reshape(-1), 0, **options) if axis is None else function(x, axis, **options)


def _sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    return along(tg.sort, a, axis, stable=True)[0]


@makes_constants_of_shapes
def _average(
    a: Any, axis: int | Sequence[int] | None = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    x = real(a)
    if weights is None:
        found = _mean(x, axis, None, None, keepdims)
        scale = one(np.asarray(x.numel() / max(found.numel(), 1), x.dtype))
    else:
        w = one(weights)
        if w.shape != x.shape:
            if axis is None:
                raise TypeError("Axis must be specified when shapes of a and weights differ.")
            axes = axes_in_order(axis if isinstance(axis, (tuple, list)) else (axis,), x.ndim)
            if w.shape != tuple(x.shape[k] for k in axes):
                raise ShapeError("Shape of weights must be consistent with shape of a along specified axis.")
            w = w.permute(*np.argsort(axes).tolist()).reshape(*(x.shape[k] if k in axes else 1 for k in range(x.ndim)))
        scale = _sum(w * tg.ones_like(x), axis, None, None, keepdims)
        found = _sum(x * w, axis, None, None, keepdims) / scale
    return (found, tg.clone(tg.broadcast_to(scale, found.shape))) if returned else found


def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    _refuse_out(out)
    x = one(a)
    if x.ndim == 2 and dtype is None and (offset, axis1, axis2) == (0, 0, 1):  # the common one, in half of the time
        return part(x, "DiagonalBackward0", operator.methodcaller("diagonal"), copies=False).sum()
    diagonal = tg.diagonal(x, offset, axis1, axis2)
    return diagonal.sum() if dtype is None and diagonal.ndim == 1 else tg.sum(diagonal, -1, dtype=dtype)


_NAMES = "average cumprod cumsum max mean min nancumprod nancumsum nanmean nanprod nansum prod ptp sort std sum trace var"
REDUCTIONS: dict[str, Callable[..., Any]] = {name: globals()[f"_{name}"] for name in _NAMES.split()}
REDUCTIONS |= {"amax": _max, "amin": _min, "cumulative_sum": _cumulative(_cumsum, 0), "cumulative_prod": _cumulative(_cumprod, 1)}
