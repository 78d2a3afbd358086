"""Where things stand: header words, row formats, record words. Shared by the compiled engine and the Python side.

A *row* is one recorded operation: opcode, flags, number of handles on it and of references to it, two references, one value.
There are two formats:

- a *plain* row is an elementwise operation on float64 scalars: ``first`` and ``second`` are slots of rows (>= 0), folded
  constants (<= -2: constant number ``-2 - reference``) or absent (-1), and ``value`` is the primal;
- a *wide* row (opcode bit `WIDE`) is anything else: ``first`` is the word in the side column where its *record* starts.
  ``value`` still is the primal if the result is a scalar.
"""

MOST_LENGTHS = 32  # of an array that compiled operators make

# Header of the tape: int64 words. Addresses are byte addresses of the columns.
ROWS, CAPACITY, LIMIT, CLOCK, PINS = 0, 1, 2, 3, 4
OPCODE, FLAGS, HELD, FIRST, SECOND, VALUE = 5, 6, 7, 8, 9, 10
SIDE, SIDE_ROWS, SIDE_CAPACITY = 11, 12, 13
CONSTANT, CONSTANTS, CONSTANT_CAPACITY = 14, 15, 16
HANDLE, HANDLE_CAPACITY, HANDLE_FREE = 17, 18, 19
SAVED_BYTES, SAVED_LIMIT, LEAVES = 20, 21, 22
RULES, ARRAY_TYPE, FLOAT_TYPE = 23, 24, 25
WRITTEN, WRITTEN_CAPACITY, WRITTEN_COUNT = 26, 27, 28
OVERWRITTEN_ROWS, ELEMENTWISE_ROW, LOOPS = 29, 30, 31
# What compiled operators need: types, offsets of a tensor's slots, constants of the interpreter, and functions by address.
TENSOR_TYPE, INT_TYPE, DATA_AT, ROW_AT, META_AT, NONE, TRUE = 32, 33, 34, 35, 36, 37, 38
RECORDING_OFF, IS_RECORDING, SCALARS_READY, FALLBACKS, NEW_ARRAY = 39, 40, 41, 42, 43
PRIMAL, OPERATE, FINALIZE, GIVE_BACK = 44, 45, 46, 47
PIN_CLOCK, RELEASING = 48, 49  # how often the number of pins has changed; pins of objects that are being released
ANCHOR, ANCHOR_CAPACITY, ANCHOR_FREE = 50, 51, 52  # like the handles, but rows do not live for them
MOVES = 53  # how often rows have moved
UNREFERENCED_LOW, UNREFERENCED_HIGH = 54, 55  # between which slots rows may have lost their last reference; HIGH -1: none
TENSOR_CLASS, ARRAY_CLASS = 56, 57  # of which results are: arrays where an operand is one; 0 before there are any
KERNEL_TABLE = 58  # address of the table of kernels
OPERAND_X, OPERAND_Y, VALUE_OF_LOOP = 59, 60, 61  # numbers on the way to and from a loop over one element
PLAIN_TENSOR, PAYLOAD_CLASS, FALSE, DOUBLE = 62, 63, 64, 65  # the class itself, whoever must see each operation; a dtype
# The method `sum`: its compiled form, the Python form, its loop and that one's data, bits of the number that a sum starts with, the
# number of its node's name, whether its rows can be recorded, and its C function.
SUM, SUM_FORM, SUM_LOOP, SUM_LOOP_DATA, SUM_START, SUM_NAME, SUMS_READY, SUM_THUNK = 66, 67, 68, 69, 70, 71, 72, 73
# The method `backward`: its compiled form, the Python form, what goes on with a pass and what calls a vjp, the methods of the lock
# on gradients, the working memory that it may use and the object that owns that, the class of contexts, and whether a tensor was
# ever given data of another shape or dtype.
BACKWARD, BACKWARD_FORM, GO_ON, CALL_VJP, LOCK, UNLOCK = 74, 75, 76, 77, 78, 79
IDLE_SWEEP, IDLE_OWNER, CONTEXT_CLASS, RESHAPED = 80, 81, 82, 83
# ``x[key]`` of arrays: its compiled form, the Python form and the C function, whether its rows can be recorded, the numbers of its
# nodes' names, the types of slices, of what takes an item, of what only some tensors have, of counters of versions and of chains of
# views, what looks through a list of views, and the empty text.
ITEM, ITEM_FORM, ITEM_THUNK, ITEMS_READY, SLICE_NAME, SELECT_NAME = 84, 85, 86, 87, 88, 89
SLICE_TYPE, TAKE_CLASS, META_CLASS, VERSION_CLASS, REPLAY_CLASS, LOOK_THROUGH, NO_TEXT = 90, 91, 92, 93, 94, 95, 96
TAPE_OBJECT = 97
LEAF_LINK, LOCK_LEAVES, UNLOCK_LEAVES = 98, 99, 100  # how rows of leaves find them, and methods of the lock on new ones
# Writes in place: how many there were; the compiled forms of elementwise rules, of whole tensors and of ``x[key] = value``, the
# Python forms by number, and the C functions; what a new tensor's meta is made like, and how many words that has; the operations
# that are recorded, and whether their rows can be; names of nodes; the ellipsis, the number zero, and the type of tuples. And the
# Python form of ``x[key]`` of tensors.
WRITES, WRITE_RULE, WRITE_WHOLE, WRITE_ITEM, WRITING_FORMS, WRITING_THUNKS = 101, 102, 103, 104, 105, 106
META_TEMPLATE, META_WORDS, ZERO_OPERATION, FILL_OPERATION, FILL_TENSOR_OPERATION, COPY_OPERATION = 107, 108, 109, 110, 111, 112
SLICES_OPERATION, HOSTS_READY, STRIDED_NAME, ALIAS_NAME, ELLIPSIS, FLOAT_ZERO, TUPLE_TYPE, ITEM_FORM_OF_TENSORS = (
    113, 114, 115, 116, 117, 118, 119, 120,
)  # fmt: skip
# Operations whose derivative is Python: the compiled forms of `apply` and of products of matrices and vectors, their Python forms,
# and the operations of products by the ranks of their operands; the compiled form of what vjps are written with, and the Python
# forms by number; NumPy's class of numbers, its method that multiplies, what starts and ends to ignore floating point errors, and
# the state in between; what exchanges dimensions, the last two, and an empty tuple; the C functions of all these; and what records
# several outputs.
APPLY, APPLY_FORM, PRODUCT, PRODUCT_FORM, PRODUCT_OPERATIONS, PLAIN_OPERATION, PLAIN_FORMS = 121, 122, 123, 124, 125, 126, 127
NUMBER_CLASS, DOT, ENTER, LEAVE, IGNORING, SWAPAXES, LAST_AXES, NO_TENSORS = 128, 129, 130, 131, 132, 133, 134, 135
HOSTED_THUNKS, OUTPUTS, VIEW, MATMUL = 136, 137, 138, 139  # and views, and what multiplies batches
REDUCED, SUMS_BY_ROWS = 140, 141  # and sums along dimensions; whether NumPy sums columns one row after the other
SUM_ROOM = 142  # for a sum's operand whose elements are not side by side; 0 where NumPy sums those in another order
# How rules that no loop of NumPy's computes have their values: the compiled form of operators of three operands, and room for the
# blocks that go to loops of NumPy's and for numbers that are operands.
OPERATE_THREE, VALUE_ROOM = 143, 144
# Large arrays: what makes an uninitialised one like another on memory that is used again; how compiled code has a rule's values
# (`BY_NUMPYS_LOOP`, `BY_OWN_LOOP`, `BY_STAGES`, 0: not at all); whether NumPy's sums of rows are those of `sum_of_row`, and whether
# it sums arrays that are no block by a buffer of as many rows as fit.
LARGE_LIKE, LONG_WAYS, SUMS_ROWS_BY_TWO, SUMS_BY_BUFFER = 145, 146, 147, 148
BLOCK_CLASS = 149  # of the memory under such an array
SUMS_BY_HALVES = 150  # whether NumPy's loop adds neighbours up as `halved_sum` does
LENGTHS = 151  # room for the lengths of a new array
OFFSETS = LENGTHS + MOST_LENGTHS  # where attributes stand in objects: so many words from here on
HEADER_WORDS = OFFSETS + 39
# Attributes of what only some tensors have, of payloads, of what a vjp is given, of operations, of the modes of a thread, of
# the tape as an object, and of links to leaves.
META_GRAD, META_LEFT, META_VERSION = 0, 1, 2
PAYLOAD_OP, PAYLOAD_INPUTS, PAYLOAD_ATTRS, PAYLOAD_SHAPES, PAYLOAD_DTYPES = 3, 4, 5, 6, 7
GIVEN_OP, GIVEN_G, GIVEN_INPUTS, GIVEN_RESULT, GIVEN_EXTRA, GIVEN_ATTRS, GIVEN_NEEDS, GIVEN_SHAPES, GIVEN_DTYPES = tuple(
    range(8, 17)
)
OPERATION_NUMBER, OPERATION_USES = 17, 18
META_BASE, META_REPLAY, META_VIEWS, META_MADE_WITHOUT_GRAD, META_ONE_OF_MANY = 19, 20, 21, 22, 23
OPERATION_PAYLOAD_CLASS, GIVEN_SLOT, MODES_ENABLED, TAPE_RECORDING_OFF = 24, 25, 26, 27
META_LEAF, META_HOOKS, LINK_DATA, GIVEN_SWEEP = 28, 29, 30, 31
META_RETAINED, VERSION_COUNT, VERSION_TIMES, TAPE_VERSIONS, META_OUTPUT_NR = 32, 33, 34, 35, 36
OPERATION_MOVES, OPERATION_STRETCHES = 37, 38
# How an input's elements come into the result of an operation that only moves them, four bits for each input: all unmoved; those at
# places; added to zeros at places; all but those at places, or where a mask says so; put to places, of which the last of the same
# counts; those of places that no later place is; one number, where a mask says so; all but those of a part, which the words behind
# a record's lengths say as a map; put to such a part; none at all. One number may stand for all that is put, added or unmoved.
UNMOVED, TAKEN_AT, ADDED_AT, ALL_BUT_AT, PUT_AT, LAST_TAKEN_AT, ALL_BUT_WHERE, PUT_WHERE = 1, 2, 3, 4, 5, 6, 7, 8
ALL_BUT_PART, PUT_INTO_PART, NOT_AT_ALL = 9, 10, 11
NO_ROW = 1 << 31  # higher than every slot
GONE = -(1 << 31)  # an anchor whose row is gone
LARGEST_BLOCK = 2048  # elements up to which compiled operators compute
MANY = 1 << 15  # elements from which a sum is that of rows of so many elements
ROW_OF_MANY = 1024
LEAST_ROWS = 4096  # rows that are always allowed before dead ones are looked for

