"""Solutions of linear systems, recorded by the equations that they solve.

What a solution depends on stands in its equation, so there is no derivative here: a residual is recorded, whose value is zero, and
the known inverse takes it back to the solution. A row is a product, with as many pairs as a line of the matrix has elements.
"""

from __future__ import annotations

import numpy as np

from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.tape.array_rows import product_rows, residual_rows, with_rows
from tapegrad.nopython.types.curved_tape import CurvedTape

__all__ = ["solution"]


def solution(tape, a, b, values, inverse):
    """The solution of a linear system, which is this one."""
    raise NotImplementedError


@overload(solution)
def _solution(tape, a, b, values, inverse):
    def first(tape, a, b, values, inverse):
        return product_rows(tape, inverse, residual_rows(tape, a, values, b), values)

    def second(tape, a, b, values, inverse):
        # The inverse moves too: by the first term of Neumann's series, whose value is zero.
        series = with_rows(np.eye(values.shape[0]), residual_rows(tape, a, inverse, 0.0))
        rest = product_rows(tape, series, residual_rows(tape, a, values, b), np.zeros(values.shape))
        return product_rows(tape, inverse, rest, values)

    return second if isinstance(tape, CurvedTape) else first
