"""`np.unwrap`: whole periods are added. Numba takes a jump of half a period for a constant, and the element with it."""

from __future__ import annotations

import numpy as np
from numba.core import types

from tapegrad.nopython.functions.allocation import asarray
from tapegrad.nopython.numba_interface.linking import overload, register_jitable
from tapegrad.nopython.numba_interface.optional_arguments import left_away
from tapegrad.nopython.tape.row_writing import end_row, primal, primals, put, row, start_row, with_row
from tapegrad.nopython.types.variable import has_variables, variable

__all__ = ["unwrap"]


def unwrap(tape, p, discont=None, axis=-1, period=6.283185307179586):
    raise NotImplementedError


@overload(unwrap)
def _unwrap(tape, p, discont=None, axis=-1, period=6.283185307179586):
    if not has_variables(types.Tuple([kind for kind in (p, discont, period) if isinstance(kind, types.Type)])):
        if left_away(discont):
            return lambda tape, p, discont=None, axis=-1, period=6.283185307179586: np.unwrap(p, None, axis, period)
        return lambda tape, p, discont=None, axis=-1, period=6.283185307179586: np.unwrap(p, discont, axis, period)
    if not isinstance(p, types.Array):
        return lambda tape, p, discont=None, axis=-1, period=6.283185307179586: unwrap(tape, asarray(p), discont, axis, period)
    threshold = register_jitable((lambda discont: None) if left_away(discont) else (lambda discont: primal(discont)))

    def impl(tape, p, discont=None, axis=-1, period=6.283185307179586):
        before, length = primals(p), primal(period)
        values = np.unwrap(before, threshold(discont), axis, length)
        out = np.empty(values.shape, variable)
        for place in np.ndindex(values.shape):
            start = start_row(tape, 2, 0)
            end = start
            if row(p[place]) != 0:
                put(tape, end, row(p[place]), 1.0)
                end += 1
            if row(period) != 0:
                put(tape, end, row(period), np.rint((values[place] - before[place]) / length))
                end += 1
            out[place] = with_row(values[place], end_row(tape, start, end))
        return out

    return impl
