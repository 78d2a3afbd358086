"""Medians and quantiles: the derivative goes to the elements that were chosen, of equal ones to those that come first.

Numba's own forms find an element by exchanging others, so that with equal elements the one that is named depends on how; and they
do not interpolate where the lowest or the highest element is asked for, which has a slope by the quantile all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from tapegrad.nopython.functions.allocation import asarray
from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.tape.row_writing import end_row, primal, primals, put, row, start_row, with_row
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.variable import REAL, Variable, has_variables, variable

__all__ = ["RANKS"]


def share_row(tape, items, order, rank, share):
    """The row of an element by its rank, and a share of the way to the next one."""
    raise NotImplementedError


@overload(share_row)
def _share_row(tape, items, order, rank, share):
    def impl(tape, items, order, rank, share):
        start = start_row(tape, 2, 0)
        end = start
        for k, weight in ((rank, 1.0 - share), (rank + 1, share)):
            if weight != 0.0:
                r = row(items[order[k]])
                if r != 0:
                    put(tape, end, r, weight)
                    end += 1
        return end_row(tape, start, end)

    return impl


@part
def ordered(values):
    """Places in ascending order, those of nan last; and how many are not nan."""
    return np.argsort(values, kind="mergesort"), values.size - np.count_nonzero(np.isnan(values))


@part
def found_among(values, value, both):
    """Places of the elements that a value is, or is the mean of: where there is nan, Numba's medians have no order."""
    for i in range(values.size):
        for j in range(i + both, values.size if both else i + 1):
            mean = (values[i] + values[j]) / 2 if both else values[i]
            if mean == value or (mean != mean and value != value):
                return i, j
    return 0, 0


def _median(function: Callable[..., Any], leaves_nan_out: bool) -> Any:
    def call(tape, a):
        raise NotImplementedError

    @overload(call)
    def define(tape, a):
        if not has_variables(a):
            return lambda tape, a: function(a)
        if not isinstance(a, types.Array):
            return None

        def impl(tape, a):
            value, items = function(primals(a)), a.flatten()
            order, size = ordered(primals(items))
            if items.size == 0:
                return with_row(value, 0)
            middle = max(size - 1, 0) // 2
            if not leaves_nan_out and size < items.size:
                size, middle = items.size, 0
                order[0], order[-1] = found_among(primals(items), value, size % 2 == 0)
                order[1 % size] = order[-1]
            return with_row(value, share_row(tape, items, order, middle, 0.0 if size % 2 or size == 0 else 0.5))

        return impl

    return call


@part
def between(low, high, place, before):
    """The line through two elements, at a place that depends on the quantile."""
    return low + (place - before) * (high - low)


@part
def place_of(q, last, whole):
    """Where a quantile stands among elements that are numbered from zero."""
    return last * (q / whole)


def _quantile(function: Callable[..., Any], whole: float, leaves_nan_out: bool) -> Any:
    def call(tape, a, q):
        raise NotImplementedError

    def one(tape, items, order, size, q, value):
        raise NotImplementedError

    @overload(one)
    def define_one(tape, items, order, size, q, value):
        line, placed = twin(between), twin(place_of)
        moving = isinstance(q, Variable)

        def impl(tape, items, order, size, q, value):
            if items.size == 0:
                return with_row(value, 0)
            if size == 0 or (not leaves_nan_out and size < items.size):
                return with_row(value, row(items[order[0 if leaves_nan_out else items.size - 1]]))
            place = (size - 1) * (primal(q) / whole)
            before = min(max(int(np.floor(place)), 0), max(size - 2, 0))
            if not moving or size == 1:
                return with_row(value, share_row(tape, items, order, before, place - before))
            low, high = items[order[before]], items[order[before + 1]]
            return with_row(value, row(line(tape, low, high, placed(tape, q, float(size - 1), whole), float(before))))

        return impl

    @overload(call)
    def define(tape, a, q):
        if not has_variables(types.Tuple((a, q))):
            return lambda tape, a, q: function(a, q)
        if not isinstance(a, types.Array):
            return lambda tape, a, q: call(tape, asarray(a), q)
        if isinstance(q, types.Array) and q.ndim == 0:
            return lambda tape, a, q: call(tape, a, q[()])
        if isinstance(q, (Variable, *REAL)):

            def number(tape, a, q):
                value, items = function(primals(a), primal(q)), a.flatten()
                order, size = ordered(primals(items))
                return one(tape, items, order, size, q, value)

            return number
        if not isinstance(q, types.Array):
            return lambda tape, a, q: call(tape, a, asarray(q))

        def array(tape, a, q):
            values, items, numbers = function(primals(a), primals(q)), a.flatten(), q.flatten()
            order, size = ordered(primals(items))
            out = np.empty(values.size, variable)
            for k in range(values.size):
                out[k] = one(tape, items, order, size, numbers[k], values[k])
            return out

        return array

    return call


RANKS: dict[Any, Any] = {
    np.median: _median(np.median, False), np.nanmedian: _median(np.nanmedian, True),
    np.quantile: _quantile(np.quantile, 1.0, False), np.nanquantile: _quantile(np.nanquantile, 1.0, True),
    np.percentile: _quantile(np.percentile, 100.0, False), np.nanpercentile: _quantile(np.nanpercentile, 100.0, True),
}  # fmt: skip
