"""Sums, differences, products and quotients of arrays of which one is stretched along rows, columns or blocks of the result.

NumPy begins a loop at each row, which takes longer than the row itself where that has some hundred elements.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.memory import array_data, f64

# The last two: products of a number and a run as the BLAS has them, which adds them to zero; quotients that are divided once more.
OF_SUMS, OF_DIFFERENCES, OF_PRODUCTS, OF_QUOTIENTS, OF_PRODUCTS_AND_ZERO, OF_QUOTIENTS_TWICE = range(6)
OVER_COLUMNS, OVER_ROWS, OVER_BLOCKS = 1, 2, 4  # bits: along which of these an operand has elements of its own


@inline
def combine_runs(out, x, y, count, kind):
    """Elements of two runs."""
    if kind == OF_SUMS:
        for j in range(count):
            out[j] = x[j] + y[j]
    elif kind == OF_DIFFERENCES:
        for j in range(count):
            out[j] = x[j] - y[j]
    elif kind == OF_PRODUCTS:
        for j in range(count):
            out[j] = x[j] * y[j]
    elif kind == OF_QUOTIENTS:
        for j in range(count):
            out[j] = x[j] / y[j]
    else:
        for j in range(count):
            out[j] = x[j] / y[j] / y[j]


@inline
def combine_with_number(out, x, b, count, kind):
    """Elements of a run, and a number behind them."""
    if kind == OF_SUMS:
        for j in range(count):
            out[j] = x[j] + b
    elif kind == OF_DIFFERENCES:
        for j in range(count):
            out[j] = x[j] - b
    elif kind == OF_PRODUCTS:
        for j in range(count):
            out[j] = x[j] * b
    elif kind == OF_PRODUCTS_AND_ZERO:
        for j in range(count):
            out[j] = x[j] * b + 0.0
    elif kind == OF_QUOTIENTS:
        for j in range(count):
            out[j] = x[j] / b
    else:
        for j in range(count):
            out[j] = x[j] / b / b


@inline
def combine_number_with(out, a, y, count, kind):
    """A number, and elements of a run behind it."""
    if kind == OF_SUMS:
        for j in range(count):
            out[j] = a + y[j]
    elif kind == OF_DIFFERENCES:
        for j in range(count):
            out[j] = a - y[j]
    elif kind == OF_PRODUCTS:
        for j in range(count):
            out[j] = a * y[j]
    elif kind == OF_PRODUCTS_AND_ZERO:
        for j in range(count):
            out[j] = a * y[j] + 0.0
    elif kind == OF_QUOTIENTS:
        for j in range(count):
            out[j] = a / y[j]
    else:
        for j in range(count):
            out[j] = a / y[j] / y[j]


@inline
def row_of(px, row, columns, extent):
    """Address of what an operand has for a row."""
    step = 0
    if extent & OVER_ROWS:
        step = 8 * columns if extent & OVER_COLUMNS else 8
    return array_data(px) + row * step


@inline
def block_step(rows, columns, extent):
    """Bytes from what an operand has for a block of rows to what it has for the next one."""
    if extent & OVER_BLOCKS == 0:
        return 0
    return 8 * (rows if extent & OVER_ROWS else 1) * (columns if extent & OVER_COLUMNS else 1)


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64,int64)", nogil=True, wide=True)
def combine_stretched(pz, px, py, blocks, rows, columns, x_extent, y_extent, kind):
    """A contiguous float64 result of blocks of rows; one of the operands at least has an element for each column."""
    x_step, y_step = block_step(rows, columns, x_extent), block_step(rows, columns, y_extent)
    for block in range(blocks):
        for row in range(rows):
            out = f64(array_data(pz) + 8 * (block * rows + row) * columns, columns)
            x_at = row_of(px, row, columns, x_extent) + block * x_step
            y_at = row_of(py, row, columns, y_extent) + block * y_step
            if x_extent & y_extent & OVER_COLUMNS:
                combine_runs(out, f64(x_at, columns), f64(y_at, columns), columns, kind)
            elif x_extent & OVER_COLUMNS:
                combine_with_number(out, f64(x_at, columns), f64(y_at, 1)[0], columns, kind)
            else:
                combine_number_with(out, f64(x_at, 1)[0], f64(y_at, columns), columns, kind)
    return 0
