"""Sums of small arrays that do not stand in one block: by NumPy's own loop, over a copy in the order in which NumPy visits them.

NumPy goes through an array in the order of its memory, whatever the order of its dimensions, and hands its loop the elements side
by side.
"""

from tapegrad.compilation.jit import inline
from tapegrad.compilation.memory_types import from_element
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_data,
    array_dimensions,
    array_rank,
    array_size,
    array_strides,
    array_type_number,
    load_f64,
)
from tapegrad.engine.structs import doubles_at

MOST_SUMMED = MOST_LENGTHS // 3  # dimensions: lengths, steps and a counter stand in the room for lengths


@inline
def is_strided_block(obj):
    """Whether data is a small array of float64 whose elements are visited by steps that are not negative."""
    rank = array_rank(obj)
    if array_type_number(obj) != FLOAT64 or rank == 0 or rank > MOST_SUMMED or array_size(obj) > LARGEST_BLOCK:
        return False
    for d in range(rank):
        if array_strides(obj)[d] < 0:
            return False
    return True


@inline
def order_in_memory(obj, lengths, steps):
    """Lengths and steps of an array's dimensions from the closest elements to the farthest; how many have a length.

    As NumPy's iterators sort them: one after the other, from the last dimension on, goes below those of a larger step; those
    without a step are passed over.
    """
    count = 0
    for d in range(array_rank(obj) - 1, -1, -1):
        length, step = array_dimensions(obj)[d], array_strides(obj)[d]
        if length == 1:
            continue
        place, k = count, count - 1
        while k >= 0:
            if step != 0 and steps[k] != 0:
                if steps[k] <= step:
                    break
                place = k
            k -= 1
        for k in range(count, place, -1):
            lengths[k], steps[k] = lengths[k - 1], steps[k - 1]
        lengths[place], steps[place] = length, step
        count += 1
    return count


@inline
def copy_in_memory_order(tape, obj):
    """Copy an array to the room for it, in the order of its memory; the address of that room."""
    lengths, out = from_element(tape.lengths, 0), doubles_at(tape.sum_room)
    steps, counter = from_element(lengths, MOST_SUMMED), from_element(lengths, 2 * MOST_SUMMED)
    rank, at = order_in_memory(obj, lengths, steps), array_data(obj)
    for k in range(rank):
        counter[k] = 0
    for j in range(array_size(obj)):
        out[j] = load_f64(at)
        k = 0
        while k < rank:
            at += steps[k]
            counter[k] += 1
            if counter[k] < lengths[k]:
                break
            at -= counter[k] * steps[k]
            counter[k] = 0
            k += 1
    return tape.sum_room
