"""Large rows whose derivative is Python and only moves elements, of which few are put, added or taken.

What goes to an input as large as the row is written at once into its adjoint, where nothing was contributed yet.
"""

from tapegrad.compilation.jit import inline
from tapegrad.engine.adjoints import (
    adjoint_address,
    claim,
    contribute_uniform,
    fill,
    read_first,
    scratch_block,
    target_size,
    target_type,
)
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, call5, i64, load_f64
from tapegrad.engine.moved_elements import MOVED, ROOM_OF_MOVES, place_in_part, rank_of_row, sum_by_loop
from tapegrad.engine.owned import argument_row
from tapegrad.engine.plan import wanted
from tapegrad.engine.structs import doubles_at


@inline
def are_in_order(places):
    """Whether places are different ones, since each is behind the one before it."""
    listed = i64(array_data(places), array_size(places))
    before = -1
    for k in range(len(listed)):
        if listed[k] <= before:
            return False
        before = listed[k]
    return True


@inline
def is_written_whole(how):
    """Whether an input gets an adjoint of its own size, whatever is moved."""
    return how == UNMOVED or how == ALL_BUT_AT or how == ALL_BUT_PART or how == TAKEN_AT or how == NOT_AT_ALL


@inline
def is_large_move(tape, sweep, how, to, size, places, elements):
    """Whether what goes to an input of a large row, or a large input, can be moved here."""
    target = target_size(tape, to)
    if target_type(tape, to) != FLOAT64:
        return False
    if elements > LARGEST_BLOCK and how != UNMOVED and how != TAKEN_AT and how != NOT_AT_ALL:
        return False
    if is_written_whole(how):
        return sweep.offset[to] & UNWRITTEN != 0 and (target == size or how == TAKEN_AT or how == NOT_AT_ALL)
    if how == PUT_INTO_PART:
        return target == elements
    if (how != ADDED_AT and how != PUT_AT) or elements == 0:
        return False
    if how == PUT_AT and not are_in_order(places):
        return False
    return target == elements or (target == 1 and rank_of_row(tape, to) == 0 and tape.sum_loop != 0)


@inline
def take_few(source, step, places, inner, out):
    """Blocks of elements at places, zero for those that are none; without a step one number stands for all."""
    listed, z = i64(array_data(places), array_size(places)), doubles_at(out)
    for k in range(len(listed)):
        to, at = k * inner, listed[k] * inner
        for j in range(inner):
            z[to + j] = load_f64(source + step * (at + j)) if at >= 0 else 0.0


@inline
def add_all_back(source, step, places, inner, out):
    """Add blocks of elements to places, in their order."""
    listed, z = i64(array_data(places), array_size(places)), doubles_at(out)
    for k in range(len(listed)):
        to, at = listed[k] * inner, k * inner
        if to >= 0:
            for j in range(inner):
                z[to + j] += load_f64(source + step * (at + j))


@inline
def clear_places(places, inner, out):
    """Zeros at places."""
    listed, z = i64(array_data(places), array_size(places)), doubles_at(out)
    for k in range(len(listed)):
        if listed[k] >= 0:
            for j in range(inner):
                z[listed[k] * inner + j] = 0.0


@inline
def contribute_whole(tape, sweep, how, to, adjoint, is_one_number, size, places, inner, elements, geometry):
    """Write the first contribution to an input."""
    target = target_size(tape, to)
    address, _ = claim(tape, sweep, to)
    if how == TAKEN_AT or how == NOT_AT_ALL:
        fill(sweep, address, FLOAT64, 0.0, target)
        if how == TAKEN_AT:
            add_all_back(adjoint, 0 if is_one_number else 8, places, inner, address)
    elif is_one_number and how == UNMOVED:
        contribute_uniform(tape, sweep, to, address, adjoint)
    elif is_one_number:
        fill(sweep, address, FLOAT64, read_first(adjoint, FLOAT64), size)
    else:
        call5(sweep.kernels[DELIVER], address, FLOAT64, 1, adjoint, size)
    if how == ALL_BUT_AT:
        clear_places(places, inner, address)
    elif how == ALL_BUT_PART:
        out = doubles_at(address)
        for j in range(elements):
            out[place_in_part(geometry, j)] = 0.0


@inline
def move_few(tape, sweep, how, to, adjoint, is_one_number, places, inner, elements, geometry):
    """Take few elements out of an adjoint, and contribute them, or their sum."""
    values, target = scratch_block(sweep, MOVED), target_size(tape, to)
    step = 0 if is_one_number else 8
    if how == PUT_INTO_PART:
        out = doubles_at(values)
        for j in range(elements):
            out[j] = load_f64(adjoint + step * place_in_part(geometry, j))
    else:
        take_few(adjoint, step, places, inner, values)
    if elements != target:
        values = sum_by_loop(tape, values, elements, scratch_block(sweep, ROOM_OF_MOVES))
    address, first = claim(tape, sweep, to)
    call5(sweep.kernels[DELIVER], address, FLOAT64, 1 if first else 0, values, target)


@inline
def move_large(tape, sweep, slot, record, moves, count, places, inner, elements, geometry):
    """The step of a large row; 0 if its vjp is due."""
    size, whole = record.size, -1
    if record.dtype & 255 != FLOAT64:
        return 0
    for k in range(count):
        how, to = (moves >> 4 * k) & 15, argument_row(record, k)
        if wanted(sweep, to):
            if to == whole or not is_large_move(tape, sweep, how, to, size, places, elements):
                return 0
            if is_written_whole(how):
                whole = to
    word = sweep.offset[slot]
    adjoint, is_one_number = adjoint_address(sweep, word), word & UNIFORM != 0
    for k in range(count):
        how, to = (moves >> 4 * k) & 15, argument_row(record, k)
        if wanted(sweep, to):
            if is_written_whole(how):
                contribute_whole(tape, sweep, how, to, adjoint, is_one_number, size, places, inner, elements, geometry)
            else:
                move_few(tape, sweep, how, to, adjoint, is_one_number, places, inner, elements, geometry)
    return 1
