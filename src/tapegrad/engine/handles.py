"""Handles and anchors: numbers under which Python finds a row wherever it stands.

A row lives for its handles; an anchor follows its row and lets it die. Both are tables of slots whose free entries are chained.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import get, load_i32, put, store_i32
from tapegrad.engine.reference_counts import hold, unhold


@inline
def slot_of(tape, handle):
    """Where the row of a handle stands now; -1 for an untracked operand."""
    return load_i32(get(tape, HANDLE) + 4 * handle) if handle > 0 else -1


@inline
def take_handle(tape, slot):
    """A fresh handle on a row; free handles are chained through the table."""
    handles = get(tape, HANDLE)
    handle = get(tape, HANDLE_FREE)
    put(tape, HANDLE_FREE, -load_i32(handles + 4 * handle) - 2)
    store_i32(handles + 4 * handle, slot)
    hold(tape, slot)
    return handle


@entry("int64(int64,int64)")
def another_handle(tape, slot):
    """A further handle on a row; `GONE` if none stands there."""
    if slot < 0 or slot >= get(tape, ROWS):
        return GONE
    if get(tape, HANDLE_FREE) < 0:
        return FULL
    return take_handle(tape, slot)


@inline
def free_handle(tape, handle):
    """Give a handle back; the slot of its row if nothing refers to that now, else -1."""
    handles = get(tape, HANDLE)
    slot = load_i32(handles + 4 * handle)
    store_i32(handles + 4 * handle, (-get(tape, HANDLE_FREE) - 2))
    put(tape, HANDLE_FREE, handle)
    return slot if unhold(tape, slot) == 0 else -1


@entry("int64(int64,int64)")
def new_anchor(tape, slot):
    """An anchor at a row, which lets the row die and follows it when it moves; 0 if the table is full."""
    anchor = get(tape, ANCHOR_FREE)
    if anchor < 0:
        return 0
    place = get(tape, ANCHOR) + 4 * anchor
    put(tape, ANCHOR_FREE, -2 - load_i32(place))
    store_i32(place, slot)
    return anchor


@entry("int64(int64,int64)")
def drop_anchor(tape, anchor):
    """An anchor is not needed any more."""
    store_i32(get(tape, ANCHOR) + 4 * anchor, -2 - get(tape, ANCHOR_FREE))
    put(tape, ANCHOR_FREE, anchor)
    return 0


@inline
def move_anchors(tape, new_slot, rows):
    """Let anchors follow their rows."""
    anchors = get(tape, ANCHOR)
    for anchor in range(1, get(tape, ANCHOR_CAPACITY)):
        slot = load_i32(anchors + 4 * anchor)
        if slot >= 0:
            moved = load_i32(new_slot + 4 * slot) if slot < rows else -1  # it may have been taken off the end before
            store_i32(anchors + 4 * anchor, moved if moved >= 0 else GONE)
