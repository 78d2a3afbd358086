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
from tapegrad.engine.memory import call2, get, load_i32, load_i64, load_u8, load_u16, put, release, store_i32, store_i64, store_u8
from tapegrad.engine.owned import argument_count, argument_row, object_count, pop_object, saved_bytes
from tapegrad.engine.reference_counts import hold, note_unreferenced, unhold
from tapegrad.engine.rows import change_pins


@inline
def take_back(held, value, slot, waiting):
    """One reference less to a row; if it was the last, the row is put before `waiting` on the list of those to vacate."""
    count = load_i32(held + 4 * slot) - 1
    store_i32(held + 4 * slot, count)
    if count != 0:
        return waiting
    store_i64(value + 8 * slot, waiting)  # nobody reads its primal any more
    return slot


@inline
def take_back_all(tape, record, waiting):
    """Let a record refer to nothing; the first of the rows to vacate now."""
    held, value = get(tape, HELD), get(tape, VALUE)
    for k in range(argument_count(record)):
        reference = argument_row(record, k)
        if reference >= 0:
            put(record, ARGUMENTS + 2 * k, get(record, ARGUMENTS + 2 * k) | 0xFFFFFFFF)
            waiting = take_back(held, value, reference, waiting)
    return waiting


@inline
def give_place_back(tape, slot, opcode, a, b):
    """Take a vacant row off the end, which refers to constants `a` and `b` or to none."""
    put(tape, ROWS, slot)
    if load_u8(get(tape, FLAGS) + slot) & OVERWRITTEN:
        put(tape, OVERWRITTEN_ROWS, get(tape, OVERWRITTEN_ROWS) - 1)
    if opcode & WIDE:
        if opcode == LEAF | WIDE:
            put(tape, LEAVES, get(tape, LEAVES) - 1)
        put(tape, SIDE_ROWS, a)
    elif min(a, b) <= -2:
        put(tape, CONSTANTS, -2 - min(a, b))


@inline
def release_objects(tape, slot):
    """Release what the record of a vacant row owns."""
    record = get(tape, SIDE) + 8 * load_i32(get(tape, FIRST) + 4 * slot)
    if object_count(record) == 0:
        return
    put(tape, SAVED_BYTES, get(tape, SAVED_BYTES) - saved_bytes(record))
    put(tape, RELEASING, get(tape, RELEASING) + 1)
    change_pins(tape, 1)
    while object_count(record) > 0:
        obj = pop_object(record)
        release(obj)
        record = get(tape, SIDE) + 8 * load_i32(get(tape, FIRST) + 4 * slot)  # the column may have grown
    put(tape, RELEASING, get(tape, RELEASING) - 1)
    change_pins(tape, -1)


@inline
def vacate_wide(tape, slot, waiting):
    """Vacate a wide row; the first of the rows to vacate now."""
    record = get(tape, SIDE) + 8 * load_i32(get(tape, FIRST) + 4 * slot)
    waiting = take_back_all(tape, record, waiting)
    make_vacant(tape, slot)
    release_objects(tape, slot)
    return waiting


@inline
def make_vacant(tape, slot):
    """Mark a row that refers to nothing; whoever comes by all the same must not walk it."""
    flags = get(tape, FLAGS) + slot
    store_u8(flags, (load_u8(flags) & OVERWRITTEN) | FREED | CUT)
    store_i32(get(tape, HELD) + 4 * slot, VACANT)


@inline
def vacate_from(tape, slot):
    """Vacate a row and all that nothing else refers to; they are listed through their values, which nobody reads any more."""
    store_i64(get(tape, VALUE) + 8 * slot, -1)
    while slot >= 0:
        opcode, waiting = load_u16(get(tape, OPCODE) + 2 * slot), load_i64(get(tape, VALUE) + 8 * slot)
        if opcode & WIDE:
            slot = vacate_wide(tape, slot, waiting)
            continue
        held, value, first, second = get(tape, HELD), get(tape, VALUE), get(tape, FIRST), get(tape, SECOND)
        a, b = load_i32(first + 4 * slot), load_i32(second + 4 * slot)
        if a >= 0:
            waiting = take_back(held, value, a, waiting)
        if b >= 0:
            waiting = take_back(held, value, b, waiting)
        if slot == get(tape, ROWS) - 1 and get(tape, PINS) == 0:
            give_place_back(tape, slot, opcode, a, b)
        else:
            store_i32(first + 4 * slot, min(a, -1))
            store_i32(second + 4 * slot, min(b, -1))
            make_vacant(tape, slot)
        slot = waiting


