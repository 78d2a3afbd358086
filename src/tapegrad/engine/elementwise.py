"""The reverse step of an elementwise row on arrays, in blocks.

Whatever the operands look like (strided, broadcast, float32, integer, a number), a block of each is brought to contiguous
float64, where it is not that already; the kernel made from the rule's text runs on the blocks; the result goes to the
argument's adjoint. So each rule needs one loop only, and all shapes share this file.
"""

from tapegrad.engine.layout import (
    ARGUMENTS,
    ARRAY,
    BAR,
    BLOCK,
    CURRENT,
    DELIVER,
    DTYPE,
    FLOAT32,
    FLOAT64,
    GATHER_BLOCK,
    KERNELS,
    NUMBER,
    OFFSET,
    OPCODE,
    PARTIAL_BLOCK,
    RESULT,
    ROW,
    RULES,
    SCATTER_BLOCK,
    SCRATCH,
    SIZE,
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
    f32,
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
from tapegrad.engine.strided import fill_zero, read
from tapegrad.jit import inline, kernel

# How a block of an operand is had.
DIRECT, CONSTANT_BLOCK, FLAT32, STRIDED = 1, 2, 3, 4
# Words of an operand's description in the work area; 200 words a description leave room for rank 64.
HOW, POINTER, TYPE, STRIDES, COUNTER = 0, 1, 2, 8, 72
DESCRIPTION = 200
# Words of a target's description: address, type, first contribution, strided or flat.
ADDRESS, TARGET_TYPE, IS_FIRST, IS_SCATTER = 0, 1, 2, 3


@inline
def adjoint_address(sweep, word):
    """Address of an adjoint from its offset word."""
    return get(sweep, BAR) + 8 * (word >> 1)


@inline
def claim(sweep, slot):
    """Address of the adjoint that a contribution goes to, and whether it is the first one."""
    offsets = get(sweep, OFFSET)
    word = load_i64(offsets + 8 * slot)
    first = word & 1 != 0
    if first:
        store_i64(offsets + 8 * slot, word - 1)
    return adjoint_address(sweep, word), first


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
def describe_constant(sweep, q, value):
    block = f64(get(sweep, SCRATCH) + 8 * BLOCK * q, BLOCK)
    for j in range(BLOCK):
        block[j] = value
    put(get(sweep, WORK) + 8 * DESCRIPTION * q, HOW, CONSTANT_BLOCK)


@inline
def describe_array(sweep, q, obj, size, rank, dimensions):
    description = get(sweep, WORK) + 8 * DESCRIPTION * q
    number, own = array_type_number(obj), array_size(obj)
    put(description, POINTER, array_data(obj))
    put(description, TYPE, number)
    if own == size and array_is_contiguous(obj) and (number == FLOAT64 or number == FLOAT32):
        put(description, HOW, DIRECT if number == FLOAT64 else FLAT32)
    elif own == 1:
        value = read(array_data(obj), number)
        if size == 1:
            block = f64(get(sweep, SCRATCH) + 8 * BLOCK * q, 1)
            block[0] = value
            put(description, HOW, CONSTANT_BLOCK)
        else:
            describe_constant(sweep, q, value)
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
        describe_constant(sweep, k, float_of(saved))
    elif kind == ROW:
        describe_constant(sweep, k, load_f64(get(tape, VALUE) + 8 * argument_row(record, k)))


@inline
def block_of(sweep, q, start, count, rank, dimensions):
    """Address of `count` contiguous float64 values of operand `q` from flat index `start` on."""
    description = get(sweep, WORK) + 8 * DESCRIPTION * q
    scratch = get(sweep, SCRATCH) + 8 * BLOCK * q
    how = get(description, HOW)
    if how == DIRECT:
        return get(description, POINTER) + 8 * start
    if how == FLAT32:
        source, target = f32(get(description, POINTER) + 4 * start, count), f64(scratch, count)
        for j in range(count):
            target[j] = source[j]
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
    """Where the contribution to argument `k` goes."""
    description = get(sweep, WORK) + 8 * DESCRIPTION * (5 + k)
    address, first = claim(sweep, slot)
    put(description, ADDRESS, address)
    own_size, own_rank, number, own_dimensions = 1, 0, FLOAT64, dimensions
    if load_u16(get(tape, OPCODE) + 2 * slot) & WIDE:
        record = record_of(tape, slot)
        own_size, number, own_rank = get(record, SIZE), get(record, DTYPE) & 255, get(record, DTYPE) >> 8
        own_dimensions = record + 8 * (ARGUMENTS + 2 * argument_count(record))
    put(description, TARGET_TYPE, number)
    put(description, IS_FIRST, 1 if first else 0)
    put(description, IS_SCATTER, 0)
    if own_size != size:
        if first:
            fill_zero(address, number, own_size)
        put(description, IS_SCATTER, 1)
        item = 8 if number == FLOAT64 else 4
        dense_strides(description + 8 * STRIDES, rank, dimensions, own_rank, own_dimensions, item)


@inline
def send_block(sweep, k, source, start, count, rank, dimensions):
    description = get(sweep, WORK) + 8 * DESCRIPTION * (5 + k)
    address, number = get(description, ADDRESS), get(description, TARGET_TYPE)
    if get(description, IS_SCATTER):
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
def elementwise_step(tape, sweep, opcode, record, adjoint):
    """Send the contributions of an elementwise row to the adjoints of its arguments."""
    size, number, rank = get(record, SIZE), get(record, DTYPE) & 255, get(record, DTYPE) >> 8
    arguments = argument_count(record)
    dimensions = record + 8 * (ARGUMENTS + 2 * arguments)
    rule = get(tape, RULES) + 32 * opcode
    uses = 0
    for k in range(arguments):
        reference = argument_row(record, k)
        if wanted(sweep, reference):
            uses |= load_i64(rule) >> (4 * k)
            describe_target(tape, sweep, k, reference, size, rank, dimensions)
    for k in range(arguments):
        if (uses >> k) & 1:
            describe_operand(tape, sweep, record, k, size, rank, dimensions)
    if uses & 8:
        if get(record, RESULT) != 0:
            describe_array(sweep, 3, get(record, RESULT), size, rank, dimensions)
        else:
            describe_constant(sweep, 3, load_f64(get(tape, VALUE) + 8 * get(sweep, CURRENT)))
    description = get(sweep, WORK) + 8 * DESCRIPTION * 4
    put(description, POINTER, adjoint)
    put(description, HOW, DIRECT if number == FLOAT64 else FLAT32)
    out = get(sweep, SCRATCH) + 8 * BLOCK * 5
    for start in range(0, size, BLOCK):
        count = min(BLOCK, size - start)
        x = block_of(sweep, 0, start, count, rank, dimensions) if uses & 1 else out
        y = block_of(sweep, 1, start, count, rank, dimensions) if uses & 2 else out
        w = block_of(sweep, 2, start, count, rank, dimensions) if uses & 4 else out
        z = block_of(sweep, 3, start, count, rank, dimensions) if uses & 8 else out
        g = block_of(sweep, 4, start, count, rank, dimensions)
        for k in range(arguments):
            if wanted(sweep, argument_row(record, k)):
                call8(get(get(sweep, KERNELS), PARTIAL_BLOCK), load_i64(rule + 8 + 8 * k), count, x, y, w, z, g, out)
                send_block(sweep, k, out, start, count, rank, dimensions)
