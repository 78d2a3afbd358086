"""What the words of a linear tape hold, as structs and columns."""

from numba import types

from tapegrad.compilation.jit import inline
from tapegrad.compilation.memory_types import DOUBLES, WORDS, Column, from_element, struct
from tapegrad.engine.linear_layout import *
from tapegrad.engine.structs import fields

# Where a map is, `program` is the word of its program, and else there are two arguments and their partials.
Entry = struct(
    "Entry",
    {"kind": 0, "place": 0.5, "x": 1, "y": 1.5, "program": 1, "p": 2, "q": 3},
    ENTRY_BYTES // 8,
    kind=types.int32,
    place=types.int32,
    x=types.int32,
    y=types.int32,
    p=types.float64,
    q=types.float64,
)
Curve = struct(
    "Curve",
    {"xx": 0, "xy": 1, "yy": 2},
    CURVE_BYTES // 8,
    xx=types.float64,
    xy=types.float64,
    yy=types.float64,
)
Map = struct(
    "Map",
    fields(globals(), "MAP_SIZE", "MAP_DIMENSIONS", "MAP_") | {"dimensions": MAP_DIMENSIONS},
    1,  # a program starts at any word
    dimensions=[WORDS],
)
Numbers = struct(
    "Numbers",
    {"own": 0, "first": 1, "scale": 2, "state": 3},
    NUMBERS_WORDS,
    own=DOUBLES,
    first=DOUBLES,
    scale=types.float64,
)
Owner = struct(
    "Owner",
    {"place": 0, "size": 1, "tangents": 2, "adjoints": 2 + NUMBERS_WORDS, "changes": 2 + 2 * NUMBERS_WORDS},
    OWNER_WORDS,
    tangents=[Numbers],
    adjoints=[Numbers],
    changes=[Numbers],
)
SecondPartials = struct("SecondPartials", {"numbers": 0, "uses": 6}, 12, numbers=[WORDS], uses=[WORDS])
Linear = struct(
    "Linear",
    fields(globals(), "ENTRIES", "LINEAR_WORDS"),
    entry=Column(Entry),
    curves=Column(Curve),
    program=Column(Map),
    factors=DOUBLES,
    place_of=WORDS,
    role=WORDS,
    owner=Column(Owner),
    second_table=Column(SecondPartials),
)


@inline
def x_strides(program):
    """Address of the strides of x."""
    return from_element(program.dimensions, program.rank)


@inline
def z_strides(program):
    """Address of the strides of z."""
    return from_element(program.dimensions, 2 * program.rank)


@inline
def offsets_of_row(dimensions, last, one_strides, other_strides, outer):
    """How far a row of the elements of a map is from the first one, on either side: by the dimensions before the last."""
    here, there = 0, 0
    for d in range(last - 1, -1, -1):
        own = dimensions[d]
        above = outer // own
        index = outer - above * own
        here += index * one_strides[d]
        there += index * other_strides[d]
        outer = above
    return here, there
