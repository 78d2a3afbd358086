"""Sweeps over linear rows with several tangents or adjoints at once, the lanes of one row together; and for second derivatives.

Matrices have a column for each direction. A sweep takes the columns from `start` on in blocks of as many as it has lanes, the last
block filled up with zeros. What is in `bar`, `tangents` and `weights` before does not matter.

Factors that are zero count for nothing, whatever they meet. Lanes that are zero need a test only where the factor is not finite,
which it hardly ever is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic

from tapegrad.compilation.jit import always_inline
from tapegrad.nopython.tape.sweep_entries import f64, i32, matrix, sweep_entry, tape_of

__all__ = ["CURVE", "MASK", "PULL", "PUSH", "U", "clear", "curve_once", "weigh"]

MASK = 0x7FFFFFFF
U = np.uint64  # an index that cannot be negative saves the test for those that count from the end


def _adding(lanes: int) -> Any:
    """``array[to] += factor * array[at]`` for lanes that start at these places; `at` may be in another array."""

    @intrinsic
    def add(typingctx: Any, target: Any, to: Any, source: Any, at: Any, factor: Any) -> Any:
        def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            from numba.np.arrayobj import make_array

            kind: Any = ir.DoubleType() if lanes == 1 else ir.VectorType(ir.DoubleType(), lanes)
            targets = make_array(target)(context, builder, args[0]).data
            sources = make_array(source)(context, builder, args[2]).data
            to_, at_ = (
                builder.bitcast(builder.gep(data, [place]), kind.as_pointer())
                for data, place in ((targets, args[1]), (sources, args[3]))
            )
            wide = args[4]
            if lanes > 1:
                one = builder.insert_element(ir.Constant(kind, ir.Undefined), wide, ir.IntType(32)(0))
                wide = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes))
            values, before = builder.load(at_), builder.load(to_)
            values.align = before.align = 8
            zero = ir.Constant(kind, 0.0 if lanes == 1 else [0.0] * lanes)
            name = "llvm.fmuladd." + ("f64" if lanes == 1 else f"v{lanes}f64")
            fused = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
            finite = builder.fcmp_ordered("==", builder.fsub(args[4], args[4]), ir.DoubleType()(0.0))
            with builder.if_else(finite, likely=True) as (then, otherwise):
                with then:
                    builder.store(builder.call(fused, [wide, values, before]), to_).align = 8
                with otherwise:
                    masked = builder.select(builder.fcmp_ordered("==", values, zero), zero, builder.fmul(wide, values))
                    builder.store(builder.fadd(before, masked), to_).align = 8
            return context.get_dummy_value()

        return types.void(target, types.int64, source, types.int64, types.float64), write

    return add


@intrinsic
def add_second(typingctx: Any, target: Any, to: Any, value: Any) -> Any:
    """Add to the second of two lanes; both are stored at once, for a load of both soon after would wait for the halves."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        from numba.np.arrayobj import make_array

        kind: Any = ir.VectorType(ir.DoubleType(), 2)
        data = make_array(target)(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), kind.as_pointer())
        before = builder.load(place)
        before.align = 8
        more = builder.insert_element(ir.Constant(kind, [0.0, 0.0]), args[2], ir.IntType(32)(1))
        builder.store(builder.fadd(before, more), place).align = 8
        return context.get_dummy_value()

    return types.void(target, types.int64, types.float64), write


add_1, add_2, add_8, add_32 = _adding(1), _adding(2), _adding(8), _adding(32)


@always_inline
def clear(array, count):
    for k in range(count):
        array[U(k)] = 0.0


@always_inline
def sweep_forwards(add, lanes, rows, partials, tangents, inputs, pairs):
    row = inputs
    for k in range(pairs):
        reference = rows[U(k)]
        target = reference & MASK
        if reference < 0:
            row += 1
            for lane in range(lanes):
                tangents[U(row * lanes + lane)] = 0.0
        p = partials[U(k)]
        if p != 0.0 and target < row:
            add(tangents, row * lanes, tangents, target * lanes, p)


@always_inline
def sweep_backwards(add, lanes, rows, partials, bar, last, pairs):
    row = last
    for k in range(pairs - 1, -1, -1):
        reference = rows[U(k)]
        target = reference & MASK
        p = partials[U(k)]
        if p != 0.0 and target < row:
            add(bar, target * lanes, bar, row * lanes, p)
        if reference < 0:
            row -= 1


