"""Moving the living rows together: mark and compact.

A row lives while a handle points at it or a later living row refers to it; what lies below freed rows only is not needed for that.
The order of rows never changes, so references always point downwards. Objects that rows own are released last, when the tape is
consistent again: their destructors may run any Python code, and that code may record.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.handles import move_anchors
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    get,
    load_f64,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    put,
    release,
    store_f64,
    store_i32,
    store_u8,
    store_u16,
)
from tapegrad.engine.owned import argument_count, argument_kind, argument_row, discard, saved_bytes
from tapegrad.engine.reference_counts import hold


@inline
def mark_held(tape, new_slot):
    """Mark the rows of handles, and those behind them if they are aliases: gradients with respect to these may be asked for."""
    handles, opcodes, first = get(tape, HANDLE), get(tape, OPCODE), get(tape, FIRST)
    for handle in range(1, get(tape, HANDLE_CAPACITY)):
        slot = load_i32(handles + 4 * handle)
        while slot >= 0 and load_i32(new_slot + 4 * slot) == 0:
            store_i32(new_slot + 4 * slot, 1)
            if load_u16(opcodes + 2 * slot) == 0:
                slot = load_i32(first + 4 * slot)


@inline
def leads_nowhere(flags, new_slot, slot):
    """Whether no pass can want what stands behind a reference: nobody holds the row, and all ways down from it are freed."""
    return slot < 0 or (load_u8(flags + slot) & DEAD != 0 and load_i32(new_slot + 4 * slot) == 0)


@inline
def find_dead(tape, new_slot):
    """Find the rows (upwards) from which every way down ends in freed ones before it meets a row that is held.

    What they refer to need not be kept.
    """
    opcodes, flags, first, second = get(tape, OPCODE), get(tape, FLAGS), get(tape, FIRST), get(tape, SECOND)
    side = get(tape, SIDE)
    for slot in range(get(tape, ROWS)):
        opcode, flag = load_u16(opcodes + 2 * slot), load_u8(flags + slot)
        if opcode == LEAF | WIDE:
            continue
        a, b = load_i32(first + 4 * slot), load_i32(second + 4 * slot)
        dead = True
        if flag & FREED == 0 and opcode & WIDE:
            record = side + 8 * a
            for k in range(argument_count(record)):
                dead = dead and leads_nowhere(flags, new_slot, argument_row(record, k))
        elif flag & FREED == 0:
            dead = leads_nowhere(flags, new_slot, a) and leads_nowhere(flags, new_slot, b)
        store_u8(flags + slot, flag | DEAD if dead else flag & ~DEAD)


@inline
def mark(tape, new_slot):
    """Find the living rows: `new_slot` (int32 a row, 1 for those that `mark_held` found) becomes 1 for them; their number."""
    rows = get(tape, ROWS)
    opcodes, flags, first, second, side = (
        get(tape, OPCODE),
        get(tape, FLAGS),
        get(tape, FIRST),
        get(tape, SECOND),
        get(tape, SIDE),
    )
    living = 0
    for slot in range(rows - 1, -1, -1):
        opcode = load_u16(opcodes + 2 * slot)
        alive = load_i32(new_slot + 4 * slot) != 0
        a, b = load_i32(first + 4 * slot), load_i32(second + 4 * slot)
        if alive:
            living += 1
        if opcode & WIDE:
            record = side + 8 * a
            if alive and load_u8(flags + slot) & DEAD == 0:
                for k in range(argument_count(record)):
                    reference = argument_row(record, k)
                    if reference >= 0:
                        store_i32(new_slot + 4 * reference, 1)
        elif alive and (load_u8(flags + slot) & DEAD == 0 or opcode == 0):  # what an alias stands for is always asked for
            if a >= 0:
                store_i32(new_slot + 4 * a, 1)
            if b >= 0:
                store_i32(new_slot + 4 * b, 1)
    return living


@inline
def all_saved_bytes(tape):
    """Bytes of the arrays that all rows keep alive, counted once a use."""
    total = 0
    opcodes, first, side = get(tape, OPCODE), get(tape, FIRST), get(tape, SIDE)
    for slot in range(get(tape, ROWS)):
        if load_u16(opcodes + 2 * slot) & WIDE:
            total += saved_bytes(side + 8 * load_i32(first + 4 * slot))
    return total


@inline
def moved_row(tape, new_slot, reference):
    """Where a row that is referred to stands now, -1 if it is gone; references are counted anew."""
    moved = load_i32(new_slot + 4 * reference)
    if moved >= 0:
        hold(tape, moved)
    return moved


@inline
def compact(tape, new_slot, trash):
    """Move the living rows together, keeping their order. Owned objects of dead rows are listed in `trash`; their number.

    `new_slot` comes from `mark` and leaves as the new slot of each row, -1 for dead ones.
    """
    rows = get(tape, ROWS)
    opcodes, flags, first, second = get(tape, OPCODE), get(tape, FLAGS), get(tape, FIRST), get(tape, SECOND)
    held, value, side, constant = get(tape, HELD), get(tape, VALUE), get(tape, SIDE), get(tape, CONSTANT)
    to = words = constants = count = leaves = overwritten = 0
    for slot in range(rows):
        opcode = load_u16(opcodes + 2 * slot)
        a, b = load_i32(first + 4 * slot), load_i32(second + 4 * slot)
        if load_i32(new_slot + 4 * slot) == 0:
            store_i32(new_slot + 4 * slot, -1)
            if opcode & WIDE:
                count = discard(side + 8 * a, trash, count)
            continue
        store_i32(new_slot + 4 * slot, to)
        flag = load_u8(flags + slot)
        cut = False  # whether a row that it refers to is gone
        if opcode & WIDE:
            record, target = side + 8 * a, side + 8 * words
            length = get(record, LENGTH)
            for word in range(length):
                put(target, word, get(record, word))
            for k in range(argument_count(target)):
                reference = argument_row(target, k)
                if reference >= 0:
                    moved = moved_row(tape, new_slot, reference)
                    cut = cut or moved < 0
                    put(target, ARGUMENTS + 2 * k, (moved & 0xFFFFFFFF) | (argument_kind(target, k) << 32))
            a = words
            words += length
            if opcode == LEAF | WIDE:
                leaves += 1
        else:
            if a <= -2:
                store_f64(constant + 8 * constants, load_f64(constant + 8 * (-2 - a)))
                a = -2 - constants
                constants += 1
            elif a >= 0:
                a = moved_row(tape, new_slot, a)
                cut = a < 0
            if b <= -2:
                store_f64(constant + 8 * constants, load_f64(constant + 8 * (-2 - b)))
                b = -2 - constants
                constants += 1
            elif b >= 0:
                b = moved_row(tape, new_slot, b)
                cut = cut or b < 0
        if cut:
            flag |= FREED | CUT  # it must never be walked again
        if flag & OVERWRITTEN:
            overwritten += 1
        store_u16(opcodes + 2 * to, opcode)
        store_u8(flags + to, flag)
        store_i32(held + 4 * to, 0)
        store_i32(first + 4 * to, a)
        store_i32(second + 4 * to, b)
        store_f64(value + 8 * to, load_f64(value + 8 * slot))
        to += 1
    handles = get(tape, HANDLE)
    for handle in range(1, get(tape, HANDLE_CAPACITY)):
        slot = load_i32(handles + 4 * handle)
        if slot >= 0:
            moved = load_i32(new_slot + 4 * slot)
            store_i32(handles + 4 * handle, moved)
            hold(tape, moved)
    move_anchors(tape, new_slot, rows)
    put(tape, UNREFERENCED_HIGH, -1)
    put(tape, UNREFERENCED_LOW, NO_ROW)
    put(tape, ROWS, to)
    put(tape, SIDE_ROWS, words)
    put(tape, CONSTANTS, constants)
    put(tape, LEAVES, leaves)
    put(tape, OVERWRITTEN_ROWS, overwritten)
    put(tape, SAVED_BYTES, all_saved_bytes(tape))
    put(tape, MOVES, get(tape, MOVES) + 1)
    return count


@entry("int64(int64,int64,int64,int64,int64)")
def collect_rows(tape, new_slot, slots, trash, objects):
    """Mark and compact in one step, so that nothing can be recorded between.

    `new_slot` has room for `slots` rows (int32, zeros), `trash` for `objects` addresses. The number of objects to release, -1
    if everything is alive or must not move, -2 if the room is too small by now.
    """
    rows = get(tape, ROWS)
    if get(tape, PINS) != 0:
        return -1  # a pass in another thread knows rows by their slots
    if rows > slots or get(tape, SIDE_ROWS) > objects:
        return -2
    mark_held(tape, new_slot)
    find_dead(tape, new_slot)
    if mark(tape, new_slot) == rows:
        return -1
    return compact(tape, new_slot, trash)


@entry("int64(int64,int64,int64,int64)")
def change_flags(tape, slot, clear, flags):
    """Clear and set flags of a row in one step."""
    place = get(tape, FLAGS) + slot
    store_u8(place, (load_u8(place) & ~clear) | flags)
    return 0


@entry("int64(int64,int64,int64)")
def correct_pins(tape, clock, right):
    """Set the number of pins, unless it has changed since the clock was read."""
    if get(tape, PIN_CLOCK) == clock:
        put(tape, PINS, right)
    return get(tape, PINS)


@entry("int64(int64,int64)")
def release_all(trash, count):
    """Release listed objects; their destructors may run any code, so the list is the caller's own."""
    for k in range(count):
        release(load_i64(trash + 8 * k))
    return 0