@inline
def give_places_back(tape):
    """Take the vacant rows off the end."""
    last = get(tape, ROWS) - 1
    while last >= 0 and load_i32(get(tape, HELD) + 4 * last) == VACANT and get(tape, PINS) == 0:
        opcode, a, b = (
            load_u16(get(tape, OPCODE) + 2 * last),
            load_i32(get(tape, FIRST) + 4 * last),
            load_i32(get(tape, SECOND) + 4 * last),
        )
        give_place_back(tape, last, opcode, a, b)
        last -= 1


@inline
def vacate_noted(tape):
    """Vacate the rows that were noted to have no references left, unless a pass knows rows by their slots."""
    while get(tape, PINS) == 0 and get(tape, UNREFERENCED_HIGH) >= 0:
        slot, low = get(tape, UNREFERENCED_HIGH), get(tape, UNREFERENCED_LOW)
        put(tape, UNREFERENCED_HIGH, -1)
        put(tape, UNREFERENCED_LOW, NO_ROW)
        while slot >= low and get(tape, PINS) == 0:
            if slot < get(tape, ROWS) and load_i32(get(tape, HELD) + 4 * slot) == 0:
                vacate_from(tape, slot)
            slot -= 1
        if slot >= low:  # another thread began a pass while objects were released; it may know the rest
            note_unreferenced(tape, low)
            note_unreferenced(tape, slot)
        give_places_back(tape)


@kernel("void(int64,int64)")
def give_back(tape, handle):
    """Free a handle, if there is one, and vacate what nothing refers to now."""
    slot = free_handle(tape, handle) if handle > 0 else -1
    if get(tape, PINS) != 0:
        if slot >= 0:
            note_unreferenced(tape, slot)
        return
    if slot >= 0:
        vacate_from(tape, slot)
        give_places_back(tape)
    if get(tape, UNREFERENCED_HIGH) >= 0:
        vacate_noted(tape)
    # A long graph is gone: do not let as many dead rows gather before they are looked for.
    if 2 * get(tape, ROWS) + LEAST_ROWS < get(tape, LIMIT):
        put(tape, LIMIT, 2 * get(tape, ROWS) + LEAST_ROWS)


@entry("int64(int64,int64)")
def drop(tape, handle):
    """A handle died; so may rows."""
    call2(get(tape, GIVE_BACK), tape, handle)
    return 0


@entry("int64(int64,int64)")
def pin(tape, change):
    """Keep rows from moving while sweeps (counted) know them by their slots."""
    change_pins(tape, change)
    if get(tape, PINS) == 0:
        call2(get(tape, GIVE_BACK), tape, 0)
    return get(tape, PINS)


@entry("int64(int64,int64)")
def mark_overwritten(tape, handle):
    """The scalar of this row was changed in place: derivatives that would read it must not run.

    If the row is an alias, the handle goes back to the row behind it, so that old aliases do not gather.
    """
    slot = slot_of(tape, handle)
    flags = get(tape, FLAGS) + slot
    if load_u8(flags) & OVERWRITTEN == 0:
        store_u8(flags, load_u8(flags) | OVERWRITTEN)
        put(tape, OVERWRITTEN_ROWS, get(tape, OVERWRITTEN_ROWS) + 1)
    if load_u16(get(tape, OPCODE) + 2 * slot) == 0:
        behind = load_i32(get(tape, FIRST) + 4 * slot)
        hold(tape, behind)
        store_i32(get(tape, HANDLE) + 4 * handle, behind)
        if unhold(tape, slot) == 0:
            note_unreferenced(tape, slot)
        call2(get(tape, GIVE_BACK), tape, 0)
    return 0
