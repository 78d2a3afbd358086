"""The largest element and the mean of every window, and their derivatives, for any number of spatial dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tapegrad.nn.functional.bins import Averages, Geometry
from tapegrad.ops.flat_places import contiguous, taking
from tapegrad.recording.structural import Context, Structural, apply, in_front
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, make, wrap

__all__ = ["largest", "means", "operations"]


def largest(op: Structural, x: Tensor, geometry: Geometry, with_places: bool) -> tuple[Tensor, Tensor | None]:
    """The largest element of every bin of the last dimensions, and its place in these dimensions, flattened.

    Of several the first is chosen; nan is larger than everything. A bin without elements, which dilation can make, gives the
    least number.
    """
    data = array_of(x)
    wide = contiguous(data, _COMPUTED.get(data.dtype.char, np.int64))
    shape = (*data.shape[: data.ndim - geometry.rank], *geometry.places)
    best, at = np.empty(shape, wide.dtype), np.empty(shape, np.int64)
    ARRAY_KERNELS.largest_of_windows(id(best), id(at), id(wide), id(geometry.words))
    if wide.dtype != data.dtype:
        least = -np.inf if data.dtype.kind == "f" else np.iinfo(data.dtype).min
        best = np.where(at < 0, least, best).astype(data.dtype)
    # The caller may write into the indices; the saved ones are others.
    indices = wrap(_within(at, geometry)) if with_places else None
    return apply(op, (x,), best, (1, shape), (make(at.reshape(-1), 0),)), indices


def _within(at: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Places in the flattened last dimensions; the first one of a window for those that are none."""
    found: np.ndarray = at % max(math.prod(geometry.extents), 1)
    outside = at < 0
    return np.where(outside, geometry.first_places(), found) if outside.any() else found


_COMPUTED = {"d": np.float64, "f": np.float32, "e": np.float32}  # what the largest is looked for in; integers in int64


def means(op: Structural, x: Tensor, averages: Averages) -> Tensor:
    """The sum over every bin of the last dimensions, divided."""
    data = array_of(x)
    geometry = averages.geometry
    wide = contiguous(data, np.float32 if data.dtype.itemsize == 2 else data.dtype)
    result = np.empty((*data.shape[: data.ndim - geometry.rank], *geometry.places), wide.dtype)
    ARRAY_KERNELS.means_of_windows(id(result), id(wide), id(geometry.words), id(averages.divisors))
    return apply(op, (x,), result.astype(data.dtype, copy=False), averages)


def _means_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (_spread_means(g, ctx.attrs),)


def _spread_means(g: Tensor, averages: Averages) -> Tensor:
    """The transpose of `means`: each element gets its share of every bin that it lies in."""
    data = contiguous(array_of(g))
    geometry = averages.geometry
    result = np.zeros((*data.shape[: data.ndim - geometry.rank], *geometry.extents), data.dtype)
    ARRAY_KERNELS.spread_means(id(result), id(data), id(geometry.words), id(averages.divisors))
    return apply(_SPREAD_MEANS, (g,), result, averages)


def _spread_means_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (_means_again(g, ctx),)


def _means_again(x: Tensor, ctx: Context) -> Tensor:
    return means(_MEANS, x, ctx.attrs)


def _spread_again(g: Tensor, ctx: Context) -> Tensor:
    return _spread_means(g, ctx.attrs)


_MEANS = Structural("AvgPool2DBackward0", ((),), _means_vjp, linear=(in_front(_means_again),))
_SPREAD_MEANS = Structural("AvgPool2DBackwardBackward0", ((),), _spread_means_vjp, linear=(in_front(_spread_again),))


def operations(largest_name: str, means_name: str) -> tuple[Structural, Structural]:
    """`largest` and `means` under PyTorch's names."""
    return taking(largest_name), Structural(means_name, ((),), _means_vjp, linear=_MEANS.linear)
