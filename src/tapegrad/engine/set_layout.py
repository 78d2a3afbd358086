"""Where things stand in a table of index sets: which inputs each place of a linear tape depends on.

A set has two words in the table. One of few elements is a piece of the column of elements, in ascending order: its start and its
length. A larger one is the union of two others: the first, and -1 less the second; its elements are collected when they are asked
for, so that running sums do not keep all sets on the way. Set 0 is empty, set ``i + 1`` is input i alone.
"""

# Header: int64 words.
SET_COUNT, SET_LIMIT, SET_TABLE, SET_USED, SET_ROOM, SET_ELEMENTS, SET_PLACES, SET_AT = 0, 1, 2, 3, 4, 5, 6, 7
SET_MARKS, SET_NODE_MARKS, SET_CLOCK, SET_STACK, SET_PAIRS, SET_PAIR_COUNT, SET_PAIR_LIMIT, SET_RECENT = (
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
)
SET_WORDS = 16

SMALL_SET = 64  # elements up to which sets are merged at once
RECENT_PAIRS = 1 << 14  # pairs that are remembered, so that most of what comes again is left out
NO_ROOM = -2  # answer: a column is full, and `SET_AT` says where to go on; else FINISHED, or the number of a hosted entry