# Structural opcodes come after the rules.
WIDE = 1 << 15
STRUCTURAL = 1 << 12
LEAF, GATHER, SCATTER, JOIN, HOST = STRUCTURAL, STRUCTURAL + 1, STRUCTURAL + 2, STRUCTURAL + 3, STRUCTURAL + 4

# What a tensor holds in the place of a handle, besides 0 for an untracked one: it is a leaf without a row yet, a piece of a result
# of which another piece was written in place, or a result that the collector found in a cycle.
UNREGISTERED, SPOILED, COLLECTED = -1, -2, -3

# Row flags.
FREED = 1  # the values that its derivative needs were released
DEAD = 2  # every way down from here ends in freed rows: its references need not be kept; found when rows are collected
WATCHED = 4  # the sweep stops here and shows the adjoint to Python (retained gradients)
OVERWRITTEN = 8  # the scalar was changed in place after this row was recorded
CUT = 16  # a row that this one refers to is gone, so what it depended on is not known any more
HOOKED = 32  # the sweep stops here for hooks, at leaves and where nothing was contributed too
TRACED = 64  # Python noted where the row was recorded

# Number of handles and references of a vacant row: nothing refers to it, and its place waits to be given back.
VACANT = -1

# Record of a wide row: words in the side column.
LENGTH, NAME, SERIAL, PAYLOAD, SIZE, DTYPE, RESULT, SCALE, ARGUMENTS = 0, 1, 2, 3, 4, 5, 6, 7, 8
# NAME holds the name's number and the number of arguments << 32; DTYPE the type number and the rank << 8.
# Each argument takes two words: reference and kind, then what was saved. After them come the dimensions of the result,
# then, for strided maps, rank, offset, dimensions and strides of the map; for joins the inner size of each argument.

