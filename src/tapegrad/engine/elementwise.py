"""The reverse step of an elementwise row on arrays, in blocks.

Whatever the operands look like (strided, broadcast, float32, integer, a number), a block of each is brought to contiguous
float64, where it is not that already; the kernel made from the rule's text runs on the blocks; the result goes to the
argument's adjoint. So each rule needs one loop only, and all shapes share this file.
"""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.compilation.memory_types import WORDS, Column, address_of, at_address, struct
from tapegrad.engine.adjoints import (
    adjoint_address,
    claim,
    contribute_uniform,
    fill,
    read_first,
    scratch_block,
    sums_exactly,
    target_size,
    target_type,
)
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
    call9,
    call10,
    f64,
    float_of,
    load_f64,
)
from tapegrad.engine.owned import argument_count, argument_kind, argument_row, record_dimensions
from tapegrad.engine.plan import record_of, wanted
from tapegrad.engine.rule_loops import functions_for, loops_of
from tapegrad.engine.strided import flat_copy, read

# How a block of an operand is had: where it stands, filled once for all, as a copy of contiguous or of strided elements.
DIRECT, CONSTANT_BLOCK, FLAT, STRIDED = 1, 2, 3, 4
# Descriptions of operands in the work area, and after them those of the targets, whose dimensions are those of the row; 200 words
# each leave room for rank 64.
DESCRIPTION = 200
Operand = struct(
    "Operand",
    {"how": 0, "address": 1, "type": 2, "at": 3, "strides": 8, "counter": 72},
    DESCRIPTION,
    strides=[WORDS],
    counter=[WORDS],
)
Target = struct(
    "Target",
    {"address": 0, "type": 1, "is_first": 2, "landing": 3, "sum_of": 4, "strides": 8, "counter": 72},
    DESCRIPTION,
    strides=[WORDS],
    counter=[WORDS],
)
operands_at, targets_at = at_address(Column(Operand)), at_address(Column(Target))
OPERANDS = 5  # three arguments, the result, the adjoint
ADJOINT = 16  # bit of the adjoint among the operands that a partial reads
# How a block of contributions gets there: there is none or it is there already, the loop that computes it writes it, it is written
# or added from a scratch block, it is added in strides.
SETTLED, STRAIGHT, FROM_SCRATCH, SCATTERED = 0, 1, 2, 3


@inline
def operands_of(sweep):
    """Descriptions of the operands."""
    return operands_at(sweep.work)


@inline
def targets_of(sweep):
    """Descriptions of the targets."""
    return targets_at(address_of(sweep.work, OPERANDS * DESCRIPTION))


@inline
def broadcast_strides(out, rank, dimensions, own_rank, own_dimensions, own_strides):
    """Byte strides of an array over the dimensions it is broadcast to."""
    for d in range(rank):
        own = d - (rank - own_rank)
        stride = 0
        if own >= 0 and own_dimensions[own] != 1:
            stride = own_strides[own]
        out[d] = stride


@inline
def dense_strides(out, rank, dimensions, own_rank, own_dimensions, item):
    """The same for a C-contiguous array that has no strides written down."""
    stride = item
    for d in range(rank - 1, -1, -1):
        own = d - (rank - own_rank)
        if own < 0:
            out[d] = 0
        else:
            extent = own_dimensions[own]
            out[d] = 0 if extent == 1 else stride
            stride *= extent


@inline
def describe_constant(sweep, q, value, size):
    """Describe an operand that is one number: a block of it, written once."""
    count = min(BLOCK, size)
    block = f64(scratch_block(sweep, q), count)
    for j in range(count):
        block[j] = value
    operands_of(sweep)[q].how = CONSTANT_BLOCK


@inline
def describe_array(sweep, q, obj, size, rank, dimensions):
    """Describe an operand that is an array: how its blocks are read."""
    description = operands_of(sweep)[q]
    number, own = array_type_number(obj), array_size(obj)
    description.address = array_data(obj)
    description.type = number
    if own == size and array_is_contiguous(obj) and (number == FLOAT64 or number == FLOAT32):
        description.how = DIRECT if number == FLOAT64 else FLAT
    elif own == 1:
        describe_constant(sweep, q, read(array_data(obj), number), size)
    else:
        description.how = STRIDED
        broadcast_strides(description.strides, rank, dimensions, array_rank(obj), array_dimensions(obj), array_strides(obj))


