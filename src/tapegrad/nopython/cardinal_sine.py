"""`np.sinc`: Numba takes another argument in the place of 0, where the branch would have no second derivative."""

from __future__ import annotations

import math

import numba
import numpy as np
from numba.core import types
from numba.core.extending import overload

from tapegrad.nopython.pieces import end_row, primal, put, put_second, row, start_row, with_row
from tapegrad.nopython.variable import Variable, has_variables, variable

__all__ = ["sinc"]

NEAR = 1.0  # where the closed form has lost no digits yet, and twelve terms of the series are enough


@numba.njit
def derivatives(x):
    """First and second derivative of ``sin(pi * x) / (pi * x)``."""
    y = math.pi * x
    if abs(y) > NEAR:
        value = math.sin(y) / y
        first = (math.cos(y) - value) / y
        second = (-math.sin(y) - 2.0 * first) / y
    else:
        first, second, power = 0.0, 0.0, 1.0  # power: y**(2k - 2) / (2k - 1)!, with its sign
        for k in range(1, 13):
            power = -power
            first += power * y / (2 * k + 1)
            second += power * (2 * k - 1) / (2 * k + 1)
            power *= y * y / (2 * k * (2 * k + 1))
    return math.pi * first, math.pi * math.pi * second


def sinc(tape, a):
    raise NotImplementedError


@overload(sinc)
def _sinc(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.sinc(a)
    if isinstance(a, Variable):

        def number(tape, a):
            first, second = derivatives(primal(a))
            start = start_row(tape, 1, 1)
            end = start
            if row(a) != 0:
                put(tape, end, row(a), first)
                end = put_second(tape, end + 1, row(a), row(a), 0.5 * second)
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
