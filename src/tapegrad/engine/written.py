"""Which memory was written in place, and when: what rows saved from it before is stale."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import get, load_i64, owner, put, store_i64


@inline
def find_written(tape, key):
    """Place of an owner in the table of written arrays (open addressing), or of the empty entry where it would go."""
    mask = get(tape, WRITTEN_CAPACITY) - 1
    table = get(tape, WRITTEN)
    place = ((key >> 4) * 0x9E3779B97F4A7C1) & mask
    while True:
        found = load_i64(table + 16 * place)
        if found == key or found == 0:
            return table + 16 * place
        place = (place + 1) & mask


@inline
def note_written(tape, obj):
    """Note that the memory of an array was written now."""
    key = owner(get(tape, ARRAY_TYPE), obj)
    place = find_written(tape, key)
    if load_i64(place) == 0:
        store_i64(place, key)
        put(tape, WRITTEN_COUNT, get(tape, WRITTEN_COUNT) + 1)
    store_i64(place + 8, get(tape, CLOCK))


@entry("int64(int64,int64)")
def mark_written(tape, obj):
    """Note that the memory of an array was written now: rows recorded before that saved it are stale."""
    if 2 * get(tape, WRITTEN_COUNT) >= get(tape, WRITTEN_CAPACITY):
        return FULL
    note_written(tape, obj)
    return 0
