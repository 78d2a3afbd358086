"""The columns of a compiled recording, and the code that writes a row.

A row is a number of (row, partial) pairs in two columns; its first pair carries a flag, so a row of two pairs takes 24 bytes
and there is no column of counts. The reverse sweep walks the pairs downwards. Row 0 is the constant's; the rows of the inputs
follow and have no pairs.

Where second derivatives are recorded, a row that has second partials by two others writes triplets as well: its own number, those
of the two rows, and the second partial, in two further columns, in the order of the rows. Half of it stands where the two are one,
for a sweep goes through every triplet in both directions.

Where the direction of a second derivative is known before the function runs, there are no triplets. A row's tangent is computed
when it is written, and a third column has for each pair how its partial changes along the direction.

Compiled code reaches the columns through a header of sixteen words whose address it is given.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from tapegrad.nopython.formulas.edge_pushing import llvm_of
from tapegrad.nopython.formulas.formula import product

__all__ = [
    "CHANGE_COLUMN",
    "GROW",
    "GROW_TRIPLETS",
    "LIMIT",
    "OWNER",
    "PAIRS",
    "PARTIAL_COLUMN",
    "ROWS",
    "ROW_COLUMN",
    "SECOND_COLUMN",
    "TANGENT_COLUMN",
    "TRIPLETS",
    "TRIPLET_COLUMN",
    "TRIPLET_LIMIT",
    "WORDS",
    "push",
]

ROWS, PAIRS, LIMIT, ROW_COLUMN, PARTIAL_COLUMN, GROW = range(6)
TRIPLETS, TRIPLET_LIMIT, TRIPLET_COLUMN, SECOND_COLUMN, GROW_TRIPLETS = range(6, 11)
TANGENT_COLUMN, CHANGE_COLUMN, OWNER = range(11, 14)
WORDS = 16
HEADER = (
    "ROWS", "PAIRS", "ROW_COLUMN", "PARTIAL_COLUMN", "TRIPLETS", "TRIPLET_COLUMN", "SECOND_COLUMN", "CHANGE_COLUMN",
)  # what sweeps read  # fmt: skip
FLAG = -(2**31)

I32, I64, F64 = ir.IntType(32), ir.IntType(64), ir.DoubleType()
ZERO = F64(0.0)


def _word(builder: Any, header: Any, number: int) -> Any:
    return builder.gep(header, [I64(number)])


def header_of(builder: Any, tape: Any) -> Any:
    """The header as a pointer to words."""
    return builder.inttoptr(tape, I64.as_pointer())


def reserve(context: Any, builder: Any, header: Any, count: Any, words: tuple[int, int, int] = (PAIRS, LIMIT, GROW)) -> Any:
    """Where `count` more pairs may be written; raises MemoryError in the user's function if there is no room to be had."""
    used, limit, growth = words
    pairs = builder.load(_word(builder, header, used))
    end = builder.add(pairs, count)

    def is_full() -> Any:
        return builder.icmp_signed(">", end, builder.load(_word(builder, header, limit)))

    with cgutils.if_unlikely(builder, is_full()):
        function, owner = builder.load(_word(builder, header, growth)), builder.load(_word(builder, header, OWNER))
        _call_python(context, builder, function, owner, count)
        with cgutils.if_unlikely(builder, is_full()):
            context.call_conv.return_user_exc(builder, MemoryError, ("the tape of a compiled function cannot grow any further",))
    return pairs, end


def _call_python(context: Any, builder: Any, function: Any, obj: Any, number: Any) -> None:
    """Call a function of Python's at this address, with the object at another one and a number.

    What it raises goes on through the user's function, which cannot catch it.
    """
    api = context.get_python_api(builder)
    lock = api.gil_ensure()
    # Compiled code that catches exceptions may have gone on after an earlier one of Python's.
    with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, api.err_occurred())):
        api.gil_release(lock)
        context.call_conv.return_exc(builder)
    count = api.long_from_longlong(number)
    function, obj = builder.inttoptr(function, api.pyobj), builder.inttoptr(obj, api.pyobj)
    answer = api.call_function_objargs(function, (obj, count))
    api.decref(count)
    failed = cgutils.is_null(builder, answer)
    api.decref(answer)
    api.gil_release(lock)
    with cgutils.if_unlikely(builder, failed):
        context.call_conv.return_exc(builder)


def columns(builder: Any, header: Any) -> Any:
    """Pointers to the two columns."""
    rows = builder.inttoptr(builder.load(_word(builder, header, ROW_COLUMN)), I32.as_pointer())
    partials = builder.inttoptr(builder.load(_word(builder, header, PARTIAL_COLUMN)), F64.as_pointer())
    return rows, partials


def close(builder: Any, header: Any, end: Any) -> Any:
    """Count a row whose pairs end at `end`; its number."""
    place = _word(builder, header, ROWS)
    number = builder.add(builder.load(place), I64(1))
    builder.store(number, place)
    builder.store(end, _word(builder, header, PAIRS))
    return builder.trunc(number, I32)


def unflagged(builder: Any, row: Any) -> Any:
    """A row number that begins no row, whatever it is: what was read beyond the end of an array may be anything."""
    return builder.and_(row, I32(~FLAG))


