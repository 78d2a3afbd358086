"""Rows whose derivative is Python and only moves elements: small ones go through the plain pass without it.

How an operation moves the elements of each input says how its derivative moves them back (`moved_back`): that is what its vjp does
with tensors, in the same order of additions.
"""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.compilation.memory_types import from_element
from tapegrad.engine.adjoints import adjoint_address, claim, scratch_block, target_size, target_type
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_data,
    array_is_contiguous,
    array_size,
    array_type_number,
    call5,
    call_loop,
    f32,
    f64,
    i64,
    store_i64,
    u8,
)
from tapegrad.engine.objects import attribute, integer_value, item_of_tuple, type_of
from tapegrad.engine.owned import argument_count, argument_kind, argument_row, record_dimensions
from tapegrad.engine.plan import record_of, wanted
from tapegrad.engine.strided import flat_block

# Scratch blocks, each group as long as the largest rows: what goes to an input, the row's own adjoint where that is float32, and
# room for numbers of writers, or for a number.
MOVED, OWN, ROOM_OF_MOVES = 0, 4, 8


@inline
def add_back(out, values, places, inner):
    """Zeros with blocks of elements added at places, in their order."""
    for j in range(len(out)):
        out[j] = 0.0
    for k in range(len(places)):
        if places[k] >= 0:
            to, at = places[k] * inner, k * inner
            for j in range(inner):
                out[to + j] += values[at + j]


@inline
def put_back_at(out, values, places, inner):
    """Zeros with blocks of elements put to places; of the same ones the last stays."""
    for j in range(len(out)):
        out[j] = 0.0
    for k in range(len(places)):
        if places[k] >= 0:
            to, at = places[k] * inner, k * inner
            for j in range(inner):
                out[to + j] = values[at + j]


@inline
def take_from_places(out, values, places, inner):
    """Blocks of elements at places, zero for those that are none."""
    for k in range(len(places)):
        to, at = k * inner, places[k] * inner
        for j in range(inner):
            out[to + j] = values[at + j] if at >= 0 else 0.0


@inline
def take_last_back(out, values, places, inner, writer):
    """The same, with zero for those places that are named again later."""
    for k in range(len(places)):
        if places[k] >= 0:
            writer[places[k]] = k
    for k in range(len(places)):
        place, to, at = places[k], k * inner, places[k] * inner
        stays = place >= 0 and writer[place] == k
        for j in range(inner):
            out[to + j] = values[at + j] if stays else 0.0


@inline
def leave_out(out, values, places, inner):
    """All elements, with zero at places."""
    for j in range(len(out)):
        out[j] = values[j]
    for k in range(len(places)):
        if places[k] >= 0:
            to = places[k] * inner
            for j in range(inner):
                out[to + j] = 0.0


@inline
def round_to_float32(out, room):
    """Round numbers to float32."""
    for j in range(len(out)):
        room[j] = out[j]
    for j in range(len(out)):
        out[j] = room[j]


@inline
def sum_by_loop(tape, source, count, place):
    """The sum of so many numbers as NumPy has it, written to a place, whose address this gives."""
    store_i64(place, tape.sum_start)
    call_loop(tape.sum_loop, tape.sum_loop_data, count, place, 0, source, 8, place, 0, 1)
    return place


@inline
def place_in_part(geometry, j):
    """Where in an array the elements of a part stand, counted through."""
    rank, place = geometry[0], geometry[1]
    for d in range(rank - 1, -1, -1):
        above = j // geometry[2 + d]
        place += (j - above * geometry[2 + d]) * geometry[2 + rank + d]
        j = above
    return place


@inline
def size_of_part(geometry, size):
    """How many elements a part has, -1 if it is no part of an array of so many."""
    rank, count, low, high = geometry[0], 1, geometry[1], geometry[1]
    for d in range(rank):
        length, step = geometry[2 + d], geometry[2 + rank + d]
        count *= length
        low += min(0, (length - 1) * step)
        high += max(0, (length - 1) * step)
    return count if count > 0 and low >= 0 and high < size else -1


@inline
def move_masked(how, out, values, chosen):
    """All elements with zero where a mask is true, or where it is not."""
    for j in range(len(out)):
        out[j] = values[j] if (chosen[j] != 0) == (how == PUT_WHERE) else 0.0


@inline
def move_part(how, out, values, geometry):
    """All elements with zero in a part, or those of the part."""
    if how == PUT_INTO_PART:
        for j in range(len(out)):
            out[j] = values[place_in_part(geometry, j)]
        return
    for j in range(len(out)):
        out[j] = values[j]
    for j in range(size_of_part(geometry, len(out))):
        out[place_in_part(geometry, j)] = 0.0


@inline
def moved_back(sweep, how, adjoint, number, size, places, inner, geometry, count):
    """Move a row's adjoint back to an input of `count` elements, before those are summed; the address of what it gets."""
    block, room = scratch_block(sweep, MOVED), scratch_block(sweep, ROOM_OF_MOVES)
    source = flat_block(adjoint, number, 0, size, scratch_block(sweep, OWN))
    if how == UNMOVED:
        return source
    out, values = f64(block, count), f64(source, size)
    if how == NOT_AT_ALL:
        for j in range(count):
            out[j] = 0.0
        return block
    if how >= ALL_BUT_PART:
        move_part(how, out, values, geometry)
        return block
    if how == ALL_BUT_WHERE or how == PUT_WHERE:
        move_masked(how, out, values, u8(array_data(places), size))
        return block
    listed = i64(array_data(places), array_size(places))
    if how == TAKEN_AT:
        add_back(out, values, listed, inner)
        if number != FLOAT64:
            round_to_float32(out, f32(room, count))
    elif how == ADDED_AT:
        take_from_places(out, values, listed, inner)
    elif how == ALL_BUT_AT:
        leave_out(out, values, listed, inner)
    elif how == PUT_AT:
        take_last_back(out, values, listed, inner, i64(room, size))
    else:
        put_back_at(out, values, listed, inner)
    return block


@inline
def is_by_mask(how):
    """Whether a mask says which elements are moved."""
    return how == ALL_BUT_WHERE or how == PUT_WHERE


@inline
def is_by_list(how):
    """Whether places or a mask say which elements are moved, which are saved behind the inputs."""
    return how != UNMOVED and how < ALL_BUT_PART


@inline
def elements_moved(how, size, target, elements):
    """How many elements are moved back to an input of so many, for a row of `size`."""
    if how == TAKEN_AT or how == LAST_TAKEN_AT or how == NOT_AT_ALL:
        return target
    return elements if how == ADDED_AT or how == PUT_AT or how == PUT_INTO_PART else size


@inline
def can_be_moved(tape, how, target_rank, target, moved, number):
    """Whether what is moved back is as large as the input, or one number that compiled code can sum it to."""
    if moved > LARGEST_BLOCK or target > LARGEST_BLOCK:
        return False
    if how != PUT_WHERE and moved == target:
        return True
    if how != ADDED_AT and how != PUT_AT and how != PUT_WHERE and how != UNMOVED:
        return False
    return target == 1 and target_rank == 0 and number == FLOAT64 and tape.sum_loop != 0 and moved > 0


@inline
def rank_of_row(tape, slot):
    """How many dimensions a row's result has."""
    return record_of(tape, slot).dtype >> 8 if tape.opcode[slot] & WIDE else 0
