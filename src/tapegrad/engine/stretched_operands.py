"""Sums, differences, products and quotients of arrays of which one is stretched along rows or columns of the result.

NumPy begins a loop at each row, which takes longer than the row itself where that has some hundred elements.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.memory import array_data, f64

OF_SUMS, OF_DIFFERENCES, OF_PRODUCTS, OF_QUOTIENTS = range(4)
OVER_COLUMNS, OVER_ROWS = 1, 2  # bits: along which of the two an operand has elements of its own


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
    else:
        for j in range(count):
            out[j] = x[j] / y[j]


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
    else:
        for j in range(count):
            out[j] = x[j] / b


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
    else:
        for j in range(count):
            out[j] = a / y[j]


@inline
def row_of(px, row, columns, extent):
    """Address of what an operand has for a row."""
    step = 0
    if extent & OVER_ROWS:
        step = 8 * columns if extent & OVER_COLUMNS else 8
    return array_data(px) + row * step


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64)", nogil=True)
def combine_stretched(pz, px, py, rows, columns, x_extent, y_extent, kind):
    """A contiguous float64 result of so many rows and columns; one of the operands at least has an element for each column."""
    for row in range(rows):
        out = f64(array_data(pz) + 8 * row * columns, columns)
        x_at, y_at = row_of(px, row, columns, x_extent), row_of(py, row, columns, y_extent)
        if x_extent & y_extent & OVER_COLUMNS:
            combine_runs(out, f64(x_at, columns), f64(y_at, columns), columns, kind)
        elif x_extent & OVER_COLUMNS:
            combine_with_number(out, f64(x_at, columns), f64(y_at, 1)[0], columns, kind)
        else:
            combine_number_with(out, f64(x_at, 1)[0], f64(y_at, columns), columns, kind)
    return 0
