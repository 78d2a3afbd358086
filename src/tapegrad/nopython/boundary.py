"""What happens to arguments before a recorded call, and to results after it."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.extending import intrinsic, overload, register_jitable

from tapegrad.nopython.columns import ROWS, _word, header_of
from tapegrad.nopython.pieces import primal, primals, row, with_row
from tapegrad.nopython.variable import Variable, has_variables, variable

__all__ = ["constant", "finish", "finish_pair", "guarded", "held", "input_"]


@intrinsic
def new_rows(typingctx: Any, tape: Any, count: Any) -> Any:
    """Number of the first of `count` rows without pairs, which are inputs."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = _word(builder, header_of(builder, args[0]), ROWS)
        last = builder.load(place)
        builder.store(builder.add(last, args[1]), place)
        return builder.add(last, ir.IntType(64)(1))

    return types.int64(tape, types.int64), write


@intrinsic
def protected(typingctx: Any, array: Any) -> Any:
    """The same array, but compiled code that writes into it is not compiled."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        context.nrt.incref(builder, sig.args[0], args[0])
        return args[0]

    return array.copy(readonly=True)(array), write


def gaps(shape: Any, dtype: Any) -> Any:
    """An array with every second place left out: what asks for contiguous memory copies it."""
    raise NotImplementedError


@overload(gaps)
def _gaps(shape, dtype):
    return lambda shape, dtype: np.empty((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]


def like(x: Any) -> Any:
    """An array of variables whose type has the memory order of another's: what copies and what is a view depends on it."""
    raise NotImplementedError


@overload(like)
def _like(x):
    if x.layout == "F" and x.ndim > 1:
        return lambda x: np.empty(x.shape[::-1], variable).T
    if x.layout == "A" and x.ndim > 0:
        return lambda x: gaps(x.shape, variable)
    return lambda x: np.empty(x.shape, variable)


def duplicate(x: Any) -> Any:
    """A copy of an array of constants, in the same memory order."""
    raise NotImplementedError


@overload(duplicate)
def _duplicate(x):
    if x.layout == "A" and x.ndim > 0:

        def strided(x):
            made = gaps(x.shape, x.dtype)
            made[...] = x
            return made

        return strided
    return lambda x: np.copy(x)


def input_(tape: Any, x: Any) -> Any:
    """Argument that the derivative is taken with respect to."""
    raise NotImplementedError


@overload(input_)
def _input(tape, x):
    if isinstance(x, types.Float):
        return lambda tape, x: with_row(x, new_rows(tape, 1))
    if isinstance(x, types.Array):

        def array(tape, x):
            made = like(x)
            number = new_rows(tape, x.size)
            for place in np.ndindex(x.shape):
                made[place] = with_row(x[place], number)
                number += 1
            return made

        if x.mutable:
            return array
        writable = register_jitable(array)
        return lambda tape, x: protected(writable(tape, x))
    if isinstance(x, types.BaseTuple):
        return _of_items("input_", x, "tape, x", "tape, x[{}]")
    return None


def _of_items(name: str, kind: Any, parameters: str, call: str) -> Any:
    """A function that makes a tuple of a function's results for the items of a tuple."""
    items = ", ".join(f"{name}({call.format(k)})" for k in range(len(kind.types)))
    space = {name: globals()[name], "new": getattr(kind, "instance_class", None)}
    exec(f"def of_items({parameters}):\n    return {'new' if space['new'] else ''}({items},)", space)
    return space["of_items"]


def _of_records(kind: Any) -> bool:
    """Whether an array holds records, which are written into whatever is known of the array; it is a copy already."""
    return isinstance(kind, types.Array) and isinstance(kind.dtype, types.Record)


def held(x: Any) -> Any:
    """An argument that is a constant, and which the function must not write into."""
    raise NotImplementedError


@overload(held)
def _held(x):
    if isinstance(x, types.Array) and not _of_records(x):
        return lambda x: protected(x)
    return lambda x: x


def guarded(x: Any) -> Any:
    """The same for an argument of any kind, with arrays in tuples."""
    raise NotImplementedError


@overload(guarded)
def _guarded(x):
    if isinstance(x, types.Array) and not _of_records(x):
        return lambda x: protected(x)
    if isinstance(x, types.BaseTuple) and any(isinstance(item, (types.Array, types.BaseTuple)) for item in x.types):
        return _of_items("guarded", x, "x", "x[{}]")
    return lambda x: x


def constant(x: Any) -> Any:
    """A copy of an argument that is a constant, into which variables may be written."""
    raise NotImplementedError


@overload(constant)
def _constant(x):
    if isinstance(x, types.Array) and x.dtype == types.float64:

        def array(x):
            made = like(x)
            for place in np.ndindex(x.shape):
                made[place] = x[place]
            return made

        return array
    if isinstance(x, types.Array) and not _of_records(x):
        return lambda x: duplicate(x)
    if isinstance(x, types.BaseTuple) and any(isinstance(item, (types.Array, types.BaseTuple)) for item in x.types):
        return _of_items("constant", x, "x", "x[{}]")
    return lambda x: x


def finish(y: Any) -> Any:
    """Primals and rows of a result."""
    raise NotImplementedError


@overload(finish)
def _finish(y):
    if isinstance(y, Variable):
        return lambda y: (primal(y), row(y))
    if isinstance(y, types.Float) and y.bitwidth == 64:
        return lambda y: (y, np.int32(0))
    if isinstance(y, types.Array) and isinstance(y.dtype, Variable):

        def array(y):
            primals, rows = np.empty(y.shape), np.empty(y.shape, np.int32)
            for place in np.ndindex(y.shape):
                v = y[place]
                primals[place], rows[place] = primal(v), row(v)
            return primals, rows

        return array
    if isinstance(y, types.Array) and y.dtype == types.float64:
        return lambda y: (y.copy(), np.zeros(y.shape, np.int32))
    if isinstance(y, types.BaseTuple) and len(y.types):
        count, new = len(y.types), getattr(y, "instance_class", None)
        text = "def tuple_(y):\n" + "".join(f"    p{k}, r{k} = finish(y[{k}])\n" for k in range(count))
        text += f"    return {'new' if new else ''}({''.join(f'p{k}, ' for k in range(count))}), "
        text += f"({''.join(f'r{k}, ' for k in range(count))})"
        space = {"finish": finish, "new": new}
        exec(text, space)
        return space["tuple_"]
    raise TypingError(f"[tapegrad] the function returns {y}; only float64 numbers and arrays of them are differentiated")


def finish_pair(y: Any) -> Any:
    """Primals and rows of the first item of a pair, and the second item."""
    raise NotImplementedError


@overload(finish_pair)
def _finish_pair(y):
    if not isinstance(y, types.BaseTuple) or len(y.types) != 2:
        raise TypingError(f"[tapegrad] with has_aux=True the function must return a pair (output, aux), not {y}")

    def pair(y):
        primals, rows = finish(y[0])
        return primals, rows, plain(y[1])

    return pair


def plain(x: Any) -> Any:
    """Anything without its rows."""
    raise NotImplementedError


@overload(plain)
def _plain(x):
    if not has_variables(x):
        return lambda x: x
    if isinstance(x, Variable):
        return lambda x: primal(x)
    if isinstance(x, types.Array):
        return lambda x: primals(x).copy()
    if isinstance(x, types.BaseTuple):
        return _of_items("plain", x, "x", "x[{}]")
    raise TypingError(f"[tapegrad] the function returns {x} as aux; return numbers, arrays and tuples of these")
