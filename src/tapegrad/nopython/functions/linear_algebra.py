"""Linear algebra on matrices of variables: as one row for each element of a result, recorded as loops, or refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from tapegrad.nopython.functions.cofactors import cofactors
from tapegrad.nopython.numba_interface.linking import overload, part, register_jitable
from tapegrad.nopython.numba_interface.optional_arguments import left_away
from tapegrad.nopython.tape.array_rows import combined, determinant_row, inverse_rows
from tapegrad.nopython.tape.row_writing import end_row, primals, put, row, start_row, with_row
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.curved_tape import CurvedTape, refuse_curvature
from tapegrad.nopython.types.variable import has_variables, variable

__all__ = ["LINEAR_ALGEBRA", "WITHOUT_DERIVATIVE"]


def inv(tape, a):
    raise NotImplementedError


@overload(inv)
def _inv(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.linalg.inv(a)
    refuse_curvature(tape, "np.linalg.inv")

    def impl(tape, a):
        values = np.linalg.inv(primals(a))
        return inverse_rows(tape, a, values)

    return impl


def det(tape, a):
    raise NotImplementedError


@overload(det)
def _det(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.linalg.det(a)
    refuse_curvature(tape, "np.linalg.det")

    def impl(tape, a):
        values = primals(a)
        z = np.linalg.det(values)
        if z == 0.0:
            return with_row(z, combined(tape, a, cofactors(values)))
        return with_row(z, determinant_row(tape, a, z, np.linalg.inv(values)))

    return impl


def solve(tape, a, b):
    raise NotImplementedError


@overload(solve)
def _solve(tape, a, b):
    if not has_variables(types.Tuple((a, b))):
        return lambda tape, a, b: np.linalg.solve(a, b)
    refuse_curvature(tape, "np.linalg.solve")
    if b.ndim == 1:

        def vector(tape, a, b):
            values, inverse = np.linalg.solve(primals(a), primals(b)), np.linalg.inv(primals(a))
            return solution(tape, a, b, values, inverse)

        return vector

    def matrix(tape, a, b):
        values, inverse = np.linalg.solve(primals(a), primals(b)), np.linalg.inv(primals(a))
        out = np.empty(values.shape[::-1], variable).T
        for k in range(values.shape[1]):
            out[:, k] = solution(tape, a, b[:, k], values[:, k], inverse)
        return out

    return matrix


def solution(tape, a, b, values, inverse):
    """One right-hand side of a linear system: each unknown depends on the whole matrix."""
    raise NotImplementedError


@overload(solution)
def _solution(tape, a, b, values, inverse):
    def impl(tape, a, b, values, inverse):
        n = values.size
        out = np.empty(n, variable)
        for i in range(n):
            start = start_row(tape, n * n + n, 0)
            end = start
            for j in range(n):
                r = row(b[j])
                if r != 0:
                    put(tape, end, r, inverse[i, j])
                    end += 1
                for k in range(n):
                    r = row(a[j, k])
                    if r != 0:
                        put(tape, end, r, -inverse[i, j] * values[k])
                        end += 1
            out[i] = with_row(values[i], end_row(tape, start, end))
        return out

    return impl


def slogdet(tape, a):
    raise NotImplementedError


@overload(slogdet)
def _slogdet(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.linalg.slogdet(a)
    refuse_curvature(tape, "np.linalg.slogdet")

    def impl(tape, a):
        sign, logarithm = np.linalg.slogdet(primals(a))
        if sign == 0.0:
            raise ValueError("the logarithm of the determinant of a singular matrix has no derivative")
        return sign, with_row(logarithm, combined(tape, a, np.linalg.inv(primals(a)).T))

    return impl


@part
def power(a, n):
    """A power of a matrix with an exponent of at least one."""
    squares, n = a, n - 1
    out = a
    while n > 0:
        if n % 2:
            out = np.dot(out, squares)
        squares, n = np.dot(squares, squares), n // 2
    return out


def matrix_power(tape, a, n):
    raise NotImplementedError


@overload(matrix_power, prefer_literal=True)
def _matrix_power(tape, a, n):
    if not has_variables(a):
        return lambda tape, a, n: np.linalg.matrix_power(a, n)
    recording = twin(power)
    known = n.literal_value if isinstance(n, types.IntegerLiteral) else None
    inverted = known < 0 if known is not None else not isinstance(tape, CurvedTape)

    def from_one(tape, a, n):
        return recording(tape, np.ascontiguousarray(a), n)

    def with_inverse(tape, a, n):
        return recording(tape, np.ascontiguousarray(inv(tape, a) if n < 0 else a), abs(n))

    def without_inverse(tape, a, n):
        if n < 0:
            raise ValueError("a matrix power with a negative exponent has no second derivative in compiled functions")
        return recording(tape, np.ascontiguousarray(a), n)

    raised = register_jitable(from_one if known and known > 0 else with_inverse if inverted else without_inverse)

    def impl(tape, a, n):
        values = np.linalg.matrix_power(np.ascontiguousarray(primals(a)), n)
        out = np.zeros(values.shape, variable)
        found = raised(tape, a, n) if n != 0 else out
        for i in range(values.shape[0]):
            for j in range(values.shape[1]):
                out[i, j] = with_row(values[i, j], row(found[i, j]))
        return out

    return impl


@part
def factor(a):
    """The lower triangular factor of a symmetric matrix, of which both halves count."""
    n = a.shape[0]
    out = np.zeros((n, n))
    for j in range(n):
        for i in range(j, n):
            rest = 0.5 * (a[i, j] + a[j, i])
            for k in range(j):
                rest -= out[i, k] * out[j, k]
            out[i, j] = np.sqrt(rest) if i == j else rest / out[j, j]
    return out


def cholesky(tape, a):
    raise NotImplementedError


@overload(cholesky)
def _cholesky(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.linalg.cholesky(a)
    recording = twin(factor)

    def impl(tape, a):
        values = np.linalg.cholesky(np.ascontiguousarray(primals(a)))
        found = recording(tape, a)
        for i in range(values.shape[0]):
            for j in range(i + 1):
                found[i, j] = with_row(values[i, j], row(found[i, j]))
        return found

    return impl


def matrix_rank(tape, A, tol=None):
    raise NotImplementedError


@overload(matrix_rank)
def _matrix_rank(tape, A, tol=None):
    if left_away(tol):
        return lambda tape, A, tol=None: np.linalg.matrix_rank(np.ascontiguousarray(primals(A)))
    return lambda tape, A, tol=None: np.linalg.matrix_rank(np.ascontiguousarray(primals(A)), primals(tol))


LINEAR_ALGEBRA: dict[Any, Any] = {
    np.linalg.inv: inv, np.linalg.det: det, np.linalg.solve: solve, np.linalg.slogdet: slogdet, np.linalg.cholesky: cholesky,
    np.linalg.matrix_power: matrix_power, np.linalg.matrix_rank: matrix_rank,
}  # fmt: skip

ON_TENSORS = "call {} on tensors, in a Python function that is not compiled"

# What Numba hands over to LAPACK as memory, and what to write in its place.
WITHOUT_DERIVATIVE: dict[Any, str] = {
    np.linalg.eig: "for a symmetric matrix " + ON_TENSORS.format("tg.linalg.eigh"),
    np.linalg.eigvals: "for a symmetric matrix " + ON_TENSORS.format("tg.linalg.eigvalsh"),
    np.linalg.eigh: ON_TENSORS.format("tg.linalg.eigh"),
    np.linalg.eigvalsh: ON_TENSORS.format("tg.linalg.eigvalsh"),
    np.linalg.svd: ON_TENSORS.format("tg.linalg.svd"),
    np.linalg.qr: "use np.linalg.cholesky(a.T @ a).T, which is the second factor but for signs, or "
    + ON_TENSORS.format("tg.linalg.qr"),
    np.linalg.lstsq: "solve the normal equations: np.linalg.solve(a.T @ a, a.T @ b)",
    np.linalg.pinv: "where the columns are independent, write np.linalg.inv(a.T @ a) @ a.T, or, for its product with b, "
    "np.linalg.solve(a.T @ a, a.T @ b)",
    np.linalg.cond: "write np.linalg.norm(a, p) * np.linalg.norm(np.linalg.inv(a), p), which is the same for p = 1 and np.inf",
    np.roots: "find a root by Newton's method in a loop, which follows the coefficients",
}
