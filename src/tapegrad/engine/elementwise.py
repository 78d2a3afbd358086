"""The reverse step of an elementwise row on arrays, in blocks.

Whatever the operands look like (strided, broadcast, float32, integer, a number), a block of each is brought to contiguous
float64, where it is not that already; the kernel made from the rule's text runs on the blocks; the result goes to the
argument's adjoint. So each rule needs one loop only, and all shapes share this file.
"""

from tapegrad.engine.adjoints import adjoint_address, can_be_uniform, claim, contribute_uniform, fill, target_size, target_type
from tapegrad.engine.layout import (
    ARGUMENTS,
    ARRAY,
    BLOCK,
    CURRENT,
    DELIVER,
    DTYPE,
    FLOAT32,
    FLOAT64,
    GATHER_BLOCK,
    KERNELS,
    NUMBER,
    OPCODE,
    PARTIAL_BLOCK,
    RESULT,
    ROW,
    RULES,
    SCATTER_BLOCK,
    SCRATCH,
    SIZE,
    UNIFORM,
    UNIT,
    VALUE,
    WIDE,
    WORK,
)
from tapegrad.engine.memory import (
    array_data,
    array_dimensions,
    array_is_contiguous,
    array_rank,
    array_size,
    array_strides,
    array_type_number,
    call5,
    call8,
    call9,
    f64,
    float_of,
    get,
    load_f64,
    load_i64,
    load_u16,
    put,
    store_i64,
)
from tapegrad.engine.plan import record_of, wanted
from tapegrad.engine.reclaim import argument_count, argument_kind, argument_row
from tapegrad.engine.strided import flat_copy, read
from tapegrad.jit import inline, kernel

# How a block of an operand is had: where it stands, filled once for all, as a copy of contiguous or of strided elements.
DIRECT, CONSTANT_BLOCK, FLAT, STRIDED = 1, 2, 3, 4
# Words of an operand's description in the work area; 200 words a description leave room for rank 64.
HOW, POINTER, TYPE, STRIDES, COUNTER = 0, 1, 2, 8, 72
DESCRIPTION = 200
# Words of a target's description; dimensions are those of the row, strides as for operands.
ADDRESS, TARGET_TYPE, IS_FIRST, LANDING = 0, 1, 2, 3
# How a block of contributions gets there: there is none or it is there already, the loop that computes it writes it, it is written
# or added from a scratch block, it is added in strides.
SETTLED, STRAIGHT, DELIVERED, SCATTERED = 0, 1, 2, 3


@inline
def broadcast_strides(out, rank, dimensions, own_rank, own_dimensions, own_strides):
    """Byte strides of an array over the dimensions it is broadcast to."""
    for d in range(rank):
        own = d - (rank - own_rank)
        stride = 0
        if own >= 0 and load_i64(own_dimensions + 8 * own) != 1:
            stride = load_i64(own_strides + 8 * own)
        store_i64(out + 8 * d, stride)


@inline
def dense_strides(out, rank, dimensions, own_rank, own_dimensions, item):
    """The same for a C-contiguous array that has no strides written down."""
    stride = item
    for d in range(rank - 1, -1, -1):
        own = d - (rank - own_rank)
        if own < 0:
            store_i64(out + 8 * d, 0)
        else:
            extent = load_i64(own_dimensions + 8 * own)
            store_i64(out + 8 * d, 0 if extent == 1 else stride)
            stride *= extent


@inline
def describe_constant(sweep, q, value, size):
    count = min(BLOCK, size)
    block = f64(get(sweep, SCRATCH) + 8 * BLOCK * q, count)
    for j in range(count):
        block[j] = value
    put(get(sweep, WORK) + 8 * DESCRIPTION * q, HOW, CONSTANT_BLOCK)


@inline
def describe_array(sweep, q, obj, size, rank, dimensions):
    description = get(sweep, WORK) + 8 * DESCRIPTION * q
    number, own = array_type_number(obj), array_size(obj)
    put(description, POINTER, array_data(obj))
    put(description, TYPE, number)
    if own == size and array_is_contiguous(obj) and (number == FLOAT64 or number == FLOAT32):
        put(description, HOW, DIRECT if number == FLOAT64 else FLAT)
    elif own == 1:
        describe_constant(sweep, q, read(array_data(obj), number), size)
    else:
        put(description, HOW, STRIDED)
        broadcast_strides(description + 8 * STRIDES, rank, dimensions, array_rank(obj), array_dimensions(obj), array_strides(obj))


