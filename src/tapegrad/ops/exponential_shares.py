"""Softmax and its logarithm, by compiled loops over runs along an axis, with the bits of NumPy's functions."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.recording.axes import around
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tape.library_loops import loop_of
from tapegrad.tensors.tensor import Tensor, make

__all__ = ["SUM_START", "cotangent", "numpys_loops", "total_of_few", "values"]

Array = np.ndarray[Any, Any]
FLOAT64 = np.dtype(np.float64)
ROOM = 3072  # numbers of the kernel's room besides those of a run


_around = functools.lru_cache(maxsize=512)(around)
_words: list[Array] = []  # what compiled code reads


@functools.cache
def numpys_loops() -> int:
    """Where the addresses of loops stand, of each that of its data behind it; 0 if one of NumPy's is not as it is known."""
    words = [word for function in (np.exp, np.log, np.add, np.maximum) for word in loop_of(function)]
    if not all(words[::2]):
        return 0
    _words.append(np.array(words, np.int64))
    return int(_words[0].ctypes.data)


# What NumPy's sums begin with: newer versions with -0.0.
SUM_START = float(np.add.reduce(np.array([-0.0])))
_START = np.array(SUM_START)


def total_of_few(data: Array) -> float | None:
    """The sum of a small contiguous float64 array, as NumPy adds it up; None for others."""
    if type(data) is not np.ndarray or data.dtype is not FLOAT64 or not 0 < data.size <= SMALL or not data.flags.c_contiguous:
        return None
    loops = numpys_loops()
    if not loops:
        return None
    found = _START.copy()
    ARRAY_KERNELS.add_up(id(found), id(data), loops)
    return found.item()


def _is_plain(data: Any) -> bool:
    if type(data) is not np.ndarray or data.dtype is not FLOAT64 or not data.ndim or not data.size:
        return False
    return data.flags.c_contiguous and numpys_loops() > 0


def values(data: Array, axes: tuple[int, ...], logarithm: bool) -> Array | None:
    """Softmax along one axis, or its logarithm; None if NumPy is to do it."""
    if not _is_plain(data):
        return None
    outer, count, inner = _around(data.shape, *axes)
    empty = np.empty if data.size <= SMALL else large_empty
    result, room = empty(data.shape, FLOAT64), np.empty(count + ROOM)
    ARRAY_KERNELS.exponential_shares(id(result), id(data), id(room), outer, count, inner, numpys_loops() | logarithm)
    return result


def cotangent(g: Tensor, result: Tensor, axes: tuple[int, ...], logarithm: bool) -> Tensor | None:
    """The cotangent of the operand; None if operations are to give it."""
    adjoint, z = g._data, result._data
    if not _is_plain(z) or type(adjoint) is not np.ndarray or adjoint.dtype is not FLOAT64 or adjoint.shape != z.shape:
        return None
    is_number = not any(adjoint.strides)
    if not is_number and not adjoint.flags.c_contiguous:
        return None
    outer, count, inner = _around(z.shape, *axes)
    empty = np.empty if z.size <= SMALL else large_empty
    out, room = empty(z.shape, FLOAT64), np.empty(count + ROOM)
    ARRAY_KERNELS.cotangents_of_shares(
        id(out), id(adjoint), id(z), id(room), outer, count, inner, int(not is_number), numpys_loops() | logarithm
    )
    return make(out, 0)
