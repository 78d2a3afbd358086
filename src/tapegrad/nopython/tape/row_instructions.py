"""The code that writes a row into the columns of a compiled recording.

A statement's row is written in place: a loop of some statements, where time is spent, has no call in it. In a body of
many statements each row is written by a call: such a body is compiled in half of the time, and a statement of it takes some
nanoseconds more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from tapegrad.nopython.formulas.edge_pushing import llvm_of
from tapegrad.nopython.formulas.formula import product
from tapegrad.nopython.tape.columns import (
    CHANGE_COLUMN,
    FLAG,
    GROW,
    GROW_TRIPLETS,
    LIMIT,
    OWNER,
    PAIRS,
    PARTIAL_COLUMN,
    ROW_COLUMN,
    ROWS,
    SECOND_COLUMN,
    TANGENT_COLUMN,
    TRIPLET_COLUMN,
    TRIPLET_LIMIT,
    TRIPLETS,
    fused,
)

__all__ = [
    "OF_PAIRS",
    "OF_TRIPLETS",
    "bend",
    "call_python",
    "close",
    "columns",
    "excinfo_of",
    "growth",
    "header_of",
    "leave",
    "numbers",
    "own_function",
    "push",
    "reserve",
    "set_tangent",
    "tangent_of",
    "unflagged",
    "word_at",
]

Pair = tuple[Any, Any]  # a row, and the partial by it
Triplet = tuple[Any, Any, Any]  # two rows, and the second partial by both
Row = tuple[list[Pair], list[Triplet]]
I8, I32, I64, F64 = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.DoubleType()
ZERO = F64(0.0)
OF_PAIRS, OF_TRIPLETS = (PAIRS, LIMIT, GROW), (TRIPLETS, TRIPLET_LIMIT, GROW_TRIPLETS)  # what is used, had, and makes room
FACTORS = {None: "x", 1: "plus", -1: "minus"}  # in names of functions


def word_at(builder: Any, header: Any, number: int) -> Any:
    return builder.gep(header, [I64(number)])


def header_of(builder: Any, tape: Any) -> Any:
    """The header as a pointer to words."""
    return builder.inttoptr(tape, I64.as_pointer())


def reserve(
    context: Any,
    builder: Any,
    header: Any,
    count: Any,
    words: tuple[int, int, int] = OF_PAIRS,
    has_room: bool = False,
) -> Any:
    """Where `count` more pairs may be written; raises MemoryError in the user's function if there is no room to be had.

    Who calls a function that has room has made it before, by `growth`.
    """
    used, limit, _ = words
    pairs = builder.load(word_at(builder, header, used))
    end = builder.add(pairs, count)
    if has_room:
        return pairs, end

    with cgutils.if_unlikely(builder, builder.icmp_signed(">", end, builder.load(word_at(builder, header, limit)))):
        arguments = I8.as_pointer()(None), excinfo_of(context, builder), header, count
        status = builder.call(growth(context, builder.module, words), arguments)
        with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, status)):
            leave(builder, status)
    return pairs, end


def excinfo_of(context: Any, builder: Any) -> Any:
    """Where the function that is being written says what it raises."""
    return context.call_conv._get_excinfo_argument(builder.function)


def leave(builder: Any, status: Any) -> None:
    """Hand on what a function that was called raised; a user's function catches what is Numba's, and not what is Python's."""
    around = getattr(builder, "_in_try_block", None)
    if around is not None:
        with cgutils.if_unlikely(builder, builder.icmp_signed("<", status, I32(0))):
            builder.ret(status)
        builder.branch(around["target"])
    else:
        builder.ret(status)


def growth(context: Any, module: Any, words: tuple[int, int, int]) -> Any:
    """A function that makes room: inside of the user's it was half of what a statement gives the optimiser."""
    used, limit, grower = words
    name = f"tapegrad_growth_{grower}"
    known = module.globals.get(name)
    if known is not None:
        return known
    builder = own_function(context, module, name, [I8, I64.as_pointer(), I64])
    builder.function.attributes.add("cold")
    _, _, header, count = builder.function.args
    grow, owner = builder.load(word_at(builder, header, grower)), builder.load(word_at(builder, header, OWNER))
    with builder.if_else(cgutils.is_null(builder, owner)) as (native, python):
        with native:  # a tape that Python does not know
            function = ir.FunctionType(ir.VoidType(), [I64, I64]).as_pointer()
            builder.call(builder.inttoptr(grow, function), [builder.ptrtoint(header, I64), count])
        with python:
            call_python(context, builder, grow, owner, count)
    end = builder.add(builder.load(word_at(builder, header, used)), count)
    with cgutils.if_unlikely(builder, builder.icmp_signed(">", end, builder.load(word_at(builder, header, limit)))):
        context.call_conv.return_user_exc(builder, MemoryError, ("the tape of a compiled function cannot grow any further",))
    builder.ret(I32(0))
    return builder.function


