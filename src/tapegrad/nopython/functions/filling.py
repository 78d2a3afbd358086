"""What puts numbers in the place of others: not-a-number and infinities, bounds, diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import extending
from numba.core import types
from numba.core.errors import TypingError
from numba.np.arrayobj import np_clip
from numba.np.unsafe.ndarray import to_fixed_tuple

from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.numba_interface.optional_arguments import left_away
from tapegrad.nopython.tape.row_writing import primal, row, with_row
from tapegrad.nopython.twins.recording_twin import twin
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


def limited(a, a_min, a_max, out=None):
    """Numba's `np.clip`, by a name that is recorded as it is."""
    raise NotImplementedError


extending.overload(limited)(np_clip)


def settled(a):
    """A copy in which what is not-a-number depends on nothing, for such a value has no slope."""
    raise NotImplementedError


@overload(settled)
def _settled(a):
    if not has_variables(a):
        return lambda a: a

    def impl(a):
        out = np.empty_like(a)
        for place in np.ndindex(a.shape):
            value = primal(a[place])
            out[place] = with_row(value, row(a[place]) if value == value else np.int32(0))
        return out

    return impl


def clip(tape, a, a_min, a_max, out=None):
    raise NotImplementedError


@overload(clip)
def _clip(tape, a, a_min, a_max, out=None):
    if not has_variables(types.Tuple([kind for kind in (a, a_min, a_max, out) if isinstance(kind, types.Type)])):
        if left_away(out):
            return lambda tape, a, a_min, a_max, out=None: np.clip(a, a_min, a_max)
        return lambda tape, a, a_min, a_max, out=None: np.clip(a, a_min, a_max, out)
    if left_away(out):
        new = twin(part(lambda a, a_min, a_max: limited(a, a_min, a_max)))
        return lambda tape, a, a_min, a_max, out=None: new(tape, settled(a), a_min, a_max)
    into = twin(part(lambda a, a_min, a_max, out: limited(a, a_min, a_max, out)))
    return lambda tape, a, a_min, a_max, out=None: into(tape, settled(a), a_min, a_max, out)


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


FILLING: dict[Any, Any] = {np.nan_to_num: nan_to_num, np.clip: clip, np.fill_diagonal: fill_diagonal}
