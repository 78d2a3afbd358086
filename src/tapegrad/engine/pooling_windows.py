"""The largest element and the mean of every window of an array of shape (count, *extents) with three spatial dimensions.

A geometry is words: the three extents, the three numbers of places, the three steps from one element of a window to the next, and
then for each dimension where its windows begin, and where they end.
"""

import math

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, array_type_number, f32, f64, i64


@inline
def largest(values, best, places, words, count, least):
    """Each window's largest element, the first of several, and its place; nan is larger than everything."""
    n0, n1, n2, p0, p1, p2, d0, d1, d2 = (words[0], words[1], words[2], words[3], words[4], words[5], words[6], words[7], words[8])
    t0 = 9
    t1 = t0 + 2 * p0
    t2 = t1 + 2 * p1
    k = 0
    for o in range(count):
        ahead = o * n0 * n1 * n2
        for i0 in range(p0):
            for i1 in range(p1):
                for i2 in range(p2):
                    found, top, a = -1, least, words[t0 + i0]
                    while a < words[t0 + p0 + i0]:
                        b = words[t1 + i1]
                        while b < words[t1 + p1 + i1]:
                            row, c = ahead + (a * n1 + b) * n2, words[t2 + i2]
                            while c < words[t2 + p2 + i2]:
                                value = values[row + c]
                                if found < 0 or value > top or (value != value and top == top):
                                    found, top = row + c, value
                                c += d2
                            b += d1
                        a += d0
                    best[k], places[k] = top, found
                    k += 1


@entry("int64(int64,int64,int64,int64)")
def largest_of_windows(pz, pplaces, px, pgeometry):
    """Values and flat places; a window without elements gets the least number and the place -1. Of float64, float32 or int64."""
    words, number, n, m = i64(array_data(pgeometry), array_size(pgeometry)), array_type_number(px), array_size(px), array_size(pz)
    count, places = n // max(words[0] * words[1] * words[2], 1), i64(array_data(pplaces), m)
    x, z = array_data(px), array_data(pz)
    if number == FLOAT64:
        largest(f64(x, n), f64(z, m), places, words, count, -math.inf)
    elif number == FLOAT32:
        largest(f32(x, n), f32(z, m), places, words, count, np.float32(-math.inf))
    else:
        largest(i64(x, n), i64(z, m), places, words, count, np.int64(-(2**63)))
    return 0


@inline
def average(values, out, words, divisors, count):
    """Sums over windows, row by row, divided."""
    n0, n1, n2, p0, p1, p2 = words[0], words[1], words[2], words[3], words[4], words[5]
    t0 = 9
    t1 = t0 + 2 * p0
    t2 = t1 + 2 * p1
    k = 0
    for o in range(count):
        ahead = o * n0 * n1 * n2
        place = 0
        for i0 in range(p0):
            for i1 in range(p1):
                for i2 in range(p2):
                    total = 0.0
                    for a in range(words[t0 + i0], words[t0 + p0 + i0]):
                        for b in range(words[t1 + i1], words[t1 + p1 + i1]):
                            row, part = ahead + (a * n1 + b) * n2, 0.0
                            for c in range(words[t2 + i2], words[t2 + p2 + i2]):
                                part += values[row + c]
                            total += part
                    out[k] = total / divisors[place]
                    k += 1
                    place += 1


@entry("int64(int64,int64,int64,int64)")
def means_of_windows(pz, px, pgeometry, pdivisors):
    """The sum over every window by its divisor; float32 is summed in float64."""
    words, n, m = i64(array_data(pgeometry), array_size(pgeometry)), array_size(px), array_size(pz)
    count, divisors = n // max(words[0] * words[1] * words[2], 1), f64(array_data(pdivisors), array_size(pdivisors))
    if array_type_number(px) == FLOAT64:
        average(f64(array_data(px), n), f64(array_data(pz), m), words, divisors, count)
    else:
        average(f32(array_data(px), n), f32(array_data(pz), m), words, divisors, count)
    return 0


@inline
def share_out(values, out, words, divisors, count):
    """The transpose of `average`, added to `out`."""
    n0, n1, n2, p0, p1, p2 = words[0], words[1], words[2], words[3], words[4], words[5]
    t0 = 9
    t1 = t0 + 2 * p0
    t2 = t1 + 2 * p1
    k = 0
    for o in range(count):
        ahead = o * n0 * n1 * n2
        place = 0
        for i0 in range(p0):
            for i1 in range(p1):
                for i2 in range(p2):
                    share = values[k] / divisors[place]
                    for a in range(words[t0 + i0], words[t0 + p0 + i0]):
                        for b in range(words[t1 + i1], words[t1 + p1 + i1]):
                            row = ahead + (a * n1 + b) * n2
                            for c in range(words[t2 + i2], words[t2 + p2 + i2]):
                                out[row + c] += share
                    k += 1
                    place += 1


@entry("int64(int64,int64,int64,int64)")
def spread_means(px, pz, pgeometry, pdivisors):
    """Each element of z, by its divisor, added to all elements of x in its window."""
    words, n, m = i64(array_data(pgeometry), array_size(pgeometry)), array_size(px), array_size(pz)
    count, divisors = n // max(words[0] * words[1] * words[2], 1), f64(array_data(pdivisors), array_size(pdivisors))
    if array_type_number(px) == FLOAT64:
        share_out(f64(array_data(pz), m), f64(array_data(px), n), words, divisors, count)
    else:
        share_out(f32(array_data(pz), m), f32(array_data(px), n), words, divisors, count)
    return 0
