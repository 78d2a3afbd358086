"""Where things stand in a linear tape: the derivative of a piece of the tape at one point, as numbers.

Every row between inputs and outputs has a *place* in one long vector (of its tangents, or of its adjoints): one element for a
scalar, all of them for an array. Entries are in the order of the rows, and each adds to places that come later:

- a *plain* entry is a row of a scalar with one or two arguments: ``z = p * x + q * y``;
- a *map* entry is one argument of a wide row: ``z[offset + strides . i] += factor[i] * x[offset + strides . i]``;
- a *hosted* entry is a row whose derivative is Python: sweeps return there;
- *curved* entries are what the second derivative adds to the reverse sweep: the same with second partials times the adjoint.

A row whose tangent is that of its argument, or a piece of it, has no entry and no place of its own: it stands where that stands.

Sweeps take the entries forwards or backwards, for several vectors (lanes) at once: the lanes of one element stand together.
"""

# Header: int64 words.
ENTRIES, ENTRY, CURVES, PROGRAM, PROGRAM_WORDS = 0, 1, 2, 3, 4
FACTORS, FACTOR_COUNT, PLACE_OF, PLACES, WITH_SECOND = 5, 6, 7, 8, 9
SECOND_TABLE, SECOND_SCALAR, SECOND_BLOCK = 10, 11, 12
ROLE, OWNERS, OWNER, ABSOLUTE = 13, 14, 15, 16
LINEAR_WORDS = 17

# What second partials are for: any product, or one that is taken once (see `single_roles`).
ANY_PRODUCT, ONE_PRODUCT = 1, 2
# What one product needs of a row: its tangent and how its adjoint changes (a row below it has a second partial by it), and its
# adjoint (it has a second partial itself, or is above a row that has). Of a map: of its row the former, of its argument the latter.
TURNS, BEARS = 1, 2
# Rows that have places of their own: the first place, how many, and for tangents, adjoints and changes of adjoints where their own
# place is, where the first one stands now, what these are to be multiplied by, and what has come to them.
NUMBERS_WORDS = 4
OWNER_WORDS = 2 + 3 * NUMBERS_WORDS
UNTOUCHED, ALIKE, ELEMENTS = 0, 1, 2  # nothing yet; the same number for all elements, at the first place; all elements

# An entry: kind and place (int32 each), first and second place (int32, -1 where there is none) or the word of its program, p, q.
ENTRY_BYTES, CURVE_BYTES = 32, 24
PLAIN, CURVED_PLAIN, MAP, CURVED_MAP, HOSTED = 0, 1, 2, 3, 4

# Program of a map: number of elements, rank, what its factor is (a number, or an index into the factors), the number or index,
# places of x and z; then dimensions, strides of x, strides of z, all in elements. In a curved map the adjoint of x gets what the
# tangent of z gives, and the place of the adjoint to be multiplied into the factors stands there too: -1 if they are shared.
# The first map of a row makes its tangent: it writes every element (`SETS`), or so many elements of the row are cleared before.
# Where there is one product only, the roles say what the map is needed for.
SETS = -1
MAP_SIZE, MAP_RANK, MAP_KIND, MAP_FACTOR, MAP_X, MAP_Z, MAP_BAR, MAP_ROW, MAP_CLEAR, MAP_ROLES = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
MAP_DIMENSIONS = 10
NUMBER_FACTOR, ARRAY_FACTOR = 0, 1

# Elements of a run from which on it is asked whether it is zero, and how many of its numbers are asked at once.
TESTED_RUN, TESTED_NUMBERS = 16, 64

SPECIAL_ROW = 1  # answer: there is a row that the compiled sweeps cannot take
FINISHED = -1  # answer of a sweep that is through; else the number of a hosted entry
