"""The first few elements in ascending or descending order along a dimension, by their places, in one pass over the array."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, array_type_number, f32, f64, i64


@inline
def comes_before(x, y, descending):
    """Whether x stands before y in the order; nan is larger than everything."""
    if descending:
        return x > y or (x != x and y == y)
    return x < y or (y != y and x == x)


@inline
def find_first(order, values, outer, extent, inner, count, descending):
    """Insertion into a short sorted list: of equal elements the first comes first."""
    for o in range(outer):
        for j in range(inner):
            start, to = o * extent * inner + j, o * count * inner + j
            known, last = 0, values[start]
            for k in range(extent):
                value = values[start + k * inner]
                if known == count and not comes_before(value, last, descending):
                    continue
                at = min(known, count - 1)
                while at > 0 and comes_before(value, values[start + order[to + (at - 1) * inner] * inner], descending):
                    order[to + at * inner] = order[to + (at - 1) * inner]
                    at -= 1
                order[to + at * inner] = k
                known = min(known + 1, count)
                last = values[start + order[to + (known - 1) * inner] * inner]


@inline
def find_first_of_columns(order, values, last, outer, extent, inner, count, descending):
    """The same, row by row for all columns; `last` has room for the last element of each list."""
    for o in range(outer):
        for k in range(extent):
            known = min(k, count)
            for j in range(inner):
                start, to = o * extent * inner + j, o * count * inner + j
                value = values[start + k * inner]
                if known == count and not comes_before(value, last[j], descending):
                    continue
                at = min(known, count - 1)
                while at > 0 and comes_before(value, values[start + order[to + (at - 1) * inner] * inner], descending):
                    order[to + at * inner] = order[to + (at - 1) * inner]
                    at -= 1
                order[to + at * inner] = k
                last[j] = values[start + order[to + (min(known + 1, count) - 1) * inner] * inner]


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64)")
def first_in_order(porder, px, room, outer, extent, inner, count, descending):
    """Indices of the first `count` along the middle dimension; x is of float64, float32 or int64.

    There may be room for `inner` numbers, with which columns of float64 are gone through together.
    """
    order, number, n = i64(array_data(porder), array_size(porder)), array_type_number(px), array_size(px)
    if number == FLOAT64 and room:
        find_first_of_columns(order, f64(array_data(px), n), f64(room, inner), outer, extent, inner, count, descending != 0)
    elif number == FLOAT64:
        find_first(order, f64(array_data(px), n), outer, extent, inner, count, descending != 0)
    elif number == FLOAT32:
        find_first(order, f32(array_data(px), n), outer, extent, inner, count, descending != 0)
    else:
        find_first(order, i64(array_data(px), n), outer, extent, inner, count, descending != 0)
    return 0
