"""Rows of complex numbers, which are pairs of variables: each part has a row of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic
from numba.np.arrayobj import get_itemsize, make_array, populate_array

from tapegrad.nopython.tape.array_rows import Row, is_row
from tapegrad.nopython.types.curved_tape import CurvedTape
from tapegrad.nopython.types.variable import (
    NO_ROW,
    ComplexVariable,
    Variable,
    complex_variable,
    make,
    row_of,
    variable,
)

__all__ = ["complex_rows", "imaginary_part", "imaginary_view", "joined", "real_part", "real_view", "with_rows_of_parts"]

F64, I64 = ir.DoubleType(), ir.IntType(64)
HALF = F64(0.5)


def _rows(context: Any, builder: Any, kind: types.Type, value: Any) -> tuple[Any, Any]:
    """The rows of both parts of a number."""
    if isinstance(kind, ComplexVariable):
        parts = cgutils.create_struct_proxy(kind)(context, builder, value)
        return row_of(builder, parts.real), row_of(builder, parts.imag)
    return (row_of(builder, value) if isinstance(kind, Variable) else NO_ROW), NO_ROW


def _pair(context: Any, builder: Any, real: Any, imag: Any) -> Any:
    made = cgutils.create_struct_proxy(complex_variable)(context, builder)
    made.real, made.imag = real, imag
    return made._getvalue()


class _Operand:
    """What a holomorphic function depends on: rows of both parts, and the derivative."""

    def __init__(self, rows: tuple[Any, Any], slope: Any) -> None:
        self.rows, self.slope = rows, slope


def _written(
    context: Any, builder: Any, kind: types.Type, tape: Any, operands: Sequence[_Operand], seconds: Any, is_real: bool
) -> Any:
    """The row of one part of the result, by the equations of Cauchy and Riemann."""

    def weights(slope: Any) -> tuple[Any, Any]:
        return (slope.real, builder.fneg(slope.imag)) if is_real else (slope.imag, slope.real)

    row = Row(context, builder, kind, tape, I64(4), I64(10))
    for operand in operands:
        for number, weight in zip(operand.rows, weights(operand.slope), strict=True):
            if number is not NO_ROW:
                with builder.if_then(is_row(builder, number)):
                    row.pair(number, weight)
    if isinstance(kind, CurvedTape):
        for (i, j), slope in seconds.items():
            first, other = weights(slope)
            table = ((first, other), (other, builder.fneg(first)))
            for a, left in enumerate(operands[i].rows):
                for b, right in enumerate(operands[j].rows):
                    if left is NO_ROW or right is NO_ROW or (i == j and b < a):
                        continue
                    value = builder.fmul(HALF, table[a][b]) if i == j and a == b else table[a][b]
                    with builder.if_then(builder.and_(is_row(builder, left), is_row(builder, right))):
                        row.second(left, right, value)
    return row.end()


@intrinsic
def complex_rows(typingctx: Any, tape: Any, z: Any, operands: Any, slopes: Any, seconds: Any) -> Any:
    """A complex variable: its value, what it depends on, the derivatives by these, and second ones by (0, 0), (0, 1), (1, 1)."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def complexes(kind: Any, value: Any) -> list[Any]:
            return [
                context.make_complex(builder, types.complex128, item) for item in cgutils.unpack_tuple(builder, value, len(kind))
            ]

        value = context.make_complex(builder, types.complex128, args[1])
        given = cgutils.unpack_tuple(builder, args[2], len(operands))
        found = [
            _Operand(_rows(context, builder, kind, item), slope)
            for kind, item, slope in zip(operands, given, complexes(slopes, args[3]), strict=True)
        ]
        places = [(i, j) for i in range(len(found)) for j in range(i, len(found))]
        curved = dict(zip(places, complexes(seconds, args[4]), strict=True)) if isinstance(tape, CurvedTape) else {}
        rows = [_written(context, builder, tape, args[0], found, curved, is_real) for is_real in (True, False)]
        parts = (make(context, builder, part, row) for part, row in zip((value.real, value.imag), rows, strict=True))
        return _pair(context, builder, *parts)

    return complex_variable(tape, z, operands, slopes, seconds), write


@intrinsic
def with_rows_of_parts(typingctx: Any, z: Any, found: Any) -> Any:
    """A complex number with the rows of a complex variable."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value = context.make_complex(builder, types.complex128, args[0])
        rows = _rows(context, builder, found, args[1])
        parts = (make(context, builder, part, row) for part, row in zip((value.real, value.imag), rows, strict=True))
        return _pair(context, builder, *parts)

    return complex_variable(types.complex128, found), write


@intrinsic
def joined(typingctx: Any, real: Any, imag: Any) -> Any:
    """A complex variable out of its parts."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _pair(context, builder, *args)

    return complex_variable(variable, variable), write


def _part(name: str) -> Any:
    @intrinsic
    def part(typingctx: Any, x: Any) -> Any:
        result = variable if isinstance(x, (ComplexVariable, Variable)) else types.float64

        def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            if isinstance(x, ComplexVariable):
                return getattr(cgutils.create_struct_proxy(x)(context, builder, args[0]), name)
            if isinstance(x, types.Complex):
                return getattr(context.make_complex(builder, x, args[0]), name)
            if name == "imag":
                return context.cast(builder, F64(0.0), types.float64, result)
            if isinstance(x, Variable):
                return context.cast(builder, args[0], x, variable)
            return context.cast(builder, args[0], x, types.float64)

        return result(x), write

    return part


def _view(number: int) -> Any:
    @intrinsic
    def view(typingctx: Any, a: Any) -> Any:
        kind = a.copy(dtype=variable, layout="A")

        def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            source, made = make_array(a)(context, builder, args[0]), make_array(kind)(context, builder)
            data = builder.bitcast(source.data, context.get_data_type(variable).as_pointer())
            data = builder.gep(data, [I64(number)])
            populate_array(made, data, source.shape, source.strides, I64(get_itemsize(context, kind)), source.meminfo)
            context.nrt.incref(builder, kind, made._getvalue())
            return made._getvalue()

        return kind(a), write

    return view


real_view, imaginary_view = _view(0), _view(1)
real_part, imaginary_part = _part("real"), _part("imag")
