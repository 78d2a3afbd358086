"""Arguments and gradients of derivatives that compiled code calls: what may be given, what shares memory, adjoints as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.extending import intrinsic
from numba.np.arrayobj import make_array

from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.tape.row_writing import primal, row
from tapegrad.nopython.tape.sweep_entries import f64
from tapegrad.nopython.types.variable import Variable, is_float

__all__ = ["apart", "arrays_in", "distinct", "gathered", "is_input", "is_plain", "number", "size"]

I64 = ir.IntType(64)
PLAIN = (
    types.Float, types.Integer, types.Boolean, types.Complex, types.NoneType, types.UnicodeType, types.Dispatcher, types.Function,
    types.EnumMember, types.SliceType,
)  # fmt: skip


def is_input(kind: Any) -> bool:
    """Whether a derivative by values of a type is taken: float64 and float32 numbers and arrays, and tuples of these."""
    if isinstance(kind, types.Array):
        return is_float(kind.dtype)
    if isinstance(kind, types.BaseTuple):
        return len(kind.types) > 0 and all(map(is_input, kind.types))
    return is_float(kind)


def is_plain(kind: Any) -> bool:
    """Whether values of a type hold no memory but that of arrays of numbers."""
    if isinstance(kind, types.Array):
        return isinstance(kind.dtype, (types.Number, types.Boolean))
    if isinstance(kind, types.BaseTuple):
        return all(map(is_plain, kind.types))
    return isinstance(kind, PLAIN)


def arrays_in(text: str, kind: Any) -> list[tuple[str, Any]]:
    """Texts and types of the arrays in a value that a text stands for."""
    if isinstance(kind, types.Array):
        return [(text, kind)]
    if isinstance(kind, types.BaseTuple):
        return [found for k, item in enumerate(kind.types) for found in arrays_in(f"{text}[{k}]", item)]
    return []


@intrinsic
def _start(typingctx: Any, x: Any) -> Any:
    """The address of the first element of an array."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ptrtoint(make_array(x)(context, builder, args[0]).data, I64)

    return types.int64(x), write


def apart(x: Any, y: Any) -> Any:
    """Whether two arrays lie apart: what is between their first and their last element counts as theirs."""
    raise NotImplementedError


@overload(apart)
def _apart(x, y):
    def found(x, y):
        low, high = reach(x)
        low_too, high_too = reach(y)
        return x.size == 0 or y.size == 0 or high <= low_too or high_too <= low

    return found


def reach(x: Any) -> Any:
    """The addresses where an array begins and ends."""
    raise NotImplementedError


@overload(reach)
def _reach(x):
    def ends(x):
        low = _start(x)
        high = low + x.itemsize
        for k in range(x.ndim):
            step = x.strides[k] * (x.shape[k] - 1)
            if step < 0:
                low += step
            else:
                high += step
        return low, high

    if x.ndim == 0:
        return lambda x: (_start(x), _start(x) + x.itemsize)
    return ends


def distinct(x: Any) -> Any:
    """Whether no two elements of an array stand in one place; what is not seen at its strides counts as if some did."""
    raise NotImplementedError


@overload(distinct)
def _distinct(x):
    def found(x):
        if x.size <= 1:
            return True
        reached, done = x.itemsize, 0
        for _ in range(x.ndim):  # by strides, the smallest first
            step, length = -1, 1
            for k in range(x.ndim):
                stride = abs(x.strides[k])
                if x.shape[k] > 1 and not (done >> k) & 1 and (step < 0 or stride < step):
                    step, length, place = stride, x.shape[k], k
            if step < 0:
                return True
            if step < reached:
                return False
            reached += step * (length - 1)
            done |= 1 << place
        return True

    return found


def size(x: Any) -> Any:
    """How many numbers there are in an input."""
    raise NotImplementedError


@overload(size)
def _size(x):
    if isinstance(x, types.Array):
        return lambda x: x.size
    if isinstance(x, types.BaseTuple):
        space = {"size": size}
        exec(f"def of_items(x):\n    return {' + '.join(f'size(x[{k}])' for k in range(len(x.types)))}", space)
        return space["of_items"]
    return lambda x: 1


def gathered(x: Any, bars: Any, start: Any) -> Any:
    """Adjoints from a place on, in the form of an input."""
    raise NotImplementedError


@overload(gathered)
def _gathered(x, bars, start):
    if isinstance(x, types.Array):

        def of_array(x, bars, start):
            made = np.empty(x.size, x.dtype)
            given = f64(bars, start + x.size)
            for k in range(x.size):
                made[k] = given[start + k]
            return made.reshape(x.shape)

        return of_array
    if isinstance(x, types.BaseTuple):
        lines = ["def of_items(x, bars, start):"]
        for k in range(len(x.types)):
            lines += [f"    y{k} = gathered(x[{k}], bars, start)", f"    start += size(x[{k}])"]
        new = getattr(x, "instance_class", None)
        lines.append(f"    return {'' if new is None else 'new'}({''.join(f'y{k}, ' for k in range(len(x.types)))})")
        space = {"gathered": gathered, "size": size, "new": new}
        exec("\n".join(lines), space)
        return space["of_items"]
    if x == types.float32:
        return lambda x, bars, start: np.float32(f64(bars, start + 1)[start])
    return lambda x, bars, start: f64(bars, start + 1)[start]


def number(y: Any) -> Any:
    """The value and the row of a result, which is a number."""
    raise NotImplementedError


@overload(number)
def _number(y):
    if isinstance(y, Variable):
        return lambda y: (primal(y), row(y))
    if is_float(y):
        return lambda y: (y, np.int32(0))
    if isinstance(y, types.Array):
        raise TypingError(
            "[tapegrad] the function returns an array, and tg.njit_derivative is for functions that return a number: return one "
            "of its elements, or their sum"
        )
    raise TypingError(f"[tapegrad] the function returns {y}, and tg.njit_derivative is for functions that return a float")
