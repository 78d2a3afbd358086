"""Which inputs meet in second partials: pairs of index sets, from the curved entries of a linear tape.

A second partial that no rule has is written as -0.0 in a curve, and one that is zero at this point as 0.0.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.linear_layout import *
from tapegrad.engine.linear_structs import offsets_of_row, x_strides, z_strides
from tapegrad.engine.memory import bits_of
from tapegrad.engine.set_layout import *


@inline
def add_pair(sets, a, b):
    """Append a pair of sets unless it was there lately; whether there was room."""
    if a == 0 or b == 0:
        return True
    if a < b:
        a, b = b, a
    key = (a << 32) | b
    recent = sets.recent
    slot = (a * 40503 + b * 9973) & (RECENT_PAIRS - 1)
    if recent[slot] == key:
        return True
    count = sets.pair_count
    if count >= sets.pair_limit:
        return False
    recent[slot] = key
    sets.pairs[2 * count] = a
    sets.pairs[2 * count + 1] = b
    sets.pair_count = count + 1
    return True


@inline
def exists(partial):
    """Whether a rule has this second partial."""
    return bits_of(partial) != bits_of(-0.0)


@inline
def pairs_of_map(sets, program):
    """The pairs of one second partial of a row of arrays; whether there was room."""
    places, rank, size = sets.places, program.rank, program.size
    if size == 0:
        return True
    dimensions, last = program.dimensions, rank - 1
    extent = dimensions[last]
    to, at = z_strides(program)[last], x_strides(program)[last]
    for outer in range(size // extent):
        here, there = offsets_of_row(dimensions, last, z_strides(program), x_strides(program), outer)
        z, x = program.z + here, program.x + there
        for e in range(extent):
            if not add_pair(sets, places[x + at * e], places[z + to * e]):
                return False
    return True


@entry("int64(Linear,IndexSets,int64)")
def find_pairs(linear, sets, start):
    """Pairs of all curved entries, `start` first. An entry that found no room is begun again."""
    entries, curves, places = linear.entry, linear.curves, sets.places
    for number in range(start, linear.entries):
        entry = entries[number]
        kind, done = entry.kind, True
        if kind == CURVED_PLAIN:
            curve, a, b = curves[number], entry.x, entry.y
            x, y = places[a] if a >= 0 else 0, places[b] if b >= 0 else 0
            if exists(curve.xx):
                done = add_pair(sets, x, x)
            if done and exists(curve.xy):
                done = add_pair(sets, x, y)
            if done and exists(curve.yy):
                done = add_pair(sets, y, y)
        elif kind == CURVED_MAP:
            done = pairs_of_map(sets, linear.program[entry.program])
        if not done:
            sets.at = number
            return NO_ROOM
    return FINISHED


@entry("int64(Ints,int64,Words,Ints,Ints,Ints)")
def cross_sets(pairs, count, ends, elements, rows, columns):
    """Rows and columns (rows not before columns) of all places where pairs of sets meet; how many."""
    to = 0
    for k in range(count):
        a, b = pairs[2 * k], pairs[2 * k + 1]
        for i in range(ends[a], ends[a + 1]):
            one = elements[i]
            for j in range(ends[b], i + 1 if a == b else ends[b + 1]):
                two = elements[j]
                rows[to] = max(one, two)
                columns[to] = min(one, two)
                to += 1
    return to
