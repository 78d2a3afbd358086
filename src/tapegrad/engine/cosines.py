"""Cosines of the angles between rows of two matrices, and their cotangents, while a row is near.

Each number is the one that norms, quotients, products and sums of whole arrays have, one after the other: sums are NumPy's loops,
and what comes to the divisor of a row adds up as contributions to stretched operands do, in pieces that end with blocks.
"""

from math import sqrt

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import words_at
from tapegrad.engine.exponential_shares import SUMS, gather_loop
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, f64
from tapegrad.engine.strided import block_sum

IN_RANGE = 2.2250738585072014e-308, 1.7976931348623157e308  # sums of squares that have all their digits


@inline
def square_sum(loops, x, start, room, d):
    """Sum of a row's squares; the room has the sum in front of them."""
    row, squares, total = f64(x, d), f64(room + 8, d), f64(room, 1)
    for j in range(d):
        squares[j] = row[j] * row[j]
    total[0] = start
    gather_loop(loops, SUMS, d, room + 8, room, 0)
    return total[0]


@inline
def divisor(length, least):
    """What a row is divided by: its length, or `least` if that is more."""
    return length + max(0.0, least - length)


@entry("int64(int64,int64,int64,int64,int64,int64,int64)", wide=True)
def cosines_of_rows(pz, px, py, pnumbers, proom, d, ploops):
    """A cosine for each pair of rows; the answer is whether all rows have a length that is found by squares.

    Numbers are what shorter rows count as, and what NumPy's sums begin with. The room has a number more than a row.
    """
    n, numbers, loops, room = array_size(pz), f64(array_data(pnumbers), 2), words_at(ploops), array_data(proom)
    least, start, z, products = numbers[0], numbers[1], f64(array_data(pz), n), f64(room + 8, d)
    for i in range(n):
        at_x, at_y = array_data(px) + 8 * i * d, array_data(py) + 8 * i * d
        x_sum, y_sum = square_sum(loops, at_x, start, room, d), square_sum(loops, at_y, start, room, d)
        if not (IN_RANGE[0] <= min(x_sum, y_sum) and max(x_sum, y_sum) <= IN_RANGE[1]):
            return 0
        x, y, p, q = f64(at_x, d), f64(at_y, d), divisor(sqrt(x_sum), least), divisor(sqrt(y_sum), least)
        for j in range(d):
            products[j] = (x[j] / p) * (y[j] / q)
        z[i] = start
        gather_loop(loops, SUMS, d, room + 8, array_data(pz) + 8 * i, 0)
    return 1


@inline
def sum_in_pieces(values, first, d):
    """The sum of a row's contributions to one number; it stands at `first` among all elements."""
    total, done = 0.0, 0
    while done < d:
        piece = min(d - done, BLOCK - (first + done) % BLOCK)
        total += block_sum(values, done, piece)
        done += piece
    return total


@inline
def quotients(out, x, p, d):
    """A row divided."""
    for j in range(d):
        out[j] = x[j] / p


@inline
def cotangents_of_quotients(out, shares, unit, p, other, g, d):
    """What comes to a row from its quotients, and what comes to the divisor from each."""
    factor = 1.0 / p
    for j in range(d):
        bar = 0.0 if (g == 0.0) | (other[j] == 0.0) else g * other[j]
        slope = -(unit[j] / p)
        shares[j] = 0.0 if (bar == 0.0) | (slope == 0.0) else bar * slope
        out[j] = 0.0 if (bar == 0.0) | (factor == 0.0) else bar * factor


@inline
def add_cotangent_of_length(out, x, length, shares, first, d):
    """What comes to x by its length, of which the divisor is one."""
    g = sum_in_pieces(shares, first, d) / length
    for j in range(d):
        product = 0.0 if (g == 0.0) | (x[j] == 0.0) else g * x[j]
        out[j] = out[j] + product  # `+=` of the choice would read first, which LLVM makes no vectors of: six times as long


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64,int64,int64)", wide=True)
def cotangents_of_cosines(pa, pb, pg, px, py, pnumbers, proom, d, g_step, ploops):
    """What a cotangent of the cosines, which may be one number, becomes for each matrix; either result may be 0.

    The room has three rows and a number. Else as above.
    """
    n, numbers, loops, room = array_size(px) // d, f64(array_data(pnumbers), 2), words_at(ploops), array_data(proom)
    least, start, shares, gs = numbers[0], numbers[1], f64(room + 8, d), f64(array_data(pg), n if g_step else 1)
    units, others = f64(room + 8 * (d + 1), d), f64(room + 8 * (2 * d + 1), d)
    for i in range(n):
        first = i * d
        at_x, at_y = array_data(px) + 8 * first, array_data(py) + 8 * first
        x_sum, y_sum = square_sum(loops, at_x, start, room, d), square_sum(loops, at_y, start, room, d)
        if not (IN_RANGE[0] <= min(x_sum, y_sum) and max(x_sum, y_sum) <= IN_RANGE[1]):
            return 0
        x, y, x_length, y_length, g = f64(at_x, d), f64(at_y, d), sqrt(x_sum), sqrt(y_sum), gs[i * g_step]
        p, q = divisor(x_length, least), divisor(y_length, least)
        quotients(units, x, p, d)
        quotients(others, y, q, d)
        if pa != 0:
            out = f64(array_data(pa) + 8 * first, d)
            cotangents_of_quotients(out, shares, units, p, others, g, d)
            add_cotangent_of_length(out, x, x_length, shares, first, d)
        if pb != 0:
            out = f64(array_data(pb) + 8 * first, d)
            cotangents_of_quotients(out, shares, others, q, units, g, d)
            add_cotangent_of_length(out, y, y_length, shares, first, d)
    return 1
