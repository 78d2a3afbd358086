"""Handles and anchors: numbers under which Python finds a row wherever it stands.

A row lives for its handles; an anchor follows its row and lets it die. Both are tables of slots whose free entries are chained.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.reference_counts import hold, unhold


@inline
def slot_of(tape, handle):
    """Where the row of a handle stands now; -1 for an untracked operand."""
    return tape.handle[handle] if handle > 0 else -1


@inline
def take_handle(tape, slot):
    """A fresh handle on a row; free handles are chained through the table."""
    handles = tape.handle
    handle = tape.handle_free
    tape.handle_free = -handles[handle] - 2
    handles[handle] = slot
    hold(tape, slot)
    return handle


@entry("int64(Tape,int64)")
def another_handle(tape, slot):
    """A further handle on a row; `GONE` if none stands there."""
    if slot < 0 or slot >= tape.rows:
        return GONE
    if tape.handle_free < 0:
        return FULL
    return take_handle(tape, slot)


@inline
def free_handle(tape, handle):
    """Give a handle back; the slot of its row if nothing refers to that now, else -1."""
    handles = tape.handle
    slot = handles[handle]
    handles[handle] = -tape.handle_free - 2
    tape.handle_free = handle
    return slot if unhold(tape, slot) == 0 else -1


@entry("int64(Tape,int64)")
def new_anchor(tape, slot):
    """An anchor at a row, which lets the row die and follows it when it moves; 0 if the table is full."""
    anchor = tape.anchor_free
    if anchor < 0:
        return 0
    anchors = tape.anchor
    tape.anchor_free = -2 - anchors[anchor]
    anchors[anchor] = slot
    return anchor


@entry("int64(Tape,int64)")
def drop_anchor(tape, anchor):
    """An anchor is not needed any more."""
    tape.anchor[anchor] = -2 - tape.anchor_free
    tape.anchor_free = anchor
    return 0


@inline
def move_anchors(tape, new_slot, rows):
    """Let anchors follow their rows."""
    anchors = tape.anchor
    for anchor in range(1, tape.anchor_capacity):
        slot = anchors[anchor]
        if slot >= 0:
            moved = new_slot[slot] if slot < rows else -1  # it may have been taken off the end before
            anchors[anchor] = moved if moved >= 0 else GONE
