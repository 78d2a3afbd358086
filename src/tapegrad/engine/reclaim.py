"""Moving the living rows together: mark and compact.

A row lives while a handle points at it or a later living row refers to it; what lies below freed rows only is not needed for that.
The order of rows never changes, so references always point downwards. Objects that rows own are released last, when the tape is
consistent again: their destructors may run any Python code, and that code may record.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.handles import move_anchors
from tapegrad.engine.layout import *
from tapegrad.engine.memory import release
from tapegrad.engine.owned import argument_count, argument_kind, argument_row, discard, saved_bytes
from tapegrad.engine.reference_counts import hold


@inline
def mark_held(tape, new_slot):
    """Mark the rows of handles, and those behind them if they are aliases: gradients with respect to these may be asked for."""
    handles, opcodes, first = tape.handle, tape.opcode, tape.first
    for handle in range(1, tape.handle_capacity):
        slot = handles[handle]
        while slot >= 0 and new_slot[slot] == 0:
            new_slot[slot] = 1
            if opcodes[slot] == 0:
                slot = first[slot]


@inline
def leads_nowhere(flags, new_slot, slot):
    """Whether no pass can want what stands behind a reference: nobody holds the row, and all ways down from it are freed."""
    return slot < 0 or (flags[slot] & DEAD != 0 and new_slot[slot] == 0)


@inline
def find_dead(tape, new_slot):
    """Find the rows (upwards) from which every way down ends in freed ones before it meets a row that is held.

    What they refer to need not be kept.
    """
    opcodes, flags, first, second = tape.opcode, tape.flags, tape.first, tape.second
    side = tape.side
    for slot in range(tape.rows):
        opcode, flag = opcodes[slot], flags[slot]
        if opcode == LEAF | WIDE:
            continue
        a, b = first[slot], second[slot]
        dead = True
        if flag & FREED == 0 and opcode & WIDE:
            record = side[a]
            for k in range(argument_count(record)):
                dead = dead and leads_nowhere(flags, new_slot, argument_row(record, k))
        elif flag & FREED == 0:
            dead = leads_nowhere(flags, new_slot, a) and leads_nowhere(flags, new_slot, b)
        flags[slot] = flag | DEAD if dead else flag & ~DEAD


@inline
def mark(tape, new_slot):
    """Find the living rows: `new_slot` (int32 a row, 1 for those that `mark_held` found) becomes 1 for them; their number."""
    rows = tape.rows
    opcodes, flags, first, second, side = (
        tape.opcode,
        tape.flags,
        tape.first,
        tape.second,
        tape.side,
    )
    living = 0
    for slot in range(rows - 1, -1, -1):
        opcode = opcodes[slot]
        alive = new_slot[slot] != 0
        a, b = first[slot], second[slot]
        if alive:
            living += 1
        if opcode & WIDE:
            record = side[a]
            if alive and flags[slot] & DEAD == 0:
                for k in range(argument_count(record)):
                    reference = argument_row(record, k)
                    if reference >= 0:
                        new_slot[reference] = 1
        elif alive and (flags[slot] & DEAD == 0 or opcode == 0):  # what an alias stands for is always asked for
            if a >= 0:
                new_slot[a] = 1
            if b >= 0:
                new_slot[b] = 1
    return living


@inline
def all_saved_bytes(tape):
    """Bytes of the arrays that all rows keep alive, counted once a use."""
    total = 0
    opcodes, first, side = tape.opcode, tape.first, tape.side
    for slot in range(tape.rows):
        if opcodes[slot] & WIDE:
            total += saved_bytes(side[first[slot]])
    return total


@inline
def moved_row(tape, new_slot, reference):
    """Where a row that is referred to stands now, -1 if it is gone; references are counted anew."""
    moved = new_slot[reference]
    if moved >= 0:
        hold(tape, moved)
    return moved


@inline
def compact(tape, new_slot, trash):
    """Move the living rows together, keeping their order. Owned objects of dead rows are listed in `trash`; their number.

    `new_slot` comes from `mark` and leaves as the new slot of each row, -1 for dead ones.
    """
    rows = tape.rows
    opcodes, flags, first, second = tape.opcode, tape.flags, tape.first, tape.second
    held, value, side, constant = tape.held, tape.value, tape.side, tape.constant
    to = words = constants = count = leaves = overwritten = 0
    for slot in range(rows):
        opcode = opcodes[slot]
        a, b = first[slot], second[slot]
        if new_slot[slot] == 0:
            new_slot[slot] = -1
            if opcode & WIDE:
                count = discard(side[a], trash, count)
            continue
        new_slot[slot] = to
        flag = flags[slot]
        cut = False  # whether a row that it refers to is gone
        if opcode & WIDE:
            record, target = side[a], side[words]
            length = record.length
            for word in range(length):
                target[word] = record[word]
            for k in range(argument_count(target)):
                reference = argument_row(target, k)
                if reference >= 0:
                    moved = moved_row(tape, new_slot, reference)
                    cut = cut or moved < 0
                    target[ARGUMENTS + 2 * k] = (moved & 0xFFFFFFFF) | (argument_kind(target, k) << 32)
            a = words
            words += length
            if opcode == LEAF | WIDE:
                leaves += 1
        else:
            if a <= -2:
                constant[constants] = constant[-2 - a]
                a = -2 - constants
                constants += 1
            elif a >= 0:
                a = moved_row(tape, new_slot, a)
                cut = a < 0
            if b <= -2:
                constant[constants] = constant[-2 - b]
                b = -2 - constants
                constants += 1
            elif b >= 0:
                b = moved_row(tape, new_slot, b)
                cut = cut or b < 0
        if cut:
            flag |= FREED | CUT  # it must never be walked again
        if flag & OVERWRITTEN:
            overwritten += 1
        opcodes[to] = opcode
        flags[to] = flag
        held[to] = 0
        first[to] = a
        second[to] = b
        value[to] = value[slot]
        to += 1
    handles = tape.handle
    for handle in range(1, tape.handle_capacity):
        slot = handles[handle]
        if slot >= 0:
            moved = new_slot[slot]
            handles[handle] = moved
            hold(tape, moved)
    move_anchors(tape, new_slot, rows)
    tape.unreferenced_high = -1
    tape.unreferenced_low = NO_ROW
    tape.rows = to
    tape.side_rows = words
    tape.constants = constants
    tape.leaves = leaves
    tape.overwritten_rows = overwritten
    tape.saved_bytes = all_saved_bytes(tape)
    tape.moves += 1
    return count


@entry("int64(Tape,Ints,int64,Words,int64)")
def collect_rows(tape, new_slot, slots, trash, objects):
    """Mark and compact in one step, so that nothing can be recorded between.

    `new_slot` has room for `slots` rows (int32, zeros), `trash` for `objects` addresses. The number of objects to release, -1
    if everything is alive or must not move, -2 if the room is too small by now.
    """
    rows = tape.rows
    if tape.pins != 0:
        return -1  # a pass in another thread knows rows by their slots
    if rows > slots or tape.side_rows > objects:
        return -2
    mark_held(tape, new_slot)
    find_dead(tape, new_slot)
    if mark(tape, new_slot) == rows:
        return -1
    return compact(tape, new_slot, trash)


@entry("int64(Tape,int64,int64,int64)")
def change_flags(tape, slot, clear, flags):
    """Clear and set flags of a row in one step."""
    column = tape.flags
    column[slot] = (column[slot] & ~clear) | flags
    return 0


@entry("int64(Tape,int64,int64)")
def correct_pins(tape, clock, right):
    """Set the number of pins, unless it has changed since the clock was read."""
    if tape.pin_clock == clock:
        tape.pins = right
    return tape.pins


@entry("int64(Words,int64)")
def release_all(trash, count):
    """Release listed objects; their destructors may run any code, so the list is the caller's own."""
    for k in range(count):
        release(trash[k])
    return 0