# What vjps are written with, as far as it is compiled.
PLAIN_PRODUCT, PLAIN_TRANSPOSE, PLAIN_OUTER, PLAIN_TRIANGLE, PLAIN_PIECES, PLAIN_SUM_TO, PLAIN_MIRRORED = 0, 1, 2, 3, 4, 5, 6
PLAIN_RESTORE, PLAIN_UNSQUEEZE = 7, 8
PLAIN_COUNT = 9

# What an argument saved.
NOTHING, ARRAY, ROW, NUMBER, STALE = 0, 1, 2, 3, 4

# What a tensor was that a custom function saved: an input, an output, or anything else, which is not tracked.
SAVED_INPUT, SAVED_OUTPUT, SAVED_OTHER = 0, 1, 2

# Answers of the recording entries; a positive answer is a handle.
FULL, NEW_LEAF, UNSUPPORTED = -1, -2, -3

# Second word of a rule among the loops where NumPy has none: a loop of ours gives its values, alone or with NumPy's for functions.
BY_OWN_LOOP, BY_STAGES, BY_NUMPYS_LOOP = 1, 2, 3

# Which write to a whole tensor, and how many there are.
WRITE_ZERO, WRITE_FILL, WRITE_COPY = 0, 1, 2
WHOLE_WRITES = 3

