"""Rows of products of matrices, written by instructions in place: over arrays, or over matrices that stand somewhere in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic
from numba.np.arrayobj import get_itemsize, make_array, populate_array

from tapegrad.nopython.formulas.edge_pushing import llvm_of
from tapegrad.nopython.formulas.formula import BY_NAME, Writer, pairs_of, partial, second_text
from tapegrad.nopython.tape.array_rows import Elements, Pair, Row, is_row, moved, of_variables, with_row_of_each
from tapegrad.nopython.tape.row_instructions import push
from tapegrad.nopython.types.curved_tape import CurvedTape, DirectedTape, has_room
from tapegrad.nopython.types.variable import NO_ROW, variable
from tapegrad.nopython.types.variable_arrays import empty

__all__ = [
    "carried_at", "carried_rows", "elementwise_at", "product_at", "product_row", "product_rows", "residual_at", "residual_rows",
]  # fmt: skip

I64, F64 = ir.IntType(64), ir.DoubleType()
ZERO, ONE = F64(0.0), F64(1.0)
Place = Sequence[Any]


class Vector:
    """A row or a column of a matrix, or a vector."""

    def __init__(self, elements: Elements, axis: int, place: Place = ()) -> None:
        self.elements, self.step, self.count = elements, elements.strides[axis], elements.shape[axis]
        others = [stride for k, stride in enumerate(elements.strides) if k != axis % len(elements.strides)]
        self.first = moved(elements.builder, elements.array.data, others, place)

    def parts(self, number: Any) -> Pair:
        """Primal and row of an element."""
        builder = self.elements.builder
        return self.elements.parts_at(cgutils.pointer_add(builder, self.first, builder.mul(self.step, number)))


class Tape:
    """A tape and its type, in the code that is being written, and the rows of products on it."""

    def __init__(self, context: Any, builder: Any, kind: types.Type, tape: Any) -> None:
        self.context, self.builder, self.kind, self.tape = context, builder, kind, tape

    def row(self, count: Any, seconds: Any) -> Row:
        return Row(self.context, self.builder, self.kind, self.tape, count, seconds)

    def product(self, a: Vector, b: Vector) -> Any:
        """The row of an inner product."""
        builder = self.builder
        row = self.row(builder.mul(I64(2), a.count), a.count)
        with cgutils.for_range(builder, a.count) as loop:
            (x, row_of_x), (y, row_of_y) = a.parts(loop.index), b.parts(loop.index)
            for number, other in ((row_of_x, y), (row_of_y, x)):
                if number is not NO_ROW:
                    with builder.if_then(is_row(builder, number)):
                        row.pair(number, other)
            if isinstance(self.kind, CurvedTape) and row_of_x is not NO_ROW and row_of_y is not NO_ROW:
                with builder.if_then(builder.and_(is_row(builder, row_of_x), is_row(builder, row_of_y))):
                    row.second(row_of_x, row_of_y, ONE)
        return row.end()

    def residual(self, vector: Vector, column: Vector, given: Any) -> Any:
        """The row of a number minus an inner product, where the number and the first vector are tangents."""
        builder = self.builder
        row = self.row(builder.add(vector.count, I64(1)), vector.count)
        with cgutils.for_range(builder, vector.count) as loop:
            _, number = vector.parts(loop.index)
            if number is not NO_ROW:
                with builder.if_then(is_row(builder, number)):
                    value, other = column.parts(loop.index)
                    row.pair(number, builder.fneg(value))
                    self._second(row, number, other, -1.0)
        if given is not NO_ROW:
            with builder.if_then(is_row(builder, given)):
                row.pair(given, ONE)
        return row.end()

    def carried(self, vector: Vector, column: Vector) -> Any:
        """The row of an inner product, where the second vector is a tangent."""
        builder = self.builder
        row = self.row(vector.count, vector.count)
        with cgutils.for_range(builder, vector.count) as loop:
            _, number = column.parts(loop.index)
            with builder.if_then(is_row(builder, number)):
                value, other = vector.parts(loop.index)
                row.pair(number, value)
                self._second(row, number, other, 1.0)
        return row.end()

    def _second(self, row: Row, a: Any, b: Any, second: float) -> None:
        """A second partial of two rows, where such are recorded and there are both."""
        if isinstance(row.kind, CurvedTape) and b is not NO_ROW:
            with self.builder.if_then(is_row(self.builder, b)):
                row.second(a, b, F64(second))


def _lines(left: Elements, right: Elements, place: Place) -> tuple[Vector, Vector]:
    """The vectors of which an element of a product of matrices, or of a matrix and a vector, is the inner product."""
    count = len(left.shape) - 1
    return Vector(left, -1, place[:count]), Vector(right, 0, place[count:])


@intrinsic
def product_row(typingctx: Any, tape: Any, a: Any, b: Any) -> Any:
    """The row of the inner product of two vectors."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vectors = [Vector(Elements(context, builder, kind, arg), 0) for kind, arg in zip((a, b), args[1:], strict=True)]
        return Tape(context, builder, tape, args[0]).product(*vectors)

    return types.int32(tape, a, b), write


