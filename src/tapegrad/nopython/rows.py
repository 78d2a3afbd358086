"""One row for a whole array."""

from __future__ import annotations

import numpy as np
from numba.core import types

from tapegrad.nopython.linking import overload
from tapegrad.nopython.pieces import end_row, put, row, start_row

__all__ = ["combined", "left_away"]


def combined(tape, a, weights):
    """A row with a partial for each element of `a`: an array of its shape, or one number for all of them."""
    raise NotImplementedError


@overload(combined)
def _combined(tape, a, weights):
    def impl(tape, a, weights):
        start = start_row(tape, a.size, 0)
        end = start
        for place in np.ndindex(a.shape):
            r = row(a[place])
            if r != 0:
                put(tape, end, r, weight(weights, place))
                end += 1
        return end_row(tape, start, end)

    return impl


def weight(weights, place):
    """The partial at a place."""
    raise NotImplementedError


@overload(weight)
def _weight(weights, place):
    return (lambda weights, place: weights[place]) if isinstance(weights, types.Array) else (lambda weights, place: weights)


def left_away(axis):
    """Whether an optional argument is None, or not given."""
    return axis is None or isinstance(axis, types.NoneType) or (isinstance(axis, types.Omitted) and axis.value is None)
