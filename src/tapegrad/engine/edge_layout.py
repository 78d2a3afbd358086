"""Where things stand in passes over rows that keep what they work on in a front: edge-pushing, and Jacobians row by row.

Row 0 is the constant's, the inputs follow, and then rows with pairs of a row before them and a partial, as compiled recordings
and the elements of arrays have them. Rows that the pass has something for have *slots* in the front. In edge-pushing it is a square
of which row and column belong to a slot: the weight of the edge of two slots is the sum of the two elements where they meet. For
Jacobians it has a row for each slot, and a column for each output.

When only inputs are left in the front, what is there goes where it belongs. These places depend on the structure alone, so they are
found once, in the order in which they are needed.
"""

FRONT_ROWS, FRONT_PARTIALS, FRONT_PAIRS, FRONT_INPUTS, FRONT_LAST = 0, 1, 2, 3, 4
FRONT_TRIPLETS, FRONT_SECONDS, FRONT_TRIPLET_COUNT, FRONT_BARS = 5, 6, 7, 8
FRONT_KIND, FRONT_ENDS, FRONT_ITEMS, FRONT_FOUND = 9, 10, 11, 12  # a pattern (of Hessians, the lower triangle); values
FRONT_PLACES, FRONT_AT, FRONT_ROOM = 13, 14, 15  # places of values, or pairs of a row and a column; how many, and room for how many
FRONT_SLOTS, FRONT_MEMBERS, FRONT_SQUARE, FRONT_ALONG, FRONT_WIDTH, FRONT_COUNT = 16, 17, 18, 19, 20, 21
FRONT_STEPS, FRONT_LIMIT, FRONT_OUTS, FRONT_ORDER, FRONT_RESULTS, FRONT_OUTPUTS, FRONT_OUTPUT_COUNT = 22, 23, 24, 25, 26, 27, 28
FRONT_HOLES, FRONT_HOLE_COUNT = 29, 30  # slots below the width that are free again
FRONT_WEIGHED = 31  # whether second partials have their adjoints in them
FRONT_WORDS = 32

MOST_SLOTS, MOST_OUTPUTS = 64, 16
# What is made: values of entries by their places, these places (-1 for what the pattern has not), a whole matrix, or
# the lower triangle of the pattern.
MAKE_VALUES, MAKE_PLACES, MAKE_MATRIX, MAKE_PATTERN = 0, 1, 2, 3
TOO_WIDE, TOO_LONG, NO_ROOM_LEFT = 1, 2, 3  # answers: more slots than there are, more steps than allowed, places are full
