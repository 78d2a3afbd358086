"""Norms of vectors and matrices as one row, or two where second derivatives are recorded."""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.core.errors import TypingError

from tapegrad.nopython.functions.decompositions import singular_values
from tapegrad.nopython.functions.norm_rows import line_row, magnitude_row, power_row, spectral_row
from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.numba_interface.optional_arguments import left_away
from tapegrad.nopython.tape.array_rows import combined, extreme_row
from tapegrad.nopython.tape.row_writing import primals, with_row
from tapegrad.nopython.types.curved_tape import CurvedTape
from tapegrad.nopython.types.variable import has_variables

__all__ = ["norm"]


def norm(tape, x, ord=None):
    raise NotImplementedError


@overload(norm, prefer_literal=True)
def _norm(tape, x, ord=None):
    if not has_variables(x):
        if left_away(ord):
            return lambda tape, x, ord=None: np.linalg.norm(x)
        return lambda tape, x, ord=None: np.linalg.norm(x, ord)
    if left_away(ord):
        return lambda tape, x, ord=None: of_elements(tape, x)
    if not isinstance(ord, (types.Integer, types.Float)):
        raise TypingError(f"[tapegrad] np.linalg.norm of variables takes a number as ord, not {ord}")
    row_of_order = vector_row if x.ndim == 1 else matrix_row

    def of_order(tape, x, ord=None):
        values = np.ascontiguousarray(primals(x))
        z = np.linalg.norm(values, ord)
        return with_row(z, row_of_order(tape, x, values, ord, z))

    return of_order


def of_elements(tape, a):
    """The norm of all elements, as of one vector."""
    raise NotImplementedError


@overload(of_elements)
def _of_elements(tape, a):
    def impl(tape, a):
        z = np.linalg.norm(np.ascontiguousarray(primals(a)))
        return with_row(z, combined(tape, a, 0.0) if z == 0.0 else power_row(tape, a, 2, z))

    return impl


def vector_row(tape, a, values, ord, z):
    raise NotImplementedError


@overload(vector_row, prefer_literal=True)
def _vector_row(tape, a, values, ord, z):
    def impl(tape, a, values, ord, z):
        if z == 0.0 or ord == 0:
            return combined(tape, a, 0.0)
        if np.isinf(ord):
            return magnitude_row(tape, a, z)
        return power_row(tape, a, ord, z)

    return impl


def matrix_row(tape, a, values, ord, z):
    raise NotImplementedError


@overload(matrix_row, prefer_literal=True)
def _matrix_row(tape, a, values, ord, z):
    known = abs(ord.literal_value) if isinstance(ord, types.IntegerLiteral) else None

    def by_lines(tape, a, values, ord, z):
        return line_row(tape, a, abs(ord) == 1, ord > 0)

    def by_singular_values(tape, a, values, ord, z):
        u, s, vt = np.linalg.svd(values)
        return spectral_row(tape, a, u, s, vt, ord > 0)

    def by_either(tape, a, values, ord, z):
        if abs(ord) == 2:
            u, s, vt = np.linalg.svd(values)
            return spectral_row(tape, a, u, s, vt, ord > 0)
        return line_row(tape, a, abs(ord) == 1, ord > 0)

    def curved(tape, a, values, ord, z):
        if abs(ord) == 2:
            return extreme_row(tape, singular_values(tape, a), z)
        return line_row(tape, a, abs(ord) == 1, ord > 0)

    if isinstance(tape, CurvedTape):
        return by_lines if known == 1 else curved
    return by_either if known is None else by_singular_values if known == 2 else by_lines
