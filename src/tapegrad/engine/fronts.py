"""Slots of rows in a front, and where the entries of a pattern are."""

from tapegrad.compilation.jit import inline
from tapegrad.compilation.memory_types import DOUBLES, INTS, WORDS, struct
from tapegrad.engine.edge_layout import *
from tapegrad.engine.star_colouring import place_of
from tapegrad.engine.structs import fields

Front = struct(
    "Front",
    fields(globals(), "FRONT_ROWS", "FRONT_WORDS", "FRONT_"),
    rows=INTS,
    partials=DOUBLES,
    triplets=INTS,
    seconds=DOUBLES,
    bars=DOUBLES,
    ends=WORDS,
    items=INTS,
    found=DOUBLES,
    places=INTS,
    slots=INTS,
    members=INTS,
    square=DOUBLES,
    along=DOUBLES,
    outs=INTS,
    order=INTS,
    outputs=INTS,
    holes=INTS,
)
MASK = 0x7FFFFFFF


@inline
def new_slot(front, row):
    """A slot for a row that has none; -1 if there is none left."""
    holes = front.hole_count
    if holes > 0:
        slot = front.holes[holes - 1]
        front.hole_count = holes - 1
    else:
        slot = front.width
        if slot == MOST_SLOTS:
            return -1
        front.width = slot + 1
    front.members[slot] = row
    front.slots[row] = slot
    if row > front.inputs:
        front.count += 1
    return slot


@inline
def slot_for(front, row):
    """The slot of a row, a new one if it has none; -1 if there is none left."""
    slot = front.slots[row]
    return slot if slot >= 0 else new_slot(front, row)


@inline
def free_slot(front, row, slot):
    """Take the slot of a row that is no input."""
    front.members[slot] = 0
    front.slots[row] = -1
    holes = front.hole_count
    front.holes[holes] = slot
    front.hole_count = holes + 1
    front.count -= 1


@inline
def entry_at(front, row, column):
    """The place of an entry of the pattern, -1 if there is none."""
    return place_of(front.items, front.ends[row], front.ends[row + 1], column)


@inline
def empty_slots(front):
    """Give up all slots."""
    members, slots = front.members, front.slots
    for i in range(front.width):
        if members[i] > 0:
            slots[members[i]] = -1
            members[i] = 0
    front.width = 0
    front.hole_count = 0


@inline
def list_members(front, width):
    """The slots that are taken, in the place of those that are free; how many."""
    count, members, holes = 0, front.members, front.holes
    for i in range(width):
        if members[i] > 0:
            holes[count] = i
            count += 1
    return count
