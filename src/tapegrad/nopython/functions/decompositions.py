"""Decompositions of matrices of variables: values of Numba's own functions, derivatives of the text that `tapegrad.linalg` has."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.np import linalg

from tapegrad.linalg.factorisations import qr_cotangent
from tapegrad.linalg.least_squares import pinv_cotangent
from tapegrad.linalg.spectral import eigh_cotangent, svd_cotangent
from tapegrad.linalg.vector_gaps import TIES
from tapegrad.nopython.functions.tangent_calls import rows_by
from tapegrad.nopython.functions.tangent_programs import Part, Program, Result, Rows
from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.tape import matrix_programs as do
from tapegrad.nopython.tape.array_rows import with_rows
from tapegrad.nopython.tape.matrix_rows import product_rows
from tapegrad.nopython.tape.row_writing import primals
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.curved_tape import is_curved
from tapegrad.nopython.types.variable import has_variables

__all__ = ["DECOMPOSITIONS", "singular_values"]


@part
def tied(values):
    """Ordered values; those that are equal up to rounding are equal, as `tapegrad.linalg.vector_gaps.with_ties` has them."""
    bound = TIES * values.size * np.finfo(values.dtype).eps * max(abs(values[0]), abs(values[-1])) if values.size else 0.0
    found = values.copy()
    for k in range(1, values.size):
        if abs(values[k] - values[k - 1]) <= bound:
            found[k] = found[k - 1]
    return found


def eigh(tape, a):
    raise NotImplementedError


EIGENVECTORS = rows_by(Rows(eigh_cotangent, 2, (0, 1), Part(0), (Part(3), Part(2)), (Result(1, 0), Result(2, 1))))


@overload(eigh)
def _eigh(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.linalg.eigh(a)

    def impl(tape, a):
        values, vectors = np.linalg.eigh(np.ascontiguousarray(primals(a)))
        return EIGENVECTORS(tape, a, (values, vectors, tied(values)))

    return impl


def eigvalsh(tape, a):
    raise NotImplementedError


EIGENVALUES = rows_by(Rows(eigh_cotangent, 2, (0,), Part(0), (Part(2), Part(3)), (Result(1, 0),)))


@overload(eigvalsh)
def _eigvalsh(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.linalg.eigvalsh(a)

    def impl(tape, a):
        matrix = np.ascontiguousarray(primals(a))
        values, vectors = np.linalg.eigh(matrix)
        return EIGENVALUES(tape, a, (np.linalg.eigvalsh(matrix), tied(values), vectors))[0]

    return impl


def _by_form(asked: tuple[int, ...], u: int, s: int, vt: int, results: tuple[Result, ...]) -> list[Any]:
    """Rows for a matrix that is square, tall, or wide, which is tall when it is turned; arrays and outputs by their numbers.

    Vectors beyond those that have values are arbitrary, and constants.
    """

    def count(shapes: Any) -> Any:
        return shapes[s][0]

    left, values, right = Part(u, end=count), Part(s), Part(vt, turned=True, end=count)
    square, tall = (Rows(svd_cotangent, 3, asked, Part(0), (values, left, right), results, flags=(k, False)) for k in (False, True))
    wide = tall._replace(
        operand=Part(0, turned=True),
        known=(values, right, left),
        results=tuple(result._replace(tangent=(0, 2, 1)[result.tangent]) for result in results),
    )
    return [rows_by(rows) for rows in (square, tall, wide)]


def svd(tape, a, full_matrices=1):
    raise NotImplementedError


SQUARE, TALL, WIDE = _by_form((0, 1, 2), 1, 4, 3, (Result(1, 1), Result(2, 0), Result(3, 2, turned=True)))


@overload(svd)
def _svd(tape, a, full_matrices=1):
    if not has_variables(a):
        return lambda tape, a, full_matrices=1: np.linalg.svd(a, full_matrices)

    def impl(tape, a, full_matrices=1):
        u, s, vt = np.linalg.svd(np.ascontiguousarray(primals(a)), full_matrices)
        found = u, s, vt, tied(s)
        if a.shape[0] == a.shape[1]:
            return SQUARE(tape, a, found)
        return TALL(tape, a, found) if a.shape[0] > a.shape[1] else WIDE(tape, a, found)

    return impl


def singular_values(tape, a):
    """All of them, in descending order."""
    raise NotImplementedError


SQUARE_VALUES, TALL_VALUES, WIDE_VALUES = _by_form((0,), 2, 3, 4, (Result(1, 0),))


@overload(singular_values)
def _singular_values(tape, a):
    plain = linalg._compute_singular_values
    if not has_variables(a):
        return lambda tape, a: plain(a)

    def of_any_form(tape, a):
        values = np.ascontiguousarray(primals(a))
        u, s, vt = np.linalg.svd(values, False)
        return SQUARE_VALUES(tape, a, (plain(values), u, tied(s), vt))[0]

    def by_form(tape, a):
        values = np.ascontiguousarray(primals(a))
        u, s, vt = np.linalg.svd(values, False)
        if a.shape[0] == a.shape[1]:
            return SQUARE_VALUES(tape, a, (plain(values), u, tied(s), vt))[0]
        if a.shape[0] > a.shape[1]:
            return TALL_VALUES(tape, a, (plain(values), u, tied(s), vt))[0]
        return WIDE_VALUES(tape, a, (plain(values), u, tied(s), vt))[0]

    return by_form if is_curved(tape) else of_any_form  # first derivatives are one text for all


def qr(tape, a):
    raise NotImplementedError


def _other_columns(program: Program) -> None:
    """Those beyond the first factor's are products of it, turned, with those of the matrix."""
    left = program.add(do.TRANSPOSED, program.take(do.WITH_ROWS, Part(1), program.moved[0]))
    rest = program.product(left, program.take(do.COPIED, Part(0, first=_columns)))
    program.write(Part(2, first=_columns), rest, Part(-2, first=_columns))


