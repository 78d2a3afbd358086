"""Large arrays on their way through rows whose derivative is Python: what a vjp is given, and what it gives.

An adjoint that stands in the buffer is shown as a view of that; code of the user's gets memory of its own, which it may keep. What
a vjp gives is an adjoint at once if nobody else has it: that of a large leaf, whose gradient it becomes, or that of a row whose
derivative is Python, too. Which array that is stands in `HANDED` until the row's own vjp takes it.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import address_of
from tapegrad.engine.adjoints import adjoint_address, fill, has_shape_of, read_first, spread, target_size, target_type
from tapegrad.engine.layout import *
from tapegrad.engine.long_values import copy_doubles, large_like
from tapegrad.engine.memory import (
    array_base,
    array_data,
    array_has_dtype,
    array_is_contiguous,
    array_is_writeable,
    load_f64,
    release,
    retain,
    store_f64,
)
from tapegrad.engine.objects import (
    attribute,
    clear_error,
    data_of,
    item_of_tuple,
    new_array,
    new_view,
    reference_count,
    set_item_of_tuple,
    type_of,
)
from tapegrad.engine.owned import record_dimensions
from tapegrad.engine.plan import record_of
from tapegrad.engine.structs import doubles_at, ints_at


@inline
def copy_numbers(source, target, number, size):
    """Copy the numbers of an adjoint from one address to another."""
    if number == FLOAT64:
        copy_doubles(source, target, size)
    else:
        bits, copied = ints_at(source), ints_at(target)  # of float32
        for j in range(size):
            copied[j] = bits[j]


@inline
def handed_to(sweep, slot):
    """Which of the arrays that were handed on is the adjoint of a row; -1 if none is."""
    for k in range(sweep.handed_count):
        if sweep.handed[2 * k] == slot:
            return k
    return -1


@inline
def forget_handed(sweep, slot):
    """Give up the reference to such an array, which others have, too."""
    k = handed_to(sweep, slot)
    if k >= 0:
        array, last = sweep.handed[2 * k + 1], sweep.handed_count - 1
        sweep.handed[2 * k], sweep.handed[2 * k + 1] = sweep.handed[2 * last], sweep.handed[2 * last + 1]
        sweep.handed_count = last
        release(array)


@inline
def drop_all_handed(sweep):
    """Release the arrays that no vjp has taken."""
    while sweep.handed_count > 0:
        sweep.handed_count -= 1
        release(sweep.handed[2 * sweep.handed_count + 1])


@entry("int64(Sweep)")
def drop_handed(sweep):
    """As `drop_all_handed`."""
    drop_all_handed(sweep)
    return 0


@inline
def stretched_number(tape, sweep, value, rank, dimensions):
    """A new read-only array of equal numbers, of which there is one; 0 without memory."""
    number = new_array(tape, FLOAT64, 0, dimensions)
    if number == 0:
        return 0
    store_f64(array_data(number), value)
    strides = sweep.work
    for d in range(rank):
        strides[d] = 0
    return new_view(tape, FLOAT64, rank, dimensions, address_of(strides, 0), array_data(number), ALIGNED, number)


@inline
def large_cotangent(tape, sweep, slot, is_kept):
    """A new reference to the adjoint of a large row as an array, which code of the user's may keep; 0 if that is left to Python."""
    k = handed_to(sweep, slot)
    if k >= 0:
        array = sweep.handed[2 * k + 1]
        retain(array)
        return array
    record, word = record_of(tape, slot), sweep.offset[slot]
    place, number, rank, dimensions = word >> 2, record.dtype & 255, record.dtype >> 8, record_dimensions(record)
    if place < 0 or place >= sweep.bar_capacity:  # which Python has
        return 0
    address, is_one_number = adjoint_address(sweep, word), word & UNIFORM != 0 and number == FLOAT64
    if is_one_number and not is_kept:
        op = attribute(tape, record.payload, PAYLOAD_OP)
        if attribute(tape, op, OPERATION_STRETCHES) == tape.true:
            return stretched_number(tape, sweep, load_f64(address), rank, dimensions)
    if word & UNIFORM and not (is_one_number and is_kept):
        spread(tape, sweep, slot)
    retain(sweep.bar_owner)
    view = new_view(tape, number, rank, dimensions, 0, address, IN_ORDER_AND_WRITEABLE, sweep.bar_owner)
    if view == 0 or not is_kept:
        return view
    whole = large_like(tape, view)
    if whole != 0 and is_one_number:
        fill(sweep, array_data(whole), FLOAT64, read_first(address, FLOAT64), target_size(tape, slot))
    elif whole != 0:
        copy_numbers(address, array_data(whole), number, target_size(tape, slot))
    release(view)
    return whole