# Header of a sweep: int64 words.
OFFSET, BAR, SCRATCH, WORK = 0, 1, 2, 3
PEAK, PENDING, TOP, LOW, CURRENT = 4, 5, 6, 7, 8
FREE, FREE_COUNT, STACK, STACK_COUNT = 9, 10, 11, 12
REACHED, REACHED_COUNT, MARKS, TRASH, TRASH_COUNT = 13, 14, 15, 16, 17
STOPPED_AT, SAVED_COUNT, PATH_LOW = 18, 19, 20
OFFSET_CAPACITY, BAR_CAPACITY, REACHED_CAPACITY, TRASH_CAPACITY = 21, 22, 23, 24
KERNELS = 25  # address of the table of kernels
STOPS = 26  # rows at which the pass will return to Python
PINNED = 27  # whether this pass itself pins the tape
# Whether targets are found before the walk: bit 0 if a gradient is worth being computed in place, bit 1 if one may refuse the sum.
AIMS_FIRST = 28
FIRST_ODD = 29  # which cotangent is the first that Python has to look at
# Whether cotangents may become adjoints: compiled code has begun the pass and runs it; the tuple of the arrays that it has made
# for large leaves (0: none); the array that is the buffer of adjoints; and cotangents that are the adjoints of large rows whose
# derivative is Python: how many, and row and array of each, to which there is a reference.
TAKES, ROOMS, BAR_OWNER, HANDED_COUNT, HANDED = 30, 31, 32, 33, 34
MOST_HANDED = 16
SWEEP_WORDS = HANDED + 2 * MOST_HANDED

# For each leaf that is reached: slot, payload, where its adjoint goes (an array), how, and while gradients are delivered the
# tensor's other attributes, and the gradient that was there and its data; the row whose adjoint stands in the leaf's place (-1:
# none); and the array that compiled code has made for a large one (0: none).
LEAF_SLOT, LEAF_PAYLOAD, LEAF_TARGET, LEAF_MODE, LEAF_META, LEAF_GRAD, LEAF_DATA, LEAF_TENANT, LEAF_ROOM = range(9)
LEAF_WORDS = 9

