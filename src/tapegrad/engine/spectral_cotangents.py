"""Cotangents of eigenvectors and singular vectors, seen from these: quotients by differences of the values.

Matrices are (batch, n, n), values (batch, n), of float64 and contiguous. Values that are equal give what is not finite.
"""

from tapegrad.compilation.jit import entry
from tapegrad.engine.memory import array_data, array_size, f64


@entry("int64(int64,int64,float64)")
def has_equal_values(px, n, bound):
    """Whether neighbouring values of one matrix differ by no more than so many parts of the largest one; nan counts as equal."""
    count = array_size(px)
    x = f64(array_data(px), count)
    for start in range(0, count, max(n, 1)):
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(x[start + j]))
        for j in range(1, n):
            if not abs(x[start + j] - x[start + j - 1]) > bound * largest:
                return 1
    return 0


@entry("int64(int64,int64,int64,int64,int64)")
def between_eigenvectors(pout, pvalues, pturned, pg, n):
    """The symmetric part of the quotients off the diagonal, and the cotangents of the eigenvalues on it."""
    size = array_size(pout)
    out, turned = f64(array_data(pout), size), f64(array_data(pturned), size)
    values, g = f64(array_data(pvalues), size // max(n, 1)), f64(array_data(pg), size // max(n, 1))
    for matrix in range(size // max(n * n, 1)):
        at, row = matrix * n * n, matrix * n
        for i in range(n):
            out[at + i * n + i] = g[row + i]
            for j in range(i):
                gap = values[row + j] - values[row + i]
                # Not before the division: equal values must give nan, not the zero that a difference of equal numbers would.
                mean = 0.5 * (turned[at + i * n + j] / gap - turned[at + j * n + i] / gap)
                out[at + i * n + j] = mean
                out[at + j * n + i] = mean
    return 0


@entry("int64(int64,int64,int64,int64,int64,int64)")
def between_singular_vectors(pout, pvalues, pleft, pright, pg, n):
    """The same of both kinds of singular vectors, each term by itself for the same reason."""
    size = array_size(pout)
    out, left, right = f64(array_data(pout), size), f64(array_data(pleft), size), f64(array_data(pright), size)
    values, g = f64(array_data(pvalues), size // max(n, 1)), f64(array_data(pg), size // max(n, 1))
    for matrix in range(size // max(n * n, 1)):
        at, row = matrix * n * n, matrix * n
        for i in range(n):
            for j in range(n):
                if i == j:
                    out[at + i * n + i] = g[row + i]
                else:
                    s, t = values[row + i], values[row + j]
                    gap = t * t - s * s
                    a, b = left[at + i * n + j] * t / gap - left[at + j * n + i] * t / gap, right[at + i * n + j] * s / gap
                    out[at + i * n + j] = a + (b - right[at + j * n + i] * s / gap)
    return 0
