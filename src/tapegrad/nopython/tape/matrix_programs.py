"""Programs of operations on matrices of variables, run by kernels of the engine's library; where there is none they are compiled.

Derivatives of decompositions are dozens of products, sums and quotients of matrices. Where Numba compiled them for each function
that has one, that took two to four times as long as the function. Here they are a list of numbers, and what these stand for was
compiled before, once for each kind of tape.

A matrix is variables in C order, constants being variables without a row, and a vector is a matrix of one row. Each operation gives
one matrix. A kernel never allocates nor raises: it says what it needs, and is called again where it has that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.extending import intrinsic

from tapegrad.compilation.jit import Lazy, inline, kernel
from tapegrad.compilation.memory_types import WORDS, Column, at_address, struct
from tapegrad.kernels.library import sources_digest
from tapegrad.nopython.tape import columns, matrix_rows, row_writing
from tapegrad.nopython.tape.sweep_entries import PREFIX
from tapegrad.nopython.types import curved_tape
from tapegrad.nopython.types.curved_tape import CurvedTape, DirectedTape, PlainTape
from tapegrad.tape.tape import TAPE

__all__ = [
    "CARRIED", "COPIED", "CURVED", "DIAGONAL", "DIRECTED", "DONE", "ELEMENTWISE", "FRAME_WORDS", "HALF_WAY", "IDENTITY",
    "INVERSE_OF_TRIANGLE", "LIFTED", "MATRIX_WORDS", "MEMORY", "NUMBER", "OFF_DIAGONAL", "OPERAND_WORDS", "PLAIN", "PRODUCT",
    "RESIDUAL", "ROOM", "STEP", "TRANSPOSED", "TRIANGLE", "WITH_ROWS", "WRITTEN", "Frame", "Operation",
]  # fmt: skip

# Of what is given: its numbers as constants, what it changes by (zeros, with its rows), itself; numbers with the rows of a matrix;
# and the end, where numbers and the rows of a matrix are written to an array.
LIFTED, STEP, COPIED, WITH_ROWS, WRITTEN = range(5)
NUMBER, IDENTITY, TRANSPOSED, OFF_DIAGONAL, DIAGONAL, TRIANGLE, INVERSE_OF_TRIANGLE, HALF_WAY = range(5, 13)
PRODUCT, CARRIED, RESIDUAL = range(13, 16)
ELEMENTWISE = {"+": 16, "-": 17, "*": 18, "/": 19}

DONE, MEMORY, ROOM = range(3)  # what a kernel says: it is done, or needs memory for matrices, or room on the tape


class Operation(NamedTuple):
    """An operation of a program, eight words.

    `a`, `b` and `c` are numbers of earlier operations, whose matrices it takes, or of what is given. For each product that an
    element is made of, it writes so many `pairs` and `seconds` at most; `straight` says that nobody asks for the latter.
    """

    op: int
    a: int = 0
    b: int = 0
    c: int = 0
    pairs: int = 0
    seconds: int = 0
    straight: int = 0
    option: int = 0  # of a triangle: 1 for the upper one, and 2 without its diagonal; of a number its bits


def _struct(name: str, fields: str, step: int = 0, **kinds: Any) -> Any:
    return struct(name, {field: word for word, field in enumerate(fields.split())}, step, **kinds)


Element = _struct("MatrixElement", "primal row", 2, primal=types.float64, row=types.int32)
Given = _struct("GivenMatrix", "data n m down right", 5)  # with its steps in bytes
Matrix = _struct("RowMatrix", "data n m", 3, data=Column(Element))
Step = _struct("MatrixOperation", " ".join(Operation._fields), 8)
Frame: Any = _struct(
    "MatrixFrame", "header program count next memory pairs triplets bytes given matrices stamp",
    header=WORDS, program=Column(Step), given=Column(Given), matrices=Column(Matrix),
)  # fmt: skip
FRAME_WORDS, OPERAND_WORDS, MATRIX_WORDS = 11, 5, 3

I64 = ir.IntType(64)
BYTES = 16  # of a variable
PAIRS, LIMIT, TRIPLETS, TRIPLET_LIMIT = columns.PAIRS, columns.LIMIT, columns.TRIPLETS, columns.TRIPLET_LIMIT
PLUS, MINUS, TIMES, OVER = ELEMENTWISE.values()
_element, _elements = at_address(Element), at_address(Column(Element))
_add, _subtract, _multiply, _divide = map(matrix_rows.elementwise_at, ("add", "sub", "mul", "div"))

# Compiled code takes fewer arguments than their definitions have.
_product, _carried, _residual = (getattr(matrix_rows, f"{name}_at") for name in ("product", "carried", "residual"))
_start_row, _put, _end_row = (getattr(row_writing, name) for name in ("start_row", "put", "end_row"))
_straight = getattr(curved_tape, "straight")  # noqa: B009


@inline
def wide(a, b):  # type: ignore[no-untyped-def]
    """A dimension of what is made elementwise of two matrices, of which one may be repeated."""
    return b if a == 1 else a


@inline
def measure(frame):  # type: ignore[no-untyped-def]
    """Give all matrices their sizes, and their places from the beginning of the memory that is wanted."""
    total = 0
    for k in range(frame.count):
        step, matrix = frame.program[k], frame.matrices[k]
        op, n, m = step.op, 1, 1
        if op <= WRITTEN:
            given = frame.given[step.a]
            n, m = given.n, given.m
        elif op != NUMBER:
            a = frame.matrices[step.a]
            n, m = a.n, a.m
            if op == TRANSPOSED:
                n, m = m, n
            elif op == IDENTITY:
                n = m
            elif op == DIAGONAL:
                n, m = 1, n
            elif op >= PRODUCT:
                b = frame.matrices[step.b]
                if op <= RESIDUAL:
                    m = b.m
                else:
                    n, m = wide(n, b.n), wide(m, b.m)
        matrix.n, matrix.m = n, m
        matrix.data = _elements(total)
        if op != WRITTEN:
            total += BYTES * n * m
    frame.bytes = total + BYTES


@inline
def settle(frame):  # type: ignore[no-untyped-def]
    """Give all matrices their places in the memory that was wanted."""
    for k in range(frame.count):
        matrix = frame.matrices[k]
        matrix.data = _elements(matrix.data + frame.memory)


@inline
def given_to(given, op, out):  # type: ignore[no-untyped-def]
    """A copy of what is given, or of its numbers or rows alone."""
    for i in range(out.n):
        for j in range(out.m):
            source, target = _element(given.data + i * given.down + j * given.right), out.data[i * out.m + j]
            target.primal = 0.0 if op == STEP else source.primal
            target.row = 0 if op == LIFTED else source.row


@inline
def joined(values, moved, i, j, target):  # type: ignore[no-untyped-def]
    """An element with the number of one matrix and the row of another one, which may have fewer rows and columns."""
    target.primal = _element(values.data + i * values.down + j * values.right).primal
    target.row = moved.data[i * moved.m + j].row if i < moved.n and j < moved.m else 0


@inline
def with_rows_to(values, moved, out):  # type: ignore[no-untyped-def]
    """A matrix with these numbers and the rows of another one."""
    for i in range(out.n):
        for j in range(out.m):
            joined(values, moved, i, j, out.data[i * out.m + j])


@inline
def written_to(values, moved, out):  # type: ignore[no-untyped-def]
    """The same in an array of variables."""
    for i in range(out.n):
        for j in range(out.m):
            joined(values, moved, i, j, _element(out.data + i * out.down + j * out.right))


@inline
def arranged_to(a, op, option, out):  # type: ignore[no-untyped-def]
    """What a matrix is made of without arithmetic."""
    upper, strict = option % 2 == 1, option >= 2
    for i in range(out.n):
        for j in range(out.m):
            target = out.data[i * out.m + j]
            if op == IDENTITY:
                target.primal, target.row = 1.0 if i == j else 0.0, 0
                continue
            source = a.data[j * a.m + i if op == TRANSPOSED else j * a.m + j if op == DIAGONAL else i * a.m + j]
            beside = (j < i if upper else j > i) or (i == j and strict) if op == TRIANGLE else op == OFF_DIAGONAL and i == j
            target.primal = 0.0 if beside else source.primal
            target.row = 0 if beside else source.row


@inline
def inverse_to(a, upper, out):  # type: ignore[no-untyped-def]
    """The inverse of a triangular matrix, as constants; not finite where there is none."""
    n = out.n
    for k in range(n * n):
        out.data[k].primal, out.data[k].row = 0.0, 0
    for j in range(n):
        for place in range(n):
            i = n - 1 - place if upper else place
            rest = 1.0 if i == j else 0.0
            for k in range(i + 1 if upper else 0, n if upper else i):
                rest -= a.data[i * n + k].primal * out.data[k * n + j].primal
            out.data[i * n + j].primal = rest / a.data[i * n + i].primal


@inline
def half_way_to(tape, a, moved, out):  # type: ignore[no-untyped-def]
    """A matrix that moves half as far as says another one."""
    for k in range(out.n * out.m):
        source = moved.data[k].row
        place = _start_row(tape, 1, 0)
        end = place
        if source != 0:
            _put(tape, place, np.int32(source), 0.5)
            end += 1
        out.data[k].primal, out.data[k].row = a.data[k].primal, _end_row(tape, place, end)


@inline
def product_to(tape, a, b, out):  # type: ignore[no-untyped-def]
    """A product of matrices."""
    for k in range(out.n * out.m):
        out.data[k].primal = 0.0
    for i in range(a.n):
        for k in range(a.m):
            for j in range(b.m):
                out.data[i * out.m + j].primal += a.data[i * a.m + k].primal * b.data[k * b.m + j].primal
    _product(tape, a.data, b.data, out.data, a.n, a.m, b.m)


@inline
def elementwise_to(tape, op, a, b, out):  # type: ignore[no-untyped-def]
    """Sum, difference, product or quotient of the elements of two matrices, of which one may have one row or column only."""
    for i in range(out.n):
        for j in range(out.m):
            x = address(a, i if a.n > 1 else 0, j if a.m > 1 else 0)
            y = address(b, i if b.n > 1 else 0, j if b.m > 1 else 0)
            z = address(out, i, j)
            if op == PLUS:
                _add(tape, x, y, z)
            elif op == MINUS:
                _subtract(tape, x, y, z)
            elif op == TIMES:
                _multiply(tape, x, y, z)
            else:
                _divide(tape, x, y, z)


@inline
def address(a, i, j):  # type: ignore[no-untyped-def]
    """Where an element is."""
    return a.data + BYTES * (i * a.m + j)


@inline
def perform(tape, frame, step, out):  # type: ignore[no-untyped-def]
    """Do an operation for which there is room."""
    op, matrices = step.op, frame.matrices
    if op <= COPIED:
        given_to(frame.given[step.a], op, out)
    elif op == WITH_ROWS:
        with_rows_to(frame.given[step.a], matrices[step.b], out)
    elif op == WRITTEN:
        written_to(frame.given[step.a], matrices[step.b], frame.given[step.c])
    elif op == NUMBER:
        out.data[0].primal, out.data[0].row = number_of(step), 0
    elif op <= TRIANGLE:
        arranged_to(matrices[step.a], op, step.option, out)
    elif op == INVERSE_OF_TRIANGLE:
        inverse_to(matrices[step.a], step.option == 1, out)
    elif op == HALF_WAY:
        half_way_to(tape, matrices[step.a], matrices[step.b], out)
    elif op <= RESIDUAL:
        a, b = matrices[step.a], matrices[step.b]
        if op == PRODUCT:
            product_to(tape, a, b, out)
        elif op == CARRIED:
            _carried(tape, a.data, b.data, out.data, a.n, a.m, b.m)
        else:
            _residual(tape, a.data, b.data, out.data, a.n, a.m, b.m, matrices[step.c].data if step.c >= 0 else _elements(0))
    else:
        elementwise_to(tape, op, matrices[step.a], matrices[step.b], out)


@inline
def number_of(step):  # type: ignore[no-untyped-def]
    """The number whose bits an operation has."""
    return _element(_at_option(step)).primal


@intrinsic
def _option_of(typingctx: Any, step: Any) -> Any:
    """Where the last word of an operation is."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.add(args[0], I64(8 * Operation._fields.index("option")))

    return types.int64(step), write