@always_inline
def seed_tangents(lanes, tangents, given, inputs, first, stop):
    clear(tangents, (inputs + 1) * lanes)
    for i in range(inputs):
        place = (i + 1) * lanes
        for lane in range(stop - first):
            tangents[U(place + lane)] = given[U(i), U(first + lane)]


@always_inline
def collect(lanes, array, found, first, stop):
    """Lanes of the inputs into columns of a matrix."""
    for i in range(found.shape[0]):
        place = (i + 1) * lanes
        for lane in range(stop - first):
            found[U(i), U(first + lane)] = array[U(place + lane)]


# Entries are given a recording, what is worked on, rows of the results, and a matrix for each side with its columns from `start` to
# `stop`.
@always_inline
def push_lanes(add, lanes, recording, dots, ends, results, directions, inputs, products, width, start, stop):
    rows, partials, last, pairs = tape_of(recording)
    tangents, outs = f64(dots, (last + 1) * lanes), i32(ends, results)
    given, found = matrix(directions, inputs, width), matrix(products, results, width)
    for first in range(start, stop, lanes):
        end = min(first + lanes, stop)
        seed_tangents(lanes, tangents, given, inputs, first, end)
        sweep_forwards(add, lanes, rows, partials, tangents, inputs, pairs)
        for j in range(outs.size):
            place = outs[j] if 0 < outs[j] <= last else 0
            for lane in range(end - first):
                found[U(j), U(first + lane)] = tangents[U(place * lanes + lane)]


@always_inline
def pull_lanes(add, lanes, recording, bars, ends, results, cotangents, inputs, products, width, start, stop):
    rows, partials, last, pairs = tape_of(recording)
    bar, outs = f64(bars, (last + 1) * lanes), i32(ends, results)
    given, found = matrix(cotangents, results, width), matrix(products, inputs, width)
    for first in range(start, stop, lanes):
        end = min(first + lanes, stop)
        clear(bar, (last + 1) * lanes)
        for j in range(outs.size):
            if 0 < outs[j] <= last:
                place = outs[j] * lanes
                for lane in range(end - first):
                    bar[U(place + lane)] += given[U(j), U(first + lane)]
        sweep_backwards(add, lanes, rows, partials, bar, last, pairs)
        collect(lanes, bar, found, first, end)


@always_inline
def curve_lanes(add, lanes, recording, dots, bars, weighed, directions, inputs, products, width, start, stop):
    rows, partials, last, pairs = tape_of(recording)
    count = recording.triplets
    triplets, weights = i32(recording.triplet_column, 3 * count), f64(weighed, count)
    tangents, bar = f64(dots, (last + 1) * lanes), f64(bars, (last + 1) * lanes)
    given, found = matrix(directions, inputs, width), matrix(products, inputs, width)
    for first in range(start, stop, lanes):
        end = min(first + lanes, stop)
        seed_tangents(lanes, tangents, given, inputs, first, end)
        sweep_forwards(add, lanes, rows, partials, tangents, inputs, pairs)
        clear(bar, (last + 1) * lanes)
        for k in range(count):
            w = weights[U(k)]
            if w != 0.0:
                a, b = triplets[U(3 * k + 1)], triplets[U(3 * k + 2)]
                if a == b:
                    w *= 2.0
                else:
                    add(bar, b * lanes, tangents, a * lanes, w)
                add(bar, a * lanes, tangents, b * lanes, w)
        sweep_backwards(add, lanes, rows, partials, bar, last, pairs)
        collect(lanes, bar, found, first, end)


@sweep_entry(10)
def push_1(recording, dots, ends, results, directions, inputs, products, width, start, stop):
    push_lanes(add_1, 1, recording, dots, ends, results, directions, inputs, products, width, start, stop)
    return 0


@sweep_entry(10)
def push_8(recording, dots, ends, results, directions, inputs, products, width, start, stop):
    push_lanes(add_8, 8, recording, dots, ends, results, directions, inputs, products, width, start, stop)
    return 0


@sweep_entry(10)
def push_32(recording, dots, ends, results, directions, inputs, products, width, start, stop):
    push_lanes(add_32, 32, recording, dots, ends, results, directions, inputs, products, width, start, stop)
    return 0


@sweep_entry(10)
def pull_1(recording, bars, ends, results, cotangents, inputs, products, width, start, stop):
    pull_lanes(add_1, 1, recording, bars, ends, results, cotangents, inputs, products, width, start, stop)
    return 0