@intrinsic
def product_rows(typingctx: Any, tape: Any, a: Any, b: Any, values: Any) -> Any:
    """A product of matrices, or of a matrix and a vector, with these primals."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        left, right = Elements(context, builder, a, args[1]), Elements(context, builder, b, args[2])
        on = Tape(context, builder, tape, args[0])
        return with_row_of_each(context, builder, values, args[3], lambda place: on.product(*_lines(left, right, place)))

    return of_variables(values)(tape, a, b, values), write


@intrinsic
def residual_rows(typingctx: Any, tape: Any, a: Any, x: Any, b: Any) -> Any:
    """``b - a @ x`` where a and b are tangents, so that all of it is zero; b may be a number that stands for a constant array."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        left, right, given = (Elements(context, builder, kind, arg) for kind, arg in zip(sig.args[1:], args[1:], strict=True))
        on = Tape(context, builder, tape, args[0])

        def row_at(place: Place) -> Any:
            return on.residual(*_lines(left, right, place), given.parts(place)[1])

        return _zeros_with_rows(context, builder, [left.shape[0], *right.shape[1:]], row_at)

    return types.Array(variable, x.ndim, "C")(tape, a, x, b), write


@intrinsic
def carried_rows(typingctx: Any, tape: Any, x: Any, a: Any) -> Any:
    """``x @ a`` where a is a tangent, so that all of it is zero."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        left, right = (Elements(context, builder, kind, arg) for kind, arg in zip((x, a), args[1:], strict=True))
        on = Tape(context, builder, tape, args[0])
        shape = [left.shape[0], *right.shape[1:]]
        return _zeros_with_rows(context, builder, shape, lambda place: on.carried(*_lines(left, right, place)))

    return types.Array(variable, a.ndim, "C")(tape, x, a), write


def _zeros_with_rows(context: Any, builder: Any, shape: Sequence[Any], row_at: Callable[[Place], Any]) -> Any:
    """An array of variables that are zero; the row of each is asked for with its place."""
    made = types.Array(variable, len(shape), "C")
    out = empty(context, builder, made, shape)
    target = Elements(context, builder, made, out._getvalue())
    with target.loop() as place:
        target.store(place, ZERO, row_at(place))
    return out._getvalue()


def _matrix_at(context: Any, builder: Any, address: Any, n: Any, m: Any) -> Elements:
    """A matrix of variables in C order, at an address."""
    kind = types.Array(variable, 2, "C")
    made, size = make_array(kind)(context, builder), I64(get_itemsize(context, kind))
    data = builder.inttoptr(address, context.get_data_type(variable).as_pointer())
    shape, strides = (cgutils.pack_array(builder, pair, ty=I64) for pair in ((n, m), (builder.mul(m, size), size)))
    populate_array(made, data, shape, strides, size, None)
    return Elements(context, builder, kind, made._getvalue())


@intrinsic
def product_at(typingctx: Any, tape: Any, a: Any, b: Any, out: Any, n: Any, inner: Any, m: Any) -> Any:
    """The rows of a product of matrices at these addresses, of n, inner and m rows and columns; its primals are there."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        left, right, target = _operands(context, builder, args)
        on = Tape(context, builder, tape, args[0])
        with target.loop() as place:
            target.store(place, target.parts(place)[0], on.product(*_lines(left, right, place)))
        return context.get_dummy_value()

    return types.none(tape, *[types.int64] * 6), write