# Table of kernels: addresses, 0 until something was recorded that needs the kernel.
PARTIAL_BLOCK, SCALAR_PARTIALS, GATHER_BLOCK, SCATTER_BLOCK, DELIVER = 0, 1, 2, 3, 4
ELEMENTWISE_STEP, MAP_STEP, FILL_BLOCK = 5, 6, 7
SCALAR_RUN, OTHER_SCALARS, GIVE_OPERANDS, ADD_COTANGENTS, WALK = 8, 9, 10, 11, 12
VALUE_BLOCK, MOVE_STEP = 13, 14
FUNCTIONS_READY = 15  # whether the addresses of NumPy's loops are there, which come last
KERNEL_COUNT = 16  # after them come the loops of each rule that is not among the common ones
FREE_CAPACITY, STACK_CAPACITY = 256, 1024
LARGEST_KEPT = 1 << 23  # words: working memory beyond 64 MB is given back after the pass
BLOCK = 512
ROOM = 6  # scratch blocks before those in which partials keep what they pass to NumPy's loops and what these give
ROOM_BLOCKS = 6
SUM_BLOCKS = ROOM + ROOM_BLOCKS  # blocks in which what goes to few elements of float32 is added up, one for each argument
SCRATCH_BLOCKS = SUM_BLOCKS + 3
# An offset word holds four times the place of an adjoint (in float64 words from the start of the buffer) plus its state: nothing
# was contributed yet, or all elements are equal and only the first one is written down.
UNWRITTEN, UNIFORM = 1, 2
UNSEEN = -(1 << 62) - 1  # counts as unwritten
UNIT = -2  # number of the partial that is 1 everywhere: the contribution is the adjoint itself

# Marks of a sweep towards chosen inputs.
ON_PATH, REQUESTED = 1, 2

# What happens to the adjoint of a leaf: nobody wants it, it is written to the target, it is added, it stands there already.
IGNORE, WRITE, ADD, IN_PLACE = 0, 1, 2, 3

# Answers of planning and sweeping; `start` answers with the number of leaves or with minus one of these.
DONE, HOST_ROW, WATCHED_ROW, FREED_ROW, STALE_ROW, MORE_ROOM = 0, 1, 2, 3, 4, 5
VJP_DUE, ODD_COTANGENT = 6, 7  # a host row whose vjp has all that it needs; cotangents of one that are left to Python
DELIVERED = 8  # all is done, but working memory and released objects are left to Python

# A step of a program: what is done, by which rule, loop or comparison, with how many elements, and where operands and result stand.
STEP_KIND, STEP_FUNCTION, STEP_DATA, STEP_COUNT, STEP_X, STEP_X_STRIDE, STEP_Y, STEP_Y_STRIDE, STEP_Z, STEP_Z_STRIDE, STEP_EXTRA = (
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
)  # fmt: skip
STEP_WORDS = 11
PYTHON_STEP, NUMBER_STEP, LOOP_STEP, COPY_STEP, SUM_STEP, COMPARE_STEP, GUARD_STEP = 0, 1, 2, 3, 4, 5, 6

# What a program expects of an input: class, dtype (0: a number), where it goes, how many elements are copied (-1: its address goes
# there), how many dimensions, and their lengths. Before the first one comes their number.
INPUT_CLASS, INPUT_DTYPE, INPUT_PLACE, INPUT_COUNT, INPUT_RANK, INPUT_LENGTHS = 0, 1, 2, 3, 4, 5
IN_ORDER = 0x101  # flags of arrays: in C order, and aligned
ALIGNED, IN_ORDER_AND_WRITEABLE = 0x100, 0x501

# Options of substitution in triangles: the matrix stands on the left; its upper triangle is read; the array holds its transpose;
# ones stand on the diagonal, which is not read.
IS_LEFT, OF_UPPER, IS_TURNED, HAS_ONES = 1, 2, 4, 8

# NumPy type numbers that occur.
BOOL, INT8, UINT8, INT16, INT32, INT64, UINT64, FLOAT32, FLOAT64 = 0, 1, 2, 3, 5, 7, 10, 11, 12
