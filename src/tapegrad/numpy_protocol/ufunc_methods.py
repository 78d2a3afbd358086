"""Methods of ufuncs on tensors: those of sums and products by their functions, all others as the ufunc applied again and again."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tapegrad.numpy_protocol.functions import every
from tapegrad.numpy_protocol.operands import NotCovered, one
from tapegrad.recording.axes import axis as axis_of
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["accumulate", "in_dtype", "outer", "reduce", "reduceat"]

_np: Any = np
REDUCTIONS: dict[Any, Any] = {
    np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min, np.logical_and: np.all, np.logical_or: np.any,
}  # fmt: skip
ACCUMULATIONS: dict[Any, Any] = {np.add: np.cumsum, np.multiply: np.cumprod}


def in_dtype(dtype: np.dtype[Any], inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands in the dtype that is asked for."""
    if dtype.kind != "f":
        raise NotCovered(f"dtype={dtype.name} has no derivative")
    return tuple(one(x).to(dtype) for x in inputs)


def _check_pair(ufunc: Any) -> None:
    if ufunc.nin != 2 or ufunc.nout != 1:
        raise ValueError(f"{ufunc.__name__} has no reduction: it takes {ufunc.nin} operands and gives {ufunc.nout}")


def reduce(
    ufunc: Any, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = np._NoValue,
    where: Any = True,
) -> Any:  # fmt: skip
    """``ufunc.reduce``."""
    options: dict[str, Any] = {"initial": initial, "where": where, "dtype": dtype}
    given = {name: value for name, value in options.items() if value is not np._NoValue and value is not True and value is not None}
    if out is not None:
        raise NotCovered("give out by its name")
    if ufunc in REDUCTIONS:
        return REDUCTIONS[ufunc](one(array), axis=axis, keepdims=keepdims, **given)
    _check_pair(ufunc)
    if given:
        raise NotCovered(f"its argument {next(iter(given))!r} has no counterpart")
    x = one(array)
    axes = every(x, axis)
    for k in axes:
        parts = [_np.take(x, j, k) for j in range(x.shape[k])]
        if not parts:
            if ufunc.identity is None:
                raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
            parts = [tg.full([n for j, n in enumerate(x.shape) if j != k], float(ufunc.identity), dtype=x.dtype)]
        x = _np.expand_dims(functools.reduce(ufunc, parts), k)
    return x if keepdims else tg.squeeze(x, axes)


def accumulate(ufunc: Any, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """``ufunc.accumulate``."""
    if out is not None:
        raise NotCovered("give out by its name")
    if ufunc in ACCUMULATIONS:
        return ACCUMULATIONS[ufunc](one(array), axis=axis, dtype=dtype)
    _check_pair(ufunc)
    x = one(array) if dtype is None else one(array).to(dtype)
    k = axis_of(axis, x.ndim)
    found: list[Any] = []
    for j in range(x.shape[k]):
        part = _np.take(x, j, k)
        found.append(ufunc(found[-1], part) if found else part)
    return _np.stack(found, k) if found else x


def reduceat(ufunc: Any, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """``ufunc.reduceat``."""
    if out is not None:
        raise NotCovered("give out by its name")
    _check_pair(ufunc)
    x = one(array) if dtype is None else one(array).to(dtype)
    k = axis_of(axis, x.ndim)
    starts = [int(j) for j in (array_of(indices) if isinstance(indices, Tensor) else np.asarray(indices))]
    if any(not 0 <= j < x.shape[k] for j in starts):
        raise IndexError(f"an index of {starts} is out of bounds in {ufunc.__name__}.reduceat [0, {x.shape[k]})")
    found = []
    for start, stop in zip(starts, [*starts[1:], x.shape[k]], strict=True):
        piece = x[(*[slice(None)] * k, slice(start, stop if stop > start else start + 1))]
        found.append(reduce(ufunc, piece, k))
    return _np.stack(found, k)


def outer(ufunc: Any, x: Any, y: Any, **kwargs: Any) -> Any:
    """``ufunc.outer``."""
    x, y = one(x), one(y)
    return ufunc(_np.reshape(x, (*x.shape, *[1] * y.ndim)), y, **kwargs)
