"""Sums of all elements of a long array: of each row of 1024 in the order in which `numpy.einsum` adds it up, four rows at once.

That order is two sums, of every other element, in steps of four elements each: ``s + ((a + b) + (c + d))``. One row by itself waits
for each sum.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tapegrad.compilation.jit import entry
from tapegrad.compilation.memory_types import words_at
from tapegrad.engine.exponential_shares import SUMS, gather_loop
from tapegrad.engine.memory import array_data, array_size, f64

ROW_OF_SUM = 1024


@intrinsic
def sum_four_rows(context, x, out):
    """Sums of four rows that follow each other: elements of a step change places to stand side by side."""

    def generate(context, builder, signature, arguments):
        word, double = ir.IntType(64), ir.DoubleType()
        eight = ir.VectorType(double, 8)
        even, odd = ([pair + k for pair in (0, 4, 8, 12) for k in (first, first + 1)] for first in (0, 2))

        def parted(a, b, places):
            return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), 8), places))

        def halved(a, b):
            return builder.fadd(parted(a, b, even), parted(a, b, odd))

        sums = cgutils.alloca_once_value(builder, ir.Constant(eight, [0.0] * 8))
        with cgutils.for_range(builder, ir.Constant(word, ROW_OF_SUM // 8)) as loop:
            rows = []
            for r in range(4):
                ahead = builder.add(builder.mul(loop.index, ir.Constant(word, 64)), ir.Constant(word, 8 * ROW_OF_SUM * r))
                at = builder.add(arguments[0], ahead)
                rows.append(builder.load(builder.inttoptr(at, eight.as_pointer()), align=8))
            step = halved(halved(rows[0], rows[1]), halved(rows[2], rows[3]))
            builder.store(builder.fadd(step, builder.load(sums)), sums)
        found = builder.load(sums)
        for r in range(4):
            first, second = (builder.extract_element(found, ir.Constant(ir.IntType(32), 2 * r + k)) for k in (0, 1))
            place = builder.inttoptr(builder.add(arguments[1], ir.Constant(word, 8 * r)), double.as_pointer())
            builder.store(builder.fadd(first, second), place)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@entry("int64(int64,int64,int64,int64)", wide=True)
def sum_of_many(pz, px, proom, ploops):
    """The sum of a contiguous float64 array of four rows or more: of the sums of rows, to which that of the rest is added.

    The result has two numbers, with which NumPy's sums start, and the room one for each row.
    """
    n, x, room, z = array_size(px), array_data(px), array_data(proom), array_data(pz)
    rows, found = n // ROW_OF_SUM, f64(z, 2)
    for k in range(0, rows, 4):
        first = min(k, rows - 4)
        sum_four_rows(x + 8 * ROW_OF_SUM * first, room + 8 * first)
    loops = words_at(ploops)
    gather_loop(loops, SUMS, rows, room, z, 0)
    rest = n - rows * ROW_OF_SUM
    if rest:
        gather_loop(loops, SUMS, rest, x + 8 * ROW_OF_SUM * rows, z + 8, 0)
    else:
        found[1] = 0.0
    found[0] += found[1]
    return 0