@inline
def is_nobodys(tape, cotangents, k):
    """Whether the k-th cotangent is referred to by its tuple only, and its array, on which a gradient may stand, by the tensor."""
    cotangent = item_of_tuple(cotangents, k)
    data = data_of(tape, cotangent)
    if reference_count(cotangents) != 1 or reference_count(cotangent) != 1 or reference_count(data) != 1:
        return False
    if type_of(data) != tape.array_type or not array_has_dtype(data, tape.double):
        return False
    base = array_base(data)
    if base != 0 and type_of(base) != tape.block_class:
        return False
    return array_is_contiguous(data) and array_is_writeable(data)


@inline
def hand_on_to(sweep, slot, data):
    """Let an array be the adjoint of a row whose derivative is Python; False if there are too many such arrays."""
    if sweep.handed_count == MOST_HANDED:
        return False
    retain(data)
    sweep.handed[2 * sweep.handed_count], sweep.handed[2 * sweep.handed_count + 1] = slot, data
    sweep.handed_count += 1
    sweep.offset[slot] = 4 * ((array_data(data) - address_of(sweep.bar, 0)) // 8)
    return True


@inline
def leaf_in_room(sweep, slot):
    """Which leaf's adjoint is to stand in an array of its own where that of a row stands, too; -1 if none is."""
    for k in range(sweep.reached_count):
        leaf = sweep.reached[k]
        if leaf.room != 0 and (leaf.slot == slot or leaf.tenant == slot):
            return k
    return -1


@inline
def put_in_array(sweep, k, obj):
    """Let the adjoint of the k-th leaf stand in an array of its own, and that of its tenant; the first contribution writes it."""
    leaf = sweep.reached[k]
    word = 4 * ((array_data(obj) - sweep.bar) // 8) + UNWRITTEN
    sweep.offset[leaf.slot] = word
    tenant = leaf.tenant
    if tenant >= 0 and sweep.offset[tenant] & UNWRITTEN and sweep.offset[tenant] != UNSEEN:
        sweep.offset[tenant] = word
    leaf.target = obj
    leaf.mode = IN_PLACE


@inline
def become_gradient(sweep, k, slot, data):
    """Let an array stand in the place of the one that was made for the k-th leaf, which is released; False if that fails."""
    leaf, rooms = sweep.reached[k], sweep.rooms
    if reference_count(rooms) != 1:
        return False
    put_in_array(sweep, k, data)
    sweep.offset[slot] -= UNWRITTEN
    leaf.room = data
    retain(data)
    if set_item_of_tuple(rooms, k, data) != 0:
        clear_error()
    return True


@inline
def becomes_adjoint(tape, sweep, slot, cotangents, k):
    """Whether the k-th cotangent, of the row's shape, is the row's adjoint from now on."""
    if sweep.takes == 0 or sweep.offset[slot] & UNWRITTEN == 0 or target_type(tape, slot) != FLOAT64:
        return False
    if not is_nobodys(tape, cotangents, k):
        return False
    data = data_of(tape, item_of_tuple(cotangents, k))
    if tape.opcode[slot] == HOST | WIDE:
        return hand_on_to(sweep, slot, data)
    leaf = leaf_in_room(sweep, slot)
    if leaf < 0 or not has_shape_of(tape, sweep.reached[leaf].slot, data):
        return False
    return become_gradient(sweep, leaf, slot, data)
