"""The columns of a compiled recording, and the code that writes a row.

A row is a number of (row, partial) pairs in two columns; its first pair carries a flag, so a row of two pairs takes 24 bytes
and there is no column of counts. The reverse sweep walks the pairs downwards. Row 0 is the constant's; the rows of the inputs
follow and have no pairs.

Compiled code reaches the columns through a header of eight words whose address it is given.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

__all__ = ["GROW", "LIMIT", "PAIRS", "PARTIAL_COLUMN", "ROWS", "ROW_COLUMN", "WORDS", "push"]

ROWS, PAIRS, LIMIT, ROW_COLUMN, PARTIAL_COLUMN, GROW = range(6)
WORDS = 8
FLAG = -(2**31)

I32, I64, F64 = ir.IntType(32), ir.IntType(64), ir.DoubleType()
GROWTH = ir.FunctionType(I64, [I64, I64]).as_pointer()


def _word(builder: Any, header: Any, number: int) -> Any:
    return builder.gep(header, [I64(number)])


def header_of(builder: Any, tape: Any) -> Any:
    """The header as a pointer to words."""
    return builder.inttoptr(tape, I64.as_pointer())


def reserve(context: Any, builder: Any, header: Any, count: Any) -> Any:
    """Where `count` more pairs may be written; raises MemoryError in the user's function if there is no room to be had."""
    pairs = builder.load(_word(builder, header, PAIRS))
    end = builder.add(pairs, count)
    full = builder.icmp_signed(">", end, builder.load(_word(builder, header, LIMIT)))
    with cgutils.if_unlikely(builder, full):
        grow = builder.inttoptr(builder.load(_word(builder, header, GROW)), GROWTH)
        failed = builder.call(grow, [builder.ptrtoint(header, I64), count])
        with cgutils.if_unlikely(builder, builder.icmp_signed("!=", failed, I64(0))):
            context.call_conv.return_user_exc(builder, MemoryError, ("the tape of a compiled function cannot grow any further",))
    return pairs, end


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


def push(context: Any, builder: Any, tape: Any, pairs: list[tuple[Any, Any]]) -> Any:
    """Write a row, unless all it depends on is constant; its number, or 0."""
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
            builder.store(partial, builder.gep(partials, [place]))
        number = close(builder, header, end)
        after = builder.block
    result = builder.phi(I32)
    result.add_incoming(I32(0), before)
    result.add_incoming(number, after)
    return result
