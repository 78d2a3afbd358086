"""Rows over the elements of arrays, written by instructions in place.

As functions in Python, compiled for each type and number of dimensions, the loops took longer to compile than what they
differentiate: an iteration over indices alone costs as much as a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic
from numba.np.arrayobj import load_item, make_array, store_item

from tapegrad.nopython.tape.row_instructions import columns, header_of
from tapegrad.nopython.tape.row_writing import begun, ended, second_written, write_pair
from tapegrad.nopython.types.variable import NO_ROW, Variable, make, primal_of, row_of, variable_of
from tapegrad.nopython.types.variable_arrays import empty

__all__ = [
    "Elements",
    "Row",
    "Tied",
    "combined",
    "extent_row",
    "extreme",
    "extreme_row",
    "is_row",
    "moved",
    "of_variables",
    "row_over",
    "sum_rows",
    "with_row_of_each",
    "with_rows",
]

I32, I64, F64 = ir.IntType(32), ir.IntType(64), ir.DoubleType()
ZERO, ONE = F64(0.0), F64(1.0)
Pair = tuple[Any, Any]


class Elements:
    """An array, or a number that stands for all elements of one, in the code that is being written."""

    def __init__(self, context: Any, builder: Any, kind: types.Type, value: Any) -> None:
        self.context, self.builder, self.kind = context, builder, kind
        self.array = None if not isinstance(kind, types.Array) else make_array(kind)(context, builder, value)
        if self.array is None:
            self.value = context.cast(builder, value, kind, types.float64)
            return
        self.shape = cgutils.unpack_tuple(builder, self.array.shape, kind.ndim)
        self.strides = cgutils.unpack_tuple(builder, self.array.strides, kind.ndim)

    def address(self, place: Sequence[Any]) -> Any:
        """Where an element is."""
        return cgutils.get_item_pointer2(
            self.context, self.builder, self.array.data, self.shape, self.strides, self.kind.layout, place, wraparound=False
        )

    def parts(self, place: Sequence[Any]) -> Pair:
        """Primal and row of an element."""
        return (self.value, NO_ROW) if self.array is None else self.parts_at(self.address(place))

    def parts_at(self, address: Any) -> Pair:
        """The same of the element at an address."""
        value = load_item(self.context, self.builder, self.kind, address)
        if isinstance(self.kind.dtype, Variable):
            return primal_of(self.builder, value), row_of(self.builder, value)
        return self.context.cast(self.builder, value, self.kind.dtype, types.float64), NO_ROW

    def store(self, place: Sequence[Any], primal: Any, row: Any) -> None:
        """Write a variable."""
        value = make(self.context, self.builder, primal, row)
        store_item(self.context, self.builder, self.kind, value, self.address(place))

    @property
    def size(self) -> Any:
        return self.array.nitems

    def loop(self) -> Any:
        """All places, in the order in which Python has them."""
        return cgutils.loop_nest(self.builder, self.shape, I64)


class Row:
    """A row in the making, of at most `count` pairs."""

    def __init__(self, context: Any, builder: Any, kind: types.Type, tape: Any, count: Any, seconds: Any = None) -> None:
        self.context, self.builder, self.kind, self.header = context, builder, kind, header_of(builder, tape)
        self.start = begun(context, builder, kind, self.header, count, I64(0) if seconds is None else seconds)
        self.columns = columns(builder, self.header)  # they stay where they are until the row ends
        self.place = cgutils.alloca_once_value(builder, self.start)

    def pair(self, row: Any, partial: Any) -> None:
        """Write a pair."""
        end = self.builder.load(self.place)
        write_pair(self.builder, self.kind, self.header, end, row, partial, known=self.columns)
        self.builder.store(self.builder.add(end, I64(1)), self.place)

    def second(self, a: Any, b: Any, second: Any) -> None:
        """Write a second partial, behind the pairs that it belongs to."""
        end = self.builder.load(self.place)
        end = second_written(self.context, self.builder, self.kind, self.header, end, a, b, second)
        self.builder.store(end, self.place)

    def end(self) -> Any:
        """The number of the row."""
        return ended(self.builder, self.kind, self.header, self.start, self.builder.load(self.place))


def is_row(builder: Any, row: Any) -> Any:
    return builder.icmp_signed("!=", row, NO_ROW)


def row_over(context: Any, builder: Any, tape: tuple[Any, Any], a: Elements, weight: Callable[[Sequence[Any], Any], Any]) -> Any:
    """A row with a pair for each variable of an array; the weight is asked for with a place and the primal there."""
    row = Row(context, builder, *tape, a.size)
    with a.loop() as place:
        primal, number = a.parts(place)
        with builder.if_then(is_row(builder, number)):
            row.pair(number, weight(place, primal))
    return row.end()


@intrinsic
def combined(typingctx: Any, tape: Any, a: Any, weights: Any) -> Any:
    """A row with a partial for each element of `a`: an array of its shape, or one number for all of them."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        given = Elements(context, builder, weights, args[2])
        array = Elements(context, builder, a, args[1])
        return row_over(context, builder, (tape, args[0]), array, lambda place, _: given.parts(place)[0])

    return types.int32(tape, a, weights), write


