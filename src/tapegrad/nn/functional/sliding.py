"""Windows that slide over the spatial dimensions of an array, for any number of them.

`columns` lays the elements under every place of the window side by side, `fold` adds such columns back into place; each is the
transpose of the other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.nn.functional.sizes import Sizes

__all__ = ["Windows", "columns", "fold", "parts", "taps"]

Array = np.ndarray[Any, Any]

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
    """

    extents: Sizes
    kernel: Sizes
    stride: Sizes
    dilation: Sizes
    before: Sizes
    places: Sizes

    def reach(self) -> Sizes:
        """Spatial sizes that the windows cover, padding included."""
        steps = zip(self.places, self.stride, self.kernel, self.dilation, strict=True)
        return tuple((n - 1) * s + (k - 1) * d + 1 for n, s, k, d in steps)

    def inner(self) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The part of the covered region that lies in the array, and the part of the array that is covered."""
        spans = list(zip(self.reach(), self.before, self.extents, strict=True))
        ends = [max(min(reach, before + extent), before) for reach, before, extent in spans]
        within = tuple(slice(before, end) for (_, before, _), end in zip(spans, ends, strict=True))
        return within, tuple(slice(0, part.stop - part.start) for part in within)


def _at(x: Array, places: Sequence[slice | int], ahead: bool = True) -> Array:
    """The view of `x` at places in its last dimensions, or its first."""
    key: Any = (..., *places) if ahead else tuple(places)
    return x[key]


def parts(count: int, windows: Windows, channels: int) -> Iterator[slice]:
    """The batch in parts whose columns are not too large."""
    each = channels * math.prod(windows.kernel) * math.prod(windows.places)
    step = max(1, _AT_A_TIME // max(each, 1))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def columns(x: Array, windows: Windows) -> Array:
    """The elements under every window, as a view of `x` or of a padded copy.

    Parameters
    ----------
    x : ndarray, shape (n, c, *extents)

    Returns
    -------
    ndarray, shape (c, *kernel, n, *places)
        Not to be written to.
    """
    reach = windows.reach()
    if any(windows.before) or any(r > n for r, n in zip(reach, windows.extents, strict=True)):
        within, covered = windows.inner()
        padded = np.zeros(x.shape[:2] + reach, x.dtype)
        _at(padded, within)[...] = _at(x, covered)
        x = padded
    batch, channel, *spatial = x.strides
    strides = (
        channel,
        *(s * d for s, d in zip(spatial, windows.dilation, strict=True)),
        batch,
        *(s * d for s, d in zip(spatial, windows.stride, strict=True)),
    )
    shape = (x.shape[1], *windows.kernel, x.shape[0], *windows.places)
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)


def taps(windows: Windows) -> Iterator[tuple[Sizes, tuple[slice, ...]]]:
    """Each element of the window, and where all windows have it in the covered region."""
    for tap in itertools.product(*map(range, windows.kernel)):
        steps = zip(tap, windows.dilation, windows.stride, windows.places, strict=True)
        yield tap, tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, s, n in steps)


def fold(pieces: Array, windows: Windows) -> Array:
    """The transpose of `columns`: an array of zeros with all pieces added in their places.

    Parameters
    ----------
    pieces : ndarray, shape (c, *kernel, n, *places)

    Returns
    -------
    ndarray, shape (n, c, *extents)
    """
    rank = len(windows.kernel)
    shape = (pieces.shape[0], pieces.shape[rank + 1])
    covering = np.zeros(shape + windows.reach(), pieces.dtype)
    for tap, places in taps(windows):
        part = _at(covering, places)
        part += _at(pieces, (slice(None), *tap), ahead=False)
    within, covered = windows.inner()
    if covering.shape[2:] == windows.extents and not any(windows.before):
        return covering.swapaxes(0, 1)
    result = np.zeros((shape[1], shape[0], *windows.extents), pieces.dtype)
    _at(result, covered)[...] = _at(covering, within).swapaxes(0, 1)
    return result


def places_of(extents: Sequence[int], kernel: Sizes, stride: Sizes, dilation: Sizes, padding: Sequence[int]) -> Sizes:
    """How many windows fit in each dimension with `padding` zeros in all."""
    steps = zip(extents, kernel, stride, dilation, padding, strict=True)
    return tuple((n + p - (k - 1) * d - 1) // s + 1 for n, k, s, d, p in steps)
