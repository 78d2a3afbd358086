"""Operations on matrices of variables that derivatives of decompositions are made of.

All matrices are of one type, in C order, constants being variables without a row, and a vector is a matrix of one row. So each of
these is compiled once, whatever is put together of them.
"""

from __future__ import annotations

import numpy as np

from tapegrad.nopython.functions.half_way import half_way
from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.tape.array_rows import carried_rows, product_rows, residual_rows
from tapegrad.nopython.tape.row_writing import primal, primals, row, with_row
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.curved_tape import is_curved, straight
from tapegrad.nopython.types.variable import has_variables, variable

__all__ = [
    "CODES",
    "carried",
    "diagonal",
    "elementwise",
    "identity",
    "lifted",
    "matrix_of",
    "matrix_of_rows",
    "middle",
    "number",
    "off_diagonal",
    "product",
    "residual",
    "solved",
    "step",
    "transposed",
    "triangle",
    "triangular",
    "vector_of_rows",
]

CODES = {"+": 0, "-": 1, "*": 2, "/": 3}


def lifted(values, columns):
    """A vector, or the first columns of a matrix, as constants."""
    raise NotImplementedError


@overload(lifted)
def _lifted(values, columns):
    def vector(values, columns):
        out = np.empty((1, columns), variable)
        for j in range(columns):
            out[0, j] = with_row(values[j], 0)
        return out

    def matrix(values, columns):
        out = np.empty((values.shape[0], columns), variable)
        for i in range(values.shape[0]):
            for j in range(columns):
                out[i, j] = with_row(values[i, j], 0)
        return out

    return vector if values.ndim == 1 else matrix


@part
def matrix_of(a):
    """A copy of a matrix of variables, in C order."""
    out = np.empty(a.shape, variable)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j]
    return out


@part
def step(a):
    """What a matrix of variables changes by: zeros, with its rows."""
    out = np.empty(a.shape, variable)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = with_row(0.0, row(a[i, j]))
    return out


@part
def number(value):
    """A number as a matrix of one element."""
    out = np.empty((1, 1), variable)
    out[0, 0] = with_row(value, 0)
    return out


@part
def identity(n):
    """The identity matrix."""
    out = np.empty((n, n), variable)
    for i in range(n):
        for j in range(n):
            out[i, j] = with_row(1.0 if i == j else 0.0, 0)
    return out


@part
def transposed(a):
    """A matrix, turned."""
    out = np.empty((a.shape[1], a.shape[0]), variable)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j, i] = a[i, j]
    return out


@part
def off_diagonal(a):
    """A matrix with zeros on its diagonal."""
    out = a.copy()
    for k in range(a.shape[0]):
        out[k, k] = with_row(0.0, 0)
    return out


@part
def diagonal(a):
    """The diagonal of a matrix."""
    out = np.empty((1, a.shape[0]), variable)
    for k in range(a.shape[0]):
        out[0, k] = a[k, k]
    return out


@part
def triangle(a, upper, strict):
    """One half of a matrix, and zeros."""
    out = a.copy()
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if (j < i if upper else j > i) or (i == j and strict):
                out[i, j] = with_row(0.0, 0)
    return out


def middle(tape, a, moved):
    """A matrix that moves half as far as says another one."""
    raise NotImplementedError


@overload(middle)
def _middle(tape, a, moved):
    def impl(tape, a, moved):
        out = np.empty(a.shape, variable)
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                out[i, j] = with_row(primal(a[i, j]), row(half_way(tape, moved[i, j])))
        return out

    return impl


def product(tape, a, b):
    """A product of matrices."""
    raise NotImplementedError


@overload(product)
def _product(tape, a, b):
    def impl(tape, a, b):
        values = np.zeros((a.shape[0], b.shape[1]))
        for i in range(a.shape[0]):
            for k in range(a.shape[1]):
                for j in range(b.shape[1]):
                    values[i, j] += primal(a[i, k]) * primal(b[k, j])
        return product_rows(tape, a, b, values)

    return impl


