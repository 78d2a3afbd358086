"""Lengths of vectors of two, with the bits of glibc's `hypot` since 2.35: a root, and one step that corrects it.

C. F. Borges, "An improved algorithm for hypot(a, b)", 2019: the error of the root of the sum of squares is found from differences
that are exact where the root is near one of the operands, or nearly so. Operands that would have to be scaled are left to the C
library, a block at a time.
"""

from math import hypot, sqrt

from tapegrad.compilation.jit import inline


@inline
def are_lengths_quick(x, y, count):
    """Whether no square overflows, and none that counts is inexact."""
    fine = True
    for j in range(count):
        a, b = abs(x[j]), abs(y[j])
        larger, smaller = max(a, b), min(a, b)
        counts = smaller * 18014398509481984.0 > larger
        fine &= (larger <= 6.703903964971299e153) & ((smaller >= 6.717876107567089e-139) | ~counts) & (a + b == a + b)
    return fine


@inline
def quick_lengths(out, x, y, count):
    """One block; no branches, so that several elements are done at once."""
    for j in range(count):
        a, b = abs(x[j]), abs(y[j])
        larger, smaller = max(a, b), min(a, b)
        root = sqrt(larger * larger + smaller * smaller)
        over, apart = root - smaller, larger - smaller
        near = larger * (2.0 * over - larger) + (over - 2.0 * apart) * over
        rest = root - larger
        far = 2.0 * rest * (larger - 2.0 * smaller) + ((4.0 * rest - smaller) * smaller + rest * rest)
        length = root - (near if root <= 2.0 * smaller else far) / (2.0 * root)
        out[j] = larger + smaller if smaller * 18014398509481984.0 <= larger else length


@inline
def lengths(out, x, y, count):
    """One block, by the C library if one of its elements needs that."""
    if are_lengths_quick(x, y, count):
        quick_lengths(out, x, y, count)
    else:
        for j in range(count):
            out[j] = hypot(x[j], y[j])