@inline
def describe_operand(tape, sweep, record, q, size, rank, dimensions):
    """Describe argument `q`, or the result if `q` is 3."""
    if q == 3:
        slot, saved = sweep.current, record.result
        kind = ARRAY if saved != 0 else ROW
    else:
        slot, saved, kind = argument_row(record, q), record[ARGUMENTS + 2 * q + 1], argument_kind(record, q)
    if kind == ARRAY:
        describe_array(sweep, q, saved, size, rank, dimensions)
    elif kind == NUMBER:
        describe_constant(sweep, q, float_of(saved), size)
    elif kind == ROW:
        describe_constant(sweep, q, tape.value[slot], size)


@inline
def block_of(sweep, q, start, count, rank, dimensions):
    """Address of `count` contiguous float64 values of operand `q` from flat index `start` on."""
    description = operands_of(sweep)[q]
    scratch = scratch_block(sweep, q)
    how = description.how
    if how == DIRECT:
        return description.address + 8 * start
    if how == FLAT:
        flat_copy(description.address, description.type, start, count, scratch)
    elif how == STRIDED:
        call9(
            sweep.kernels[GATHER_BLOCK],
            scratch,
            description.address,
            description.type,
            rank,
            dimensions,
            description.strides,
            description.counter,
            start,
            count,
        )
    return scratch


@inline
def describe_target(tape, sweep, k, slot, size, rank, dimensions):
    """Where the contribution to argument `k` goes, and how."""
    description = targets_of(sweep)[k]
    address, first = claim(tape, sweep, slot)
    own_size, number = target_size(tape, slot), target_type(tape, slot)
    description.address = address
    description.type = number
    description.is_first = 1 if first else 0
    description.landing = STRAIGHT if first and number == FLOAT64 else FROM_SCRATCH
    if own_size != size:
        if first:
            fill(sweep, address, number, 0.0, own_size)
        description.landing = SCATTERED
        own_rank, own_dimensions = 0, dimensions
        if tape.opcode[slot] & WIDE:
            record = record_of(tape, slot)
            own_rank = record.dtype >> 8
            own_dimensions = record_dimensions(record)
        item = 8 if number == FLOAT64 else 4
        dense_strides(description.strides, rank, dimensions, own_rank, own_dimensions, item)


@inline
def describe_adjoint(sweep, q, adjoint, number, word, size):
    """Describe the row's own adjoint, an operand of every partial."""
    description = operands_of(sweep)[q]
    description.address = adjoint
    description.type = number
    description.how = DIRECT if number == FLOAT64 else FLAT
    if word & UNIFORM:
        describe_constant(sweep, q, read_first(adjoint, number), size)


@inline
def is_constant(sweep, uses):
    """Whether all of these operands (bits) are the same for every element."""
    for q in range(5):
        if (uses >> q) & 1 and operands_of(sweep)[q].how != CONSTANT_BLOCK:
            return False
    return True


@inline
def settle(tape, sweep, slot, target, loops, functions, partial, uses, adjoint, size):
    """Finish a first contribution that needs no blocks: the same for every element, or the adjoint itself in its own place."""
    address = target.address
    if target.is_first == 0:
        return
    if is_constant(sweep, (uses & 15) | ADJOINT):
        x, y, w, z = scratch_block(sweep, 0), scratch_block(sweep, 1), scratch_block(sweep, 2), scratch_block(sweep, 3)
        g, out = scratch_block(sweep, 4), scratch_block(sweep, OPERANDS)
        if partial != UNIT:
            call10(loops, partial, 1, x, y, w, z, g, out, functions, scratch_block(sweep, ROOM))
        found = g if partial == UNIT else out
        if target.landing == SCATTERED:  # all elements get as many
            own, value = target_size(tape, slot), load_f64(found)
            times = size // max(own, 1)
            if target.type != FLOAT64 or not sums_exactly(value, times):
                return
            found = scratch_block(sweep, OPERANDS)
            f64(found, 1)[0] = 0.0 + times * value
        contribute_uniform(tape, sweep, slot, address, found)
        target.landing = SETTLED
    elif target.landing == SCATTERED:
        return
    elif partial == UNIT and address == adjoint:
        target.landing = SETTLED


