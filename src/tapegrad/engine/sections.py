"""Sections of a recording: where they are, and what is the same in many of them."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import BYTES, DOUBLES, INTS, SHORTS, WORDS, from_element, struct
from tapegrad.engine.fronts import MASK
from tapegrad.engine.section_layout import *
from tapegrad.engine.star_colouring import place_of
from tapegrad.engine.structs import fields

Sections = struct(
    "Sections",
    fields(globals(), "SECTION_ROWS", "SECTION_HEADER_WORDS", "SECTION_"),
    rows=INTS,
    partials=DOUBLES,
    triplets=INTS,
    seconds=DOUBLES,
    bars=DOUBLES,
    outs=INTS,
    words=INTS,
    curves=INTS,
    bounds=WORDS,
    locals=INTS,
    live=BYTES,
    stamps=INTS,
    numbers=INTS,
    steps=SHORTS,
    starts=WORDS,
    factors=DOUBLES,
    work=DOUBLES,
    results_at=WORDS,
    places=INTS,
    found=DOUBLES,
    addresses=WORDS,
)


@inline
def word_of(sections, number, bound, row, used):
    """The word of what a row refers to, how many inputs are numbered, and whether another row has something in work."""
    if row > sections.inputs:
        live = sections.live
        is_new = live[row] == 0
        live[row] = 1
        return 2 * (bound[BOUND_ROW] - row), used, 1 if is_new else 0
    stamps, numbers = sections.stamps, sections.numbers
    if stamps[row] != number:
        stamps[row] = number
        numbers[row] = used
        sections.locals[bound[BOUND_LOCALS] + used] = row
        used += 1
    return 2 * numbers[row] + 1, used, 0


@entry("int64(Sections)")
def find_sections(sections):
    """Find all, from the last to the first; how many, or -1 if there is no room for so many. Words, marks and stamps begin as zero.

    Where there are no triplets they are those of a Jacobian.
    """
    rows, triplets, outs, live = sections.rows, sections.triplets, sections.outs, sections.live
    words, curves, inputs = sections.words, sections.curves, sections.inputs
    row, stop, t, o = sections.last, sections.pairs, sections.triplet_count - 1, sections.results - 1
    number, count, used, first_local, is_inside = 0, 0, 0, 0, False
    bound = sections.bounds
    while stop > 0 and row > inputs:
        first = stop - 1
        while rows[first] >= 0:
            first -= 1
        last_triplet, last_out = t, o
        while t >= 0 and triplets[3 * t] >= row:
            t -= 1
        while o >= 0 and outs[o] >= row:
            if outs[o] == row and live[row] == 0:
                live[row] = 1
                count += 1
            o -= 1
        is_live = live[row] != 0
        if is_live or t != last_triplet:
            if not is_inside:
                if number == sections.room:
                    return -1
                bound = from_element(sections.bounds, BOUND_WORDS * number)
                number += 1
                first_local += used
                is_inside, used = True, 0
                bound[BOUND_ROW], bound[BOUND_PAIRS + 1], bound[BOUND_TRIPLETS + 1] = row, stop, last_triplet + 1
                bound[BOUND_OUTS + 1], bound[BOUND_LOCALS] = last_out + 1, first_local
            for k in range(first, stop):
                a, word = rows[k] & MASK, 0
                if is_live and a != 0 and a < row:
                    word, used, more = word_of(sections, number, bound, a, used)
                    count += more
                words[k] = word if k > first else word - MASK - 1
            for u in range(t + 1, last_triplet + 1):
                a, b = triplets[3 * u + 1], triplets[3 * u + 2]
                curves[3 * u] = -1
                if triplets[3 * u] == row and 0 < a < row and 0 < b < row:
                    curves[3 * u] = bound[BOUND_ROW] - row
                    curves[3 * u + 1], used, more = word_of(sections, number, bound, a, used)
                    count += more
                    curves[3 * u + 2], used, more = word_of(sections, number, bound, b, used)
                    count += more
            if is_live:
                count -= 1
            if count == 0:
                is_inside = False
                bound[BOUND_PAIRS], bound[BOUND_TRIPLETS], bound[BOUND_OUTS] = first, t + 1, o + 1
                bound[BOUND_LOCALS + 1] = used
        elif is_inside:
            words[first] = -MASK - 1
        stop = first
        row -= 1
    return -1 if is_inside else number


@entry("int64(Words,Ints,Words,Words,int64,Ints)")
def find_places(ends, items, rows, columns, count, places):
    """The places of entries in a pattern, -1 for those that it has not; zero."""
    for k in range(count):
        row = rows[k]
        places[k] = place_of(items, ends[row], ends[row + 1], columns[k])
    return 0
