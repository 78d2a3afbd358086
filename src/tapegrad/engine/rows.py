"""Writing rows. The interpreter lock is held throughout, so a row appears whole or not at all."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.handles import slot_of
from tapegrad.engine.layout import *
from tapegrad.engine.memory import get, load_i32, put, retain, store_f64, store_i32, store_u8, store_u16
from tapegrad.engine.reference_counts import hold


@inline
def change_pins(tape, change):
    """Let one more or one less be in need of rows that do not move."""
    put(tape, PINS, get(tape, PINS) + change)
    put(tape, PIN_CLOCK, get(tape, PIN_CLOCK) + 1)


@inline
def write_row(tape, opcode, first, second, value):
    """Append a row; its slot."""
    slot = get(tape, ROWS)
    store_u16(get(tape, OPCODE) + 2 * slot, opcode)
    store_u8(get(tape, FLAGS) + slot, 0)
    store_i32(get(tape, HELD) + 4 * slot, 0)
    store_i32(get(tape, FIRST) + 4 * slot, first)
    store_i32(get(tape, SECOND) + 4 * slot, second)
    store_f64(get(tape, VALUE) + 8 * slot, value)
    put(tape, ROWS, slot + 1)
    put(tape, CLOCK, get(tape, CLOCK) + 1)
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
        get(tape, ROWS) + rows > get(tape, LIMIT)
        or get(tape, HANDLE_FREE) < 0
        or get(tape, SIDE_ROWS) + words > get(tape, SIDE_CAPACITY)
        or get(tape, CONSTANTS) + rows > get(tape, CONSTANT_CAPACITY)
    )


@entry("int64(int64,int64,int64)")
def number_output(tape, handle, number):
    """Note which output of its node a wide row is, or for a node how many it has: it has no second reference."""
    store_i32(get(tape, SECOND) + 4 * slot_of(tape, handle), number)
    return 0


@entry("int64(int64,int64,int64)")
def own_payload(tape, slot, obj):
    """Let the record of a wide row own an object, if it owns none yet; the address of what it owned."""
    record = get(tape, SIDE) + 8 * load_i32(get(tape, FIRST) + 4 * slot)
    before = get(record, PAYLOAD)
    if before == 0:
        retain(obj)
        put(record, PAYLOAD, obj)
    return before