def bend(context: Any, builder: Any, header: Any, owner: Any, triplets: list[tuple[Any, Any, Any]]) -> None:
    """Write the triplets of a row, those that are zero or lead to constants left out."""
    words = (TRIPLETS, TRIPLET_LIMIT, GROW_TRIPLETS)
    place, _ = reserve(context, builder, header, I64(len(triplets)), words)
    rows = builder.inttoptr(builder.load(_word(builder, header, TRIPLET_COLUMN)), I32.as_pointer())
    seconds = builder.inttoptr(builder.load(_word(builder, header, SECOND_COLUMN)), F64.as_pointer())
    for a, b, second in triplets:
        # Written in any case, and overwritten by the next one if it does not count: that is cheaper than a branch.
        for k, row in enumerate((owner, a, b)):
            builder.store(row, builder.gep(rows, [builder.add(builder.mul(place, I64(3)), I64(k))]))
        builder.store(second, builder.gep(seconds, [place]))
        both = builder.and_(builder.icmp_signed("!=", a, I32(0)), builder.icmp_signed("!=", b, I32(0)))
        counts = builder.and_(both, builder.fcmp_unordered("!=", second, ZERO))
        place = builder.add(place, builder.zext(counts, I64))
    builder.store(place, _word(builder, header, TRIPLETS))


def numbers(builder: Any, header: Any, column: int) -> Any:
    """A pointer to a column of float64."""
    return builder.inttoptr(builder.load(_word(builder, header, column)), F64.as_pointer())


def tangent_of(builder: Any, header: Any, row: Any) -> Any:
    """The tangent of a row that was written; zero for a constant, and for what was read beyond the end of an array."""
    known, place = builder.load(_word(builder, header, ROWS)), builder.zext(row, I64)
    place = builder.select(builder.icmp_unsigned("<=", place, known), place, I64(0))
    return builder.load(builder.gep(numbers(builder, header, TANGENT_COLUMN), [place]))


def set_tangent(builder: Any, header: Any, tangent: Any) -> None:
    """The tangent of the row that is being written."""
    place = builder.add(builder.load(_word(builder, header, ROWS)), I64(1))
    builder.store(tangent, builder.gep(numbers(builder, header, TANGENT_COLUMN), [place]))


def fused(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """``x * y + z``."""
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(F64, [F64] * 3), "llvm.fmuladd.f64")
    return builder.call(function, [x, y, z])


def absolute(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """The same with an absolute-zero product."""
    return builder.fadd(product(builder, x, y), z)


def steer(builder: Any, header: Any, start: Any, pairs: list[tuple[Any, Any]], triplets: list[tuple[Any, Any, Any]]) -> None:
    """Write the tangent of a row, and how its partials change along the direction."""
    tangents = {id(row): tangent_of(builder, header, row) for row, _ in pairs}
    column = numbers(builder, header, CHANGE_COLUMN)

    def write(multiply_and_add: Any) -> Any:
        """Write all of it; the sum of what was written, minus itself."""
        changes, tangent = dict.fromkeys(tangents, ZERO), ZERO
        for a, b, second in triplets:
            for row, other in ((a, b), (b, a)):
                changes[id(row)] = multiply_and_add(builder, second, tangents[id(other)], changes[id(row)])
        # Partials that are one come last: a sum that goes on from row to row waits for an addition only.
        for row, partial in sorted(pairs, key=lambda pair: isinstance(pair[1], int)):
            if isinstance(partial, int):
                tangent = (builder.fadd if partial == 1 else builder.fsub)(tangent, tangents[id(row)])
            else:
                tangent = multiply_and_add(builder, partial, tangents[id(row)], tangent)
        set_tangent(builder, header, tangent)
        total = builder.fsub(tangent, tangent)
        for k, (row, _) in enumerate(pairs):
            change = changes[id(row)]
            builder.store(change, builder.gep(column, [builder.add(start, I64(k))]))
            if change is not ZERO:
                total = builder.fadd(total, builder.fsub(change, change))
        return total

    with cgutils.if_unlikely(builder, builder.fcmp_unordered("!=", write(fused), ZERO)):
        write(absolute)


def push(
    context: Any,
    builder: Any,
    tape: Any,
    pairs: list[tuple[Any, Any]],
    triplets: list[tuple[Any, Any, Any]],
    directed: bool = False,
) -> Any:
    """Write a row, unless all it depends on is constant; its number, or 0. A partial is 1 or -1 if it is that always."""
    if directed:  # what a row depends on to second order only has a pair as well
        rows_of_pairs = {id(row) for row, _ in pairs}
        bent = {id(row): row for a, b, _ in triplets for row in (a, b)}
        pairs = pairs + [(row, ZERO) for key, row in bent.items() if key not in rows_of_pairs]
    some = pairs[0][0]
    for row, _ in pairs[1:]:
        some = builder.or_(some, row)
    before = builder.block
    with cgutils.if_likely(builder, builder.icmp_signed("!=", some, I32(0))):
        header = header_of(builder, tape)
        start, end = reserve(context, builder, header, I64(len(pairs)))
        rows, partials = columns(builder, header)
        for k, (row, partial) in enumerate(pairs):
            place = builder.add(start, I64(k))
            builder.store(builder.or_(row, I32(FLAG)) if k == 0 else unflagged(builder, row), builder.gep(rows, [place]))
            builder.store(llvm_of(partial), builder.gep(partials, [place]))
        if directed:
            steer(builder, header, start, pairs, triplets)
        number = close(builder, header, end)
        if triplets and not directed:
            bend(context, builder, header, number, triplets)
        after = builder.block
    result = builder.phi(I32)
    result.add_incoming(I32(0), before)
    result.add_incoming(number, after)
    return result
