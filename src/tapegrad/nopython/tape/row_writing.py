"""What functions of ours that record need in nopython code: parts of variables, and rows written pair by pair."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic
from numba.core.imputils import impl_ret_borrowed
from numba.np.arrayobj import load_item, make_array, populate_array, store_item

from tapegrad.nopython.formulas.formula import product
from tapegrad.nopython.tape.columns import (
    CHANGE_COLUMN,
    FLAG,
    ROWS,
)
from tapegrad.nopython.tape.row_instructions import (
    bend,
    close,
    columns,
    header_of,
    numbers,
    reserve,
    set_tangent,
    tangent_of,
    unflagged,
    word_at,
)
from tapegrad.nopython.types.curved_tape import CurvedTape, DirectedTape, has_room
from tapegrad.nopython.types.variable import (
    NO_ROW,
    REAL,
    ComplexVariable,
    Variable,
    complex_variable,
    make,
    number_of,
    primal_of,
    row_of,
    variable_of,
)
from tapegrad.nopython.types.variable_arrays import copied_by, copied_with_gaps, empty

__all__ = ["end_row", "primal", "primals", "put", "put_second", "row", "start_row", "with_row"]

I32, I64, F64 = ir.IntType(32), ir.IntType(64), ir.DoubleType()
ZERO = F64(0.0)


@intrinsic
def with_row(typingctx: Any, primal: Any, row: Any) -> Any:
    """A variable from a number and that of its row."""
    kind = variable_of(primal)

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        number = builder.trunc(args[1], I32) if sig.args[1].bitwidth == 64 else args[1]
        return make(context, builder, context.cast(builder, args[0], kind.primal, types.float64), number)

    if isinstance(row, types.Integer):
        return kind(kind.primal, types.int32 if row.bitwidth == 32 else types.int64), write
    return None


@intrinsic
def primal(typingctx: Any, value: Any) -> Any:
    """The primal of a variable, and a constant as float64."""
    kind = value.primal if isinstance(value, Variable) else types.float64

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if isinstance(value, Variable):
            return number_of(context, builder, value, args[0])
        return context.cast(builder, args[0], value, kind)

    return (kind(value), write) if isinstance(value, (Variable, *REAL)) else None


@intrinsic
def row(typingctx: Any, value: Any) -> Any:
    """The row of a variable, and 0 for a constant."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return row_of(builder, args[0]) if isinstance(value, Variable) else NO_ROW

    return (types.int32(value), write) if isinstance(value, (Variable, *REAL)) else None


@intrinsic
def start_row(typingctx: Any, tape: Any, count: Any, seconds: Any) -> Any:
    """Where the first of at most `count` pairs of a new row goes, which may have second partials; nothing else may be recorded
    until `end_row`.
    """

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return begun(context, builder, tape, header_of(builder, args[0]), args[1], args[2])

    return types.int64(tape, types.int64, types.int64), write


def write_pair(
    builder: Any, tape: types.Type, header: Any, place: Any, row: Any, partial: Any, change: Any = ZERO, known: Any = None
) -> None:
    """Write a pair; `change` is what a directed tape has besides. The columns may be known from before."""
    rows, partials = known or columns(builder, header)
    builder.store(unflagged(builder, row), builder.gep(rows, [place]))
    builder.store(partial, builder.gep(partials, [place]))
    if isinstance(tape, DirectedTape):
        builder.store(change, builder.gep(numbers(builder, header, CHANGE_COLUMN), [place]))


def begun(context: Any, builder: Any, tape: types.Type, header: Any, count: Any, seconds: Any) -> Any:
    """Where the first of at most `count` pairs of a new row goes, which may have second partials."""
    if isinstance(tape, DirectedTape):
        count = builder.add(count, builder.mul(I64(2), seconds))
    return reserve(context, builder, header, count, has_room=has_room(tape))[0]


def ended(builder: Any, tape: types.Type, header: Any, start: Any, end: Any) -> Any:
    """Number of the row whose pairs stand from `start` to before `end`; 0 if there are none."""
    result = cgutils.alloca_once_value(builder, NO_ROW)
    with builder.if_then(builder.icmp_signed(">", end, start)):
        rows, partials = columns(builder, header)
        if isinstance(tape, DirectedTape):
            tangent = cgutils.alloca_once_value(builder, ZERO)
            with cgutils.for_range_slice(builder, start, end, I64(1), I64) as (place, _):
                dot = tangent_of(builder, header, builder.load(builder.gep(rows, [place])))
                part = product(builder, builder.load(builder.gep(partials, [place])), dot)
                builder.store(builder.fadd(builder.load(tangent), part), tangent)
            set_tangent(builder, header, builder.load(tangent))
        first = builder.gep(rows, [start])
        builder.store(builder.or_(builder.load(first), I32(FLAG)), first)
        builder.store(close(builder, header, end), result)
    return builder.load(result)


