"""How many handles and rows refer to each row."""

from tapegrad.compilation.jit import inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import get, load_i32, put, store_i32


@inline
def hold(tape, slot):
    """One more handle on a row, or reference to it."""
    place = get(tape, HELD) + 4 * slot
    store_i32(place, load_i32(place) + 1)


@inline
def unhold(tape, slot):
    """One handle less on a row; how many handles and references are left."""
    place = get(tape, HELD) + 4 * slot
    count = load_i32(place) - 1
    store_i32(place, count)
    return count


@inline
def note_unreferenced(tape, slot):
    """Nothing refers to a row any more, but a pass may know it by its slot yet."""
    put(tape, UNREFERENCED_LOW, min(get(tape, UNREFERENCED_LOW), slot))
    put(tape, UNREFERENCED_HIGH, max(get(tape, UNREFERENCED_HIGH), slot))
