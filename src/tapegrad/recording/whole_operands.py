"""Operands as loops over whole arrays take them: contiguous float64 arrays of the result's shape, or single numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.memory_pool import large_empty
from tapegrad.arrays.sizes import is_one_number
from tapegrad.engine.layout import BLOCK

__all__ = ["block_or_spread", "number_or_whole", "one_number_or_whole"]


def number_or_whole(a: Any, shape: tuple[int, ...]) -> Any:
    """A number as an array, or a contiguous float64 array of a shape; None for anything else."""
    if isinstance(a, float):  # NumPy's, too
        return np.array(a)
    if type(a) is not np.ndarray or a.dtype is not dtypes.float64:
        return None
    return a if not a.ndim or (a.shape == shape and a.flags.c_contiguous) else None


def one_number_or_whole(a: Any, shape: tuple[int, ...]) -> Any:
    """The same; of a number that is stretched to the shape, that number."""
    if type(a) is np.ndarray and a.dtype is dtypes.float64 and a.shape == shape and is_one_number(a):
        return np.array(a[(0,) * a.ndim])
    return number_or_whole(a, shape)


def block_or_spread(a: Any, shape: tuple[int, ...]) -> Any:
    """The same, with arrays that are stretched written out; of a number, a block of it."""
    if type(a) is np.ndarray and a.dtype is dtypes.float64 and a.ndim and not (a.shape == shape and a.flags.c_contiguous):
        whole = large_empty(shape, dtypes.float64)
        whole[...] = a
        return whole
    found = number_or_whole(a, shape)
    return found if found is None or found.ndim else np.full(min(BLOCK, math.prod(shape)), found)
