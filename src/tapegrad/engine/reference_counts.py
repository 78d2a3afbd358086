"""How many handles and rows refer to each row."""

from tapegrad.compilation.jit import inline


@inline
def hold(tape, slot):
    """One more handle on a row, or reference to it."""
    tape.held[slot] += 1


@inline
def unhold(tape, slot):
    """One handle less on a row; how many handles and references are left."""
    held = tape.held
    count = held[slot] - 1
    held[slot] = count
    return count


@inline
def note_unreferenced(tape, slot):
    """Nothing refers to a row any more, but a pass may know it by its slot yet."""
    tape.unreferenced_low = min(tape.unreferenced_low, slot)
    tape.unreferenced_high = max(tape.unreferenced_high, slot)
