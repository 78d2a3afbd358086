"""Index sets of all places of a linear tape, in one sweep forwards: structure only, whatever the partials are at this point.

A product that is zero here is an entry as any other.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import INTS, WORDS, from_element, struct
from tapegrad.engine.linear_layout import *
from tapegrad.engine.linear_structs import offsets_of_row, x_strides, z_strides
from tapegrad.engine.set_layout import *
from tapegrad.engine.structs import fields

IndexSets = struct(
    "IndexSets",
    fields(globals(), "SET_COUNT", "SET_WORDS", "SET_"),
    table=WORDS,
    elements=INTS,
    places=INTS,
    marks=INTS,
    node_marks=INTS,
    stack=INTS,
    pairs=INTS,
    recent=WORDS,
)


@inline
def new_set(sets, first, second):
    """Append a set by its two words; its number."""
    number, table = sets.count, sets.table
    table[2 * number] = first
    table[2 * number + 1] = second
    sets.count = number + 1
    return number


@inline
def takes_set(sets):
    """Whether one more set of few elements fits."""
    return sets.count < sets.limit and sets.used + SMALL_SET <= sets.room


@inline
def united(sets, a, b):
    """Number of the union of two sets; there is room for one more."""
    if a == b or b == 0:
        return a
    if a == 0:
        return b
    table, elements = sets.table, sets.elements
    count, other = table[2 * a + 1], table[2 * b + 1]
    if count < 0 or other < 0 or count + other > SMALL_SET:
        return new_set(sets, a, -1 - b)
    i, j, start = table[2 * a], table[2 * b], sets.used
    end, stop, to = i + count, j + other, sets.used
    while i < end and j < stop:
        one, two = elements[i], elements[j]
        elements[to] = min(one, two)
        to += 1
        if one <= two:
            i += 1
        if two <= one:
            j += 1
    while i < end:
        elements[to] = elements[i]
        to, i = to + 1, i + 1
    while j < stop:
        elements[to] = elements[j]
        to, j = to + 1, j + 1
    length = to - start
    if length == count:
        return a
    if length == other:
        return b
    sets.used = to
    return new_set(sets, start, length)


@inline
def sets_through_map(sets, program):
    """The sets of the elements of a row gain those that a map leads to them; whether there was room for all."""
    places, rank, size, clear = sets.places, program.rank, program.size, program.clear
    row = program.row
    for e in range(clear):
        places[row + e] = 0
    if size == 0:
        return True
    dimensions, last = program.dimensions, rank - 1
    extent = dimensions[last]
    to, at = z_strides(program)[last], x_strides(program)[last]
    for outer in range(size // extent):
        here, there = offsets_of_row(dimensions, last, z_strides(program), x_strides(program), outer)
        z, x = program.z + here, program.x + there
        if clear == SETS:
            for e in range(extent):
                places[z + to * e] = places[x + at * e]
            continue
        for e in range(extent):
            if not takes_set(sets):
                return False
            target = z + to * e
            places[target] = united(sets, places[target], places[x + at * e])
    return True


@entry("int64(Linear,IndexSets,int64)")
def spread_sets(linear, sets, start):
    """Sets of all places from those of the inputs, entry `start` first. An entry that found no room is begun again."""
    entries, places = linear.entry, sets.places
    for number in range(start, linear.entries):
        entry = entries[number]
        kind = entry.kind
        if kind == HOSTED:
            return number
        if not takes_set(sets):
            sets.at = number
            return NO_ROOM
        if kind <= CURVED_PLAIN:
            a, b = entry.x, entry.y
            places[entry.place] = united(sets, places[a] if a >= 0 else 0, places[b] if b >= 0 else 0)
        elif kind == MAP and not sets_through_map(sets, linear.program[entry.program]):
            sets.at = number
            return NO_ROOM
    return FINISHED


@entry("int64(IndexSets,Ints,Ints,int64,int64)")
def spread_edges(sets, sources, targets, start, count):
    """The set of each target's place gains that of its source's, edge `start` first."""
    places = sets.places
    for k in range(start, count):
        if not takes_set(sets):
            sets.at = k
            return NO_ROOM
        target = targets[k]
        places[target] = united(sets, places[target], places[sources[k]])
    return FINISHED


@entry("int64(IndexSets,Ints,int64,int64,Words)")
def spread_pairs(sets, references, first, count, last):
    """Sets of the rows of a compiled recording from its pairs, of which the first of each row carries a sign.

    `last` has the number of the last row that was begun.
    """
    places, row = sets.places, last[0]
    for k in range(first, count):
        if not takes_set(sets):
            sets.at = k
            last[0] = row
            return NO_ROOM
        reference = references[k]
        source = reference & 0x7FFFFFFF
        if reference < 0:
            row += 1
            places[row] = 0
        if source < row:
            places[row] = united(sets, places[row], places[source])
    last[0] = row
    return FINISHED


@inline
def collected(sets, number, out, limit):
    """Write the elements of a set; how many there are, or -1 if there is no room for them."""
    table, elements = sets.table, sets.elements
    start, count = table[2 * number], table[2 * number + 1]
    if count >= 0:
        if count > limit:
            return -1
        for e in range(count):
            out[e] = elements[start + e]
        return count
    clock, marks, node_marks, stack = sets.clock + 1, sets.marks, sets.node_marks, sets.stack
    sets.clock = clock
    depth, found = 1, 0
    stack[0] = number
    node_marks[number] = clock
    while depth > 0:
        depth -= 1
        node = stack[depth]
        start, count = table[2 * node], table[2 * node + 1]
        if count < 0:
            for turn in range(2):
                below = start if turn == 0 else -1 - count
                if node_marks[below] != clock:
                    node_marks[below] = clock
                    stack[depth] = below
                    depth += 1
            continue
        for e in range(count):
            index = elements[start + e]
            if marks[index] != clock:
                marks[index] = clock
                if found == limit:
                    return -1
                out[found] = index
                found += 1
    return found


@entry("int64(IndexSets,Ints,int64,int64,Words,Ints,int64)")
def collect_sets(sets, numbers, first, count, ends, out, limit):
    """Elements of sets one after the other, set `first` first; how many sets were done before there was no room."""
    for k in range(first, count):
        used = ends[k]
        found = collected(sets, numbers[k], from_element(out, used), limit - used)
        if found < 0:
            return k
        ends[k + 1] = used + found
    return count
