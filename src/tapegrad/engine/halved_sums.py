"""Sums of many neighbours in the order in which NumPy's loop adds them up, which is by halves.

Parts of up to 128 numbers are eight sums, of every eighth number, which stand side by side in a register here. Whether the NumPy at
hand has this order is looked at when the package is loaded.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import load_f64, stack_words, store_f64
from tapegrad.engine.structs import doubles_at, words_at

LARGEST_PART = 128  # elements that are not halved
LEAST_HALVED = 4 * LARGEST_PART  # below, NumPy's loop is as quick
MOST_UNDONE = 160  # of the list of what is still to be done: two for each halving, and three at its end
room_of_halves = stack_words(2 * MOST_UNDONE)


@intrinsic
def sum_of_eights(context, x, count):
    """The sum of so many groups of eight numbers at an address: of each place in a group, and then of places two by two."""

    def generate(context, builder, signature, arguments):
        word, double = ir.IntType(64), ir.DoubleType()
        eight = ir.VectorType(double, 8)
        at, count = arguments

        def group(k):
            place = builder.add(at, builder.mul(k, ir.Constant(word, 64)))
            return builder.load(builder.inttoptr(place, eight.as_pointer()), align=8)

        def halved(values, size):
            even, odd = (ir.Constant(ir.VectorType(ir.IntType(32), size), list(range(first, 2 * size, 2))) for first in (0, 1))
            return builder.fadd(builder.shuffle_vector(values, values, even), builder.shuffle_vector(values, values, odd))

        sums = cgutils.alloca_once_value(builder, group(ir.Constant(word, 0)))
        one = ir.Constant(word, 1)
        with cgutils.for_range(builder, builder.sub(count, one)) as loop:
            builder.store(builder.fadd(builder.load(sums), group(builder.add(loop.index, one))), sums)
        pairs = halved(halved(builder.load(sums), 4), 2)
        first, second = (builder.extract_element(pairs, ir.Constant(ir.IntType(32), k)) for k in (0, 1))
        return builder.fadd(first, second)

    return types.float64(types.int64, types.int64), generate


@inline
def sum_of_part(source, count):
    """The sum of a part, eight numbers at least."""
    total = sum_of_eights(source, count // 8)
    for j in range(count - count % 8, count):
        total += load_f64(source + 8 * j)
    return total


@inline
def halved_sum(source, count):
    """The sum of so many neighbours; a length in the list of what is to be done stands for a part, 0 for an addition."""
    room, known, left, at = room_of_halves(), 0, 1, source
    waiting = words_at(room)
    sums = doubles_at(room + 8 * MOST_UNDONE)
    waiting[0] = count
    while left > 0:
        left -= 1
        length = waiting[left]
        if length > LARGEST_PART:
            half = length // 2 - length // 2 % 8
            waiting[left], waiting[left + 1], waiting[left + 2] = 0, length - half, half
            left += 3
        elif length > 0:
            sums[known] = sum_of_part(at, length)
            known += 1
            at += 8 * length
        else:
            known -= 1
            sums[known - 1] += sums[known]
    return sums[0]


@entry("int64(int64,int64,int64)")
def sum_by_halves_to(source, count, target):
    """Write the sum of so many neighbours, eight at least, to an address."""
    store_f64(target, halved_sum(source, count))
    return 0
