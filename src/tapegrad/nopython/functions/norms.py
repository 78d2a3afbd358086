"""Norms of vectors and matrices as one row, or two where second derivatives are recorded."""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.core.errors import TypingError

from tapegrad.nopython.functions.norm_rows import line_row, magnitude_row, power_row, root_row, spectral_row, squares_row, unit_row
from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.numba_interface.optional_arguments import left_away
from tapegrad.nopython.tape.array_rows import combined
from tapegrad.nopython.tape.row_writing import primals, with_row
from tapegrad.nopython.types.curved_tape import CurvedTape, refuse_curvature
from tapegrad.nopython.types.variable import has_variables

__all__ = ["norm"]


def norm(tape, a, ord=None):
    raise NotImplementedError


@overload(norm, prefer_literal=True)
def _norm(tape, a, ord=None):
    if not has_variables(a):
        if left_away(ord):
            return lambda tape, a, ord=None: np.linalg.norm(a)
        return lambda tape, a, ord=None: np.linalg.norm(a, ord)
    if left_away(ord) and isinstance(tape, CurvedTape):

        def curved(tape, a, ord=None):
            z = np.linalg.norm(np.ascontiguousarray(primals(a)))
            return with_row(z, root_row(tape, squares_row(tape, a, z), z))

        return curved
    if left_away(ord):

        def euclidean(tape, a, ord=None):
            z = np.linalg.norm(np.ascontiguousarray(primals(a)))
            return with_row(z, unit_row(tape, a, z))

        return euclidean
    if not isinstance(ord, (types.Integer, types.Float)):
        raise TypingError(f"[tapegrad] np.linalg.norm of variables takes a number as ord, not {ord}")
    refuse_curvature(tape, "np.linalg.norm with ord")
    row_of_order = vector_row if a.ndim == 1 else matrix_row

    def of_order(tape, a, ord=None):
        values = np.ascontiguousarray(primals(a))
        z = np.linalg.norm(values, ord)
        return with_row(z, row_of_order(tape, a, values, ord, z))

    return of_order


def vector_row(tape, a, values, ord, z):
    raise NotImplementedError


@overload(vector_row)
def _vector_row(tape, a, values, ord, z):
    def impl(tape, a, values, ord, z):
        if z == 0.0 or ord == 0 or (ord == 2 and z == np.inf):
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

    return by_either if known is None else by_singular_values if known == 2 else by_lines
