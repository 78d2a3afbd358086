"""Reductions of large arrays along short last dimensions, with the bits of NumPy's, which takes 40 ns around each run."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tapegrad.arrays.addresses import address_of
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.arrays.numpy_api import inner_loop
from tapegrad.ops.exponential_shares import SUM_START, numpys_loops
from tapegrad.tape.array_kernels import ARRAY_KERNELS

__all__ = ["NEAR", "adds_along_runs", "along_runs", "rows_and_rest", "sum_of_many"]

Array = np.ndarray[Any, Any]
FLOAT64 = np.dtype(np.float64)
LONG = 512  # elements of a run from which the calls do not matter
NEAR = 4096  # elements of a run whose squares stay near


def along_runs(function: Any, data: Any, removed: tuple[int, ...], keepdim: bool, squares: bool = False) -> Array | None:
    """``function.reduce(data, removed, keepdims=keepdim)`` of a sum or an extreme, or of squares; None where NumPy is to do it."""
    if type(data) is not np.ndarray or data.size <= SMALL or data.dtype is not FLOAT64 or not data.flags.c_contiguous:
        return None
    extents = _extents(data.shape, removed)
    if extents is None or extents[2] > (NEAR if squares else LONG):
        return None
    loop = _loop(function)
    if loop is None:
        return None
    return _reduced(function, loop, data, extents, squares).reshape(_shape(data.shape, removed, keepdim))


def _reduced(function: Any, loop: Array, data: Array, extents: tuple[int, int, int], squares: bool = False) -> Array:
    result = np.empty(extents[1]) if function is not np.add else np.full(extents[1], SUM_START)
    room = np.empty(extents[2] if squares else 1)
    at = address_of(room) if squares else 0
    ARRAY_KERNELS.reduce_runs(id(result), id(data), id(loop), *extents, int(function is not np.add), at)
    return result


@functools.lru_cache(maxsize=512)
def _extents(shape: tuple[int, ...], removed: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Elements of what is removed before and behind the dimensions that are kept, and of these; None if they do not lie so."""
    groups: list[list[Any]] = []
    for k, extent in enumerate(shape):
        if extent == 1:
            continue
        if groups and groups[-1][1] == (k in removed):
            groups[-1][0] *= extent
        else:
            groups.append([extent, k in removed])
    kinds = [is_removed for _, is_removed in groups]
    if kinds[-2:] != [False, True] or len(kinds) > 3:
        return None
    outer = groups[0][0] if len(groups) == 3 else 1
    return outer, groups[-2][0], groups[-1][0]


@functools.lru_cache(maxsize=512)
def _shape(shape: tuple[int, ...], removed: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    if keepdim:
        return tuple([1 if k in removed else extent for k, extent in enumerate(shape)])
    return tuple([extent for k, extent in enumerate(shape) if k not in removed])


@functools.cache
def _loop(function: Any) -> Array | None:
    """Where NumPy's loop is; None if it is not as it is known, or NumPy goes another way along an array."""
    words = inner_loop(function)
    if not words[0]:
        return None
    loop = np.array(words, np.int64)
    sample = np.sin(np.arange(5.0 * 120 * 46)).reshape(5, 120, 46)
    found = _reduced(function, loop, sample, sample.shape), _reduced(function, loop, sample, (1, 600, 46))
    wanted = function.reduce(sample, (0, 2)), function.reduce(sample, 2).ravel()
    return loop if all(map(np.array_equal, found, wanted)) else None


def adds_along_runs() -> bool:
    """Whether NumPy's sum of a run is its loop, from the start that its sums have."""
    return numpys_loops() > 0 and _loop(np.add) is not None


def sum_of_many(data: Array) -> Any:
    """The sum of all elements of a long contiguous float64 array, as `numpy.einsum` adds up rows; None where it adds otherwise."""
    return _summed(data) if _adds_in_pairs() else None


def _summed(data: Array) -> Any:
    found, room = np.full(2, SUM_START), np.empty(data.size // 1024)
    ARRAY_KERNELS.sum_of_many(id(found), id(data), id(room), numpys_loops())
    return found[0]


@functools.cache
def _adds_in_pairs() -> bool:
    if not numpys_loops():
        return False
    sample = np.sin(np.arange(70_000.0))
    return bool(_summed(sample) == rows_and_rest(sample))


def rows_and_rest(flat: Array) -> Any:
    """The sum of each row of 1024 elements in the processor's vectors, then of the row sums pairwise."""
    whole = flat.size // 1024 * 1024
    return np.add.reduce(np.einsum("ij->i", flat[:whole].reshape(-1, 1024))) + np.add.reduce(flat[whole:])
