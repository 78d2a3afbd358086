"""Windows that slide over the spatial dimensions of an array, for any number of them.

`columns` lays the elements under every place of the window side by side, `fold` adds such columns back into place; each is the
transpose of the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tapegrad.errors import ShapeError
from tapegrad.nn.functional.spatial_sizes import Sizes
from tapegrad.tape.array_kernels import ARRAY_KERNELS

__all__ = ["Windows", "columns", "computed", "fold", "parts", "places_of", "sliding"]

Array = np.ndarray[Any, Any]
_FLOAT64 = np.dtype(np.float64)

# Elements of the columns that are made at a time: they stay in the cache and bound the memory.
_AT_A_TIME = 1 << 19


class Windows(NamedTuple):
    """Where the windows lie: element ``t`` of window ``o`` is element ``o * stride + t * dilation - before`` of the array.

    Attributes
    ----------
    extents : tuple of int
        Spatial sizes of the array.
    kernel, stride, dilation : tuple of int
    before : tuple of int
        Zeros in front of each dimension; behind it there are as many as the last window needs.
    places : tuple of int
        Number of windows in each dimension.
    taps, total : int
        Elements of a window, and number of windows.
    identical : bool
        Whether each window is one element, in the order of the array.
    """

    extents: Sizes
    kernel: Sizes
    stride: Sizes
    dilation: Sizes
    before: Sizes
    places: Sizes
    taps: int
    total: int
    identical: bool


@lru_cache(maxsize=256)
def sliding(extents: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes, before: Sizes, places: Sizes) -> Windows:
    """Windows, and what follows from where they lie."""
    taps, ones = math.prod(kernel), (1,) * len(kernel)
    identical = taps == 1 and stride == ones and not any(before) and places == extents
    return Windows(extents, kernel, stride, dilation, before, places, taps, math.prod(places), identical)


_kept: dict[tuple[int, int, int, bool], tuple[Windows, Array]] = {}  # by what is quicker to look up than all sizes


def _words(windows: Windows, batch: int, channels: int, joined: bool) -> Array:
    """What the compiled loops read (`engine/window_columns.py`)."""
    key = id(windows), batch, channels, joined
    found = _kept.get(key)
    if found is None or found[0] is not windows:
        if len(_kept) >= 256:
            _kept.clear()
        found = _kept[key] = windows, _new_words(windows, batch, channels, joined)
    return found[1]


def _new_words(windows: Windows, batch: int, channels: int, joined: bool) -> Array:
    unused = 3 - len(windows.kernel)
    ones, zeros = (1,) * unused, (0,) * unused
    words = [*ones, *windows.extents, *ones, *windows.places, *ones, *windows.kernel, *ones, *windows.stride]
    words += [*ones, *windows.dilation, *zeros, *windows.before, batch, channels]
    if joined:
        return np.array([*words, batch * windows.total, windows.total], np.int64)
    return np.array([*words, windows.total, channels * windows.taps * windows.total], np.int64)


def parts(count: int, windows: Windows, channels: int) -> Sequence[slice]:
    """The batch in parts whose columns are not too large."""
    each = channels * windows.taps * windows.total
    if 0 < count * each <= _AT_A_TIME:
        return (slice(0, count),)
    step = max(1, _AT_A_TIME // max(each, 1))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def columns(x: Array, windows: Windows, joined: bool = False) -> Array:
    """The elements under every window.

    Parameters
    ----------
    x : ndarray of float64, float32 or int64, shape ``(n, c, *extents)``, contiguous
    joined : bool
        Whether the batch is a part of the columns.

    Returns
    -------
    ndarray, shape (n, c * taps, count), or (c * taps, n * count) if joined
        Not to be written to.

    Raises
    ------
    ShapeError
        If the array is not of the windows' sizes: what was saved may come back otherwise from a hook.
    """
    batch, channels, *spatial = x.shape
    if tuple(spatial) != windows.extents:
        raise ShapeError(f"windows of an array with sizes {list(windows.extents)} were wanted of one with {spatial}")
    if windows.identical and (batch == 1 or not joined):
        return x.reshape((channels, windows.total) if joined else (batch, channels, windows.total))
    rows = channels * windows.taps
    result = np.empty((rows, batch * windows.total) if joined else (batch, rows, windows.total), x.dtype)
    ARRAY_KERNELS.lay_columns(id(result), id(x), id(_words(windows, batch, channels, joined)))
    return result


def fold(pieces: Array, windows: Windows) -> Array:
    """The transpose of `columns`: an array of zeros with all columns added in their places.

    Parameters
    ----------
    pieces : ndarray of float64, float32 or int64, shape (n, c * taps, count), contiguous

    Returns
    -------
    ndarray, shape ``(n, c, *extents)``
    """
    batch, channels = pieces.shape[0], pieces.shape[1] // windows.taps
    if windows.identical:
        return pieces.reshape(batch, channels, *windows.extents)
    result = np.zeros((batch, channels, *windows.extents), pieces.dtype)
    ARRAY_KERNELS.add_columns(id(result), id(pieces), id(_words(windows, batch, channels, False)))
    return result


def computed(*arrays: Array) -> Sequence[Array]:
    """The operands as the compiled loops take them."""
    for a in arrays:
        if a.dtype is not _FLOAT64 or not a.flags.c_contiguous:
            break
    else:
        return arrays
    kind, wide = arrays[0].dtype.kind, arrays[0].dtype.itemsize
    dtype = np.int64 if kind != "f" else np.float32 if wide == 2 else arrays[0].dtype
    return [np.ascontiguousarray(array, dtype) for array in arrays]


def places_of(extents: Sequence[int], kernel: Sizes, stride: Sizes, dilation: Sizes, padding: Sequence[int]) -> Sizes:
    """How many windows fit in each dimension with `padding` zeros in all."""
    steps = zip(extents, kernel, stride, dilation, padding, strict=True)
    return tuple((n + p - (k - 1) * d - 1) // s + 1 for n, k, s, d, p in steps)
