"""Arguments that move half as far as the real ones do.

What a function changes by is, up to the third order, its slope half way times the step. So a first derivative that is recorded
there, and multiplied by the step, has the second derivatives of the function.
"""

from __future__ import annotations

import numpy as np

from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.tape.row_writing import end_row, primal, put, row, start_row, with_row
from tapegrad.nopython.types.variable import Variable, has_variables, variable

__all__ = ["half_way"]


def half_way(tape, x):
    """The same number or array, which moves half as far."""
    raise NotImplementedError


@overload(half_way)
def _half_way(tape, x):
    def number(tape, x):
        start = start_row(tape, 1, 0)
        end = start
        if row(x) != 0:
            put(tape, start, row(x), 0.5)
            end += 1
        return with_row(primal(x), end_row(tape, start, end))

    def array(tape, x):
        out = np.empty(x.shape, variable)
        fill_half_way(tape, out, x)
        return out

    if not has_variables(x):
        return lambda tape, x: x
    return number if isinstance(x, Variable) else array


def fill_half_way(tape, out, x):
    """The same in an array."""
    raise NotImplementedError


@overload(fill_half_way)
def _fill_half_way(tape, out, x):
    def numbers(tape, out, x):
        for k in range(len(x)):
            out[k] = half_way(tape, x[k])

    def arrays(tape, out, x):
        for k in range(len(x)):
            fill_half_way(tape, out[k], x[k])

    return numbers if x.ndim == 1 else arrays
