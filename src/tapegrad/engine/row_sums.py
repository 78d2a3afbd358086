"""Sums of rows of `ROW_OF_MANY` elements in the order in which `numpy.einsum` adds each up, four rows at once.

That order is two sums, of every other element, in steps of four elements each: ``s + ((a + b) + (c + d))``. One row by itself waits
for each sum. Whether the NumPy at hand has this order is looked at before sums are taken from here.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tapegrad.compilation.jit import inline
from tapegrad.engine.layout import *


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
        with cgutils.for_range(builder, ir.Constant(word, ROW_OF_MANY // 8)) as loop:
            rows = []
            for r in range(4):
                ahead = builder.add(builder.mul(loop.index, ir.Constant(word, 64)), ir.Constant(word, 8 * ROW_OF_MANY * r))
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


@inline
def sum_rows(source, rows, target):
    """Write the sums of so many rows, four at least, to an address."""
    for k in range(0, rows, 4):
        first = min(k, rows - 4)
        sum_four_rows(source + 8 * ROW_OF_MANY * first, target + 8 * first)
