"""The sweep over rows that were recorded along a direction: adjoints and their tangents side by side, in one pass backwards."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic

from tapegrad.compilation.jit import always_inline
from tapegrad.nopython.tape import columns
from tapegrad.nopython.tape.lane_sweeps import MASK, U, clear
from tapegrad.nopython.tape.sweep_entries import f64, i32, sweep_entry, tape_of

__all__ = ["curve_along"]


@intrinsic
def add_along(typingctx: Any, array: Any, to: Any, bar: Any, turn: Any, partial: Any, change: Any) -> Any:
    """To an adjoint and its tangent, which stand side by side, what a row's give by a partial and by its change; both of them.

    Both lanes are loaded and stored at once: what waits here is a load of what was stored just before.
    """

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        from numba.np.arrayobj import make_array

        double, lane = ir.DoubleType(), ir.IntType(32)
        two: Any = ir.VectorType(double, 2)
        target = builder.bitcast(builder.gep(make_array(array)(context, builder, args[0]).data, [args[1]]), two.as_pointer())

        def both(first: Any, second: Any) -> Any:
            one = builder.insert_element(ir.Constant(two, ir.Undefined), first, lane(0))
            return builder.insert_element(one, second, lane(1))

        before = builder.load(target)
        before.align = 8
        multiply_add = cgutils.get_or_insert_function(builder.module, ir.FunctionType(two, [two] * 3), "llvm.fmuladd.v2f64")
        changed = builder.call(multiply_add, [both(double(0.0), args[2]), both(args[5], args[5]), before])
        made = builder.call(multiply_add, [both(args[2], args[3]), both(args[4], args[4]), changed])
        builder.store(made, target).align = 8
        return context.make_tuple(builder, sig.return_type, [builder.extract_element(made, lane(k)) for k in range(2)])

    return types.UniTuple(types.float64, 2)(array, types.int64, *[types.float64] * 4), write


@intrinsic
def fused(typingctx: Any, x: Any, y: Any, z: Any) -> Any:
    """``x * y + z``."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return columns.fused(builder, *args)

    return types.float64(types.float64, types.float64, types.float64), write


@always_inline
def absolute(x, y):
    """The absolute-zero product."""
    return 0.0 if x == 0.0 or y == 0.0 else x * y


@always_inline
def seed_along(bars, last, outs, seeds):
    """Adjoints of the results."""
    for j in range(outs.size):
        if 0 < outs[j] <= last:
            bars[2 * outs[j]] += seeds[j]


@always_inline
def walk_along(rows, partials, changes, bars, last, pairs):
    """Adjoints and their tangents backwards, where all numbers are finite.

    What the last pair of a row gives to the row before is not loaded again: sums that go on from row to row would wait for it.
    """
    row = last
    g, turn = bars[U(2 * row)], bars[U(2 * row + 1)]
    for k in range(pairs - 1, -1, -1):
        reference = rows[U(k)]
        target = reference & MASK
        given, change = 0.0, 0.0
        if target < row:
            given, change = add_along(bars, 2 * target, g, turn, partials[U(k)], changes[U(k)])
        if reference < 0:
            bars[U(2 * row)] = 0.0
            bars[U(2 * row + 1)] = 0.0
            row -= 1
            if target == row:
                g, turn = given, change
            else:
                g, turn = bars[U(2 * row)], bars[U(2 * row + 1)]


@always_inline
def walk_masked(rows, partials, changes, bars, last, pairs):
    """The same with absolute-zero products where something is infinite or nan."""
    row = last
    g, turn = bars[2 * last], bars[2 * last + 1]
    sound = (g - g) + (turn - turn)
    for k in range(pairs - 1, -1, -1):
        reference = rows[U(k)]
        target = reference & MASK
        if target < row:
            p, q, to = partials[U(k)], changes[U(k)], U(2 * target)
            if (p - p) + (q - q) + sound == 0.0:
                bars[to] = fused(g, p, bars[to])
                bars[to + U(1)] = fused(turn, p, fused(g, q, bars[to + U(1)]))
            else:  # infinite or nan
                bars[to] += absolute(g, p)
                bars[to + U(1)] += absolute(turn, p) + absolute(g, q)
        if reference < 0:
            bars[U(2 * row)] = 0.0
            bars[U(2 * row + 1)] = 0.0
            row -= 1
            g, turn = bars[U(2 * row)], bars[U(2 * row + 1)]
            sound = (g - g) + (turn - turn)


@always_inline
def collect_along(bars, found):
    """Tangents of the adjoints of the inputs; whether they are finite."""
    unsound = 0.0
    for i in range(found.size):
        turn = bars[2 * (i + 1) + 1]
        found[i] = turn
        unsound += turn - turn
    clear(bars, 2 * (found.size + 1))
    return unsound == 0.0


@sweep_entry(7)
def curve_along(recording, adjoints, ends, results, cotangents, products, inputs):
    """The direction with which the rows were recorded: adjoints and their tangents in one pass backwards.

    These are zero before, and after: a row's are cleared when it is done with, which costs half of a pass of its own.

    What is infinite or nan anywhere makes those of the inputs that it leads to so, too: only then is there a second pass, which
    looks.
    """
    rows, partials, last, pairs = tape_of(recording)
    changes, bars = f64(recording.change_column, pairs), f64(adjoints, 2 * (last + 1))
    outs, seeds, found = i32(ends, results), f64(cotangents, results), f64(products, inputs)
    seed_along(bars, last, outs, seeds)
    walk_along(rows, partials, changes, bars, last, pairs)
    if not collect_along(bars, found):
        seed_along(bars, last, outs, seeds)
        walk_masked(rows, partials, changes, bars, last, pairs)
        collect_along(bars, found)
    return 0
