"""How much a linear tape of planned rows takes at the most: entries, words of maps, factors, places."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.linear_layout import *
from tapegrad.engine.owned import argument_count, argument_row
from tapegrad.engine.plan import record_of, wanted


@inline
def is_active(tape, sweep, slot):
    """Whether a row is between the inputs and the outputs."""
    return sweep.offset[slot] != UNSEEN


@inline
def second_number(linear, opcode, pair):
    """Number of the expression of a second partial; -1 if it is zero."""
    return linear.second_table[opcode].numbers[pair]


@inline
def pair_rows(record, pair):
    """The rows of the arguments of a second partial."""
    j = 2 if pair > 2 else (1 if pair > 0 else 0)
    i = pair - 3 if pair > 2 else (pair - 1 if pair > 0 else 0)
    return argument_row(record, i), argument_row(record, j)


@inline
def map_counts(tape, sweep, linear, opcode, record):
    """How many entries an elementwise row of arrays has at most, and how many arrays of factors."""
    rule = tape.rules[opcode]
    maps, arrays = 0, 0
    for k in range(argument_count(record)):
        if wanted(sweep, argument_row(record, k)):
            maps += 1
            if (rule.uses >> (4 * k)) & 15 != 0:
                arrays += 1
    if linear.with_second:
        for pair in range(6):
            if second_number(linear, opcode, pair) >= 0:
                a, b = pair_rows(record, pair)
                if wanted(sweep, a) and wanted(sweep, b):
                    maps += 2
                    arrays += 1
    return maps, arrays


@entry("int64(Tape,Sweep,Linear)")
def measure_linear(tape, sweep, linear):
    """Upper bounds of what `linearise` needs: ENTRIES, PROGRAM_WORDS, FACTOR_COUNT, PLACES. SPECIAL_ROW, or zero."""
    opcodes, flags = tape.opcode, tape.flags
    entries, words, factors, places = 0, 0, 0, 0
    for slot in range(sweep.low, sweep.top + 1):
        if not is_active(tape, sweep, slot):
            continue
        if flags[slot] & HOOKED:
            return SPECIAL_ROW
        opcode = opcodes[slot]
        if opcode == LEAF | WIDE:
            continue
        if opcode & WIDE == 0:
            places += 1
            entries += 1
            continue
        kind = opcode - WIDE
        record = record_of(tape, slot)
        places += record.size
        rank = max(record.dtype >> 8, 1)
        if kind < STRUCTURAL:
            maps, arrays = map_counts(tape, sweep, linear, kind, record)
            entries += maps
            words += maps * (MAP_DIMENSIONS + 3 * rank)
            factors += arrays * record.size
        elif kind == HOST:
            entries += 1
        elif kind == JOIN:
            entries += argument_count(record)
            words += argument_count(record) * (MAP_DIMENSIONS + 6)
        else:
            rank = record[ARGUMENTS + 2 + (record.dtype >> 8)]
            entries += 1
            words += MAP_DIMENSIONS + 3 * rank
    linear.entries = entries
    linear.program_words = words
    linear.factor_count = factors
    linear.places = places
    return 0