@intrinsic
def carried_at(typingctx: Any, tape: Any, x: Any, a: Any, out: Any, n: Any, inner: Any, m: Any) -> Any:
    """The same where the second matrix is a tangent, so that all of the product is zero."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        left, right, target = _operands(context, builder, args)
        on = Tape(context, builder, tape, args[0])
        with target.loop() as place:
            target.store(place, ZERO, on.carried(*_lines(left, right, place)))
        return context.get_dummy_value()

    return types.none(tape, *[types.int64] * 6), write


@intrinsic
def residual_at(typingctx: Any, tape: Any, a: Any, x: Any, out: Any, n: Any, inner: Any, m: Any, b: Any) -> Any:
    """``b - a @ x`` where a and b are tangents, so that all of it is zero; b may be 0, where there is none."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        left, right, target = _operands(context, builder, args)
        on, given = Tape(context, builder, tape, args[0]), _matrix_at(context, builder, args[7], args[4], args[6])
        found = cgutils.alloca_once(builder, NO_ROW.type)
        with target.loop() as place:
            builder.store(NO_ROW, found)
            with builder.if_then(cgutils.is_not_null(builder, args[7])):
                builder.store(given.parts(place)[1], found)
            target.store(place, ZERO, on.residual(*_lines(left, right, place), builder.load(found)))
        return context.get_dummy_value()

    return types.none(tape, *[types.int64] * 7), write


def _operands(context: Any, builder: Any, args: Any) -> list[Elements]:
    """Two matrices and their product, from the arguments of the functions above."""
    _, a, b, out, n, inner, m, *_ = args
    return [_matrix_at(context, builder, *given) for given in ((a, n, inner), (b, inner, m), (out, n, m))]


def elementwise_at(name: str) -> Any:
    """What writes an element at an address that a rule of the table makes of the elements at two others."""
    rule = BY_NAME[name]

    @intrinsic
    def made(typingctx: Any, tape: Any, x: Any, y: Any, out: Any) -> Any:
        def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            x, y, z = (_matrix_at(context, builder, address, I64(1), I64(1)) for address in args[1:])
            first = [I64(0), I64(0)]
            (primal_x, row_x), (primal_y, row_y) = x.parts(first), y.parts(first)
            writer = Writer(context, builder, {"x": primal_x, "y": primal_y})
            writer.values["z"] = primal = partial(writer, rule.primal)
            rows = (row_x, row_y)
            pairs = [(row, partial(writer, text)) for row, text in zip(rows, rule.partials, strict=True)]
            triplets = []
            for i, j in pairs_of(rule) if isinstance(tape, CurvedTape) else ():
                second = partial(writer, second_text(rule, i, j))
                if second is not None:
                    half = llvm_of(second) if i != j else builder.fmul(F64(0.5), llvm_of(second))
                    triplets.append((rows[i], rows[j], half))
            directed = isinstance(tape, DirectedTape)
            row = push(context, builder, args[0], pairs, triplets, directed, has_room=has_room(tape))
            z.store(first, primal, row)
            return context.get_dummy_value()

        return types.none(tape, types.int64, types.int64, types.int64), write

    return made
