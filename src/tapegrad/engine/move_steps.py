"""The step of a row whose derivative is Python and only moves elements, as the sweep takes it."""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.compilation.memory_types import from_element
from tapegrad.engine.adjoints import adjoint_address, claim, scratch_block, target_size, target_type
from tapegrad.engine.large_moves import move_large
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_is_contiguous, array_size, array_type_number, call5
from tapegrad.engine.moved_elements import (
    ROOM_OF_MOVES,
    can_be_moved,
    elements_moved,
    is_by_list,
    is_by_mask,
    moved_back,
    rank_of_row,
    size_of_part,
    sum_by_loop,
)
from tapegrad.engine.objects import attribute, integer_value, item_of_tuple, type_of
from tapegrad.engine.owned import argument_count, argument_kind, argument_row, record_dimensions
from tapegrad.engine.plan import record_of, wanted


@inline
def moves_of(tape, record):
    """How the operation of a row moves elements, 0 if it does more than that, and how many inputs it has."""
    payload = record.payload
    if payload == 0 or type_of(payload) != tape.payload_class or tape.tensor_type != tape.plain_tensor:
        return 0, 0
    moves = integer_value(attribute(tape, attribute(tape, payload, PAYLOAD_OP), OPERATION_MOVES))
    count = integer_value(attribute(tape, payload, PAYLOAD_INPUTS))
    return (moves, count) if count > 0 else (0, 0)


@inline
def list_of(tape, record, how, count):
    """The array that says which elements are moved, and how many are together at each place; zeros if there is none of use."""
    if argument_count(record) != count + 1 or argument_kind(record, count) != ARRAY:
        return 0, 0
    places = record[ARGUMENTS + 2 * count + 1]
    if not array_is_contiguous(places) or array_type_number(places) != (BOOL if is_by_mask(how) else INT64):
        return 0, 0
    if is_by_mask(how):
        return (places, 0) if array_size(places) == record.size else (0, 0)
    return places, integer_value(item_of_tuple(attribute(tape, record.payload, PAYLOAD_ATTRS), 0))


@inline
def elements_named(tape, record, how, count, places, inner, geometry):
    """How many elements a row's list, or the part that its record says, names; -1 if the row does not say that."""
    if is_by_list(how):
        return array_size(places) * inner if places != 0 else -1
    words = ARGUMENTS + 2 * count + (record.dtype >> 8)
    if argument_count(record) != count or (how >= ALL_BUT_PART and how != NOT_AT_ALL and record.length == words):
        return -1
    return size_of_part(geometry, record.size) if how == PUT_INTO_PART else 0


@kernel("int64(Tape,Sweep,int64,int64)")
def move_step(tape, sweep, slot, nothing):
    """The step of a row that only moves elements, and few of them if it is large; 0 if it is none, and its vjp is due."""
    record = record_of(tape, slot)
    moves, count = moves_of(tape, record)
    if moves == 0:
        return 0
    size, number, places, inner = record.size, record.dtype & 255, 0, 0
    geometry, last = from_element(record_dimensions(record), record.dtype >> 8), (moves >> 4 * (count - 1)) & 15
    if is_by_list(last):
        places, inner = list_of(tape, record, last, count)
    elements = elements_named(tape, record, last, count, places, inner, geometry)
    if elements < 0:
        return 0
    if size > LARGEST_BLOCK:
        return move_large(tape, sweep, slot, record, moves, count, places, inner, elements, geometry)
    for k in range(count):
        how, to = (moves >> 4 * k) & 15, argument_row(record, k)
        if wanted(sweep, to):
            target = target_size(tape, to)
            moved = elements_moved(how, size, target, elements)
            if target > LARGEST_BLOCK:
                return move_large(tape, sweep, slot, record, moves, count, places, inner, elements, geometry)
            if not can_be_moved(tape, how, rank_of_row(tape, to), target, moved, number):
                return 0
    adjoint = adjoint_address(sweep, sweep.offset[slot])
    for k in range(count):
        how, to = (moves >> 4 * k) & 15, argument_row(record, k)
        if wanted(sweep, to):
            target = target_size(tape, to)
            moved = elements_moved(how, size, target, elements)
            values = moved_back(sweep, how, adjoint, number, size, places, inner, geometry, moved)
            if how == PUT_WHERE or moved != target:
                values = sum_by_loop(tape, values, moved, scratch_block(sweep, ROOM_OF_MOVES))
            address, first = claim(tape, sweep, to)
            call5(sweep.kernels[DELIVER], address, target_type(tape, to), 1 if first else 0, values, target)
    return 1
