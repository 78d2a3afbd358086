"""The cross entropy of target classes that are replaced in part by equal probabilities of all: a weighted sum of logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.nn.functional.class_targets import along_classes, chosen_by, operands_of
from tapegrad.ops import elementwise
from tapegrad.ops.exponential_shares import SUM_START, numpys_loops
from tapegrad.ops.namespaces import PLAIN
from tapegrad.ops.reductions import add_reduce
from tapegrad.ops.run_reductions import adds_along_runs
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, make, wrap

__all__ = ["smoothed"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
FLOAT64 = np.dtype(np.float64)


def smoothed(
    logs: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, smoothing: float, along: int
) -> Tensor:
    """The loss by logarithms of probabilities, whose classes are along a dimension."""
    found = chosen_by(operands_of(logs, target, weight), ignore_index)
    data = array_of(logs)
    dtype, every = found.losses.dtype, -smoothing / data.shape[along]
    over = (along,) if reduction == "none" else tuple(range(data.ndim))
    with quiet():
        total: Any = add_reduce(found.factors, None) if reduction == "mean" else 1.0
        is_large = data.size > max(SMALL, found.at.size) and dtype == data.dtype == FLOAT64 and data.flags.c_contiguous
        if is_large and weight is None and 0.0 < total < np.inf:
            # There are two different factors, besides the zeros of what is ignored.
            factors = float(every / total), float((every - (1.0 - smoothing)) / total)
            result = _of_two_factors(data, found.at, factors, over)
            if not np.isnan(result).any():  # as zero times an infinity of what is ignored is
                return apply(_SMOOTHED, (logs,), result, (over, factors), (make(found.at, 0),))
        kept = found.at >= 0
        counts = kept.reshape(_without(data.shape, along, 1))
        own = (1.0 - smoothing) * found.factors.reshape(-1)[kept]
        all_classes: Any = every if weight is None else every * array_of(along_classes(weight, data.shape, along))
        whole = np.empty(data.shape, dtype)
        whole[...] = np.where(counts, all_classes, 0.0)
        whole.reshape(-1)[found.at[kept]] -= own
        if reduction == "mean":
            whole /= total
        products = data * whole
        np.copyto(products, 0.0, where=~counts)
        result = add_reduce(products, over).astype(data.dtype)
        if reduction == "mean" and not kept.any():
            result = result + np.asarray(np.nan, data.dtype)
    np.copyto(whole, 0.0, where=~counts)  # which the mean of nothing has made nan
    return apply(_SMOOTHED, (logs,), result, (over, None), (wrap(whole.astype(data.dtype, copy=False)),))


def _without(shape: Shape, along: int, *instead: int) -> Shape:
    return (*shape[:along], *instead, *shape[along + 1 :])


def _runs(shape: Shape, count: int) -> tuple[int, int]:
    """Classes, and how many runs of them are side by side."""
    outer = shape[0] if len(shape) > 1 else 1
    return (shape[1] if len(shape) > 1 else shape[0]), count // max(outer, 1)


def _of_two_factors(data: Array, at: Array, factors: tuple[float, float], over: Shape) -> Any:
    """Sums of products of a large contiguous array with a factor for all classes, and another one for those at some places."""
    classes, inner = _runs(data.shape, at.size)
    numbers = np.array([*factors, SUM_START])
    if len(over) == 1 and data.ndim == 2 and adds_along_runs():
        result, room = np.empty(len(data)), np.empty(classes)
        ARRAY_KERNELS.weigh_classes(id(room), id(result), id(data), id(at), id(numbers), classes, inner, numpys_loops())
        return result
    products = large_empty(data.shape, FLOAT64)
    ARRAY_KERNELS.weigh_classes(id(products), 0, id(data), id(at), id(numbers), classes, inner, 0)
    return np.asarray(add_reduce(products, over))


def _smoothed_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    (over, factors), (kept,) = ctx.attrs, ctx.extra
    if factors is not None:
        adjoint = array_of(g)
        if ctx.on is PLAIN and np.isfinite(adjoint).all():
            return (make(_spread(adjoint, array_of(kept), factors, ctx.shapes[0]), 0),)
        whole = np.zeros(ctx.shapes[0])
        at = array_of(kept)
        along = 1 if whole.ndim > 1 else 0
        whole += np.where(at >= 0, factors[0], 0.0).reshape(_without(whole.shape, along, 1))
        whole.reshape(-1)[at[at >= 0]] = factors[1]
        kept = wrap(whole)
    return (elementwise._mul0(ctx.on.restore(g, over, False, ctx.shapes[0]), kept),)


def _spread(g: Array, at: Array, factors: tuple[float, float], shape: Shape) -> Array:
    """The cotangents of all elements, which are products of those of the losses, or of the sum, and the factors."""
    result, classes_and_runs = large_empty(shape, FLOAT64), _runs(shape, at.size)
    is_number = not any(g.strides)
    g = g if is_number or g.flags.c_contiguous else np.ascontiguousarray(g)
    numbers = np.array([*factors, 0.0])
    ARRAY_KERNELS.spread_over_classes(id(result), id(g), id(at), id(numbers), *classes_and_runs, int(not is_number))
    return result


_SMOOTHED = Structural("AddBackward0", ((),), _smoothed_vjp)
