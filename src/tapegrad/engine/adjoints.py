"""The adjoints of a sweep: where they stand, the first contribution and the later ones.

The first contribution is written, so nothing has to be cleared before. A row whose elements all got the same contribution (from
the sum of its elements, say) keeps it as one number for as long as that is the only one.
"""

from tapegrad.compilation.jit import inline
from tapegrad.compilation.memory_types import address_of, from_element
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_dimensions,
    array_rank,
    array_type_number,
    bits_of,
    call4,
    call5,
    is_float,
    load_f32,
    load_f64,
)
from tapegrad.engine.owned import record_dimensions
from tapegrad.engine.plan import record_of


@inline
def target_type(tape, slot):
    """NumPy type number of a row's adjoint."""
    if tape.opcode[slot] & WIDE:
        return record_of(tape, slot).dtype & 255
    return FLOAT64


@inline
def target_size(tape, slot):
    """Number of elements of a row's adjoint."""
    if tape.opcode[slot] & WIDE:
        return record_of(tape, slot).size
    return 1


@inline
def adjoint_address(sweep, word):
    """Address of an adjoint from its offset word."""
    return address_of(sweep.bar, word >> 2)


@inline
def counter_of(sweep):
    """Room for the counter of a strided map; the words before it are for strides."""
    return from_element(sweep.work, 100)


@inline
def scratch_block(sweep, q):
    """Address of a scratch block."""
    return address_of(sweep.scratch, BLOCK * q)


@inline
def read_first(address, number):
    """The first element of an adjoint."""
    return load_f64(address) if number == FLOAT64 else load_f32(address)


@inline
def fill(sweep, address, number, value, count):
    """Fill so many elements with a value."""
    call4(sweep.kernels[FILL_BLOCK], address, number, bits_of(value), count)


@inline
def spread(tape, sweep, slot):
    """Write out a uniform adjoint; its offset word."""
    offsets = sweep.offset
    word = offsets[slot] - UNIFORM
    address, number = adjoint_address(sweep, word), target_type(tape, slot)
    fill(sweep, address, number, read_first(address, number), target_size(tape, slot))
    offsets[slot] = word
    return word


@inline
def claim(tape, sweep, slot):
    """Address of the adjoint that a contribution goes to, and whether it is the first one."""
    word = sweep.offset[slot]
    first = word & UNWRITTEN != 0
    if first:
        sweep.offset[slot] = word - UNWRITTEN
    elif word & UNIFORM:
        word = spread(tape, sweep, slot)
    return adjoint_address(sweep, word), first


@inline
def contribute_uniform(tape, sweep, slot, address, block):
    """Make a first contribution, already claimed, that is the same for every element: the value at `block`."""
    size = target_size(tape, slot)
    if size > 0:  # else there is no word to write
        call5(sweep.kernels[DELIVER], address, target_type(tape, slot), 1, block, 1)
    if size > 1:
        sweep.offset[slot] |= UNIFORM
        if tape.opcode[slot] == LEAF | WIDE:  # its adjoint is handed over as an array
            spread(tape, sweep, slot)


@inline
def sums_exactly(value, times):
    """Whether a sum of so many times this number, one after the other, rounds nowhere: it has few digits."""
    high = value * 134217729.0
    return high - (high - value) == value and times <= 67108864


@inline
def has_shape_of(tape, slot, obj):
    """Whether an array or float has the shape of a row's result, and a type that adjoints have."""
    wide = tape.opcode[slot] & WIDE != 0
    rank = record_of(tape, slot).dtype >> 8 if wide else 0
    if is_float(tape, obj):
        return rank == 0
    if array_rank(obj) != rank or (array_type_number(obj) != FLOAT64 and array_type_number(obj) != FLOAT32):
        return False
    for d in range(rank):
        if array_dimensions(obj)[d] != record_dimensions(record_of(tape, slot))[d]:
            return False
    return True
