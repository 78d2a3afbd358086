"""The adjoints of a sweep: where they stand, the first contribution and the later ones.

The first contribution is written, so nothing has to be cleared before. A row whose elements all got the same contribution (from
the sum of its elements, say) keeps it as one number for as long as that is the only one.
"""

from tapegrad.compilation.jit import inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import bits_of, call4, call5, get, load_f32, load_f64, load_i64, load_u16, store_i64
from tapegrad.engine.plan import record_of


@inline
def target_type(tape, slot):
    """NumPy type number of a row's adjoint."""
    if load_u16(get(tape, OPCODE) + 2 * slot) & WIDE:
        return get(record_of(tape, slot), DTYPE) & 255
    return FLOAT64


@inline
def target_size(tape, slot):
    """Number of elements of a row's adjoint."""
    if load_u16(get(tape, OPCODE) + 2 * slot) & WIDE:
        return get(record_of(tape, slot), SIZE)
    return 1


@inline
def adjoint_address(sweep, word):
    """Address of an adjoint from its offset word."""
    return get(sweep, BAR) + 8 * (word >> 2)


@inline
def read_first(address, number):
    """The first element of an adjoint."""
    return load_f64(address) if number == FLOAT64 else load_f32(address)


@inline
def fill(sweep, address, number, value, count):
    """Fill so many elements with a value."""
    call4(get(get(sweep, KERNELS), FILL_BLOCK), address, number, bits_of(value), count)


@inline
def spread(tape, sweep, slot):
    """Write out a uniform adjoint; its offset word."""
    place = get(sweep, OFFSET) + 8 * slot
    word = load_i64(place) - UNIFORM
    address, number = adjoint_address(sweep, word), target_type(tape, slot)
    fill(sweep, address, number, read_first(address, number), target_size(tape, slot))
    store_i64(place, word)
    return word


@inline
def claim(tape, sweep, slot):
    """Address of the adjoint that a contribution goes to, and whether it is the first one."""
    place = get(sweep, OFFSET) + 8 * slot
    word = load_i64(place)
    first = word & UNWRITTEN != 0
    if first:
        store_i64(place, word - UNWRITTEN)
    elif word & UNIFORM:
        word = spread(tape, sweep, slot)
    return adjoint_address(sweep, word), first


@inline
def contribute_uniform(tape, sweep, slot, address, block):
    """Make a first contribution, already claimed, that is the same for every element: the value at `block`."""
    size = target_size(tape, slot)
    if size > 0:  # else there is no word to write
        call5(get(get(sweep, KERNELS), DELIVER), address, target_type(tape, slot), 1, block, 1)
    if size > 1:
        place = get(sweep, OFFSET) + 8 * slot
        store_i64(place, load_i64(place) | UNIFORM)
        if load_u16(get(tape, OPCODE) + 2 * slot) == LEAF | WIDE:  # its adjoint is handed over as an array
            spread(tape, sweep, slot)
