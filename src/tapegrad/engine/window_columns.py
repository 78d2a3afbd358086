"""Elements under every window of an array as the columns of a matrix, and columns added back into place.

A geometry is words, for each of three spatial dimensions: extents of the array, places of the window, elements of the window,
steps from place to place, steps from element to element, zeros in front. Then the batch, the channels, and how far apart rows of
the matrix are, and elements of the batch in it.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, array_type_number, i64, item_bytes
from tapegrad.engine.runs import add_run, clear_run, copy_run


@inline
def first_inside(offset, step):
    """The first place at which ``offset + place * step`` is not negative."""
    return 0 if offset >= 0 else -offset if step == 1 else (-offset + step - 1) // step


@inline
def lay(x, columns, words, number, add):
    """Copy elements to their columns, zero where a window is outside; or add the columns to the elements."""
    n0, n1, n2, p0, p1, p2, k0, k1, k2 = (words[0], words[1], words[2], words[3], words[4], words[5], words[6], words[7], words[8])
    s0, s1, s2, d0, d1, d2 = words[9], words[10], words[11], words[12], words[13], words[14]
    b0, b1, b2 = words[15], words[16], words[17]
    batch, channels, row_step, batch_step = words[18], words[19], words[20], words[21]
    wide = item_bytes(number)
    for o in range(batch):
        row, ahead = o * batch_step, o * channels * n0 * n1 * n2
        for _ in range(channels):
            for a in range(k0):
                for b in range(k1):
                    for c in range(k2):
                        offset = c * d2 - b2
                        low = min(first_inside(offset, s2), p2)
                        high = max(min(first_inside(offset - n2, s2), p2), low)
                        for i0 in range(p0):
                            z = i0 * s0 + a * d0 - b0
                            for i1 in range(p1):
                                y, to = i1 * s1 + b * d1 - b1, columns + wide * (row + (i0 * p1 + i1) * p2)
                                inside = 0 <= z < n0 and 0 <= y < n1
                                at = x + wide * (ahead + (z * n1 + y) * n2 + offset + low * s2)
                                if inside and add:
                                    add_run(number, at, to + wide * low, high - low, s2)
                                elif inside:
                                    clear_run(to, wide * low)
                                    copy_run(to + wide * low, at, high - low, s2, wide)
                                    clear_run(to + wide * high, wide * (p2 - high))
                                elif not add:
                                    clear_run(to, wide * p2)
                        row += row_step
            ahead += n0 * n1 * n2


@entry("int64(int64,int64,int64)")
def lay_columns(pcolumns, px, pgeometry):
    """The columns of an array of float64, float32 or int64."""
    words = i64(array_data(pgeometry), array_size(pgeometry))
    lay(array_data(px), array_data(pcolumns), words, array_type_number(px), False)
    return 0


@entry("int64(int64,int64,int64)")
def add_columns(px, pcolumns, pgeometry):
    """Columns added to the elements that they are of."""
    words = i64(array_data(pgeometry), array_size(pgeometry))
    lay(array_data(px), array_data(pcolumns), words, array_type_number(px), True)
    return 0
