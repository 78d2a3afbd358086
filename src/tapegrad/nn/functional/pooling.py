"""The largest element and the mean of every window, and their derivatives, for any number of spatial dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.nn.functional.bins import Bins, covering_bins, flat_places, outer, run_sums
from tapegrad.nn.functional.sizes import Sizes
from tapegrad.ops.selecting import masked_fill, put_along
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["largest", "means", "operations"]

Array = np.ndarray[Any, Any]


class Averages(NamedTuple):
    """A mean over bins: where they lie, what each sum is divided by, and the array's spatial sizes."""

    bins: tuple[Bins, ...]
    divisors: Array
    extents: Sizes


def largest(op: Structural, x: Tensor, bins: Sequence[Bins]) -> tuple[Tensor, Tensor]:
    """The largest element of every bin of the last dimensions, and its place in these dimensions, flattened.

    Of several the first is chosen; nan is larger than everything. A bin without elements, which dilation can make, gives the
    least number.
    """
    data = array_of(x)
    ahead, extents = data.shape[: data.ndim - len(bins)], data.shape[data.ndim - len(bins) :]
    flat = data.reshape(*ahead, int(np.prod(extents)))
    taps = itertools.product(*(range(along.taps()) for along in bins))
    place = flat_places(bins, next(taps, (0,) * len(bins)), extents)
    best = np.take(flat, place, -1)
    where = np.broadcast_to(place, best.shape).copy()
    for tap in taps:
        place = flat_places(bins, tap, extents)
        other = np.take(flat, place, -1)
        better = (other > best) | ((other != other) & (best == best))
        np.copyto(best, other, where=better)
        np.copyto(where, place, where=better)
    nothing = outer([along.starts < along.ends for along in bins]) == 0
    if nothing.any():
        best[..., nothing] = -np.inf if data.dtype.kind == "f" else np.iinfo(data.dtype).min
    # The caller may write into the indices; the saved ones must not change.
    saved = wrap(where.copy() if x.requires_grad else where)
    return apply(op, (x,), best, len(bins), (saved, wrap(nothing))), wrap(where)


def _largest_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    where, nothing = ctx.extra
    shape = ctx.shapes[0]
    if array_of(nothing).any():
        g = masked_fill(g, nothing, 0.0)
    ahead, extents = shape[: len(shape) - ctx.attrs], shape[len(shape) - ctx.attrs :]
    places = wrap(array_of(where).reshape(*ahead, int(np.prod(array_of(where).shape[len(ahead) :]))))
    flat = put_along(g.reshape(array_of(places).shape), len(ahead), places, (*ahead, int(np.prod(extents))))
    return (flat.reshape(shape),)


def means(op: Structural, x: Tensor, bins: Sequence[Bins], divisors: Array) -> Tensor:
    """The sum over every bin of the last dimensions, divided."""
    data = array_of(x)
    averages = Averages(tuple(bins), divisors.astype(data.dtype), data.shape[data.ndim - len(bins) :])
    with quiet():
        return apply(op, (x,), run_sums(data, bins) / averages.divisors, averages)


def _means_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (_spread_means(g, ctx.attrs),)


def _spread_means(g: Tensor, averages: Averages) -> Tensor:
    """The transpose of `means`: each element gets its share of every bin that it lies in."""
    back = [covering_bins(along, extent) for along, extent in zip(averages.bins, averages.extents, strict=True)]
    with quiet():
        result = run_sums(array_of(g) / averages.divisors, back)
    return apply(_SPREAD_MEANS, (g,), result, averages)


def _spread_means_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (means(_MEANS, g, ctx.attrs.bins, ctx.attrs.divisors),)


_MEANS = Structural("AvgPool2DBackward0", ((),), _means_vjp)
_SPREAD_MEANS = Structural("AvgPool2DBackwardBackward0", ((),), _spread_means_vjp)


def operations(largest_name: str, means_name: str) -> tuple[Structural, Structural]:
    """`largest` and `means` under PyTorch's names."""
    return Structural(largest_name, ((),), _largest_vjp), Structural(means_name, ((),), _means_vjp)
