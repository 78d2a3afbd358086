"""Inverses and solutions of linear systems: values of Numba's own functions, derivatives of the text that `tapegrad.linalg` has.

An inverse is the solution for the unit matrix. What is to be solved in a derivative is solved by the known inverse.
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from tapegrad.linalg.solving import solve_cotangents
from tapegrad.nopython.functions.transposed import tangents
from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.tape.array_rows import with_rows
from tapegrad.nopython.tape.row_writing import primals
from tapegrad.nopython.types.curved_tape import is_curved, straight
from tapegrad.nopython.types.variable import has_variables

__all__ = ["inv", "solve"]

SOLUTION = tangents(solve_cotangents, 1, (0,), others=1, operands=2, in_place=True)


def solution(tape, a, b, values, inverse):
    """The solution of linear equations, which is this one; b may be one number, that of a constant."""
    raise NotImplementedError


@overload(solution)
def _solution(tape, a, b, values, inverse):
    def first(tape, a, b, values, inverse):
        return with_rows(values, SOLUTION(tape, (primals(a), inverse), values, a, b)[0])

    def second(tape, a, b, values, inverse):
        # Where the matrix stays and the solution has moved, the slope times the step is all that the solution moves by:
        # A dX = dB - dA (X + dX).
        system = primals(a), inverse
        moved = with_rows(values, SOLUTION(straight(tape), system, values, a, b)[0])
        return with_rows(values, SOLUTION(tape, system, moved, a, b)[0])

    return second if is_curved(tape) else first


def inv(tape, a):
    raise NotImplementedError


@overload(inv)
def _inv(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.linalg.inv(a)

    def impl(tape, a):
        values = np.linalg.inv(primals(a))
        return solution(tape, a, 1.0, values, values)

    return impl


def solve(tape, a, b):
    raise NotImplementedError


@overload(solve)
def _solve(tape, a, b):
    if not has_variables(types.Tuple((a, b))):
        return lambda tape, a, b: np.linalg.solve(a, b)

    def impl(tape, a, b):
        values = np.linalg.solve(primals(a), primals(b))
        return solution(tape, a, b, values, np.linalg.inv(primals(a)))

    return impl
