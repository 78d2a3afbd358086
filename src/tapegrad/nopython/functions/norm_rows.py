"""Rows of norms, written by instructions in place."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic

from tapegrad.nopython.formulas.formula import call
from tapegrad.nopython.tape.array_rows import Elements, Row, Tied, extreme, is_row, row_over
from tapegrad.nopython.types.variable_arrays import empty

__all__ = ["line_row", "magnitude_row", "power_row", "root_row", "spectral_row", "squares_row", "unit_row"]

I64, F64 = ir.IntType(64), ir.DoubleType()
ZERO, ONE = F64(0.0), F64(1.0)
VECTOR = types.Array(types.float64, 1, "C")


@intrinsic
def unit_row(typingctx: Any, tape: Any, a: Any, z: Any) -> Any:
    """The row of the length `z` of an array: partials are elements by length, and zero where that is zero or infinite."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        z = args[2]
        is_limit = builder.or_(builder.fcmp_ordered("==", z, ZERO), builder.fcmp_ordered("==", z, F64(float("inf"))))

        def weight(place: Any, primal: Any) -> Any:
            return builder.select(is_limit, ZERO, builder.fdiv(primal, z))

        return row_over(context, builder, (tape, args[0]), Elements(context, builder, a, args[1]), weight)

    return types.int32(tape, a, types.float64), write


@intrinsic
def squares_row(typingctx: Any, tape: Any, a: Any, z: Any) -> Any:
    """The row of a sum of squares divided by its root `z`: the sum itself may be too large or small for a number."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, z = Elements(context, builder, a, args[1]), args[2]
        is_zero = builder.fcmp_ordered("==", z, ZERO)
        second = builder.select(is_zero, ZERO, builder.fdiv(ONE, z))
        row = Row(context, builder, tape, args[0], array.size, array.size)
        with array.loop() as place:
            primal, number = array.parts(place)
            with builder.if_then(is_row(builder, number)):
                row.pair(number, builder.select(is_zero, ZERO, builder.fmul(F64(2.0), builder.fdiv(primal, z))))
                row.second(number, number, second)
        return row.end()

    return types.int32(tape, a, types.float64), write


@intrinsic
def root_row(typingctx: Any, tape: Any, squares: Any, z: Any) -> Any:
    """The row of the root `z` of the sum of squares; its derivatives are zero at the origin."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _, squares, z = args
        is_zero = builder.fcmp_ordered("==", z, ZERO)
        row = Row(context, builder, tape, args[0], I64(1), I64(1))
        with builder.if_then(is_row(builder, squares)):
            row.pair(squares, builder.select(is_zero, ZERO, F64(0.5)))
            row.second(squares, squares, builder.select(is_zero, ZERO, builder.fdiv(F64(-0.125), z)))
        return row.end()

    return types.int32(tape, types.int32, types.float64), write


def _magnitude(builder: Any, value: Any) -> Any:
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(F64, [F64]), "llvm.fabs.f64")
    return builder.call(function, [value])


def _sign(builder: Any, value: Any) -> Any:
    """1, -1, zero, or nan."""
    below = builder.select(builder.fcmp_ordered("<", value, ZERO), F64(-1.0), value)
    return builder.select(builder.fcmp_ordered(">", value, ZERO), ONE, below)


@intrinsic
def magnitude_row(typingctx: Any, tape: Any, a: Any, z: Any) -> Any:
    """The row of the extreme magnitude `z` in a vector: elements that tie share the derivative evenly."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = Elements(context, builder, a, args[1])
        tied = Tied(builder, array, args[2], _magnitude)

        def weight(_: Any, value: Any) -> Any:
            return builder.fmul(_sign(builder, value), tied.weight(value))

        return row_over(context, builder, (tape, args[0]), array, weight)

    return types.int32(tape, a, types.float64), write


@intrinsic
def power_row(typingctx: Any, tape: Any, a: Any, order: Any, z: Any) -> Any:
    """The row of the norm `z` of a vector, of an order that is neither zero nor infinite."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        order, z = args[2:]
        less, is_euclidean = builder.fsub(order, ONE), builder.fcmp_ordered("==", order, F64(2.0))

        def weight(_: Any, value: Any) -> Any:
            found = cgutils.alloca_once_value(builder, builder.fdiv(value, z))
            is_power = builder.and_(builder.not_(is_euclidean), builder.fcmp_unordered("!=", value, ZERO))
            builder.store(builder.select(is_euclidean, builder.load(found), ZERO), found)
            with builder.if_then(is_power):
                power = call(context, builder, operator.pow, builder.fdiv(_magnitude(builder, value), z), less)
                builder.store(builder.fmul(_sign(builder, value), power), found)
            return builder.load(found)

        return row_over(context, builder, (tape, args[0]), Elements(context, builder, a, args[1]), weight)

    return types.int32(tape, a, types.float64, types.float64), write


@intrinsic
def line_row(typingctx: Any, tape: Any, a: Any, by_columns: Any, is_largest: Any) -> Any:
    """The row of the largest or the smallest sum of magnitudes in a column or a row of a matrix."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, (by_columns, is_largest) = Elements(context, builder, a, args[1]), args[2:]
        count = builder.select(by_columns, *array.shape[::-1])
        memory = empty(context, builder, VECTOR, [count])
        cgutils.memset(builder, memory.data, builder.mul(memory.itemsize, memory.nitems), 0)
        totals = Elements(context, builder, VECTOR, memory._getvalue())

        def line(place: Any) -> Any:
            return [builder.select(by_columns, *place[::-1])]

        with array.loop() as place:
            address = totals.address(line(place))
            magnitude = _magnitude(builder, array.parts(place)[0])
            builder.store(builder.fadd(builder.load(address), magnitude), address)
        found = builder.select(is_largest, *(extreme(builder, totals, symbol) for symbol in (">", "<")))
        tied = Tied(builder, totals, found)

        def weight(place: Any, value: Any) -> Any:
            return builder.fmul(_sign(builder, value), tied.weight(totals.parts(line(place))[0]))

        row = row_over(context, builder, (tape, args[0]), array, weight)
        context.nrt.decref(builder, VECTOR, memory._getvalue())
        return row

    return types.int32(tape, a, types.boolean, types.boolean), write


@intrinsic
def spectral_row(typingctx: Any, tape: Any, a: Any, u: Any, s: Any, vt: Any, is_largest: Any) -> Any:
    """The row of the largest or the smallest singular value of a matrix."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, left, values, right = (
            Elements(context, builder, kind, arg) for kind, arg in zip((a, u, s, vt), args[1:5], strict=True)
        )
        last = builder.sub(values.size, I64(1))
        found = values.parts([builder.select(args[5], I64(0), last)])[0]
        tied = Tied(builder, values, found)

        def weight(place: Any, _: Any) -> Any:
            total = cgutils.alloca_once_value(builder, ZERO)
            with cgutils.for_range(builder, values.size) as loop:
                share = tied.weight(values.parts([loop.index])[0])
                with builder.if_then(builder.fcmp_unordered("!=", share, ZERO)):
                    x, y = left.parts((place[0], loop.index))[0], right.parts((loop.index, place[1]))[0]
                    part = builder.fmul(builder.fmul(share, x), y)
                    builder.store(builder.fadd(builder.load(total), part), total)
            return builder.load(total)

        return row_over(context, builder, (tape, args[0]), array, weight)

    return types.int32(tape, a, u, s, vt, types.boolean), write
