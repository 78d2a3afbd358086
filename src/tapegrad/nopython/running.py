"""Running sums and products, in the order in which Numba computes them: a row for each."""

from __future__ import annotations

import numpy as np
from numba.core.extending import overload

from tapegrad.nopython.pieces import end_row, primal, put, row, start_row, with_row
from tapegrad.nopython.variable import has_variables, variable

__all__ = ["cumprod", "cumsum"]


def cumsum(tape, a):
    raise NotImplementedError


@overload(cumsum)
def _cumsum(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.cumsum(a)

    def impl(tape, a):
        out = np.empty(a.size, variable)
        total, before = 0.0, np.int32(0)
        for k, place in enumerate(np.ndindex(a.shape)):
            item = a[place]
            total = total + primal(item)
            before = two(tape, before, 1.0, row(item), 1.0)
            out[k] = with_row(total, before)
        return out

    return impl


def cumprod(tape, a):
    raise NotImplementedError


@overload(cumprod)
def _cumprod(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.cumprod(a)

    def impl(tape, a):
        out = np.empty(a.size, variable)
        total, before = 1.0, np.int32(0)
        for k, place in enumerate(np.ndindex(a.shape)):
            item = a[place]
            before = two(tape, before, primal(item), row(item), total)
            total = total * primal(item)
            out[k] = with_row(total, before)
        return out

    return impl


def two(tape, first, weight, second, other):
    """A row of two pairs, without those of constants."""
    raise NotImplementedError


@overload(two)
def _two(tape, first, weight, second, other):
    def impl(tape, first, weight, second, other):
        start = start_row(tape, 2)
        end = start
        if first != 0:
            put(tape, end, first, weight)
            end += 1
        if second != 0:
            put(tape, end, second, other)
            end += 1
        return end_row(tape, start, end)

    return impl