@inline
def add_up_apart(tape, sweep, k, slot, rank):
    """Let what goes to few elements of float32 be added up in float64, so that it is rounded once, and not for each row."""
    description = targets_of(sweep)[k]
    own_size = target_size(tape, slot)
    description.sum_of = 0
    if description.landing == SCATTERED and description.type != FLOAT64 and own_size <= BLOCK:
        description.sum_of = description.address
        description.address, description.type = scratch_block(sweep, SUM_BLOCKS + k), FLOAT64
        fill(sweep, description.address, FLOAT64, 0.0, own_size)
        strides = description.strides
        for d in range(rank):
            strides[d] *= 2


@inline
def send_sums(tape, sweep, k, slot):
    """Add such sums to the adjoint."""
    description = targets_of(sweep)[k]
    if description.landing == SCATTERED and description.sum_of != 0:
        call5(sweep.kernels[DELIVER], description.sum_of, FLOAT32, 0, description.address, target_size(tape, slot))


@inline
def send_block(sweep, k, source, start, count, rank, dimensions):
    """Add a block of contributions to the k-th argument's adjoint."""
    description = targets_of(sweep)[k]
    address, number = description.address, description.type
    if description.landing == SCATTERED:
        call9(
            sweep.kernels[SCATTER_BLOCK],
            address,
            number,
            source,
            rank,
            dimensions,
            description.strides,
            description.counter,
            start,
            count,
        )
    else:
        call5(
            sweep.kernels[DELIVER],
            address + (8 if number == FLOAT64 else 4) * start,
            number,
            description.is_first,
            source,
            count,
        )


@kernel("void(Tape,Sweep,int64,Record,int64)")
def elementwise_step(tape, sweep, opcode, record, word):
    """Send the contributions of an elementwise row to the adjoints of its arguments."""
    size, number, rank = record.size, record.dtype & 255, record.dtype >> 8
    arguments, adjoint = argument_count(record), adjoint_address(sweep, word)
    dimensions = record_dimensions(record)
    operands, rule = operands_of(sweep), tape.rules[opcode]
    targets, all_uses = targets_of(sweep), rule.uses
    uses = ADJOINT
    for k in range(arguments):
        if wanted(sweep, argument_row(record, k)):
            uses |= (all_uses >> (4 * k)) & 15
    for q in range(5):
        if (uses >> q) & 1 == 0:
            operands[q].at = 0
        elif q == 4:
            describe_adjoint(sweep, q, adjoint, number, word, size)
        else:
            describe_operand(tape, sweep, record, q, size, rank, dimensions)
    waiting, loops, functions = 0, loops_of(sweep.kernels, opcode), functions_for(sweep.kernels, rank)
    for k in range(arguments):
        slot, target = argument_row(record, k), targets[k]
        target.landing = SETTLED
        if wanted(sweep, slot):
            describe_target(tape, sweep, k, slot, size, rank, dimensions)
            settle(tape, sweep, slot, target, loops, functions, rule.partials[k], all_uses >> (4 * k), adjoint, size)
            add_up_apart(tape, sweep, k, slot, rank)
        if target.landing != SETTLED:
            waiting += 1
            # What overwrites the adjoint must not be read again by the next argument, so blocks of it are copied first.
            own = operands[4]
            if target.address == adjoint and own.how == DIRECT:
                own.how = FLAT
    scratch, room = scratch_block(sweep, OPERANDS), scratch_block(sweep, ROOM)
    for start in range(0, size if waiting > 0 else 0, BLOCK):
        count = min(BLOCK, size - start)
        for q in range(5):
            if (uses >> q) & 1:
                operands[q].at = block_of(sweep, q, start, count, rank, dimensions)
        x, y, w = operands[0].at, operands[1].at, operands[2].at
        z, g = operands[3].at, operands[4].at
        for k in range(arguments):
            target, partial = targets[k], rule.partials[k]
            landing = target.landing
            if landing == SETTLED:
                continue
            out = g
            if partial != UNIT:
                out = target.address + 8 * start if landing == STRAIGHT else scratch
                call10(loops, partial, count, x, y, w, z, g, out, functions, room)
            if partial == UNIT or landing != STRAIGHT:
                send_block(sweep, k, out, start, count, rank, dimensions)
    for k in range(arguments if waiting > 0 else 0):
        send_sums(tape, sweep, k, argument_row(record, k))
