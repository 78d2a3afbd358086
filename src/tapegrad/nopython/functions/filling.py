"""What puts numbers in the place of others: not-a-number and infinities, diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import TypingError
from numba.np.unsafe.ndarray import to_fixed_tuple

from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.tape.row_writing import primal, row, with_row
from tapegrad.nopython.types.variable import Variable, has_variables, variable

__all__ = ["FILLING"]


def is_default(kind: Any) -> bool:
    """Whether an argument was left away that has a truth value as its default."""
    return isinstance(kind, (bool, types.Omitted))


@part
def finite(value):
    """A number, and what stands for infinities."""
    if value in (np.inf, -np.inf):
        return 1.7976931348623157e308 if value > 0.0 else -1.7976931348623157e308
    return value


def nan_to_num(tape, x, copy=True, nan=0.0):
    raise NotImplementedError


@overload(nan_to_num)
def _nan_to_num(tape, x, copy=True, nan=0.0):
    if not has_variables(x):
        return lambda tape, x, copy=True, nan=0.0: np.nan_to_num(x, copy, nan)
    if not is_default(copy):
        raise TypingError("[tapegrad] np.nan_to_num of variables makes a new array; leave copy away")

    def number(tape, x, copy=True, nan=0.0):
        value = primal(x)
        if value != value:
            return with_row(primal(nan), row(nan))
        return with_row(finite(value), row(x) if np.isfinite(value) else np.int32(0))

    def array(tape, x, copy=True, nan=0.0):
        out = np.empty(x.shape, variable)
        for place in np.ndindex(x.shape):
            out[place] = nan_to_num(tape, x[place], nan=nan)
        return out

    return number if isinstance(x, Variable) else array


def items_of(values):
    """What a diagonal is filled with, in memory of its own: it may be a view of the same array."""
    raise NotImplementedError


@overload(items_of)
def _items_of(values):
    return (lambda values: values.flatten()) if isinstance(values, types.Array) else (lambda values: values)


def fill_diagonal(tape, a, val, wrap=False):
    raise NotImplementedError


@overload(fill_diagonal)
def _fill_diagonal(tape, a, val, wrap=False):
    if not has_variables(types.Tuple((a, val))):
        return lambda tape, a, val, wrap=False: np.fill_diagonal(a, val, wrap)
    if not isinstance(a, types.Array) or not has_variables(a):
        raise TypingError("[tapegrad] np.fill_diagonal with variables takes an array that may hold them")
    several, beyond = isinstance(val, (types.Array, types.Sequence)), a.ndim == 2 and not is_default(wrap)

    def impl(tape, a, val, wrap=False):
        items = items_of(val) if several else (val,)
        if beyond and wrap:  # from the last row to the first, with a row between
            for k in range((a.size + a.shape[1]) // (a.shape[1] + 1)):
                a[divmod(k * (a.shape[1] + 1), a.shape[1])] = items[k % len(items)]
        else:
            for length in a.shape[1:]:
                if a.ndim > 2 and length != a.shape[0]:
                    raise ValueError("All dimensions of input must be of equal length")
            for k in range(min(a.shape)):
                a[to_fixed_tuple(np.full(a.ndim, k), a.ndim)] = items[k % len(items)]

    return impl


FILLING: dict[Any, Any] = {np.nan_to_num: nan_to_num, np.fill_diagonal: fill_diagonal}