def _ties(builder: Any, value: Any, z: Any) -> Any:
    """Whether a number is the extreme one; nan ties with nan."""
    both = builder.and_(builder.fcmp_unordered("uno", value, value), builder.fcmp_unordered("uno", z, z))
    return builder.or_(builder.fcmp_ordered("==", value, z), both)


class Tied:
    """The elements that are an extreme one: each has an even share of it."""

    def __init__(self, builder: Any, a: Elements, z: Any, seen: Callable[[Any, Any], Any] = lambda _, value: value) -> None:
        self.builder, self.z, self.seen = builder, z, seen
        count = cgutils.alloca_once_value(builder, ZERO)
        with a.loop() as place:
            ties = _ties(builder, seen(builder, a.parts(place)[0]), z)
            builder.store(builder.fadd(builder.load(count), builder.uitofp(ties, F64)), count)
        self.share = builder.fdiv(ONE, builder.load(count))

    def weight(self, value: Any) -> Any:
        """The share of an element."""
        return self.builder.select(_ties(self.builder, self.seen(self.builder, value), self.z), self.share, ZERO)


@intrinsic
def extreme_row(typingctx: Any, tape: Any, a: Any, z: Any) -> Any:
    """The row of the extreme element `z` of an array: elements that tie share the derivative evenly."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = Elements(context, builder, a, args[1])
        tied = Tied(builder, array, args[2])
        return row_over(context, builder, (tape, args[0]), array, lambda _, value: tied.weight(value))

    return types.int32(tape, a, types.float64), write


def extreme(builder: Any, a: Elements, symbol: str) -> Any:
    """The largest or the smallest element, nan if there is one."""
    with builder.goto_entry_block():
        found = builder.alloca(F64)
    builder.store(F64(float("-inf") if symbol == ">" else float("inf")), found)
    with a.loop() as place:
        value = a.parts(place)[0]
        is_further = builder.fcmp_ordered(symbol, value, builder.load(found))
        is_taken = builder.or_(is_further, builder.fcmp_unordered("uno", value, value))
        builder.store(builder.select(is_taken, value, builder.load(found)), found)
    return builder.load(found)


@intrinsic
def extent_row(typingctx: Any, tape: Any, a: Any) -> Any:
    """The row of the distance between the largest and the smallest element."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = Elements(context, builder, a, args[1])
        upper, lower = (Tied(builder, array, extreme(builder, array, symbol)) for symbol in (">", "<"))

        def weight(place: Any, value: Any) -> Any:
            return builder.fsub(upper.weight(value), lower.weight(value))

        return row_over(context, builder, (tape, args[0]), array, weight)

    return types.int32(tape, a), write


def of_variables(kind: types.Array) -> types.Array:
    """The type of an array for variables, in the memory order of an array of numbers."""
    return types.Array(variable_of(kind.dtype), kind.ndim, "F" if kind.layout == "F" else "C")


def with_row_of_each(
    context: Any, builder: Any, kind: types.Array, values: Any, row_at: Callable[[Sequence[Any]], Any], primal: Any = None
) -> Any:
    """An array of variables with these primals, or one for all; the row of each is asked for with its place."""
    source = Elements(context, builder, kind, values)
    made = of_variables(kind)
    out = empty(context, builder, made, source.shape)
    target = Elements(context, builder, made, out._getvalue())
    with source.loop() as place:
        target.store(place, source.parts(place)[0] if primal is None else primal, row_at(place))
    return out._getvalue()


def moved(builder: Any, address: Any, strides: Sequence[Any], place: Sequence[Any]) -> Any:
    """An address, so many steps further."""
    for stride, index in zip(strides, place, strict=True):
        address = cgutils.pointer_add(builder, address, builder.mul(stride, index))
    return address


@intrinsic
def sum_rows(typingctx: Any, tape: Any, a: Any, axis: Any, values: Any) -> Any:
    """Sums along an axis, which are these."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, axis = Elements(context, builder, a, args[1]), args[2]
        axis = builder.select(builder.icmp_signed("<", axis, I64(0)), builder.add(axis, I64(a.ndim)), axis)

        def chosen(items: Sequence[Any], found: Any) -> Any:
            for number, item in enumerate(items):
                found = builder.select(builder.icmp_signed("==", axis, I64(number)), item, found)
            return found

        count, step = (chosen(items, I64(0)) for items in (array.shape, array.strides))
        others = [builder.select(builder.icmp_signed("<", I64(k), axis), *array.strides[k : k + 2]) for k in range(a.ndim - 1)]

        def row_at(place: Any) -> Any:
            first = moved(builder, array.array.data, others, place)
            row = Row(context, builder, tape, args[0], count)
            with cgutils.for_range(builder, count) as loop:
                _, number = array.parts_at(cgutils.pointer_add(builder, first, builder.mul(step, loop.index)))
                with builder.if_then(is_row(builder, number)):
                    row.pair(number, ONE)
            return row.end()

        return with_row_of_each(context, builder, values, args[3], row_at)

    return of_variables(values)(tape, a, types.int64, values), write


@intrinsic
def with_rows(typingctx: Any, values: Any, found: Any) -> Any:
    """An array with these primals and the rows of another one of its shape."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rows = Elements(context, builder, found, args[1])
        return with_row_of_each(context, builder, values, args[0], lambda place: rows.parts(place)[1])

    return of_variables(values)(values, found), write
