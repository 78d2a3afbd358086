"""Rows that nothing refers to any more: what they own is released at once, and their places at the end are given back.

The handles on a row and the references of later rows to it are counted. When the last one goes, the row is *vacated*: its own
references are taken back, which may vacate further rows, and its objects are released. Vacant places in the middle stay until
rows are moved together.

Objects are released one at a time, when the tape is consistent: their destructors may run any Python code, which may record, drop
other tensors, and let other threads run. Rows do not move meanwhile.
"""

from tapegrad.compilation.jit import entry, inline, kernel
from tapegrad.engine.handles import free_handle, slot_of
from tapegrad.engine.layout import *
from tapegrad.engine.memory import call2, release
from tapegrad.engine.owned import argument_count, argument_row, object_count, pop_object, saved_bytes
from tapegrad.engine.reference_counts import hold, note_unreferenced, unhold
from tapegrad.engine.rows import change_pins
from tapegrad.engine.structs import words_at


@inline
def waiting_list(value):
    """The column of values of rows that are to be vacated, where each names the next: nobody reads their primals any more."""
    return words_at(value)


@inline
def take_back(held, value, slot, waiting):
    """One reference less to a row; if it was the last, the row is put before `waiting` on the list of those to vacate."""
    count = held[slot] - 1
    held[slot] = count
    if count != 0:
        return waiting
    waiting_list(value)[slot] = waiting
    return slot


@inline
def take_back_all(tape, record, waiting):
    """Let a record refer to nothing; the first of the rows to vacate now."""
    held, value = tape.held, tape.value
    for k in range(argument_count(record)):
        reference = argument_row(record, k)
        if reference >= 0:
            record[ARGUMENTS + 2 * k] |= 0xFFFFFFFF
            waiting = take_back(held, value, reference, waiting)
    return waiting


@inline
def give_place_back(tape, slot, opcode, a, b):
    """Take a vacant row off the end, which refers to constants `a` and `b` or to none."""
    tape.rows = slot
    if tape.flags[slot] & OVERWRITTEN:
        tape.overwritten_rows -= 1
    if opcode & WIDE:
        if opcode == LEAF | WIDE:
            tape.leaves -= 1
        tape.side_rows = a
    elif min(a, b) <= -2:
        tape.constants = -2 - min(a, b)


@inline
def release_objects(tape, slot):
    """Release what the record of a vacant row owns."""
    record = tape.side[tape.first[slot]]
    if object_count(record) == 0:
        return
    tape.saved_bytes -= saved_bytes(record)
    tape.releasing += 1
    change_pins(tape, 1)
    while object_count(record) > 0:
        obj = pop_object(record)
        release(obj)
        record = tape.side[tape.first[slot]]  # the column may have grown
    tape.releasing -= 1
    change_pins(tape, -1)


@inline
def vacate_wide(tape, slot, waiting):
    """Vacate a wide row; the first of the rows to vacate now."""
    record = tape.side[tape.first[slot]]
    waiting = take_back_all(tape, record, waiting)
    make_vacant(tape, slot)
    release_objects(tape, slot)
    return waiting


@inline
def make_vacant(tape, slot):
    """Mark a row that refers to nothing; whoever comes by all the same must not walk it."""
    flags = tape.flags
    flags[slot] = (flags[slot] & OVERWRITTEN) | FREED | CUT
    tape.held[slot] = VACANT


@inline
def vacate_from(tape, slot):
    """Vacate a row and all that nothing else refers to; they are listed through their values, which nobody reads any more."""
    waiting_list(tape.value)[slot] = -1
    while slot >= 0:
        opcode, waiting = tape.opcode[slot], waiting_list(tape.value)[slot]
        if opcode & WIDE:
            slot = vacate_wide(tape, slot, waiting)
            continue
        held, value, first, second = tape.held, tape.value, tape.first, tape.second
        a, b = first[slot], second[slot]
        if a >= 0:
            waiting = take_back(held, value, a, waiting)
        if b >= 0:
            waiting = take_back(held, value, b, waiting)
        if slot == tape.rows - 1 and tape.pins == 0:
            give_place_back(tape, slot, opcode, a, b)
        else:
            first[slot] = min(a, -1)
            second[slot] = min(b, -1)
            make_vacant(tape, slot)
        slot = waiting


@inline
def give_places_back(tape):
    """Take the vacant rows off the end."""
    last = tape.rows - 1
    while last >= 0 and tape.held[last] == VACANT and tape.pins == 0:
        opcode, a, b = (
            tape.opcode[last],
            tape.first[last],
            tape.second[last],
        )
        give_place_back(tape, last, opcode, a, b)
        last -= 1


@inline
def vacate_noted(tape):
    """Vacate the rows that were noted to have no references left, unless a pass knows rows by their slots."""
    while tape.pins == 0 and tape.unreferenced_high >= 0:
        slot, low = tape.unreferenced_high, tape.unreferenced_low
        tape.unreferenced_high = -1
        tape.unreferenced_low = NO_ROW
        while slot >= low and tape.pins == 0:
            if slot < tape.rows and tape.held[slot] == 0:
                vacate_from(tape, slot)
            slot -= 1
        if slot >= low:  # another thread began a pass while objects were released; it may know the rest
            note_unreferenced(tape, low)
            note_unreferenced(tape, slot)
        give_places_back(tape)


@kernel("void(Tape,int64)")
def give_back(tape, handle):
    """Free a handle, if there is one, and vacate what nothing refers to now."""
    slot = free_handle(tape, handle) if handle > 0 else -1
    if tape.pins != 0:
        if slot >= 0:
            note_unreferenced(tape, slot)
        return
    if slot >= 0:
        vacate_from(tape, slot)
        give_places_back(tape)
    if tape.unreferenced_high >= 0:
        vacate_noted(tape)
    # A long graph is gone: do not let as many dead rows gather before they are looked for.
    if 2 * tape.rows + LEAST_ROWS < tape.limit:
        tape.limit = 2 * tape.rows + LEAST_ROWS


@entry("int64(Tape,int64)")
def drop(tape, handle):
    """A handle died; so may rows."""
    call2(tape.give_back, tape, handle)
    return 0


@entry("int64(Tape,int64)")
def pin(tape, change):
    """Keep rows from moving while sweeps (counted) know them by their slots."""
    change_pins(tape, change)
    if tape.pins == 0:
        call2(tape.give_back, tape, 0)
    return tape.pins


@inline
def note_overwritten(tape, handle):
    """The scalar of this row was changed in place: derivatives that would read it must not run.

    If the row is an alias, the handle goes back to the row behind it, so that old aliases do not gather; whether that is so.
    """
    slot = slot_of(tape, handle)
    flags = tape.flags
    if flags[slot] & OVERWRITTEN == 0:
        flags[slot] |= OVERWRITTEN
        tape.overwritten_rows += 1
    if tape.opcode[slot] == 0:
        behind = tape.first[slot]
        hold(tape, behind)
        tape.handle[handle] = behind
        if unhold(tape, slot) == 0:
            note_unreferenced(tape, slot)
        return True
    return False


@entry("int64(Tape,int64)")
def mark_overwritten(tape, handle):
    """The scalar of this row was changed in place."""
    if note_overwritten(tape, handle):
        call2(tape.give_back, tape, 0)
    return 0
