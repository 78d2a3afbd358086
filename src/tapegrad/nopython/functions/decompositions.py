"""Decompositions of matrices of variables: values of Numba's own functions, derivatives of the text that `tapegrad.linalg` has.

First derivatives are what the text says at the values, and second ones what it says half way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.np import linalg

from tapegrad.linalg.factorisations import qr_cotangent
from tapegrad.linalg.least_squares import pinv_cotangent
from tapegrad.linalg.spectral import eigh_cotangent, svd_cotangent
from tapegrad.nopython.functions.matrix_operations import (
    lifted,
    matrix_of,
    matrix_of_rows,
    middle,
    step,
    transposed,
    vector_of_rows,
)
from tapegrad.nopython.functions.transposed import tangents
from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.tape.array_rows import product_rows, with_rows
from tapegrad.nopython.tape.row_writing import primals
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.curved_tape import is_curved, straight
from tapegrad.nopython.types.variable import has_variables

__all__ = ["DECOMPOSITIONS", "singular_values"]


def _moved(cotangent: Any, outputs: int, asked: tuple[int, ...], others: int = 0, flags: tuple[Any, ...] = ()) -> Any:
    """A function of the tape, a matrix and the outputs of an operation, lifted, that gives the tangents of some outputs.

    Of the operand itself the text needs `others`, which is one or nothing.
    """
    every = tuple(range(outputs))
    names = [f"z{k}" for k in every]
    head = f"(tape, a, {', '.join(names)}):"
    half = ["middle(tape, lifted(primals(a), a.shape[1]), d)"] * others + [f"middle(tape, z{k}, e{k})" for k in every]
    known = ", ".join([*["lifted(primals(a), a.shape[1])"] * others, *names])
    first = [f"def moved{head}", "    d = step(a)", f"    return wanted(tape, {known}, d)"]
    second = [
        *first[:2],
        f"    {', '.join(f'e{k}' for k in every)}, = whole(straight(tape), {known}, d)",
        f"    return wanted(tape, {', '.join(half)}, d)",
    ]

    def implementation(tape: Any) -> Any:
        space: dict[str, Any] = {made.__name__: made for made in (lifted, middle, primals, straight)}
        space |= {"step": step, "__name__": __name__, "wanted": tangents(cotangent, outputs, asked, others, flags)}
        if is_curved(tape):
            space["whole"] = tangents(cotangent, outputs, every, others, flags)
        exec(compile("\n".join(second if is_curved(tape) else first), f"<tapegrad {cotangent.__name__}>", "exec"), space)
        return space["moved"]

    space: dict[str, Any] = {"implementation": implementation, "__name__": __name__}
    lines = [f"def call{head}", "    raise NotImplementedError", f"def define{head}", "    return implementation(tape)"]
    exec(compile("\n".join(lines), f"<tapegrad {cotangent.__name__}>", "exec"), space)
    overload(space["call"])(space["define"])
    return space["call"]


EIGENVALUES, EIGENVECTORS = (_moved(eigh_cotangent, 2, asked) for asked in ((0,), (0, 1)))
VALUES, VECTORS = (
    {tall: _moved(svd_cotangent, 3, asked, flags=(tall, False)) for tall in (False, True)} for asked in ((0,), (0, 1, 2))
)
INVERSE = _moved(pinv_cotangent, 1, (0,), others=1)
FACTORS = _moved(qr_cotangent, 2, (0, 1))


def eigh(tape, a):
    raise NotImplementedError


@overload(eigh)
def _eigh(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.linalg.eigh(a)

    def impl(tape, a):
        values, vectors = np.linalg.eigh(np.ascontiguousarray(primals(a)))
        moved = EIGENVECTORS(tape, matrix_of(a), lifted(values, values.size), lifted(vectors, values.size))
        return vector_of_rows(values, moved[0]), matrix_of_rows(vectors, moved[1])

    return impl


def eigvalsh(tape, a):
    raise NotImplementedError


@overload(eigvalsh)
def _eigvalsh(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.linalg.eigvalsh(a)

    def impl(tape, a):
        matrix = np.ascontiguousarray(primals(a))
        values, vectors = np.linalg.eigh(matrix)
        moved = EIGENVALUES(tape, matrix_of(a), lifted(values, values.size), lifted(vectors, values.size))
        return vector_of_rows(np.linalg.eigvalsh(matrix), moved[0])

    return impl


def _of_form(table: dict[bool, Any], values_alone: bool) -> Any:
    """What is moved of a matrix that is square, tall, or wide, which is tall when it is turned.

    Of the values alone, first derivatives are one text for all.
    """
    square, tall = table[False], table[True]

    def of_form(tape, a, s, u, v):
        raise NotImplementedError

    @overload(of_form)
    def define(tape, a, s, u, v):
        def values(tape, a, s, u, v):
            if a.shape[0] == a.shape[1]:
                return square(tape, matrix_of(a), s, u, v)
            if a.shape[0] > a.shape[1]:
                return tall(tape, matrix_of(a), s, u, v)
            return tall(tape, transposed(matrix_of(a)), s, v, u)

        def vectors(tape, a, s, u, v):
            if a.shape[0] == a.shape[1]:
                return square(tape, matrix_of(a), s, u, v)
            if a.shape[0] > a.shape[1]:
                return tall(tape, matrix_of(a), s, u, v)
            turned = tall(tape, transposed(matrix_of(a)), s, v, u)
            return turned[0], turned[2], turned[1]

        if not values_alone:
            return vectors
        return values if is_curved(tape) else lambda tape, a, s, u, v: square(tape, matrix_of(a), s, u, v)

    return of_form


MOVED_VALUES, MOVED_VECTORS = _of_form(VALUES, True), _of_form(VECTORS, False)


def svd(tape, a, full_matrices=1):
    raise NotImplementedError


@overload(svd)
def _svd(tape, a, full_matrices=1):
    if not has_variables(a):
        return lambda tape, a, full_matrices=1: np.linalg.svd(a, full_matrices)

    def impl(tape, a, full_matrices=1):
        u, s, vt = np.linalg.svd(np.ascontiguousarray(primals(a)), full_matrices)
        moved = MOVED_VECTORS(tape, a, lifted(s, s.size), lifted(u, s.size), lifted(vt.T, s.size))
        # Vectors beyond those that have values are arbitrary, and constants.
        return matrix_of_rows(u, moved[1]), vector_of_rows(s, moved[0]), matrix_of_rows(vt, transposed(moved[2]))

    return impl


def singular_values(tape, a):
    """All of them, in descending order."""
    raise NotImplementedError


@overload(singular_values)
def _singular_values(tape, a):
    plain = linalg._compute_singular_values
    if not has_variables(a):
        return lambda tape, a: plain(a)

    def impl(tape, a):
        values = np.ascontiguousarray(primals(a))
        u, s, vt = np.linalg.svd(values, False)
        return vector_of_rows(plain(values), MOVED_VALUES(tape, a, lifted(s, s.size), lifted(u, s.size), lifted(vt.T, s.size))[0])

    return impl


def qr(tape, a):
    raise NotImplementedError


@overload(qr)
def _qr(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.linalg.qr(a)

    def impl(tape, a):
        q, r = np.linalg.qr(np.ascontiguousarray(primals(a)))
        m = q.shape[1]
        moved = FACTORS(tape, matrix_of(a[:, :m]), lifted(q, m), lifted(r, m))
        left, right = matrix_of_rows(q, moved[0]), matrix_of_rows(r, moved[1])
        if r.shape[1] > m:  # the other columns are products of the first factor with those of the matrix
            rest = product_rows(tape, left.T, a[:, m:], r[:, m:])
            for i in range(m):
                for j in range(m, r.shape[1]):
                    right[i, j] = rest[i, j - m]
        return left, right

    return impl


def inverse_of_rank(tape, a, inverse):
    """The pseudo-inverse, which is this one."""
    raise NotImplementedError


@overload(inverse_of_rank)
def _inverse_of_rank(tape, a, inverse):
    return lambda tape, a, inverse: matrix_of_rows(inverse, INVERSE(tape, matrix_of(a), lifted(inverse, a.shape[0]))[0])


def pinv(tape, a, rcond=1.0e-15):
    raise NotImplementedError


@overload(pinv)
def _pinv(tape, a, rcond=1.0e-15):
    if not has_variables(a):
        return lambda tape, a, rcond=1.0e-15: np.linalg.pinv(a, primals(rcond))
    return lambda tape, a, rcond=1.0e-15: inverse_of_rank(tape, a, np.linalg.pinv(np.ascontiguousarray(primals(a)), primals(rcond)))


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
        moved = product_rows(tape, inverse_of_rank(tape, a, inverse), b, x)
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
