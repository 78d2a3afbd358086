"""What happens to arguments before a recorded call, and to results after it."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.extending import intrinsic
from numba.core.imputils import lower_builtin
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.np.arrayobj import make_array

from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.tape.columns import ROWS
from tapegrad.nopython.tape.row_instructions import header_of, word_at
from tapegrad.nopython.tape.row_writing import primal, primals
from tapegrad.nopython.types.variable import Variable, has_variables, is_float, make, number_of, row_of, variable_of
from tapegrad.nopython.types.variable_arrays import copied, copied_type, taken_apart

__all__ = ["constant", "finish", "finish_pair", "guarded", "held", "input_"]

I64 = ir.IntType(64)


def _new_rows(builder: Any, tape: Any, count: Any) -> Any:
    """Number of the first of `count` rows without pairs, which are inputs."""
    place = word_at(builder, header_of(builder, tape), ROWS)
    last = builder.load(place)
    builder.store(builder.add(last, count), place)
    return builder.add(last, I64(1))


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


@overload(gaps, complex_too=True)
def _gaps(shape, dtype):
    return lambda shape, dtype: np.empty((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]


@intrinsic
def with_variables(typingctx: Any, x: Any) -> Any:
    """A copy into which variables may be written."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return copied(context, builder, x, args[0], copied_type(x))

    return copied_type(x)(x), write


def duplicate(x: Any) -> Any:
    """A copy of an array of constants, in the same memory order."""
    raise NotImplementedError


@overload(duplicate, complex_too=True)
def _duplicate(x):
    if x.layout == "A" and x.ndim > 0:

        def strided(x):
            made = gaps(x.shape, x.dtype)
            made[...] = x
            return made

        return strided
    return lambda x: np.copy(x)


@intrinsic
def input_(typingctx: Any, tape: Any, x: Any) -> Any:
    """Argument that the derivative is taken with respect to."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _taken(context, builder, args[0], x, args[1])

    kind = _taken_type(x)
    return None if kind is None else (kind(tape, x), write)


def _taken_type(kind: types.Type) -> types.Type | None:
    if isinstance(kind, types.Float):
        return variable_of(kind) if is_float(kind) else None
    if isinstance(kind, types.Array):
        return copied_type(kind).copy(readonly=not kind.mutable)
    if isinstance(kind, types.BaseTuple):
        items = [_taken_type(item) for item in kind.types]
        return None if None in items else types.BaseTuple.from_types(items, getattr(kind, "instance_class", None))
    return None


def _taken(context: Any, builder: Any, tape: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Float):
        primal = context.cast(builder, value, kind, types.float64)
        return make(context, builder, primal, builder.trunc(_new_rows(builder, tape, I64(1)), ir.IntType(32)))
    if isinstance(kind, types.Array):
        items = make_array(kind)(context, builder, value).nitems
        return copied(context, builder, kind, value, copied_type(kind), _new_rows(builder, tape, items))
    parts = cgutils.unpack_tuple(builder, value, len(kind.types))
    taken = [_taken(context, builder, tape, item, part) for item, part in zip(kind.types, parts, strict=True)]
    return context.make_tuple(builder, _taken_type(kind), taken)


def _of_items(name: str, kind: Any, parameters: str, call: str) -> Any:
    """A function that makes a tuple of a function's results for the items of a tuple."""
    items = ", ".join(f"{name}({call.format(k)})" for k in range(len(kind.types)))
    space = {name: globals()[name], "new": getattr(kind, "instance_class", None)}
    exec(f"def of_items({parameters}):\n    return {'new' if space['new'] else ''}({items},)", space)
    return space["of_items"]


def _of_records(kind: Any) -> bool:
    """Whether an array holds records, which are written into whatever is known of the array; it is a copy already."""
    return isinstance(kind, types.Array) and isinstance(kind.dtype, types.Record)


@intrinsic
def held(typingctx: Any, x: Any) -> Any:
    """An argument that is a constant, and which the function must not write into."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        context.nrt.incref(builder, x, args[0])
        return args[0]

    return (x.copy(readonly=True) if isinstance(x, types.Array) and not _of_records(x) else x)(x), write


def guarded(x: Any) -> Any:
    """The same for an argument of any kind, with arrays in tuples."""
    raise NotImplementedError


@overload(guarded, complex_too=True)
def _guarded(x):
    if isinstance(x, types.Array) and not _of_records(x):
        return lambda x: protected(x)
    if isinstance(x, types.BaseTuple) and any(isinstance(item, (types.Array, types.BaseTuple)) for item in x.types):
        return _of_items("guarded", x, "x", "x[{}]")
    return lambda x: x


def constant(x: Any) -> Any:
    """A copy of an argument that is a constant, into which variables may be written."""
    raise NotImplementedError


@overload(constant, complex_too=True)
def _constant(x):
    if isinstance(x, types.Array) and is_float(x.dtype):
        return lambda x: with_variables(x)
    if isinstance(x, types.Array) and not _of_records(x):
        return lambda x: duplicate(x)
    if isinstance(x, types.BaseTuple) and any(isinstance(item, (types.Array, types.BaseTuple)) for item in x.types):
        return _of_items("constant", x, "x", "x[{}]")
    return lambda x: x


def finish(y: Any) -> Any:
    """Primals and rows of a result."""
    raise NotImplementedError


@infer_global(finish)
class FinishedVariables(AbstractTemplate):  # type: ignore[misc]
    """What most functions return needs no function to be compiled."""

    key = finish

    def generic(self, args: Any, kws: Any) -> Any:
        (y,) = args
        if isinstance(y, Variable):
            return signature(types.Tuple((y.primal, types.int32)), y)
        if isinstance(y, types.Array) and isinstance(y.dtype, Variable):
            return signature(types.Tuple([types.Array(dtype, y.ndim, "C") for dtype in (y.dtype.primal, types.int32)]), y)
        return None


@lower_builtin(finish, Variable)
def _finished_variable(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    primal = number_of(context, builder, sig.args[0], args[0])
    return context.make_tuple(builder, sig.return_type, [primal, row_of(builder, args[0])])


@lower_builtin(finish, types.Array)
def _finished_array(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return context.make_tuple(builder, sig.return_type, taken_apart(context, builder, sig.args[0], args[0]))


@overload(finish, complex_too=True)
def _finish(y):
    if is_float(y):
        return lambda y: (y, np.int32(0))
    if isinstance(y, types.Array) and is_float(y.dtype):
        return lambda y: (y.copy(), np.zeros(y.shape, np.int32))
    if isinstance(y, types.BaseTuple) and len(y.types):
        count, new = len(y.types), getattr(y, "instance_class", None)
        text = "def tuple_(y):\n" + "".join(f"    p{k}, r{k} = finish(y[{k}])\n" for k in range(count))
        text += f"    return {'new' if new else ''}({''.join(f'p{k}, ' for k in range(count))}), "
        text += f"({''.join(f'r{k}, ' for k in range(count))})"
        space = {"finish": finish, "new": new}
        exec(text, space)
        return space["tuple_"]
    raise TypingError(
        f"[tapegrad] the function returns {y}; only float64 and float32 numbers and arrays of them are differentiated"
    )


def finish_pair(y: Any) -> Any:
    """Primals and rows of the first item of a pair, and the second item."""
    raise NotImplementedError


@overload(finish_pair, complex_too=True)
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


@overload(plain, complex_too=True)
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