def second_written(context: Any, builder: Any, tape: types.Type, header: Any, end: Any, a: Any, b: Any, second: Any) -> Any:
    """Write a second partial of the row whose pairs end at `end`; where its pairs end then."""
    if isinstance(tape, DirectedTape):
        for row, other in ((a, b), (b, a)):
            change = product(builder, second, tangent_of(builder, header, other))
            write_pair(builder, tape, header, end, row, ZERO, change)
            end = builder.add(end, I64(1))
    elif isinstance(tape, CurvedTape):
        owner = builder.add(builder.load(word_at(builder, header, ROWS)), I64(1))
        bend(context, builder, header, builder.trunc(owner, I32), [(a, b, second)], has_room(tape))
    return end


@intrinsic
def put(typingctx: Any, tape: Any, place: Any, row: Any, partial: Any) -> Any:
    """Write a pair."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        write_pair(builder, tape, header_of(builder, args[0]), *args[1:])
        return context.get_dummy_value()

    return types.none(tape, types.int64, types.int32, types.float64), write


@intrinsic
def end_row(typingctx: Any, tape: Any, start: Any, end: Any) -> Any:
    """Number of the row whose pairs stand from `start` to before `end`; 0 if there are none."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return ended(builder, tape, header_of(builder, args[0]), args[1], args[2])

    return types.int32(tape, types.int64, types.int64), write


@intrinsic
def put_second(typingctx: Any, tape: Any, end: Any, a: Any, b: Any, second: Any) -> Any:
    """Write a second partial of the row whose pairs end at `end`, half of it if `a` and `b` are one; where its pairs end then.

    A tape of first derivatives gets nothing, a directed one two further pairs, whose partials are zero but change.
    """

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return second_written(context, builder, tape, header_of(builder, args[0]), *args[1:])

    return types.int64(tape, types.int64, types.int32, types.int32, types.float64), write


def _strided(context: Any, builder: Any, a: types.Array, kind: types.Array, value: Any) -> Any:
    """The primals where they stand: an array of floats over the memory of variables."""
    source, view = make_array(a)(context, builder, value), make_array(kind)(context, builder)
    data = builder.bitcast(source.data, F64.as_pointer())
    populate_array(view, data, source.shape, source.strides, I64(8), source.meminfo)
    context.nrt.incref(builder, kind, view._getvalue())
    return view._getvalue()


def _with_gaps(context: Any, builder: Any, a: types.Array, kind: types.Array, value: Any) -> Any:
    """A copy of the primals of an array that is not contiguous, which is not either."""
    return copied_with_gaps(context, builder, a, value, kind)


def _dense(context: Any, builder: Any, a: types.Array, kind: types.Array, value: Any) -> Any:
    """A copy of the primals of an array without gaps, in the same order."""
    source = make_array(a)(context, builder, value)
    made = empty(context, builder, kind, cgutils.unpack_tuple(builder, source.shape, a.ndim))
    with cgutils.for_range(builder, made.nitems) as loop:
        item = load_item(context, builder, a, builder.gep(source.data, [loop.index]))
        store_item(context, builder, kind, number_of(context, builder, a.dtype, item), builder.gep(made.data, [loop.index]))
    return made._getvalue()


def _complex(context: Any, builder: Any, value: Any) -> Any:
    """The primals of both parts."""
    parts = cgutils.create_struct_proxy(complex_variable)(context, builder, value)
    made = context.make_complex(builder, types.complex128)
    made.real, made.imag = primal_of(builder, parts.real), primal_of(builder, parts.imag)
    return made._getvalue()


def _complex_array(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """An array of complex numbers without their rows."""
    kind, target_kind = sig.args[0], sig.return_type
    return copied_by(context, builder, kind, target_kind, args[0], lambda item: _complex(context, builder, item))


@intrinsic
def primals(typingctx: Any, a: Any) -> Any:
    """The primals of an array, in an array of the same layout; a number as it is."""
    if isinstance(a, ComplexVariable):
        return types.complex128(a), lambda context, builder, sig, args: _complex(context, builder, args[0])
    if isinstance(a, types.Array) and isinstance(a.dtype, ComplexVariable):
        return a.copy(dtype=types.complex128, layout="F" if a.layout == "F" else "C", readonly=False)(a), _complex_array
    if isinstance(a, Variable):
        return a.primal(a), lambda context, builder, sig, args: number_of(context, builder, a, args[0])
    if not isinstance(a, types.Array) or not isinstance(a.dtype, Variable):
        return a(a), lambda context, builder, sig, args: impl_ret_borrowed(context, builder, a, args[0])
    kind = types.Array(a.dtype.primal, a.ndim, a.layout)
    taken = _dense if a.layout != "A" else _strided if a.dtype.primal == types.float64 else _with_gaps
    return kind(a), lambda context, builder, sig, args: taken(context, builder, a, kind, args[0])
