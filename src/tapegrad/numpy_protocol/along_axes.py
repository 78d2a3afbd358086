"""NumPy's functions that call a function of the user's: for each piece, along each axis, over several axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.numpy_protocol.operands import one
from tapegrad.recording.axes import axis as axis_of
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import array_of

__all__ = ["ALONG_AXES"]

_np: Any = np


def _apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    x = one(arr)
    k = axis_of(axis, x.ndim)
    last = _np.moveaxis(x, k, -1)
    places = list(np.ndindex(*last.shape[:-1]))
    if not places:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    found = [_np.asarray(piece) if isinstance(piece, (list, tuple)) else piece for piece in
             (func1d(last[place], *args, **kwargs) for place in places)]  # fmt: skip
    stacked = _np.stack([one(piece) for piece in found])
    inner = stacked.shape[1:]
    whole = _np.reshape(stacked, (*last.shape[:-1], *inner))
    for j in range(len(inner)):
        whole = _np.moveaxis(whole, len(last.shape) - 1 + j, k + j)
    return whole


def _apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    x = one(a)
    for k in np.atleast_1d(axes).tolist():
        found = func(x, axis_of(k, x.ndim))
        if found.ndim != x.ndim:
            found = _np.expand_dims(found, axis_of(k, x.ndim))
            if found.ndim != x.ndim:
                raise ValueError("function is not returning an array of the correct shape")
        x = found
    return x


def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    x = one(x)
    conditions = [np.asarray(array_of(c) if hasattr(c, "_data") else c, bool) for c in _as_conditions(condlist, x.ndim)]
    if len(funclist) == len(conditions) + 1:
        conditions.append(~np.logical_or.reduce(conditions))
    elif len(funclist) != len(conditions):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions are expected"
        )
    result = _np.zeros_like(x)
    for condition, function in zip(conditions, funclist, strict=True):
        if not condition.any():
            continue
        place = np.broadcast_to(condition, x.shape)
        value = function(x[tg.tensor(place)], *args, **kw) if callable(function) else function
        flat = one(value).to(x.dtype)
        numbers = np.zeros(x.shape, np.int64)
        numbers[place] = np.arange(place.sum()) if flat.ndim else 0
        spread = _np.reshape(flat, (-1,))[tg.tensor(numbers)]
        result = tg.where(tg.tensor(place), spread, result)
    return result


def _as_conditions(condlist: Any, dims: int) -> list[Any]:
    if isinstance(condlist, (list, tuple)) and (not condlist or not np.isscalar(condlist[0]) or not dims):
        return list(condlist)
    whole = array_of(condlist) if hasattr(condlist, "_data") else np.asarray(condlist)
    return [whole] if whole.ndim <= dims else list(whole)


ALONG_AXES: dict[str, Callable[..., Any]] = {
    "apply_along_axis": _apply_along_axis, "apply_over_axes": _apply_over_axes, "piecewise": _piecewise,
}  # fmt: skip