@inline
def describe_operand(tape, sweep, record, k, size, rank, dimensions):
    kind = argument_kind(record, k)
    saved = get(record, ARGUMENTS + 2 * k + 1)
    if kind == ARRAY:
        describe_array(sweep, k, saved, size, rank, dimensions)
    elif kind == NUMBER:
        describe_constant(sweep, k, float_of(saved), size)
    elif kind == ROW:
        describe_constant(sweep, k, load_f64(get(tape, VALUE) + 8 * argument_row(record, k)), size)


@inline
def block_of(sweep, q, start, count, rank, dimensions):
    """Address of `count` contiguous float64 values of operand `q` from flat index `start` on."""
    description = get(sweep, WORK) + 8 * DESCRIPTION * q
    scratch = get(sweep, SCRATCH) + 8 * BLOCK * q
    how = get(description, HOW)
    if how == DIRECT:
        return get(description, POINTER) + 8 * start
    if how == FLAT:
        flat_copy(get(description, POINTER), get(description, TYPE), start, count, scratch)
    elif how == STRIDED:
        call9(
            get(get(sweep, KERNELS), GATHER_BLOCK),
            scratch,
            get(description, POINTER),
            get(description, TYPE),
            rank,
            dimensions,
            description + 8 * STRIDES,
            description + 8 * COUNTER,
            start,
            count,
        )
    return scratch


@inline
def describe_target(tape, sweep, k, slot, size, rank, dimensions):
    """Where the contribution to argument `k` goes, and how."""
    description = get(sweep, WORK) + 8 * DESCRIPTION * (5 + k)
    address, first = claim(tape, sweep, slot)
    own_size, number = target_size(tape, slot), target_type(tape, slot)
    put(description, ADDRESS, address)
    put(description, TARGET_TYPE, number)
    put(description, IS_FIRST, 1 if first else 0)
    put(description, LANDING, STRAIGHT if first and number == FLOAT64 else DELIVERED)
    if own_size != size:
        if first:
            fill(sweep, address, number, 0.0, own_size)
        put(description, LANDING, SCATTERED)
        own_rank, own_dimensions = 0, dimensions
        if load_u16(get(tape, OPCODE) + 2 * slot) & WIDE:
            record = record_of(tape, slot)
            own_rank = get(record, DTYPE) >> 8
            own_dimensions = record + 8 * (ARGUMENTS + 2 * argument_count(record))
        item = 8 if number == FLOAT64 else 4
        dense_strides(description + 8 * STRIDES, rank, dimensions, own_rank, own_dimensions, item)


@inline
def describe_adjoint(sweep, adjoint, number, word, size, shared):
    """The row's adjoint, an operand of every partial; where an argument inherits its place, each block is copied first."""
    description = get(sweep, WORK) + 8 * DESCRIPTION * 4
    put(description, POINTER, adjoint)
    put(description, TYPE, number)
    put(description, HOW, DIRECT if number == FLOAT64 and not shared else FLAT)
    if word & UNIFORM:
        describe_constant(sweep, 4, read(adjoint, number), size)


@inline
def is_constant(sweep, uses):
    """Whether all of these operands (bits) are the same for every element."""
    for q in range(4):
        if (uses >> q) & 1 and get(get(sweep, WORK) + 8 * DESCRIPTION * q, HOW) != CONSTANT_BLOCK:
            return False
    return True


@inline
def is_sole(sweep, k, arguments):
    """Whether no other argument is the same row as argument `k`."""
    targets = get(sweep, WORK) + 8 * DESCRIPTION * 5
    for other in range(arguments):
        if other != k and get(targets + 8 * DESCRIPTION * other, ADDRESS) == get(targets + 8 * DESCRIPTION * k, ADDRESS):
            return False
    return True


@inline
def settle(tape, sweep, record, k, partial, uses, word, adjoint):
    """Finish a first contribution that needs no block: the same for every element, or the adjoint itself on its own place."""
    description = get(sweep, WORK) + 8 * DESCRIPTION * (5 + k)
    address, landing = get(description, ADDRESS), get(description, LANDING)
    if landing == SCATTERED or get(description, IS_FIRST) == 0:
        return
    if word & UNIFORM:
        slot = argument_row(record, k)
        if can_be_uniform(tape, slot) and is_constant(sweep, uses) and is_sole(sweep, k, argument_count(record)):
            block, out = get(sweep, SCRATCH), get(sweep, SCRATCH) + 8 * BLOCK * 5
            x, y, w, z, g = block, block + 8 * BLOCK, block + 16 * BLOCK, block + 24 * BLOCK, block + 32 * BLOCK
            if partial == UNIT:
                out = g
            else:
                call8(get(get(sweep, KERNELS), PARTIAL_BLOCK), partial, 1, x, y, w, z, g, out)
            contribute_uniform(tape, sweep, slot, address, load_f64(out))
            put(description, LANDING, SETTLED)
    elif partial == UNIT and address == adjoint:
        put(description, LANDING, SETTLED)


