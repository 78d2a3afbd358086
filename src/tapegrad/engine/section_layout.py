"""Where things stand in passes over *sections*: pieces of a recording that have edges, or adjoints of outputs, of their own.

Rows are those of `edge_layout`. In edge-pushing, and in passes for Jacobians, a section begins where no row before has anything in
work, and ends where no row has any more; most often it is what a loop recorded in one turn. What is done in a section depends on
its structure alone, which is that of many others. It is written down once as a list of steps, each of them
``work[to] = work[base] + factors[by] * work[of]``, and carried out for eight sections at once, each of them in a lane.
"""

SECTION_ROWS, SECTION_PARTIALS, SECTION_PAIRS, SECTION_INPUTS, SECTION_LAST = 0, 1, 2, 3, 4
SECTION_TRIPLETS, SECTION_SECONDS, SECTION_TRIPLET_COUNT, SECTION_BARS = 5, 6, 7, 8
SECTION_OUTS, SECTION_RESULTS = 9, 10  # rows of the results in ascending order, and how many
# What is found of the structure: a word for each pair, two for each triplet after its row, bounds of the sections, and the inputs
# of one after the other. Words are twice a row's distance from the section's last one, or an input's number there, twice and one.
SECTION_WORDS, SECTION_CURVES, SECTION_BOUNDS, SECTION_LOCALS, SECTION_ROOM = 11, 12, 13, 14, 15
SECTION_LIVE, SECTION_STAMPS, SECTION_NUMBERS = 16, 17, 18
# What is carried out: steps of four numbers of vectors, groups of eight, and where what they begin with is; vectors of eight.
SECTION_STEPS, SECTION_STEP_COUNT, SECTION_STARTS, SECTION_GROUPS = 19, 20, 21, 22
SECTION_PAIRS_OF_ONE, SECTION_TRIPLETS_OF_ONE, SECTION_BARS_OF_ONE = 23, 24, 25
SECTION_FACTORS, SECTION_WORK, SECTION_RESULTS_AT, SECTION_ENTRIES, SECTION_PLACES, SECTION_FOUND = 26, 27, 28, 29, 30, 31
SECTION_ADDRESSES = 32
SECTION_HEADER_WORDS = 33

SECTION_LANES = 8
# A section's last row, pairs, triplets and results from and to, and first input and number of inputs in the list of these.
BOUND_ROW, BOUND_PAIRS, BOUND_TRIPLETS, BOUND_OUTS, BOUND_LOCALS, BOUND_WORDS = 0, 1, 3, 5, 7, 9
NOTHING_WORD, CONSTANT_WORKS = 0, 2  # work that is zero and work that is one come first
