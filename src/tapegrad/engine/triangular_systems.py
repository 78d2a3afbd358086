"""Small triangular equations of a batch by substitution, and what the factors of an elimination hand back to their matrix.

Matrices are contiguous, of float64. Rows of a right side are worked on as wholes: these are the loops that are vectorised.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.elimination import subtract_multiple
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, f64, i64
from tapegrad.engine.runs import copy_run


@inline
def solve_on_the_left(a, row, column, x, n, k, upper, unit):
    """``a @ X = B``: what each unknown row contributes is taken from the rows that wait for it."""
    for step in range(n):
        j = n - 1 - step if upper else step
        known = f64(x + 8 * j * k, k)
        if not unit:
            pivot = a[j * row + j * column]
            for c in range(k):
                known[c] = known[c] / pivot
        first, last = (0, j) if upper else (j + 1, n)
        for i in range(first, last):
            subtract_multiple(f64(x + 8 * i * k, k), known, a[i * row + j * column], k)


@inline
def solve_on_the_right(a, row, column, x, n, upper, unit):
    """``x @ a = b`` for one row."""
    for step in range(n):
        j = step if upper else n - 1 - step
        if not unit:
            x[j] = x[j] / a[j * row + j * column]
        known = x[j]
        first, last = (j + 1, n) if upper else (0, j)
        for i in range(first, last):
            x[i] -= known * a[j * row + i * column]


@entry("int64(int64,int64,int64,int64,int64)")
def substitute_triangles(px, pa, n, k, options):
    """Solutions in the place of right sides, of n rows and k columns, or with `IS_LEFT` unset of k rows and n columns.

    `OF_UPPER` says which triangle of the matrices is read, and `IS_TURNED` that the array holds their transposes.
    """
    a, x, row = array_data(pa), array_data(px), 1 if options & IS_TURNED else n
    upper, unit = options & OF_UPPER != 0, options & HAS_ONES != 0
    for _ in range(array_size(px) // max(n * k, 1)):
        matrix = f64(a, n * n)
        if options & IS_LEFT:
            solve_on_the_left(matrix, row, n + 1 - row, x, n, k, upper, unit)
        else:
            for r in range(k):
                solve_on_the_right(matrix, row, n + 1 - row, f64(x + 8 * r * n, n), n, upper, unit)
        a += 8 * n * n
        x += 8 * n * k
    return 0


@inline
def fold_rows_below(g, found, m, n):
    """Cotangents of the rows below the square of a tall matrix, and what they take from that of the upper triangle."""
    for i in range(n, m):
        x, lower = f64(g + 8 * i * n, n), f64(found + 8 * i * n, n)
        solve_on_the_right(f64(found, n * n), 1, n, x, n, False, False)
        for r in range(n):
            subtract_multiple(f64(g + 8 * (r * n + r), n - r), f64(g + 8 * (i * n + r), n - r), lower[r], n - r)


@inline
def fold_columns_beside(g, found, m, n):
    """Cotangents of the columns beside the square of a wide matrix, and what they take from that of the lower triangle."""
    rest = n - m
    for step in range(m):
        j = m - 1 - step
        known = f64(g + 8 * (j * n + m), rest)
        factors = f64(found + 8 * j * n, m)
        for i in range(j):
            subtract_multiple(f64(g + 8 * (i * n + m), rest), known, factors[i], rest)
    for i in range(m):
        given, out = f64(g + 8 * (i * n + m), rest), f64(g + 8 * i * n, m)
        for j in range(i):
            values, total = f64(found + 8 * (j * n + m), rest), 0.0
            for c in range(rest):
                total += given[c] * values[c]
            out[j] -= total


@inline
def square_back(g, found, n, step):
    """The cotangent of a square matrix in the place of that of its two triangles, which lie in rows `step` elements apart."""
    for i in range(n):  # the lower triangle's share, on the left, and below the diagonal only
        out = f64(g + 8 * i * step, i)
        for r in range(i + 1, n):
            factor, values = f64(found + 8 * r * step, n)[i], f64(g + 8 * r * step, i)
            for j in range(i):
                out[j] += factor * values[j]
    for i in range(n):  # the upper triangle's share, on the right, and above the diagonal
        for j in range(i, n):
            given, values, total = f64(g + 8 * (i * step + j), n - j), f64(found + 8 * (j * step + j), n - j), 0.0
            for c in range(n - j):
                total += given[c] * values[c]
            given[0] = total
    for below in range(n):
        j = n - 1 - below
        known, factors = f64(g + 8 * j * step, n), f64(found + 8 * j * step, n)
        for i in range(j):
            subtract_multiple(f64(g + 8 * i * step, n), known, factors[i], n)
    upper = f64(found, n * step)
    for i in range(n):
        solve_on_the_right(upper, 1, step, f64(g + 8 * i * step, n), n, False, False)


@entry("int64(int64,int64,int64,int64,int64,int64)")
def cotangents_of_factors(pout, pg, pfound, pback, m, n):
    """The cotangent of matrices from that of both their triangles in one, which is overwritten.

    `back` says which row of that order each row of the whole batch is. The answer is 1, with nothing done, if a pivot is zero.
    """
    size, found, g, out = array_size(pg), array_data(pfound), array_data(pg), array_data(pout)
    count, k = size // max(m * n, 1), min(m, n)
    values = f64(found, size)
    for matrix in range(count):
        for j in range(k):
            if values[matrix * m * n + j * (n + 1)] == 0.0:
                return 1
    for matrix in range(count):
        at, factors = g + 8 * matrix * m * n, found + 8 * matrix * m * n
        if m > n:
            fold_rows_below(at, factors, m, n)
        elif n > m:
            fold_columns_beside(at, factors, m, n)
        square_back(at, factors, k, n)
    back = i64(array_data(pback), count * m)
    for r in range(count * m):
        copy_run(out + 8 * r * n, g + 8 * back[r] * n, n, 1, 8)
    return 0
