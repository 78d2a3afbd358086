"""The windows of a pooling: along each dimension a run of neighbouring elements for every place of the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.nn.functional.sizes import Sizes

__all__ = ["Bins", "adaptive_bins", "covering_bins", "flat_places", "lengths", "outer", "run_sums", "sliding_bins"]

Array = np.ndarray[Any, Any]


class Bins(NamedTuple):
    """Windows along one dimension: bin ``o`` has the elements from ``starts[o]`` to ``ends[o]``, `step` apart.

    Both ends grow with ``o``.
    """

    starts: Array
    ends: Array
    step: int = 1

    def taps(self) -> int:
        """Elements in the longest bin."""
        return max(int(-(-(self.ends - self.starts).max(initial=0) // self.step)), 0)


def sliding_bins(extent: int, kernel: int, stride: int, padding: int, dilation: int, count: int) -> Bins:
    """Bins of one length at equal distances, without what lies outside of the array."""
    places = np.arange(count) * stride - padding
    ends = np.minimum(places + (kernel - 1) * dilation + 1, extent)
    outside = np.maximum(-places, 0)
    return Bins(places + -(-outside // dilation) * dilation, ends, dilation)


def adaptive_bins(extent: int, count: int) -> Bins:
    """As many bins as wanted that cover the array, as even as can be; neighbours may share an element."""
    numbers = np.arange(count)
    return Bins(numbers * extent // max(count, 1), -(-(numbers + 1) * extent // max(count, 1)))


def covering_bins(bins: Bins, extent: int) -> Bins:
    """For each element of the array, the run of bins that it lies in."""
    elements = np.arange(extent)
    return Bins(np.searchsorted(bins.ends, elements, "right"), np.searchsorted(bins.starts, elements, "right"))


def run_sums(x: Array, bins: Sequence[Bins]) -> Array:
    """Sums over the bins of the last dimensions, one dimension after the other."""
    for k, along in enumerate(bins):
        x = _sums_along(x, along, x.ndim - len(bins) + k)
    return x


def _sums_along(x: Array, bins: Bins, axis: int) -> Array:
    ahead: tuple[Any, ...] = (slice(None),) * axis
    count, taps = len(bins.starts), bins.taps()
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    if count < taps:
        result = np.empty(shape, x.dtype)
        for o, (start, end) in enumerate(zip(bins.starts, bins.ends, strict=True)):
            result[(*ahead, o)] = np.add.reduce(x[(*ahead, slice(start, end))], axis)
        return result
    # Gathering one element of every bin at a time is ten times faster than np.add.reduceat on short bins.
    result = np.zeros(shape, x.dtype)
    for tap in range(taps):
        inside = bins.starts + tap < bins.ends
        if inside.all():
            result += np.take(x, bins.starts + tap, axis)
        else:
            result[(*ahead, inside)] += np.take(x, bins.starts[inside] + tap, axis)
    return result


def lengths(bins: Sequence[Bins]) -> Array:
    """How many elements each bin has, for all places of the result."""
    return outer([along.ends - along.starts for along in bins])


def outer(factors: Sequence[Array]) -> Array:
    """Products of one number for each dimension."""
    result = np.ones((), np.int64)
    for factor in factors:
        result = result[..., None] * factor
    return result


def flat_places(bins: Sequence[Bins], tap: Sizes, extents: Sizes) -> Array:
    """Where in the flattened dimensions the bins have one of their elements; a bin that lacks it gives its first."""
    result = np.zeros((), np.int64)
    for along, t, extent in zip(bins, tap, extents, strict=True):
        place = along.starts + t * along.step
        first = np.minimum(along.starts, extent - 1)  # an empty bin may start beyond the end
        result = result[..., None] * extent + np.where(place < along.ends, place, first)
    return result
