"""Sums of large arrays as `total` has them: of rows of 1024 elements, then of the row sums.

What is no block NumPy copies to a buffer, as many rows as fit, and sums that. Whether the NumPy at hand does so is looked at when
the package is loaded.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import from_element
from tapegrad.engine.halved_sums import LEAST_HALVED, halved_sum
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    OBJECT,
    array_data,
    array_rank,
    array_size,
    array_strides,
    array_type_number,
    call_loop,
    float_of,
    load_f64,
    release,
    store_f64,
)
from tapegrad.engine.objects import clear_error, new_array, new_float
from tapegrad.engine.row_sums import sum_rows
from tapegrad.engine.strided_sums import MOST_SUMMED, order_in_memory
from tapegrad.engine.structs import doubles_at

NUMPYS_BUFFER = 8192  # elements


@entry("int64(int64,int64,int64)")
def sums_of_rows(source, rows, target):
    """As `sum_rows`."""
    sum_rows(source, rows, target)
    return 0


@inline
def add_by_numpys_loop(tape, source, count, target):
    """Add numbers to the one at an address by NumPy's loop, as it does at once, or by ours that does the same."""
    if tape.sums_by_halves != 0 and count >= LEAST_HALVED:
        store_f64(target, load_f64(target) + halved_sum(source, count))
        return
    call_loop(tape.sum_loop, tape.sum_loop_data, count, target, 0, source, 8, target, 0, 1)


@inline
def sum_of_long(tape, a):
    """A new float of the sum of a long array in C order; 0 without memory."""
    rows, size, source = array_size(a) // ROW_OF_MANY, array_size(a), array_data(a)
    tape.lengths[0] = rows
    sums = new_array(tape, FLOAT64, 1, tape.lengths)
    of_rows, rest = new_float(float_of(tape.sum_start)), new_float(float_of(tape.sum_start))
    total = 0
    if sums != 0 and of_rows != 0 and rest != 0:
        sum_rows(source, rows, array_data(sums))
        add_by_numpys_loop(tape, array_data(sums), rows, of_rows + OBJECT)
        behind = 0.0
        if size > rows * ROW_OF_MANY:
            add_by_numpys_loop(tape, source + 8 * ROW_OF_MANY * rows, size - rows * ROW_OF_MANY, rest + OBJECT)
            behind = load_f64(rest + OBJECT)
        total = new_float(load_f64(of_rows + OBJECT) + behind)
    else:
        clear_error()
    for made in (sums, of_rows, rest):
        if made != 0:
            release(made)
    return total


@inline
def rows_in_memory(tape, a):
    """Length, number and step in bytes of the rows of neighbours that a large array has in its memory; zeros for other arrays.

    A matrix that is one block by columns is one row.
    """
    rank, lengths = array_rank(a), from_element(tape.lengths, 0)
    steps = from_element(lengths, MOST_SUMMED)
    if tape.sums_by_buffer == 0 or array_type_number(a) != FLOAT64 or rank == 0 or rank > MOST_SUMMED:
        return 0, 0, 0
    for d in range(rank):
        if array_strides(a)[d] < 0:
            return 0, 0, 0
    if order_in_memory(a, lengths, steps) != 2 or steps[0] != 8 or steps[1] < 8 * lengths[0]:
        return 0, 0, 0
    if steps[1] == 8 * lengths[0]:
        return (array_size(a), 1, 0) if tape.sum_room != 0 else (0, 0, 0)
    if lengths[0] > NUMPYS_BUFFER:
        return 0, 0, 0
    return lengths[0], lengths[1], steps[1]


@inline
def sum_of_rows_apart(tape, source, row, rows, step):
    """A new float of the sum of such rows; 0 without memory."""
    tape.lengths[0] = NUMPYS_BUFFER if rows > 1 else 0
    buffer, total = new_array(tape, FLOAT64, 1, tape.lengths), new_float(float_of(tape.sum_start))
    if buffer == 0 or total == 0:
        clear_error()
        for made in (buffer, total):
            if made != 0:
                release(made)
        return 0
    out, fitting, count = doubles_at(array_data(buffer)), NUMPYS_BUFFER // row, 0
    if rows == 1:
        add_by_numpys_loop(tape, source, row, total + OBJECT)
    for k in range(rows if rows > 1 else 0):
        x, to = doubles_at(source + step * k), from_element(out, count)
        for j in range(row):
            to[j] = x[j]
        count += row
        if count == fitting * row or k == rows - 1:
            add_by_numpys_loop(tape, array_data(buffer), count, total + OBJECT)
            count = 0
    release(buffer)
    return total
