"""Products of a linear tape with the columns of a matrix: all that is done for each, for tapes without rows of Python's.

Matrices have any strides, in elements: of rows (`down`) and of columns (`across`). Columns are taken `LANES` at once. Where others
follow, each row's adjoints are zero again once they have been used, while they are in the nearest cache: clearing all of them
before each sweep took as long as the sweep.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import from_element
from tapegrad.engine.lanes import LANES
from tapegrad.engine.linear_layout import *
from tapegrad.engine.linear_sweeps import curve_entry, lanes_of, pull_entry, push_entry
from tapegrad.engine.memory import f64


@inline
def clear_lanes(vector, place, count):
    """Zeros in the lanes of places of a vector."""
    numbers = f64(lanes_of(vector, place), LANES * count)
    for e in range(LANES * count):
        numbers[e] = 0.0


@inline
def clear_row(linear, entry, kind, bars):
    """Zeros in the adjoints of a row whose first entry this is: all others have been used."""
    if kind <= CURVED_PLAIN:
        clear_lanes(bars, entry.place, 1)
    elif kind == MAP:
        program = linear.program[entry.program]
        clear = program.clear
        if clear != 0:
            clear_lanes(bars, program.row, program.size if clear == SETS else clear)


@inline
def set_directions(dots, inputs, matrix, down, across, width):
    """The columns of a matrix as tangents of the inputs; zeros in lanes that there is no column for."""
    if LANES == 1 and down == 1:
        out, column = f64(dots, inputs), f64(matrix, inputs)
        for e in range(inputs):
            out[e] = column[e]
        return
    for e in range(inputs):
        lanes, row = lanes_of(dots, e), from_element(matrix, down * e)
        for lane in range(LANES):
            lanes[lane] = row[across * lane] if lane < width else 0.0


@inline
def add_seeds(bars, outputs, ends, matrix, down, across, width):
    """Add the columns of a matrix to the adjoints of the outputs."""
    done = 0
    for k in range(ends):
        place, size = outputs[2 * k], outputs[2 * k + 1]
        if place >= 0 and LANES == 1 and down == 1:
            out, column = f64(lanes_of(bars, place), size), f64(from_element(matrix, done), size)
            for e in range(size):
                out[e] += column[e]
        elif place >= 0:
            for e in range(size):
                lanes, row = lanes_of(bars, place + e), from_element(matrix, down * (done + e))
                for lane in range(width):
                    lanes[lane] += row[across * lane]
        done += size


@inline
def read_lanes(vector, place, size, matrix, down, across, width):
    """Columns of a matrix from the lanes of places."""
    if LANES == 1 and down == 1:
        column, values = f64(matrix, size), f64(lanes_of(vector, place), size)
        for e in range(size):
            column[e] = values[e]
        return
    for e in range(size):
        lanes, row = lanes_of(vector, place + e), from_element(matrix, down * e)
        for lane in range(width):
            row[across * lane] = lanes[lane]


@inline
def take_adjoints(bars, inputs, products, below, beside, width, is_last):
    """Columns of products from the adjoints of the inputs, which are zero again where others follow."""
    read_lanes(bars, 0, inputs, products, below, beside, width)
    if not is_last:
        clear_lanes(bars, 0, inputs)


@inline
def push_all(linear, dots):
    """Tangents of all places from those of the inputs."""
    entries = linear.entry
    for number in range(linear.entries):
        entry = entries[number]
        push_entry(linear, entry, entry.kind, dots)


@entry("int64(Linear,Doubles,int64,Words,int64,Doubles,int64,int64,Doubles,int64,int64,int64)")
def push_columns(linear, dots, inputs, outputs, ends, tangents, down, across, products, below, beside, count):
    """Products with so many columns of tangents; zero."""
    for start in range(0, count, LANES):
        width = min(LANES, count - start)
        set_directions(dots, inputs, from_element(tangents, across * start), down, across, width)
        push_all(linear, dots)
        done, columns = 0, from_element(products, beside * start)
        for k in range(ends):
            place, size = outputs[2 * k], outputs[2 * k + 1]
            rows = from_element(columns, below * done)
            if place >= 0:
                read_lanes(dots, place, size, rows, below, beside, width)
            else:
                for e in range(size):
                    for lane in range(width):
                        rows[below * e + beside * lane] = 0.0
            done += size
    return 0


@entry("int64(Linear,Doubles,int64,Words,int64,Doubles,int64,int64,Doubles,int64,int64,int64)")
def pull_columns(linear, bars, inputs, outputs, ends, cotangents, down, across, products, below, beside, count):
    """Products of so many columns of cotangents with the Jacobian; zero. The last adjoints are left."""
    entries = linear.entry
    clear_lanes(bars, 0, linear.places)
    for start in range(0, count, LANES):
        width, is_last = min(LANES, count - start), start + LANES >= count
        add_seeds(bars, outputs, ends, from_element(cotangents, across * start), down, across, width)
        for number in range(linear.entries - 1, -1, -1):
            entry = entries[number]
            kind = entry.kind
            pull_entry(linear, entry, kind, bars)
            if not is_last:
                clear_row(linear, entry, kind, bars)
        take_adjoints(bars, inputs, from_element(products, beside * start), below, beside, width, is_last)
    return 0


@entry("int64(Linear,Doubles,Doubles,int64,Doubles,int64,int64,Doubles,int64,int64,int64)")
def curve_columns(linear, dots, bars, inputs, tangents, down, across, products, below, beside, count):
    """Products of the Hessian with so many columns of tangents; zero. Second partials are those that `weigh` left."""
    entries, curves = linear.entry, linear.curves
    clear_lanes(bars, 0, linear.places)
    for start in range(0, count, LANES):
        width, is_last = min(LANES, count - start), start + LANES >= count
        set_directions(dots, inputs, from_element(tangents, across * start), down, across, width)
        push_all(linear, dots)
        for number in range(linear.entries - 1, -1, -1):
            entry, curve = entries[number], curves[number]
            kind = entry.kind
            curve_entry(linear, entry, curve, kind, dots, bars)
            if not is_last:
                clear_row(linear, entry, kind, bars)
        take_adjoints(bars, inputs, from_element(products, beside * start), below, beside, width, is_last)
    return 0
