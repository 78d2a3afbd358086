"""The windows of a pooling: along each dimension a run of elements for every place of the result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tapegrad.nn.functional.spatial_sizes import Sizes

__all__ = ["Averages", "Geometry", "adaptive_averages", "adaptive_bins", "sliding_averages", "sliding_bins"]

Array = np.ndarray[Any, Any]


class Geometry(NamedTuple):
    """Windows in every dimension, as the compiled loops read them (`engine/pooling_windows.py`).

    Attributes
    ----------
    extents, places : tuple of int
        Spatial sizes of the array, and of the result.
    words : ndarray of int64
    """

    extents: Sizes
    places: Sizes
    words: Array

    @property
    def rank(self) -> int:
        """Number of spatial dimensions."""
        return len(self.extents)

    def first_places(self) -> Array:
        """Where in the flattened dimensions the first element of every window is, also of one that has none."""
        at, found = 9 + 2 * (3 - self.rank), np.zeros((), np.int64)
        for extent, count in zip(self.extents, self.places, strict=True):
            found = found[..., None] * extent + np.minimum(self.words[at : at + count], extent - 1)
            at += 2 * count
        return found

    def lengths(self) -> Array:
        """How many elements without gaps each window has."""
        at, found = 9 + 2 * (3 - self.rank), np.ones((), np.int64)
        for count in self.places:
            found = found[..., None] * (self.words[at + count : at + 2 * count] - self.words[at : at + count])
            at += 2 * count
        return found


class Averages(NamedTuple):
    """A mean over windows: where they lie, and what each sum is divided by (of float64)."""

    geometry: Geometry
    divisors: Array


def _geometry(extents: Sizes, places: Sizes, steps: Sizes, ends: Sequence[tuple[Array, Array]]) -> Geometry:
    unused = 3 - len(extents)
    ones = (1,) * unused
    runs = [np.array([0, 1])] * unused + [np.concatenate(pair) for pair in ends]
    words = np.concatenate([np.array((*ones, *extents, *ones, *places, *ones, *steps)), *runs])
    return Geometry(extents, places, words.astype(np.int64))


# What is kept is small: a few numbers for each place along each dimension.


@lru_cache(maxsize=256)
def sliding_bins(extents: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, places: Sizes) -> Geometry:
    """Windows of one length at equal distances, without what lies outside of the array."""
    ends = []
    for n, k, s, p, d, count in zip(extents, kernel, stride, padding, dilation, places, strict=True):
        first = np.arange(count) * s - p
        outside = np.maximum(-first, 0)
        ends.append((first + -(-outside // d) * d, np.minimum(first + (k - 1) * d + 1, n)))
    return _geometry(extents, places, dilation, ends)


@lru_cache(maxsize=256)
def sliding_averages(
    extents: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, places: Sizes, with_padding: bool, divisor: int | None
) -> Averages:
    """Means over such windows without gaps, by a number if one is given, else by their sizes with or without the padding."""
    geometry = sliding_bins(extents, kernel, stride, padding, (1,) * len(extents), places)
    if divisor is not None:
        divisors = np.full(places, divisor)
    elif with_padding:
        divisors = np.ones((), np.int64)
        for n, k, s, p, count in zip(extents, kernel, stride, padding, places, strict=True):
            first = np.arange(count) * s - p
            divisors = divisors[..., None] * (np.minimum(first + k, n + p) - first)  # nothing counts beyond the padding
    else:
        divisors = geometry.lengths()
    return Averages(geometry, divisors.astype(np.float64))


@lru_cache(maxsize=256)
def adaptive_bins(extents: Sizes, counts: Sizes) -> Geometry:
    """As many windows as wanted that cover the array, as even as can be; neighbours may share an element."""
    ends = []
    for extent, count in zip(extents, counts, strict=True):
        numbers = np.arange(count)
        ends.append((numbers * extent // max(count, 1), -(-(numbers + 1) * extent // max(count, 1))))
    return _geometry(extents, counts, (1,) * len(extents), ends)


@lru_cache(maxsize=256)
def adaptive_averages(extents: Sizes, counts: Sizes) -> Averages:
    """Means over such windows."""
    geometry = adaptive_bins(extents, counts)
    return Averages(geometry, geometry.lengths().astype(np.float64))
