"""Numbers and arrays without dimensions, which NumPy tells apart: a function gives the one or the other, and writes into arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from tapegrad.engine.layout import CLOCK
from tapegrad.numpy_arrays.array import Array, as_arrays
from tapegrad.numpy_arrays.classes import answering, class_of
from tapegrad.ops.cloning import clone
from tapegrad.ops.views import version_of
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import Meta

__all__ = ["as_array", "like", "of_function"]

# Functions that give arrays of numbers too, and others that give what they are given.
_ARRAYS = frozenset([
    np.apply_over_axes, np.block, np.broadcast_arrays, np.broadcast_to, np.copy, np.empty_like, np.full_like, np.i0, np.ones_like,
    np.piecewise, np.real_if_close, np.resize, np.roll, np.select, np.tensordot, np.linalg.tensordot, np.tile, np.where,
    np.zeros_like,
])  # fmt: skip
_AS_GIVEN = frozenset(
    getattr(np, name)
    for name in ("astype", "imag", "moveaxis", "permute_dims", "real", "reshape", "squeeze", "swapaxes", "transpose")
    if hasattr(np, name)
)


def as_array(result: Any, given: Any = ()) -> Any:
    """A number as an array without dimensions, which can be written into; a copy if it is one of those that were given."""
    if type(result) is not Array or (type(result._data) is ndarray and result._data.ndim):
        return result
    if id(result) in map(id, given):
        return result if class_of(result) is ndarray else as_array(as_arrays(clone(result)))
    if result._meta is None:  # the common one
        meta = result._meta = Meta()
        meta.given_as = ndarray
        return result
    return answering(result, ndarray)


def as_number(result: Any) -> Any:
    """An array without dimensions as a number."""
    if result._meta is None or result.ndim or class_of(result) is not ndarray:
        return result
    return as_arrays(clone(result))


def like(x: Array, result: Any) -> Any:
    """A result that is a number if `x` is one, and an array if `x` is one."""
    if (type(x._data) is ndarray and x._data.ndim) or type(result) is not Array or result is x:
        return result
    kind = class_of(x)
    if kind is not ndarray and result._meta is None:  # the common ones
        return result
    if result.ndim:
        return result
    if kind is ndarray:
        return answering(result, ndarray)
    return result if class_of(result) is not ndarray else answering(as_arrays(clone(result)), kind)


def of_function(x: Array, function: Any, args: Any, result: Any) -> Any:
    """What NumPy's function gives of a number or an array without dimensions, as the one or the other.

    Anything else is a number, and no view of anything.
    """
    if type(result) is Array:
        if function in _ARRAYS:
            return as_array(result, args)
        return like(x, result) if function in _AS_GIVEN else as_number(result)
    return type(result)(as_array(part, args) for part in result) if function is np.broadcast_arrays else result


def is_seen_by_nobody(x: Array) -> bool:
    """Whether an array without dimensions is held as a number, so that no view of it shows what is written."""
    meta = x._meta
    return type(x._data) is float and meta is not None and not (meta.views or meta.retained or meta.hooks)


def may_go_on_as(x: Array, result: Any) -> bool:
    """Whether a result can be the array from now on."""
    return type(result) is Array and type(result._data) is float and (result._row != 0 or x._row == 0)


def go_on_as(x: Array, result: Array) -> Array:
    """The array with the value and the row of a new result: what was recorded of it before has its number in the tape."""
    if not TAPE.tracers:  # to which it is one value more, and no write
        untracked_values.count_write()
    version_of(x).note(int(TAPE.header[CLOCK]))
    x._data = result._data
    x._row, result._row = result._row, x._row
    return x