def _columns(shapes: Any) -> Any:
    return shapes[1][1]


KNOWN_FACTORS, BOTH_FACTORS = (Part(1), Part(2, end=_columns)), (Result(1, 0), Result(2, 1))
FACTORS = rows_by(Rows(qr_cotangent, 2, (0, 1), Part(0, end=_columns), KNOWN_FACTORS, BOTH_FACTORS, more=_other_columns))


@overload(qr)
def _qr(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.linalg.qr(a)
    return lambda tape, a: FACTORS(tape, a, np.linalg.qr(np.ascontiguousarray(primals(a))))


INVERSE = rows_by(Rows(pinv_cotangent, 1, (0,), Part(0), (Part(1),), (Result(1, 0),), others=1))


def pinv(tape, a, rcond=1.0e-15):
    raise NotImplementedError


@overload(pinv)
def _pinv(tape, a, rcond=1.0e-15):
    if not has_variables(a):
        return lambda tape, a, rcond=1.0e-15: np.linalg.pinv(a, primals(rcond))
    return lambda tape, a, rcond=1.0e-15: INVERSE(tape, a, (np.linalg.pinv(np.ascontiguousarray(primals(a)), primals(rcond)),))[0]


def lstsq(tape, a, b, rcond=-1.0):
    raise NotImplementedError


@part
def misfits(a, x, b):
    """Sums of squares of what is left of each column."""
    left = np.dot(a, x) - b
    return (left * left).sum(0)


@overload(lstsq)
def _lstsq(tape, a, b, rcond=-1.0):
    if not has_variables(types.Tuple((a, b))):
        return lambda tape, a, b, rcond=-1.0: np.linalg.lstsq(a, b, primals(rcond))
    vector, recorded = b.ndim == 1, twin(misfits)

    def impl(tape, a, b, rcond=-1.0):
        matrix = np.ascontiguousarray(primals(a))
        x, sums, rank, s = np.linalg.lstsq(matrix, np.ascontiguousarray(primals(b)), primals(rcond))
        u, found, vt = np.linalg.svd(matrix, False)
        inverse = np.zeros((a.shape[1], a.shape[0]))
        for k in range(rank):
            for i in range(a.shape[1]):
                for j in range(a.shape[0]):
                    inverse[i, j] += vt[k, i] / found[k] * u[j, k]
        moved = product_rows(tape, INVERSE(tape, a, (inverse,))[0], b, x)
        values = with_rows(s, singular_values(tape, a))
        if sums.size == 0:
            return moved, with_rows(sums, sums), rank, values
        columns = np.expand_dims(b, 1) if vector else b
        solutions = np.expand_dims(moved, 1) if vector else moved
        return moved, with_rows(sums, recorded(tape, a, solutions, columns)), rank, values

    return impl


DECOMPOSITIONS: dict[Any, Any] = {
    np.linalg.eigh: eigh, np.linalg.eigvalsh: eigvalsh, np.linalg.svd: svd, np.linalg.qr: qr, np.linalg.pinv: pinv,
    np.linalg.lstsq: lstsq, linalg._compute_singular_values: singular_values,
}  # fmt: skip
