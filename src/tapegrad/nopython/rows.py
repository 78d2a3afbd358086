"""One row for a whole array."""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.core.extending import overload

from tapegrad.nopython.pieces import end_row, put, row, start_row

__all__ = ["combined", "left_away", "weighted"]


def weighted(tape, a, weight):
    """A row with the same partial for every element."""
    raise NotImplementedError


@overload(weighted)
def _weighted(tape, a, weight):
    def impl(tape, a, weight):
        start = start_row(tape, a.size, 0)
        end = start
        for place in np.ndindex(a.shape):
            r = row(a[place])
            if r != 0:
                put(tape, end, r, weight)
                end += 1
        return end_row(tape, start, end)

    return impl


def combined(tape, a, weights):
    """A row with a partial for each element of `a`."""
    raise NotImplementedError


@overload(combined)
def _combined(tape, a, weights):
    def impl(tape, a, weights):
        start = start_row(tape, a.size, 0)
        end = start
        for place in np.ndindex(a.shape):
            r = row(a[place])
            if r != 0:
                put(tape, end, r, weights[place])
                end += 1
        return end_row(tape, start, end)

    return impl


def left_away(axis):
    """Whether an optional argument is None, or not given."""
    return axis is None or isinstance(axis, types.NoneType) or (isinstance(axis, types.Omitted) and axis.value is None)
