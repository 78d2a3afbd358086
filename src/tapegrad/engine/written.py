"""Which memory was written in place, and when: what rows saved from it before is stale."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import owner


@inline
def find_written(tape, key):
    """Place of an owner in the table of written arrays (open addressing), or of the empty entry where it would go."""
    mask = tape.written_capacity - 1
    table = tape.written
    place = ((key >> 4) * 0x9E3779B97F4A7C1) & mask
    while True:
        found = table[place].owner
        if found == key or found == 0:
            return table[place]
        place = (place + 1) & mask


@inline
def note_written(tape, obj, clock):
    """Note that the memory of an array was written at a moment of the tape's clock."""
    key = owner(tape.array_type, obj)
    place = find_written(tape, key)
    if place.owner == 0:
        place.owner = key
        tape.written_count += 1
    place.time = clock


@inline
def written_is_full(tape):
    """Whether there is no room for one more array."""
    return 2 * tape.written_count >= tape.written_capacity


@entry("int64(Tape,int64)")
def mark_written(tape, obj):
    """Note that the memory of an array was written now: rows recorded before that saved it are stale."""
    if written_is_full(tape):
        return FULL
    note_written(tape, obj, tape.clock)
    return 0
