"""A triangle of each matrix of a contiguous array, and zeros in the place of the rest."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, array_type_number, f64, item_bytes
from tapegrad.engine.runs import clear_run, copy_run, set_all
from tapegrad.engine.structs import doubles_at

INFINITE = float("inf")


@inline
def part_of_row(row, columns, diagonal, upper):
    """Where the part of a row begins and ends that is on and above a diagonal, or without `upper` on and below it."""
    edge = row + diagonal  # the last column below or on the diagonal
    low = min(max(edge, 0), columns) if upper != 0 else 0
    return low, columns if upper != 0 else min(max(edge + 1, 0), columns)


@entry("int64(int64,int64,int64,int64,int64,int64)")
def copy_triangles(pz, px, rows, columns, diagonal, upper):
    """The elements on and above a diagonal, or without `upper` on and below it, of any dtype; of float64, one may serve for all."""
    wide, to, at = item_bytes(array_type_number(pz)), array_data(pz), array_data(px)
    is_spread = array_size(px) == 1 and array_size(pz) > 1
    for row in range(array_size(pz) // max(columns, 1)):
        low, high = part_of_row(row % rows, columns, diagonal, upper)
        clear_run(to, low * wide)
        if is_spread:
            set_all(f64(to + low * wide, high - low), high - low, f64(at, 1)[0])
        elif to != at:
            copy_run(to + low * wide, at + low * wide, high - low, 1, wide)
        clear_run(to + high * wide, (columns - high) * wide)
        to += columns * wide
        if not is_spread:
            at += columns * wide
    return 0


@inline
def negate_part(z, y, factor, columns, low, high):
    """A row of the negative of a product, each element a sum from zero on as in the BLAS, with zeros beside a part of it."""
    for j in range(low):
        z[j] = 0.0
    for j in range(low, high):
        z[j] = -(factor * y[j] + 0.0)
    for j in range(high, columns):
        z[j] = 0.0


@entry("int64(int64,int64,int64,int64,int64,int64,int64)")
def negative_products(pz, pu, pv, rows, columns, diagonal, upper):
    """The negatives of products of columns u and rows v, of a triangle of each matrix as `copy_triangles` has it."""
    at, v = array_data(pz), array_data(pv)
    for s in range(array_size(pu) // max(rows, 1)):
        u = f64(array_data(pu) + 8 * s * rows, rows)
        for i in range(rows):
            low, high = part_of_row(i, columns, diagonal, upper)
            negate_part(f64(at, columns), f64(v, columns), u[i], columns, low, high)
            at += 8 * columns
        v += 8 * columns
    return 0


@entry("int64(int64,int64,int64,int64,int64)")
def negate_triangles(pz, rows, columns, diagonal, upper):
    """The negative of a triangle of float64 matrices in their place."""
    at = array_data(pz)
    for row in range(array_size(pz) // max(columns, 1)):
        low, high = part_of_row(row % rows, columns, diagonal, upper)
        z = f64(at, columns)
        clear_run(at, low * 8)
        for j in range(low, high):
            z[j] = -z[j]
        clear_run(at + high * 8, (columns - high) * 8)
        at += columns * 8
    return 0


@entry("int64(int64,int64,int64,int64)")
def upper_systems(pz, px, n, options):
    """Upper triangles of float64 matrices, with zeros below, for substitution; of a lower triangle from its end.

    Options are those of substitution: which triangle is read, whether the array holds transposes, whether the diagonal are ones.
    """
    is_upper, is_turned, has_ones = options & OF_UPPER != 0, options & IS_TURNED != 0, options & HAS_ONES != 0
    target, source = doubles_at(array_data(pz)), doubles_at(array_data(px))
    for whole in range(array_size(pz) // max(n, 1)):
        i = whole % n
        start = (whole - i) * n
        for j in range(n):
            row, column = (i, j) if is_upper else (n - 1 - i, n - 1 - j)
            place = start + (column * n + row if is_turned else row * n + column)
            value = source[place] if j >= i else 0.0
            target[start + i * n + j] = 1.0 if has_ones and i == j else value
    return 0


@entry("int64(int64)")
def has_infinities(px):
    """Whether an element of a contiguous float64 array is infinite."""
    elements = doubles_at(array_data(px))
    for j in range(array_size(px)):
        if abs(elements[j]) == INFINITE:
            return 1
    return 0
