"""`np.sinc`: Numba takes another argument in the place of 0, where the branch would have no second derivative."""

from __future__ import annotations

import math

import numpy as np
from numba.core import types

from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.tape.row_writing import end_row, primal, put, put_second, row, start_row, with_row
from tapegrad.nopython.types.variable import Variable, has_variables, variable
from tapegrad.rules.cardinal_sine import bound_of_series, recurrence, series

__all__ = ["sinc"]

bound_of_series, recurrence, series = map(part, (bound_of_series, recurrence, series))


@part
def derivative(x, order):
    y = math.pi * x
    value = series(y, order) if abs(y) <= bound_of_series(order) else recurrence(y, order)
    return value * math.pi**order


def sinc(tape, a):
    raise NotImplementedError


@overload(sinc)
def _sinc(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.sinc(a)
    if isinstance(a, Variable):

        def number(tape, a):
            start = start_row(tape, 1, 1)
            end = start
            if row(a) != 0:
                put(tape, end, row(a), derivative(primal(a), 1))
                end = put_second(tape, end + 1, row(a), row(a), 0.5 * derivative(primal(a), 2))
            return with_row(np.sinc(primal(a)), end_row(tape, start, end))

        return number
    if isinstance(a, types.Array):

        def array(tape, a):
            out = np.empty_like(a, variable)
            for place in np.ndindex(a.shape):
                out[place] = sinc(tape, a[place])
            return out

        return array
    return None