@sweep_entry(10)
def pull_8(recording, bars, ends, results, cotangents, inputs, products, width, start, stop):
    pull_lanes(add_8, 8, recording, bars, ends, results, cotangents, inputs, products, width, start, stop)
    return 0


@sweep_entry(10)
def pull_32(recording, bars, ends, results, cotangents, inputs, products, width, start, stop):
    pull_lanes(add_32, 32, recording, bars, ends, results, cotangents, inputs, products, width, start, stop)
    return 0


@sweep_entry(10)
def curve_8(recording, dots, bars, weighed, directions, inputs, products, width, start, stop):
    curve_lanes(add_8, 8, recording, dots, bars, weighed, directions, inputs, products, width, start, stop)
    return 0


@sweep_entry(10)
def curve_32(recording, dots, bars, weighed, directions, inputs, products, width, start, stop):
    curve_lanes(add_32, 32, recording, dots, bars, weighed, directions, inputs, products, width, start, stop)
    return 0


PUSH = {1: push_1, 8: push_8, 32: push_32}
PULL = {1: pull_1, 8: pull_8, 32: pull_32}
CURVE = {8: curve_8, 32: curve_32}


@sweep_entry(3)
def weigh(recording, bars, found):
    """Second partials times the adjoints of the rows that have them; zero for what is garbage, as a row read beyond an end is."""
    last, count = recording.rows, recording.triplets
    triplets, seconds = i32(recording.triplet_column, 3 * count), f64(recording.second_column, count)
    bar, weights = f64(bars, last + 1), f64(found, count)
    for k in range(count):
        owner, a, b = triplets[3 * k], triplets[3 * k + 1], triplets[3 * k + 2]
        g = bar[owner] if 0 < owner <= last else 0.0
        sound = g != 0.0 and 0 < a < owner and 0 < b < owner
        weights[k] = g * seconds[k] if sound else 0.0
    return 0


@sweep_entry(9)
def curve_once(recording, dots, adjoints, ends, results, cotangents, direction, products, inputs):
    """One direction: adjoints and their tangents, which stand side by side, in one pass backwards."""
    rows, partials, last, pairs = tape_of(recording)
    count = recording.triplets
    triplets, seconds = i32(recording.triplet_column, 3 * count), f64(recording.second_column, count)
    tangents, bars, outs, seeds = f64(dots, last + 1), f64(adjoints, 2 * (last + 1)), i32(ends, results), f64(cotangents, results)
    given, found = f64(direction, inputs), f64(products, inputs)
    tangents[0] = 0.0
    for i in range(inputs):
        tangents[i + 1] = given[i]
    row, dot = inputs, 0.0
    for k in range(pairs):
        reference = rows[U(k)]
        target = reference & MASK
        if reference < 0:
            if row > inputs:
                tangents[U(row)] = dot
            row += 1
            dot = 0.0
        p = partials[U(k)]
        x = tangents[U(target)] if target < row else 0.0
        if p != 0.0 and x != 0.0:
            dot += p * x
    if row > inputs:
        tangents[U(row)] = dot
    clear(bars, 2 * (last + 1))
    for j in range(results):
        if 0 < outs[j] <= last:
            bars[2 * outs[j]] += seeds[j]
    row, t = last + 1, count - 1
    owner = triplets[U(3 * t)] if t >= 0 else 0
    first = True
    for k in range(pairs - 1, -1, -1):
        if first:
            row -= 1
            while owner == row:
                a, b = triplets[U(3 * t + 1)], triplets[U(3 * t + 2)]
                g = bars[U(2 * row)]
                if g != 0.0 and 0 < a < row and 0 < b < row:
                    w, x = g * seconds[U(t)], tangents[U(b)]
                    if a == b:
                        w *= 2.0
                    elif w != 0.0 and tangents[U(a)] != 0.0:
                        add_second(bars, 2 * b, w * tangents[U(a)])
                    if w != 0.0 and x != 0.0:
                        add_second(bars, 2 * a, w * x)
                t -= 1
                owner = triplets[U(3 * t)] if t >= 0 else 0
        reference = rows[U(k)]
        target = reference & MASK
        p = partials[U(k)]
        if p != 0.0 and target < row:
            add_2(bars, 2 * target, bars, 2 * row, p)
        first = reference < 0
    for i in range(inputs):
        found[i] = bars[2 * (i + 1) + 1]
    return 0
