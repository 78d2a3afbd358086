"""A triangle of each matrix of a contiguous array, and zeros in the place of the rest."""

from tapegrad.compilation.jit import entry
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, array_type_number, f64, item_bytes
from tapegrad.engine.runs import clear_run, copy_run, set_all
from tapegrad.engine.structs import doubles_at

INFINITE = float("inf")


@entry("int64(int64,int64,int64,int64,int64,int64)")
def copy_triangles(pz, px, rows, columns, diagonal, upper):
    """The elements on and above a diagonal, or without `upper` on and below it, of any dtype; of float64, one may serve for all."""
    wide, to, at = item_bytes(array_type_number(pz)), array_data(pz), array_data(px)
    is_spread = array_size(px) == 1 and array_size(pz) > 1
    for row in range(array_size(pz) // max(columns, 1)):
        edge = row % rows + diagonal  # the last column below or on the diagonal
        low = min(max(edge, 0), columns) if upper != 0 else 0
        high = columns if upper != 0 else min(max(edge + 1, 0), columns)
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
