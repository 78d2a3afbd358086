"""Recording operations on float64 scalars: one plain row each.

Every recording entry first makes sure that nothing can fail, then writes; a refusal (`FULL`, `NEW_LEAF`, `UNSUPPORTED`) leaves
the tape as it was. An accepted row is answered with its handle.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.handles import slot_of, take_handle
from tapegrad.engine.layout import *
from tapegrad.engine.memory import bits_of, float_value, is_float
from tapegrad.engine.reference_counts import hold, note_unreferenced, unhold
from tapegrad.engine.rows import refuse, write_row
from tapegrad.engine.rule_loops import has_loops


@inline
def current_row(tape, handle, value):
    """The row of a scalar operand whose primal is `value` now.

    A tensor may have been changed by a way that records nothing (an optimiser's step on a leaf, memory shared with NumPy).
    Then an alias row with the new primal is put between, and the handle moved to it: rows never change their value.
    """
    slot = slot_of(tape, handle)
    overwritten = tape.flags[slot] & OVERWRITTEN != 0
    if bits_of(tape.value[slot]) == bits_of(value) and not overwritten:
        return slot
    if tape.opcode[slot] == 0:  # an alias already: a chain of them would grow with every change
        if slot == tape.rows - 1 and tape.held[slot] == 1 and not overwritten:
            tape.value[slot] = value  # nobody has read it yet
            return slot
        slot = tape.first[slot]
    alias = write_row(tape, 0, slot, -1, value)
    before = slot_of(tape, handle)
    if unhold(tape, before) == 0:
        note_unreferenced(tape, before)
    tape.handle[handle] = alias
    hold(tape, alias)
    return alias


@inline
def fold(tape, value):
    """Reference of a constant folded into a row."""
    index = tape.constants
    tape.constant[index] = value
    tape.constants = index + 1
    return -2 - index


@inline
def is_double(tape, handle):
    """Whether a scalar operand's adjoint is float64, as plain rows take for granted."""
    slot = slot_of(tape, handle)
    if tape.opcode[slot] & WIDE == 0:
        return True
    return tape.side[tape.first[slot]].dtype & 255 == FLOAT64


@inline
def record_scalars(tape, opcode, count, x_handle, x, y_handle, y, z):
    """One row for ``z = op(x)`` or ``z = op(x, y)``; handle 0 is a constant, folded into the row."""
    if x_handle < 0 or y_handle < 0:
        return NEW_LEAF
    if not has_loops(tape, opcode):
        return UNSUPPORTED
    if refuse(tape, 3, 0):
        return FULL
    if (x_handle > 0 and not is_double(tape, x_handle)) or (y_handle > 0 and not is_double(tape, y_handle)):
        return UNSUPPORTED
    first = current_row(tape, x_handle, x) if x_handle > 0 else fold(tape, x)
    second = -1
    if count == 2:
        second = current_row(tape, y_handle, y) if y_handle > 0 else fold(tape, y)
    return take_handle(tape, write_row(tape, opcode, first, second, z))


@entry("int64(Tape,int64,int64,int64,float64,int64,float64,float64)")
def scalar_row(tape, opcode, count, x_handle, x, y_handle, y, z):
    """Record an operation on float64 scalars."""
    return record_scalars(tape, opcode, count, x_handle, x, y_handle, y, z)


@inline
def operand_row(tape, handle, obj):
    """The row of an operand, with its current primal if it is a scalar; -1 if untracked."""
    if handle <= 0:
        return -1
    if is_float(tape, obj):
        return current_row(tape, handle, float_value(obj))
    return slot_of(tape, handle)