@inline
def fits(frame, step, out, along, bends):  # type: ignore[no-untyped-def]
    """Whether there is room for the rows of an operation; the frame gets how much it needs."""
    if step.pairs == 0:
        return True
    op, header = step.op, frame.header
    inner = frame.matrices[step.a].m if PRODUCT <= op <= RESIDUAL else 1
    count, seconds = out.n * out.m, step.seconds * inner
    frame.pairs = count * (step.pairs * inner + 1 + along * seconds)
    frame.triplets = bends * count * seconds
    if header[PAIRS] + frame.pairs > header[LIMIT]:
        return False
    return header[TRIPLETS] + frame.triplets <= header[TRIPLET_LIMIT]


_at_option: Any = _option_of
KINDS: tuple[Any, ...] = (PlainTape(), DirectedTape(has_room=True), CurvedTape(has_room=True))


@intrinsic(prefer_literal=True)
def _tape_of_kind(typingctx: Any, header: Any, which: Any) -> Any:
    """The tape with a header, as one of the kinds that have room."""
    return KINDS[which.literal_value](types.int64, which), lambda context, builder, sig, args: args[0]


as_tape: Any = _tape_of_kind


def _text(name: str, which: int, stamp: int) -> Callable[..., Any]:
    """The kernel for a kind of tape. What is kept of it on disk is found by its closure, so by the sources that it is made from."""
    along, bends = 2 * (which == 1), int(which == 2)

    def run(frame):  # type: ignore[no-untyped-def]
        frame.stamp = stamp
        if frame.memory == 0:
            measure(frame)
            return MEMORY
        if frame.next == 0 and frame.bytes != 0:
            settle(frame)
            frame.bytes = 0
        tape = as_tape(frame.header, which)
        while frame.next < frame.count:
            step, out = frame.program[frame.next], frame.matrices[frame.next]
            if not fits(frame, step, out, along, bends):
                return ROOM
            if step.straight != 0:
                perform(_straight(tape), frame, step, out)
            else:
                perform(tape, frame, step, out)
            frame.next += 1
        return DONE

    run.__name__ = run.__qualname__ = name
    return run


SIGNATURE = "int64(MatrixFrame)"


def _kernel(name: str, which: int) -> Lazy:
    def build() -> Any:
        TAPE.load()
        built = getattr(TAPE.kernels, PREFIX + name, None)
        if built is None:
            built = kernel(SIGNATURE)(_text(name, which, int(sources_digest()[:15], 16)))
        return built.get()

    return Lazy(build, _text(name, which, 0), SIGNATURE, is_entry=False)


PLAIN, DIRECTED, CURVED = (_kernel(f"matrices_{name}", which) for which, name in enumerate(("plain", "directed", "curved")))