@inline
def send_block(sweep, k, source, start, count, rank, dimensions):
    description = get(sweep, WORK) + 8 * DESCRIPTION * (5 + k)
    address, number = get(description, ADDRESS), get(description, TARGET_TYPE)
    if get(description, LANDING) == SCATTERED:
        call9(
            get(get(sweep, KERNELS), SCATTER_BLOCK),
            address,
            number,
            source,
            rank,
            dimensions,
            description + 8 * STRIDES,
            description + 8 * COUNTER,
            start,
            count,
        )
    else:
        call5(
            get(get(sweep, KERNELS), DELIVER),
            address + (8 if number == FLOAT64 else 4) * start,
            number,
            get(description, IS_FIRST),
            source,
            count,
        )


@kernel("void(int64,int64,int64,int64,int64)")
def elementwise_step(tape, sweep, opcode, record, word):
    """Send the contributions of an elementwise row to the adjoints of its arguments."""
    size, number, rank = get(record, SIZE), get(record, DTYPE) & 255, get(record, DTYPE) >> 8
    arguments, adjoint = argument_count(record), adjoint_address(sweep, word)
    dimensions = record + 8 * (ARGUMENTS + 2 * arguments)
    targets, rule = get(sweep, WORK) + 8 * DESCRIPTION * 5, get(tape, RULES) + 32 * opcode
    uses, shared = 0, False
    for k in range(arguments):
        reference = argument_row(record, k)
        if wanted(sweep, reference):
            uses |= load_i64(rule) >> (4 * k)
            describe_target(tape, sweep, k, reference, size, rank, dimensions)
            shared = shared or get(targets + 8 * DESCRIPTION * k, ADDRESS) == adjoint
        else:
            put(targets + 8 * DESCRIPTION * k, ADDRESS, 0)
            put(targets + 8 * DESCRIPTION * k, LANDING, SETTLED)
    for k in range(arguments):
        if (uses >> k) & 1:
            describe_operand(tape, sweep, record, k, size, rank, dimensions)
    if uses & 8:
        if get(record, RESULT) != 0:
            describe_array(sweep, 3, get(record, RESULT), size, rank, dimensions)
        else:
            describe_constant(sweep, 3, load_f64(get(tape, VALUE) + 8 * get(sweep, CURRENT)), size)
    describe_adjoint(sweep, adjoint, number, word, size, shared)
    open_targets = 0
    for k in range(arguments):
        if get(targets + 8 * DESCRIPTION * k, LANDING) != SETTLED:
            partial, own_uses = load_i64(rule + 8 + 8 * k), load_i64(rule) >> (4 * k)
            settle(tape, sweep, record, k, partial, own_uses, word, adjoint)
            open_targets += get(targets + 8 * DESCRIPTION * k, LANDING)
    if open_targets == 0:
        return
    scratch = get(sweep, SCRATCH) + 8 * BLOCK * 5
    for start in range(0, size, BLOCK):
        count = min(BLOCK, size - start)
        x = block_of(sweep, 0, start, count, rank, dimensions) if uses & 1 else scratch
        y = block_of(sweep, 1, start, count, rank, dimensions) if uses & 2 else scratch
        w = block_of(sweep, 2, start, count, rank, dimensions) if uses & 4 else scratch
        z = block_of(sweep, 3, start, count, rank, dimensions) if uses & 8 else scratch
        g = block_of(sweep, 4, start, count, rank, dimensions)
        for k in range(arguments):
            description, partial = targets + 8 * DESCRIPTION * k, load_i64(rule + 8 + 8 * k)
            landing = get(description, LANDING)
            if landing == SETTLED:
                continue
            out = g
            if partial != UNIT:
                out = get(description, ADDRESS) + 8 * start if landing == STRAIGHT else scratch
                call8(get(get(sweep, KERNELS), PARTIAL_BLOCK), partial, count, x, y, w, z, g, out)
            if partial == UNIT or landing != STRAIGHT:
                send_block(sweep, k, out, start, count, rank, dimensions)
