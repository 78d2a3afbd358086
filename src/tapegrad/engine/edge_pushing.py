"""Second derivatives by inputs from the rows of a recording, in one pass backwards: edge-pushing [1]_.

The second derivative of what was passed is a weight on pairs of rows (edges). At a row its edges go on to the rows that it was made
of, by its partials, and its own second partials times its adjoint are new edges. Those between inputs are what is wanted.

Where a function is a sum of functions of few inputs, few rows have edges at any time. They stand in a small square, so that a row
is taken out as in Gaussian elimination, by a few vectors of the square's width, and is not looked up in lists. Which rows have
slots depends on the structure alone, and not on what is zero at this point.

References
----------
.. [1] R. M. Gower, M. P. Mello, "A new framework for the computation of Hessians", Optimization Methods and Software 27(2), 2012.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import from_element
from tapegrad.engine.edge_layout import *
from tapegrad.engine.fronts import MASK, empty_slots, entry_at, free_slot, list_members, new_slot, slot_for
from tapegrad.engine.memory import f64


@inline
def values_of_front(front):
    """Add what the front has to the entries, whose places come next in the list."""
    square, found, places, at, taken = front.square, front.found, front.places, front.at, front.holes
    count = list_members(front, front.width)
    for k in range(count):
        i = taken[k]
        for m in range(k + 1):
            j = taken[m]
            place = places[at]
            at += 1
            if place >= 0:
                found[place] += square[MOST_SLOTS * i + j] + square[MOST_SLOTS * j + i]
    front.at = at


@inline
def entry_of_front(front, row, column, weight):
    """What becomes of the edge of two inputs where its place is not known; whether there was room."""
    if front.kind == MAKE_MATRIX:
        front.found[row * front.inputs + column] += weight
        if row != column:
            front.found[column * front.inputs + row] += weight
        return True
    at = front.at
    if at >= front.room:
        return False
    if front.kind == MAKE_PLACES:
        front.places[at] = entry_at(front, row, column)
    elif weight == 0.0:
        return True
    else:
        front.places[2 * at], front.places[2 * at + 1] = row, column
    front.at = at + 1
    return True


@inline
def empty_front(front):
    """What the front has of inputs goes where it belongs, where there are no other rows in it; whether there was room."""
    width, members, square = front.width, front.members, front.square
    has_room = True
    if front.kind == MAKE_VALUES:
        values_of_front(front)
    else:
        for i in range(width):
            for j in range(i + 1):
                row, other = members[i], members[j]
                if row > 0 and other > 0:
                    weight = square[MOST_SLOTS * i + j] + square[MOST_SLOTS * j + i]
                    has_room = entry_of_front(front, max(row, other) - 1, min(row, other) - 1, weight) and has_room
    for i in range(width):
        row = f64(from_element(square, MOST_SLOTS * i), width)
        for j in range(width):
            row[j] = 0.0
    empty_slots(front)
    return has_room


@inline
def push_along(front, slot, row, first, stop):
    """The edges of a row go on along its pairs, `first` to `stop`; whether there were slots for all."""
    rows, partials, slots, width = front.rows, front.partials, front.slots, front.width
    square, along = front.square, front.along
    # The row and the column of the slot together are its edges.
    for s in range(width):
        along[s] = square[MOST_SLOTS * slot + s] + square[MOST_SLOTS * s + slot]
        square[MOST_SLOTS * s + slot] = 0.0
    for s in range(width):
        square[MOST_SLOTS * slot + s] = 0.0
    own = along[slot]
    along[slot] = 0.0
    free_slot(front, row, slot)
    half = 0.5 * own
    for k in range(first, stop):
        a, p = rows[k] & MASK, partials[k]
        if a != 0 and a < row:
            to, before = slots[a], front.width
            if to < 0:
                to = new_slot(front, a)
                if to < 0:
                    return False
                if front.width > before:
                    along[before] = 0.0
            if p != 0.0 and half != 0.0:
                along[to] += half * p
    width = front.width
    values = f64(along, width)
    for k in range(first, stop):
        a, p = rows[k] & MASK, partials[k]
        if p == 0.0 or a == 0 or a >= row:
            continue
        out = f64(from_element(square, MOST_SLOTS * slots[a]), width)
        if p - p == 0.0:
            for s in range(width):
                out[s] += p * values[s]
        else:
            for s in range(width):
                if values[s] != 0.0:
                    out[s] += p * values[s]
    front.steps += width * (stop - first + 1)
    return True


@entry("int64(Front)")
def push_edges(front):
    """All second derivatives; adjoints in `bars` are those of the results before, and zero elsewhere.

    Where second partials are weighed with adjoints already there are no `bars`.
    Zero, or why it stopped. Slots begin as -1, members and the square as zero, and are so again if it is zero.
    """
    rows, partials, triplets, bars, square = front.rows, front.partials, front.triplets, front.bars, front.square
    row, inputs, t = front.last, front.inputs, front.triplet_count - 1
    stop = front.pairs
    while stop > 0 and row > inputs:
        first = stop - 1
        while rows[first] >= 0:
            first -= 1
        slot = front.slots[row]
        if slot >= 0 and not push_along(front, slot, row, first, stop):
            return TOO_WIDE
        bar = 1.0 if front.weighed != 0 else bars[row]
        while t >= 0 and triplets[3 * t] >= row:
            a, b = triplets[3 * t + 1], triplets[3 * t + 2]
            if triplets[3 * t] == row and 0 < a < row and 0 < b < row:
                i, j, second = slot_for(front, a), slot_for(front, b), front.seconds[t]
                if i < 0 or j < 0:
                    return TOO_WIDE
                if bar != 0.0 and second != 0.0:
                    square[MOST_SLOTS * i + j] += bar * second
            t -= 1
        if bar != 0.0 and front.weighed == 0:
            for k in range(first, stop):
                a, p = rows[k] & MASK, partials[k]
                if p != 0.0 and a < row:
                    bars[a] += p * bar
        if front.count == 0 and front.width > 0 and not empty_front(front):
            return NO_ROOM_LEFT
        if front.steps > front.limit:
            return TOO_LONG
        stop = first
        row -= 1
    return 0
