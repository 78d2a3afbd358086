"""Determinants, recorded as those of matrices that are diagonal where they are recorded.

``left @ a @ right`` is such a matrix: with the inverse on the left the unit matrix, and with singular vectors on both sides that
of the singular values, which may be zero. Near a diagonal matrix all but the product of the diagonal, and those with a pair of
elements beside it in the place of two on it, is of the third order: nothing is divided by what may be zero.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic
from numba.np.arrayobj import make_array

from tapegrad.linalg.determinants import LARGEST_CONDITION
from tapegrad.linalg.eliminated_cofactors import unit_scales
from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.tape.array_rows import combined, with_rows
from tapegrad.nopython.tape.matrix_rows import product_row, product_rows
from tapegrad.nopython.tape.row_instructions import call_python
from tapegrad.nopython.tape.row_writing import end_row, primals, put, put_second, row, start_row, with_row
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.curved_tape import CurvedTape
from tapegrad.nopython.types.variable import has_variables, variable

__all__ = ["det", "slogdet"]

I64 = ir.IntType(64)
LARGEST = LARGEST_CONDITION[8]
SYMBOL = "tapegrad_diagonal_form"  # compiled code that is kept on disk asks for it by name


def _diagonal_form(itself: Any, address: int) -> None:
    """Factors that make a matrix diagonal, without changing its determinant; at the address stand its size and where it is.

    The left one takes its place; the right one and the diagonal stand behind it. In Python, since it is asked for at single points
    only, and takes longer to compile than all the rest.
    """
    size, place = (ctypes.c_int64 * 2).from_address(address)
    found = np.frombuffer((ctypes.c_double * (2 * size * size + size)).from_address(place)).reshape(2 * size + 1, size)
    left, right, diagonal = found[:size], found[size:-1], found[-1]
    if not np.isfinite(left).all():
        found[...] = np.nan
        return
    rows, columns = unit_scales(left)
    u, values, vt = np.linalg.svd(np.ldexp(left, rows[:, None] + columns))
    # Each row takes an even share of the scale: products of all elements but one must not underflow before the determinant does.
    each, more = divmod(int(rows.sum() + columns.sum()), max(size, 1))
    shares = each + (np.arange(size) < more)
    left[...], right[...] = np.ldexp(u.T, rows - shares[:, None]), np.ldexp(vt.T, columns[:, None])
    diagonal[...] = np.ldexp(values, -shares)
    for first in (left[:1], diagonal[:1]):
        first *= np.rint(np.linalg.det(u) * np.linalg.det(vt))


llvm.add_symbol(SYMBOL, id(_diagonal_form))


@intrinsic
def diagonal_form(typingctx: Any, matrices: Any) -> Any:
    """Replace a matrix, behind which there is room, by a left factor, a right one, and the diagonal."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        given = make_array(matrices)(context, builder, args[0])
        words = cgutils.alloca_once(builder, I64, size=2)
        size = cgutils.unpack_tuple(builder, given.shape, 2)[1]
        for k, word in enumerate((size, builder.ptrtoint(given.data, I64))):
            builder.store(word, builder.gep(words, [I64(k)]))
        function = builder.ptrtoint(context.get_c_value(builder, ir.IntType(8), SYMBOL), I64)
        call_python(context, builder, function, function, builder.ptrtoint(words, I64))
        return context.get_dummy_value()

    return types.none(matrices), write


@part
def by_inverse(a, z, found):
    """Whether a matrix of determinant `z` has an accurate inverse; it and the diagonal are written where `diagonal_form` does."""
    inverse = np.linalg.inv(a)
    squares, of_inverse = 0.0, 0.0
    for i in range(a.shape[0]):
        found[2 * a.shape[0], i] = 1.0 if i else z
        for j in range(a.shape[0]):
            squares += a[i, j] * a[i, j]
            of_inverse += inverse[i, j] * inverse[i, j]
            found[i, j] = inverse[i, j] if i else inverse[i, j] * z
    return math.sqrt(squares) * math.sqrt(of_inverse) < LARGEST


@part
def others(diagonal, i, j):
    """Product of all elements but two, or but one."""
    out = 1.0
    for k in range(diagonal.size):
        if k != i and k != j:
            out *= diagonal[k]
    return out


def near_diagonal(tape, left, a, diagonal):
    """The row of the determinant of ``left @ a``, which is a diagonal matrix."""
    raise NotImplementedError


@overload(near_diagonal)
def _near_diagonal(tape, left, a, diagonal):
    def first(tape, left, a, diagonal):
        items, weights = np.empty(diagonal.size, variable), np.empty(diagonal.size)
        for k in range(diagonal.size):
            items[k] = with_row(diagonal[k], product_row(tape, left[k], a[:, k]))
            weights[k] = others(diagonal, k, k)
        return combined(tape, items, weights)

    def second(tape, left, a, diagonal):
        n = diagonal.size
        items = product_rows(tape, left, a, np.zeros((n, n)))
        start = start_row(tape, n, n * n)
        end = start
        for k in range(n):
            if row(items[k, k]) != 0:
                put(tape, end, row(items[k, k]), others(diagonal, k, k))
                end += 1
        for i in range(n):
            for j in range(i):
                weight = others(diagonal, i, j)
                if row(items[i, i]) != 0 and row(items[j, j]) != 0:
                    end = put_second(tape, end, row(items[i, i]), row(items[j, j]), weight)
                if row(items[i, j]) != 0 and row(items[j, i]) != 0:
                    end = put_second(tape, end, row(items[i, j]), row(items[j, i]), -weight)
        return end_row(tape, start, end)

    return second if isinstance(tape, CurvedTape) else first


def det(tape, a):
    raise NotImplementedError


@overload(det)
def _det(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.linalg.det(a)

    def impl(tape, a):
        values = primals(a)
        n, z = values.shape[0], np.linalg.det(values)
        found = np.empty((2 * n + 1, n))
        if z == 0.0 or not by_inverse(values, z, found):
            for i in range(n):  # an assignment to a slice takes seconds to compile
                for j in range(n):
                    found[i, j] = values[i, j]
            diagonal_form(found)
            a = product_rows(tape, a, found[n : 2 * n], np.zeros((n, n)))
        else:
            a = with_rows(np.zeros((n, n)), a)
        return with_row(z, near_diagonal(tape, found[:n], a, found[2 * n]))

    return impl


def slogdet(tape, a):
    raise NotImplementedError


@overload(slogdet)
def _slogdet(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.linalg.slogdet(a)
    logarithm = twin(part(lambda z: np.log(z)))

    def impl(tape, a):
        values = primals(a)
        sign, value = np.linalg.slogdet(values)
        if sign == 0.0:
            return sign, with_row(value, combined(tape, a, np.inf))
        ratio = near_diagonal(tape, np.linalg.inv(values), a, np.ones(values.shape[0]))
        return sign, with_row(value, row(logarithm(tape, with_row(1.0, ratio))))

    return impl
