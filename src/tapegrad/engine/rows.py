"""Writing rows. The interpreter lock is held throughout, so a row appears whole or not at all."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.handles import slot_of
from tapegrad.engine.layout import *
from tapegrad.engine.memory import retain
from tapegrad.engine.reference_counts import hold


@inline
def change_pins(tape, change):
    """Let one more or one less be in need of rows that do not move."""
    tape.pins += change
    tape.pin_clock += 1


@inline
def write_row(tape, opcode, first, second, value):
    """Append a row; its slot."""
    slot = tape.rows
    tape.opcode[slot] = opcode
    tape.flags[slot] = 0
    tape.held[slot] = 0
    tape.first[slot] = first
    tape.second[slot] = second
    tape.value[slot] = value
    tape.rows = slot + 1
    tape.clock += 1
    if opcode & WIDE == 0:
        if first >= 0:
            hold(tape, first)
        if second >= 0:
            hold(tape, second)
    return slot


@inline
def refuse(tape, rows, words):
    """Whether there is no room for so many rows and record words, one handle, and as many constants as rows."""
    return (
        tape.rows + rows > tape.limit
        or tape.handle_free < 0
        or tape.side_rows + words > tape.side_capacity
        or tape.constants + rows > tape.constant_capacity
    )


@entry("int64(Tape,int64,int64)")
def number_output(tape, handle, number):
    """Note which output of its node a wide row is, or for a node how many it has: it has no second reference."""
    tape.second[slot_of(tape, handle)] = number
    return 0


@entry("int64(Tape,int64,int64)")
def own_payload(tape, slot, obj):
    """Let the record of a wide row own an object, if it owns none yet; the address of what it owned."""
    record = tape.side[tape.first[slot]]
    before = record.payload
    if before == 0:
        retain(obj)
        record.payload = obj
    return before
