"""The reverse step of an elementwise row on arrays, in blocks.

Whatever the operands look like (strided, broadcast, float32, integer, a number), a block of each is brought to contiguous
float64, where it is not that already; the kernel made from the rule's text runs on the blocks; the result goes to the
argument's adjoint. So each rule needs one loop only, and all shapes share this file.
"""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.engine.adjoints import adjoint_address, claim, contribute_uniform, fill, read_first, target_size, target_type
from tapegrad.engine.layout import *
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
from tapegrad.engine.owned import argument_count, argument_kind, argument_row
from tapegrad.engine.plan import record_of, wanted
from tapegrad.engine.rule_loops import loops_of
from tapegrad.engine.strided import flat_copy, read

# How a block of an operand is had: where it stands, filled once for all, as a copy of contiguous or of strided elements.
DIRECT, CONSTANT_BLOCK, FLAT, STRIDED = 1, 2, 3, 4
# Words of an operand's description in the work area; 200 words a description leave room for rank 64.
HOW, POINTER, TYPE, AT, STRIDES, COUNTER = 0, 1, 2, 3, 8, 72
DESCRIPTION = 200
SPAN = 8 * BLOCK  # bytes of scratch for each operand, and then for the contributions
ADJOINT = 16  # bit of the adjoint among the operands that a partial reads
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
    """Describe an operand that is one number: a block of it, written once."""
    count = min(BLOCK, size)
    block = f64(get(sweep, SCRATCH) + 8 * BLOCK * q, count)
    for j in range(count):
        block[j] = value
    put(get(sweep, WORK) + 8 * DESCRIPTION * q, HOW, CONSTANT_BLOCK)


@inline
def describe_array(sweep, q, obj, size, rank, dimensions):
    """Describe an operand that is an array: how its blocks are read."""
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
def describe_operand(tape, sweep, record, q, size, rank, dimensions):
    """Describe argument `q`, or the result if `q` is 3."""
    if q == 3:
        slot, saved = get(sweep, CURRENT), get(record, RESULT)
        kind = ARRAY if saved != 0 else ROW
    else:
        slot, saved, kind = argument_row(record, q), get(record, ARGUMENTS + 2 * q + 1), argument_kind(record, q)
    if kind == ARRAY:
        describe_array(sweep, q, saved, size, rank, dimensions)
    elif kind == NUMBER:
        describe_constant(sweep, q, float_of(saved), size)
    elif kind == ROW:
        describe_constant(sweep, q, load_f64(get(tape, VALUE) + 8 * slot), size)


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
def describe_adjoint(sweep, q, adjoint, number, word, size):
    """Describe the row's own adjoint, an operand of every partial."""
    description = get(sweep, WORK) + 8 * DESCRIPTION * q
    put(description, POINTER, adjoint)
    put(description, TYPE, number)
    put(description, HOW, DIRECT if number == FLOAT64 else FLAT)
    if word & UNIFORM:
        describe_constant(sweep, q, read_first(adjoint, number), size)


@inline
def is_constant(sweep, uses):
    """Whether all of these operands (bits) are the same for every element."""
    for q in range(5):
        if (uses >> q) & 1 and get(get(sweep, WORK) + 8 * DESCRIPTION * q, HOW) != CONSTANT_BLOCK:
            return False
    return True


@inline
def settle(tape, sweep, slot, target, loops, partial, uses, adjoint):
    """Finish a first contribution that needs no blocks: the same for every element, or the adjoint itself in its own place."""
    address = get(target, ADDRESS)
    if get(target, IS_FIRST) == 0 or get(target, LANDING) == SCATTERED:
        return
    if is_constant(sweep, (uses & 15) | ADJOINT):
        block = get(sweep, SCRATCH)
        x, y, w, z, g, out = block, block + SPAN, block + 2 * SPAN, block + 3 * SPAN, block + 4 * SPAN, block + 5 * SPAN
        if partial != UNIT:
            call8(loops, partial, 1, x, y, w, z, g, out)
        contribute_uniform(tape, sweep, slot, address, g if partial == UNIT else out)
        put(target, LANDING, SETTLED)
    elif partial == UNIT and address == adjoint:
        put(target, LANDING, SETTLED)


@inline
def send_block(sweep, k, source, start, count, rank, dimensions):
    """Add a block of contributions to the k-th argument's adjoint."""
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
    operands, rule = get(sweep, WORK), get(tape, RULES) + 32 * opcode
    targets, all_uses = operands + 8 * DESCRIPTION * 5, load_i64(rule)
    uses = ADJOINT
    for k in range(arguments):
        if wanted(sweep, argument_row(record, k)):
            uses |= (all_uses >> (4 * k)) & 15
    for q in range(5):
        if (uses >> q) & 1 == 0:
            put(operands + 8 * DESCRIPTION * q, AT, 0)
        elif q == 4:
            describe_adjoint(sweep, q, adjoint, number, word, size)
        else:
            describe_operand(tape, sweep, record, q, size, rank, dimensions)
    waiting, loops = 0, loops_of(get(sweep, KERNELS), opcode)
    for k in range(arguments):
        slot, target = argument_row(record, k), targets + 8 * DESCRIPTION * k
        put(target, LANDING, SETTLED)
        if wanted(sweep, slot):
            describe_target(tape, sweep, k, slot, size, rank, dimensions)
            settle(tape, sweep, slot, target, loops, load_i64(rule + 8 + 8 * k), all_uses >> (4 * k), adjoint)
        if get(target, LANDING) != SETTLED:
            waiting += 1
            # What overwrites the adjoint must not be read again by the next argument, so blocks of it are copied first.
            own = operands + 8 * DESCRIPTION * 4
            if get(target, ADDRESS) == adjoint and get(own, HOW) == DIRECT:
                put(own, HOW, FLAT)
    scratch = get(sweep, SCRATCH) + 5 * SPAN
    for start in range(0, size if waiting > 0 else 0, BLOCK):
        count = min(BLOCK, size - start)
        for q in range(5):
            if (uses >> q) & 1:
                put(operands + 8 * DESCRIPTION * q, AT, block_of(sweep, q, start, count, rank, dimensions))
        x, y = get(operands, AT), get(operands + 8 * DESCRIPTION, AT)
        w, z = get(operands + 16 * DESCRIPTION, AT), get(operands + 24 * DESCRIPTION, AT)
        g = get(operands + 32 * DESCRIPTION, AT)
        for k in range(arguments):
            target, partial = targets + 8 * DESCRIPTION * k, load_i64(rule + 8 + 8 * k)
            landing = get(target, LANDING)
            if landing == SETTLED:
                continue
            out = g
            if partial != UNIT:
                out = get(target, ADDRESS) + 8 * start if landing == STRAIGHT else scratch
                call8(loops, partial, count, x, y, w, z, g, out)
            if partial == UNIT or landing != STRAIGHT:
                send_block(sweep, k, out, start, count, rank, dimensions)
