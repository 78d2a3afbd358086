"""What a single product with the second derivative needs of each row.

Tangents are asked for by rows that have second partials, and these alone change adjoints; so tangents, and changes of adjoints, are
needed of the arguments of such rows and of all that lead to these. Adjoints are needed where a row has second partials, and from
the output down to there. The rest of a forward and of two reverse sweeps is left out: of a sum of squares all that is above the
squares, and of the adjoints all that is below them.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.linear_layout import *
from tapegrad.engine.linear_size import is_active, pair_rows, second_number
from tapegrad.engine.owned import argument_count, argument_row
from tapegrad.engine.plan import record_of, wanted


@inline
def is_curved(tape, sweep, linear, slot):
    """Whether a row that is no leaf has a second partial by what varies."""
    opcode = tape.opcode[slot]
    if opcode & WIDE == 0:
        has_x, has_y = wanted(sweep, tape.first[slot]), wanted(sweep, tape.second[slot])
        numbers = linear.second_table[opcode].numbers
        return (has_x and numbers[0] >= 0) or (has_x and has_y and numbers[1] >= 0) or (has_y and numbers[2] >= 0)
    kind = opcode - WIDE
    if kind < STRUCTURAL:
        record = record_of(tape, slot)
        for pair in range(6):
            if second_number(linear, kind, pair) >= 0:
                a, b = pair_rows(record, pair)
                if wanted(sweep, a) and wanted(sweep, b):
                    return True
    return False


@inline
def count_of(tape, slot):
    """Number of arguments of a row that is no leaf."""
    return argument_count(record_of(tape, slot)) if tape.opcode[slot] & WIDE else 2


@inline
def argument_of(tape, slot, k):
    """Row of an argument; negative if it is none."""
    if tape.opcode[slot] & WIDE:
        return argument_row(record_of(tape, slot), k)
    return tape.first[slot] if k == 0 else tape.second[slot]


@inline
def is_leaf_or_input(tape, linear, slot):
    """Whether a row's arguments, if it has any, are of no interest."""
    return tape.opcode[slot] == LEAF | WIDE or linear.place_of[slot] >= 0


@entry("int64(Tape,Sweep,Linear)")
def find_roles(tape, sweep, linear):
    """Write the roles of planned rows, which are zero before; SPECIAL_ROW if one's derivative is Python, or zero."""
    roles = linear.role
    for slot in range(sweep.top, sweep.low - 1, -1):
        if not is_active(tape, sweep, slot) or is_leaf_or_input(tape, linear, slot):
            continue
        if tape.opcode[slot] == HOST | WIDE:
            return SPECIAL_ROW
        curved = is_curved(tape, sweep, linear, slot)
        if curved:
            roles[slot] |= BEARS
        if curved or roles[slot] & TURNS:
            for k in range(count_of(tape, slot)):
                argument = argument_of(tape, slot, k)
                if wanted(sweep, argument):
                    roles[argument] |= TURNS
    for slot in range(sweep.low, sweep.top + 1):
        if not is_active(tape, sweep, slot) or is_leaf_or_input(tape, linear, slot):
            continue
        for k in range(count_of(tape, slot)):
            argument = argument_of(tape, slot, k)
            if wanted(sweep, argument):
                roles[slot] |= roles[argument] & BEARS
    return 0
