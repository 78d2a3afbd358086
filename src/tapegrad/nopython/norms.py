"""Norms of vectors and matrices as one row, or two where second derivatives are recorded."""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.core.errors import TypingError

from tapegrad.nopython.curved_tape import CurvedTape, refuse_curvature
from tapegrad.nopython.extremes import shares
from tapegrad.nopython.linking import overload
from tapegrad.nopython.pieces import end_row, primal, primals, put, put_second, row, start_row, with_row
from tapegrad.nopython.rows import combined, left_away
from tapegrad.nopython.variable import has_variables

__all__ = ["norm"]


def norm(tape, a, ord=None):
    raise NotImplementedError


@overload(norm)
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
            values = np.ascontiguousarray(primals(a))
            z = np.linalg.norm(values)
            return with_row(z, combined(tape, a, values / z if 0.0 < z < np.inf else np.zeros_like(values)))

        return euclidean
    if not isinstance(ord, (types.Integer, types.Float)):
        raise TypingError(f"[tapegrad] np.linalg.norm of variables takes a number as ord, not {ord}")
    refuse_curvature(tape, "np.linalg.norm with ord")
    weights = vector_weights if a.ndim == 1 else matrix_weights

    def of_order(tape, a, ord=None):
        values = np.ascontiguousarray(primals(a))
        z = np.linalg.norm(values, ord)
        return with_row(z, combined(tape, a, weights(values, ord, z)))

    return of_order


def squares_row(tape, a, z):
    """The row of a sum of squares divided by its root `z`: the sum itself may be too large or small for a number."""
    raise NotImplementedError


@overload(squares_row)
def _squares_row(tape, a, z):
    def impl(tape, a, z):
        start = start_row(tape, a.size, a.size)
        end = start
        for place in np.ndindex(a.shape):
            r = row(a[place])
            if r != 0:
                put(tape, end, r, 2.0 * (primal(a[place]) / z) if z != 0.0 else 0.0)
                end = put_second(tape, end + 1, r, r, 1.0 / z if z != 0.0 else 0.0)
        return end_row(tape, start, end)

    return impl


def root_row(tape, squares, z):
    """The row of the root `z` of the sum of squares; its derivatives are zero at the origin."""
    raise NotImplementedError


@overload(root_row)
def _root_row(tape, squares, z):
    def impl(tape, squares, z):
        if squares == 0:
            return squares
        start = start_row(tape, 1, 1)
        put(tape, start, squares, 0.5 if z != 0.0 else 0.0)
        end = put_second(tape, start + 1, squares, squares, -0.125 / z if z != 0.0 else 0.0)
        return end_row(tape, start, end)

    return impl


def vector_weights(values, ord, z):
    raise NotImplementedError


@overload(vector_weights)
def _vector_weights(values, ord, z):
    def impl(values, ord, z):
        weights = np.zeros_like(values)
        if z == 0.0 or ord == 0 or (ord == 2 and z == np.inf):
            return weights
        if np.isinf(ord):
            return np.sign(values) * shares(np.abs(values), z)
        for k in range(values.size):
            if ord == 2:
                weights[k] = values[k] / z
            elif values[k] != 0.0:
                weights[k] = np.sign(values[k]) * (abs(values[k]) / z) ** (ord - 1.0)
        return weights

    return impl


def matrix_weights(values, ord, z):
    raise NotImplementedError


@overload(matrix_weights)
def _matrix_weights(values, ord, z):
    # Loops, not sums over an axis and outer products: those take seconds to compile.
    def impl(values, ord, z):
        rows, columns = values.shape
        weights = np.zeros((rows, columns))
        if abs(ord) == 2:
            u, s, vt = np.linalg.svd(values)
            chosen = shares(s, s[0 if ord > 0 else s.size - 1])
            for i in range(rows):
                for j in range(columns):
                    for k in range(s.size):
                        if chosen[k] != 0.0:
                            weights[i, j] += chosen[k] * u[i, k] * vt[k, j]
            return weights
        by_columns = abs(ord) == 1
        totals = np.zeros(columns if by_columns else rows)
        for i in range(rows):
            for j in range(columns):
                totals[j if by_columns else i] += abs(values[i, j])
        chosen = shares(totals, np.max(totals) if ord > 0 else np.min(totals))
        for i in range(rows):
            for j in range(columns):
                weights[i, j] = np.sign(values[i, j]) * chosen[j if by_columns else i]
        return weights

    return impl