def carried(tape, x, a):
    """``x @ a`` where a is a tangent."""
    raise NotImplementedError


@overload(carried)
def _carried(tape, x, a):
    return lambda tape, x, a: carried_rows(tape, x, a)


def residual(tape, a, x, b):
    """``b - a @ x`` where a and b are tangents."""
    raise NotImplementedError


@overload(residual)
def _residual(tape, a, x, b):
    return lambda tape, a, x, b: residual_rows(tape, a, x, b)


@part(error_model="numpy")
def inverse_of_triangle(a, upper):
    """The inverse of a triangular matrix; not finite where there is none."""
    n = a.shape[0]
    out = np.zeros((n, n))
    for j in range(n):
        for place in range(n):
            i = n - 1 - place if upper else place
            rest = 1.0 if i == j else 0.0
            for k in range(i + 1, n) if upper else range(i):
                rest -= a[i, k] * out[k, j]
            out[i, j] = rest / a[i, i]
    return out


def solved(tape, system, b):
    """The solution of equations whose right side is a tangent, by the matrix and its inverse."""
    raise NotImplementedError


@overload(solved)
def _solved(tape, system, b):
    def first(tape, system, b):
        return carried_rows(tape, system[1], b)

    def second(tape, system, b):
        # The inverse moves too, by the first term of Neumann's series.
        a, inverse = system
        return carried(tape, inverse, residual(tape, a, carried(straight(tape), inverse, b), b))

    return second if is_curved(tape) and has_variables(system[0]) else first


@part
def triangular(a, upper):
    """A triangular matrix and its inverse."""
    return a, inverse_of_triangle(primals(a), upper)


def elementwise(tape, a, b, code):
    """Sum, difference, product or quotient of the elements of two matrices, of which one may have one row or column only."""
    raise NotImplementedError


@overload(elementwise)
def _elementwise(tape, a, b, code):
    add, subtract = twin(part(lambda x, y: x + y)), twin(part(lambda x, y: x - y))
    multiply, divide = twin(part(lambda x, y: x * y)), twin(part(lambda x, y: x / y, error_model="numpy"))

    def impl(tape, a, b, code):
        n, m = max(a.shape[0], b.shape[0]), max(a.shape[1], b.shape[1])
        out = np.empty((n, m), variable)
        for i in range(n):
            for j in range(m):
                x = a[i if a.shape[0] > 1 else 0, j if a.shape[1] > 1 else 0]
                y = b[i if b.shape[0] > 1 else 0, j if b.shape[1] > 1 else 0]
                if code == 0:
                    out[i, j] = add(tape, x, y)
                elif code == 1:
                    out[i, j] = subtract(tape, x, y)
                elif code == 2:
                    out[i, j] = multiply(tape, x, y)
                else:
                    out[i, j] = divide(tape, x, y)
        return out

    return impl


def vector_of_rows(values, moved):
    """A vector with these primals, and the rows of a matrix of one row."""
    raise NotImplementedError


@overload(vector_of_rows)
def _vector_of_rows(values, moved):
    def impl(values, moved):
        out = np.empty(values.size, variable)
        for k in range(values.size):
            out[k] = with_row(values[k], row(moved[0, k]))
        return out

    return impl


def matrix_of_rows(values, moved):
    """A matrix with these primals, and the rows of another one, which may have fewer rows and columns."""
    raise NotImplementedError


@overload(matrix_of_rows)
def _matrix_of_rows(values, moved):
    in_order = values.layout != "F"

    def impl(values, moved):
        out = np.empty(values.shape, variable) if in_order else np.empty(values.shape[::-1], variable).T
        for i in range(values.shape[0]):
            for j in range(values.shape[1]):
                known = i < moved.shape[0] and j < moved.shape[1]
                out[i, j] = with_row(values[i, j], row(moved[i, j]) if known else np.int32(0))
        return out

    return impl
