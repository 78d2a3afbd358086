"""Linear algebra on matrices of variables: recorded by the equations that define it, as loops, or refused by name.

Values are those of Numba's own functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from tapegrad.nopython.functions.allocation import converted
from tapegrad.nopython.functions.decompositions import DECOMPOSITIONS
from tapegrad.nopython.functions.determinants import det, slogdet
from tapegrad.nopython.functions.linear_systems import inv, solve
from tapegrad.nopython.numba_interface.linking import overload, part, register_jitable
from tapegrad.nopython.numba_interface.optional_arguments import left_away
from tapegrad.nopython.tape.array_rows import with_rows
from tapegrad.nopython.tape.row_writing import primals
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.variable import has_narrow, has_variables, variable

__all__ = ["LINEAR_ALGEBRA", "WITHOUT_DERIVATIVE"]


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
    if has_narrow(a):

        def of_float32(tape, a, n):
            values = np.linalg.matrix_power(np.ascontiguousarray(primals(a)), n)
            return with_rows(np.asarray(values), matrix_power(tape, converted(a, variable), n))

        return of_float32
    recording = twin(power)
    known = n.literal_value if isinstance(n, types.IntegerLiteral) else None

    def from_one(tape, a, n):
        return recording(tape, np.ascontiguousarray(a), n)

    def with_inverse(tape, a, n):
        return recording(tape, np.ascontiguousarray(inv(tape, a) if n < 0 else a), abs(n))

    raised = register_jitable(from_one if known and known > 0 else with_inverse)

    def impl(tape, a, n):
        values = np.linalg.matrix_power(np.ascontiguousarray(primals(a)), n)
        out = np.zeros(values.shape, variable)
        return with_rows(np.asarray(values), raised(tape, a, n) if n != 0 else out)

    return impl


@part
def factor(a, known):
    """The lower triangular factor by the lower half of a matrix, whose elements are known; the derivative goes to both halves."""
    n = a.shape[0]
    out = np.zeros((n, n))
    for j in range(n):
        for i in range(j, n):
            rest = 0.5 * (a[i, j] + a[j, i]) + 0.5 * (known[i, j] - known[j, i])
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
        known = primals(a)
        return with_rows(np.linalg.cholesky(np.ascontiguousarray(known)), recording(tape, a, known))

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
} | DECOMPOSITIONS  # fmt: skip

# What Numba hands over to LAPACK as memory, and what to write in its place.
WITHOUT_DERIVATIVE: dict[Any, str] = {
    np.linalg.eig: "for a symmetric matrix write np.linalg.eigh",
    np.linalg.eigvals: "for a symmetric matrix write np.linalg.eigvalsh",
    np.roots: "find a root by Newton's method in a loop, which follows the coefficients",
}
