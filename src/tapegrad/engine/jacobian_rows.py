"""Jacobians from the rows of a recording, in one pass backwards: adjoints of each output, where few outputs share rows.

It eliminates rows in reverse order [1]_. An output's adjoints stand in a column of the front from its row on until only inputs are
left there.

References
----------
.. [1] A. Griewank, A. Walther, "Evaluating Derivatives", 2nd edition, SIAM 2008, chapter 9.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.edge_layout import *
from tapegrad.engine.fronts import MASK, empty_slots, entry_at, free_slot, list_members, new_slot


@inline
def entry_of_output(front, output, row, value):
    """What becomes of the derivative of an output by an input; whether there was room."""
    at = front.at
    if front.kind == MAKE_PLACES:
        if at >= front.room:
            return False
        front.places[at] = entry_at(front, output, row - 1)
    else:
        place = front.places[at]
        if place >= 0:
            front.found[place] += value
    front.at = at + 1
    return True


@inline
def empty_columns(front):
    """What the front has of inputs goes where it belongs; whether there was room."""
    width, outputs, members, square, taken = front.width, front.output_count, front.members, front.square, front.holes
    has_room = True
    count = list_members(front, width)
    if front.kind == MAKE_PLACES:
        for k in range(count):
            for c in range(outputs):
                has_room = entry_of_output(front, front.outputs[c], members[taken[k]], 0.0) and has_room
    else:
        found, places, at = front.found, front.places, front.at
        for k in range(count):
            own = MOST_OUTPUTS * taken[k]
            for c in range(outputs):
                place = places[at]
                at += 1
                if place >= 0:
                    found[place] += square[own + c]
        front.at = at
    for i in range(width):
        for c in range(outputs):
            square[MOST_OUTPUTS * i + c] = 0.0
    empty_slots(front)
    front.output_count = 0
    return has_room


@inline
def pull_along(front, slot, row, first, stop):
    """The adjoints of a row go on along its pairs, `first` to `stop`; whether there were slots for all."""
    rows, partials, slots, square, count = front.rows, front.partials, front.slots, front.square, front.output_count
    free_slot(front, row, slot)
    own = MOST_OUTPUTS * slot
    # The first that gains a slot might get this one, whose adjoints are read on.
    along = front.along
    for c in range(count):
        along[c] = square[own + c]
        square[own + c] = 0.0
    for k in range(first, stop):
        a, p = rows[k] & MASK, partials[k]
        if a == 0 or a >= row:
            continue
        to = slots[a]
        if to < 0:
            to = new_slot(front, a)
            if to < 0:
                return False
        if p != 0.0:
            at = MOST_OUTPUTS * to
            for c in range(count):
                if along[c] != 0.0:
                    square[at + c] += p * along[c]
    front.steps += (count + 1) * (stop - first)
    return True


@entry("int64(Front)")
def pull_rows(front):
    """The derivatives of all results, whose rows in ascending order are `outs` and their numbers `order`.

    Zero, or why it stopped. Slots begin as -1, members and the square as zero, and are so again if it is zero.
    """
    rows, outs = front.rows, front.outs
    row, inputs, t, stop = front.last, front.inputs, front.results - 1, front.pairs
    while t >= 0 and outs[t] > row:
        t -= 1
    while stop > 0 and row > inputs:
        first = stop - 1
        while rows[first] >= 0:
            first -= 1
        while t >= 0 and outs[t] == row:
            slot, column = front.slots[row], front.output_count
            if slot < 0:
                slot = new_slot(front, row)
            if slot < 0 or column == MOST_OUTPUTS:
                return TOO_WIDE
            front.outputs[column] = front.order[t]
            front.output_count = column + 1
            front.square[MOST_OUTPUTS * slot + column] = 1.0
            t -= 1
        slot = front.slots[row]
        if slot >= 0:
            if not pull_along(front, slot, row, first, stop):
                return TOO_WIDE
            if front.count == 0 and not empty_columns(front):
                return NO_ROOM_LEFT
        if front.steps > front.limit:
            return TOO_LONG
        stop = first
        row -= 1
    while t >= 0:
        if outs[t] > 0 and not entry_of_output(front, front.order[t], outs[t], 1.0):
            return NO_ROOM_LEFT
        t -= 1
    return 0
