"""Rows of norms, written by instructions in place."""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic

from tapegrad.kernels.second_partials import derivative
from tapegrad.nopython.formulas.formula import Writer, partial
from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.tape.array_rows import Elements, Row, Tied, extreme, is_row, row_over
from tapegrad.nopython.types.curved_tape import CurvedTape
from tapegrad.nopython.types.variable_arrays import empty
from tapegrad.rules.norms import BEND, LENGTH, SLOPE, SLOPE_OF_ANY

__all__ = ["line_row", "magnitude_row", "power_row", "spectral_row"]

I64, F64 = ir.IntType(64), ir.DoubleType()
ZERO, HALF, ONE = F64(0.0), F64(0.5), F64(1.0)
VECTOR = types.Array(types.float64, 1, "C")


def _slope(order: Any) -> str:
    """The text for an order; where that is known, no other is compiled."""
    if not isinstance(order, types.IntegerLiteral):
        return SLOPE_OF_ANY
    return LENGTH if order.literal_value == 2 else SLOPE


def power_row(tape, a, order, z):
    """The row of the norm `z` of a vector, of an order that is neither zero nor infinite."""
    raise NotImplementedError


@overload(power_row, prefer_literal=True)
def _power_row(tape, a, order, z):
    slopes, bend = _slope_rows(_slope(order)), _bend_row
    if isinstance(tape, CurvedTape):
        return lambda tape, a, order, z: bend(tape, slopes(tape, a, order, z), order, z)
    return lambda tape, a, order, z: slopes(tape, a, order, z)


@functools.cache
def _slope_rows(text: str) -> Any:
    """The row of a sum that has the slopes of a norm, and their derivatives while the norm is held."""

    @intrinsic
    def slope_row(typingctx: Any, tape: Any, a: Any, order: Any, z: Any) -> Any:
        def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            array = Elements(context, builder, a, args[1])
            row = Row(context, builder, tape, args[0], array.size, array.size)
            with array.loop() as place:
                value, number = array.parts(place)
                with builder.if_then(is_row(builder, number)):
                    writer = Writer(context, builder, {"x": value, "y": args[2], "z": args[3]})
                    row.pair(number, partial(writer, text))
                    if isinstance(tape, CurvedTape):
                        row.second(number, number, builder.fmul(HALF, partial(writer, derivative(text, "x", "0.0"))))
            return row.end()

        return types.int32(tape, a, types.float64, types.float64), write

    return slope_row


@intrinsic
def _bend_row(typingctx: Any, tape: Any, slopes: Any, order: Any, z: Any) -> Any:
    """The row of a norm by the row of its slopes."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _, slopes, order, z = args
        row = Row(context, builder, tape, args[0], I64(1), I64(1))
        with builder.if_then(is_row(builder, slopes)):
            row.pair(slopes, ONE)
            bend = partial(Writer(context, builder, {"y": order, "z": z}), BEND)
            row.second(slopes, slopes, builder.fmul(HALF, bend))
        return row.end()

    return types.int32(tape, types.int32, types.float64, types.float64), write


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
