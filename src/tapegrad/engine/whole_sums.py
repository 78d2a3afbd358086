"""Sums of all elements of a long array: of the sums of its rows, to which that of the rest is added."""

from tapegrad.compilation.jit import entry
from tapegrad.compilation.memory_types import words_at
from tapegrad.engine.exponential_shares import SUMS, gather_loop
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, f64
from tapegrad.engine.row_sums import sum_rows


@entry("int64(int64,int64,int64,int64)", wide=True)
def sum_of_many(pz, px, proom, ploops):
    """The sum of a contiguous float64 array of four rows or more: of the sums of rows, to which that of the rest is added.

    The result has two numbers, with which NumPy's sums start, and the room one for each row.
    """
    n, x, room, z = array_size(px), array_data(px), array_data(proom), array_data(pz)
    rows, found = n // ROW_OF_MANY, f64(z, 2)
    sum_rows(x, rows, room)
    loops = words_at(ploops)
    gather_loop(loops, SUMS, rows, room, z, 0)
    rest = n - rows * ROW_OF_MANY
    if rest:
        gather_loop(loops, SUMS, rest, x + 8 * ROW_OF_MANY * rows, z + 8, 0)
    else:
        found[1] = 0.0
    found[0] += found[1]
    return 0
