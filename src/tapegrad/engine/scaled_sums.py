"""Sums ``a + value * (b * c)``, or of quotients ``b / c``, where operands may be stretched along rows or columns of the result.

Runs of the result are gone through twice while they are in the nearest cache, instead of whole arrays three times. So are, for
their derivatives, products that are summed along columns.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.memory import array_data, f64
from tapegrad.engine.stretched_operands import (
    OVER_COLUMNS,
    combine_number_with,
    combine_runs,
    combine_with_number,
    row_of,
)

RUN = 512


@inline
def add_scaled(out, x, step, value, count):
    """Add elements of a run, or one number, to multiples of those that are there."""
    if step == 0:
        a = x[0]
        for j in range(count):
            out[j] = a + value * out[j]
    else:
        for j in range(count):
            out[j] = x[j] + value * out[j]


@inline
def columns_of(extent):
    """1 for an operand that has an element for each column, else 0."""
    return 1 if extent & OVER_COLUMNS else 0


@entry("int64(int64,int64,int64,int64,int64,int64,int64,float64,int64)", nogil=True, wide=True)
def scaled_sum(pz, pa, pb, pc, rows, columns, extents, value, kind):
    """A contiguous float64 result; `extents` has two bits for each operand, and `b` or `c` has an element for each column."""
    of_a, of_b, of_c = extents & 3, (extents >> 2) & 3, (extents >> 4) & 3
    a_step, b_step, c_step = columns_of(of_a), columns_of(of_b), columns_of(of_c)
    for row in range(rows):
        a_at, b_at, c_at = row_of(pa, row, columns, of_a), row_of(pb, row, columns, of_b), row_of(pc, row, columns, of_c)
        for start in range(0, columns, RUN):
            count = min(RUN, columns - start)
            out = f64(array_data(pz) + 8 * (row * columns + start), count)
            x, y = f64(b_at + 8 * b_step * start, count), f64(c_at + 8 * c_step * start, count)
            if b_step != 0 and c_step != 0:
                combine_runs(out, x, y, count, kind)
            elif b_step != 0:
                combine_with_number(out, x, y[0], count, kind)
            else:
                combine_number_with(out, x[0], y, count, kind)
            add_scaled(out, f64(a_at + 8 * a_step * start, count), a_step, value, count)
    return 0


@entry("int64(int64,int64,float64,int64,int64)", nogil=True, wide=True)
def sums_of_products(pz, px, value, rows, columns):
    """Sums along the columns of a matrix, row after row, of its products with a number, which are zero if either factor is."""
    for start in range(0, columns, RUN):
        count = min(RUN, columns - start)
        out = f64(array_data(pz) + 8 * start, count)
        for row in range(rows):
            x = f64(array_data(px) + 8 * (row * columns + start), count)
            if row == 0:
                for j in range(count):
                    out[j] = 0.0 if (value == 0.0) | (x[j] == 0.0) else value * x[j]
            else:
                for j in range(count):
                    out[j] += 0.0 if (value == 0.0) | (x[j] == 0.0) else value * x[j]
    return 0