def own_function(context: Any, module: Any, name: str, kinds: list[Any]) -> Any:
    """A builder for a function that stands once in a recording, and has the arguments and results of those that Numba compiles.

    The first type is that of the result.
    """
    excinfo = context.call_conv.get_function_type(types.none, ()).args[1]
    function = ir.Function(module, ir.FunctionType(I32, [kinds[0].as_pointer(), excinfo, *kinds[1:]]), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    return ir.IRBuilder(function.append_basic_block("entry"))


def call_python(context: Any, builder: Any, function: Any, obj: Any, number: Any) -> None:
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
    rows = builder.inttoptr(builder.load(word_at(builder, header, ROW_COLUMN)), I32.as_pointer())
    partials = builder.inttoptr(builder.load(word_at(builder, header, PARTIAL_COLUMN)), F64.as_pointer())
    return rows, partials


def close(builder: Any, header: Any, end: Any) -> Any:
    """Count a row whose pairs end at `end`; its number."""
    place = word_at(builder, header, ROWS)
    number = builder.add(builder.load(place), I64(1))
    builder.store(number, place)
    builder.store(end, word_at(builder, header, PAIRS))
    return builder.trunc(number, I32)


def unflagged(builder: Any, row: Any) -> Any:
    """A row number that begins no row, whatever it is: what was read beyond the end of an array may be anything."""
    return builder.and_(row, I32(~FLAG))


def bend(context: Any, builder: Any, header: Any, owner: Any, triplets: list[tuple[Any, Any, Any]], has_room: bool = False) -> None:
    """Write the triplets of a row, those that are zero or lead to constants left out."""
    place, _ = reserve(context, builder, header, I64(len(triplets)), OF_TRIPLETS, has_room)
    rows = builder.inttoptr(builder.load(word_at(builder, header, TRIPLET_COLUMN)), I32.as_pointer())
    seconds = builder.inttoptr(builder.load(word_at(builder, header, SECOND_COLUMN)), F64.as_pointer())
    recorded: dict[int, Any] = {}  # by rows, whether they are those of variables

    def is_recorded(row: Any) -> Any:
        if id(row) not in recorded:
            recorded[id(row)] = builder.icmp_signed("!=", row, I32(0))
        return recorded[id(row)]

    for a, b, second in triplets:
        # Written in any case, and overwritten by the next one if it does not count: that is cheaper than a branch.
        triplet = builder.gep(rows, [builder.mul(place, I64(3))])
        for k, row in enumerate((owner, a, b)):
            builder.store(row, builder.gep(triplet, [I64(k)]))
        builder.store(second, builder.gep(seconds, [place]))
        both = is_recorded(a) if a is b else builder.and_(is_recorded(a), is_recorded(b))
        counts = builder.and_(both, builder.fcmp_unordered("!=", second, ZERO))
        place = builder.add(place, builder.zext(counts, I64))
    builder.store(place, word_at(builder, header, TRIPLETS))


def numbers(builder: Any, header: Any, column: int) -> Any:
    """A pointer to a column of float64."""
    return builder.inttoptr(builder.load(word_at(builder, header, column)), F64.as_pointer())


def tangent_of(builder: Any, header: Any, row: Any) -> Any:
    """The tangent of a row that was written; zero for a constant, and for what was read beyond the end of an array."""
    known, place = builder.load(word_at(builder, header, ROWS)), builder.zext(row, I64)
    place = builder.select(builder.icmp_unsigned("<=", place, known), place, I64(0))
    return builder.load(builder.gep(numbers(builder, header, TANGENT_COLUMN), [place]))


def set_tangent(builder: Any, header: Any, tangent: Any) -> None:
    """The tangent of the row that is being written."""
    place = builder.add(builder.load(word_at(builder, header, ROWS)), I64(1))
    builder.store(tangent, builder.gep(numbers(builder, header, TANGENT_COLUMN), [place]))


def absolute(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """The same with an absolute-zero product."""
    return builder.fadd(product(builder, x, y), z)


def steer(
    builder: Any, header: Any, start: Any, pairs: list[Pair], triplets: list[Triplet], again: Callable[[], Row] | None = None
) -> None:
    """Write the partials of a row, its tangent, and how its partials change along the direction.

    Where something is infinite or nan, `again` gives what was made with plain products.
    """
    tangents = {id(row): tangent_of(builder, header, row) for row, _ in pairs}
    partials, column = numbers(builder, header, PARTIAL_COLUMN), numbers(builder, header, CHANGE_COLUMN)

    def write(pairs: list[Pair], triplets: list[Triplet], multiply_and_add: Any) -> Any:
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
        for k, (row, partial) in enumerate(pairs):
            change, place = changes[id(row)], builder.add(start, I64(k))
            builder.store(llvm_of(partial), builder.gep(partials, [place]))
            builder.store(change, builder.gep(column, [place]))
            if change is not ZERO:
                total = builder.fadd(total, builder.fsub(change, change))
        return total

    with cgutils.if_unlikely(builder, builder.fcmp_unordered("!=", write(pairs, triplets, fused), ZERO)):
        write(*(_with_bent(*again()) if again is not None else (pairs, triplets)), absolute)


def _with_bent(pairs: list[Pair], triplets: list[Triplet]) -> Row:
    """What a row depends on to second order only has a pair as well."""
    rows_of_pairs = {id(row) for row, _ in pairs}
    bent = {id(row): row for a, b, _ in triplets for row in (a, b)}
    return pairs + [(row, ZERO) for key, row in bent.items() if key not in rows_of_pairs], triplets


def push(
    context: Any,
    builder: Any,
    tape: Any,
    pairs: list[Pair],
    triplets: list[Triplet],
    directed: bool = False,
    called: bool = False,
    has_room: bool = False,
    again: Callable[[], Row] | None = None,
) -> Any:
    """Write a row, unless all it depends on is constant; its number, or 0. A partial is 1 or -1 if it is that always."""
    if called:
        return _by_call(context, builder, tape, pairs, triplets, directed)
    if directed:
        pairs, triplets = _with_bent(pairs, triplets)
    some = pairs[0][0]
    for row, _ in pairs[1:]:
        some = builder.or_(some, row)
    before = builder.block
    with cgutils.if_likely(builder, builder.icmp_signed("!=", some, I32(0))):
        header = header_of(builder, tape)
        start, end = reserve(context, builder, header, I64(len(pairs)), has_room=has_room)
        rows, partials = columns(builder, header)
        for k, (row, partial) in enumerate(pairs):
            place = builder.add(start, I64(k))
            builder.store(builder.or_(row, I32(FLAG)) if k == 0 else unflagged(builder, row), builder.gep(rows, [place]))
            if not directed:
                builder.store(llvm_of(partial), builder.gep(partials, [place]))
        if directed:
            steer(builder, header, start, pairs, triplets, again)
        number = close(builder, header, end)
        if triplets and not directed:
            bend(context, builder, header, number, triplets, has_room)
        after = builder.block
    result = builder.phi(I32)
    result.add_incoming(I32(0), before)
    result.add_incoming(number, after)
    return result


def _by_call(
    context: Any, builder: Any, tape: Any, pairs: list[tuple[Any, Any]], triplets: list[tuple[Any, Any, Any]], directed: bool
) -> Any:
    """The same by a function that all statements with rows of this form call. It has the arguments and results of Numba's."""
    rows = {id(row): row for row, _ in pairs} | {id(row): row for a, b, _ in triplets for row in (a, b)}
    place = {key: k for k, key in enumerate(rows)}
    of_pairs = [(place[id(row)], partial if isinstance(partial, int) else None) for row, partial in pairs]
    of_triplets = [(place[id(a)], place[id(b)]) for a, b, _ in triplets]
    numbers = [partial for _, partial in pairs if not isinstance(partial, int)] + [second for *_, second in triplets]
    function = _row_function(context, builder.module, of_pairs, of_triplets, len(rows), directed)
    result = cgutils.alloca_once(builder, I32)
    status = builder.call(function, [result, excinfo_of(context, builder), tape, *rows.values(), *numbers])
    with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, status)):
        leave(builder, status)
    return builder.load(result)


def _row_function(
    context: Any,
    module: Any,
    of_pairs: list[tuple[int, int | None]],
    of_triplets: list[tuple[int, int]],
    count: int,
    directed: bool,
) -> Any:
    """A function that writes rows of a form: which of its arguments each pair and each triplet has, and what is 1 or -1 always."""
    form = [f"{row}{FACTORS[number]}" for row, number in of_pairs] + [f"{a}and{b}" for a, b in of_triplets]
    name = "_".join(["tapegrad_row_along" if directed else "tapegrad_row", *form])
    known = module.globals.get(name)
    if known is not None:
        return known
    doubles = sum(number is None for _, number in of_pairs) + len(of_triplets)
    builder = own_function(context, module, name, [I32, I64, *[I32] * count, *[F64] * doubles])
    result, _, tape, *given = builder.function.args
    rows, numbers = given[:count], iter(given[count:])
    pairs = [(rows[row], next(numbers) if number is None else number) for row, number in of_pairs]
    triplets = [(rows[a], rows[b], next(numbers)) for a, b in of_triplets]
    builder.store(push(context, builder, tape, pairs, triplets, directed), result)
    builder.ret(I32(0))
    return builder.function
