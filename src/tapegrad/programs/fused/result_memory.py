"""Memory of large results, into which code writes again once nobody else has them."""

from __future__ import annotations

import math
from sys import getrefcount
from typing import Any

import numpy as np

from tapegrad.arrays.memory_pool import large_empty

__all__ = ["ResultMemory"]

LARGEST = 1 << 24  # bytes that are kept


class ResultMemory:
    """One result of each run, whose address stands in a table.

    Parameters
    ----------
    shape : tuple of int
    table : ndarray
        Of addresses.
    place : int
        Where it stands there.
    dtype : dtype
    """

    __slots__ = ("_alone", "_block", "_is_kept", "_place", "_shape", "_table", "dtype")

    def __init__(self, shape: tuple[int, ...], table: np.ndarray[Any, Any], place: int, dtype: np.dtype[Any]) -> None:
        self._shape, self._table, self._place, self.dtype = shape, table, place, dtype
        self._is_kept = dtype.itemsize * math.prod(shape) <= LARGEST
        self._block: Any = None
        self._alone = 0  # references to the block that are counted where there are no others

    def fresh(self) -> np.ndarray[Any, Any]:
        """An array that nobody else has, on the memory of the latest one if all that stood on that is gone."""
        if self._block is None or getrefcount(self._block) != self._alone:
            self._block = None  # until the address of the next one is in the table: an interrupt may come in between
            made = large_empty(self._shape, self.dtype)
            self._table[self._place] = made.ctypes.data
            if not self._is_kept:
                return made
            block = made if made.base is None else made.base
            del made
            self._block = block
            del block
            self._alone = getrefcount(self._block)
        return np.ndarray(self._shape, self.dtype, self._block)
