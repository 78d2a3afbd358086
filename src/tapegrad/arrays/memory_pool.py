"""Memory for large results, used again instead of being given back to the system.

A fresh 800 kB array costs 200 page faults when it is first written, more than the addition that fills it. A training step needs
the same sizes again and again, so blocks are kept, up to a limit, when the arrays on them die.
"""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np

__all__ = ["SMALL", "large_empty", "release_buffers"]

SMALL = 2048  # elements up to which NumPy's own memory is as good
LARGE = 1 << 16  # bytes from which a block is kept
LARGEST = 1 << 25
KEPT = 1 << 27  # bytes of idle blocks at most

# Python's default is memory that a forked process shares: what the child computes would appear in the parent's arrays.
_PRIVATE: dict[str, Any] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}

_idle: dict[int, list[Any]] = {}
_idle_bytes = 0


class _Block(np.ndarray):
    """The memory under one result; when the last array on it dies, it waits for the next result of its size."""

    def __del__(self, idle: Any = _idle, mmap: Any = mmap) -> None:
        global _idle_bytes
        memory = self.base
        size = self.nbytes
        if type(memory) is mmap.mmap and _idle_bytes + size <= KEPT:
            _idle_bytes += size
            idle.setdefault(size, []).append(memory)


def large_empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An uninitialised array; its memory comes from an idle block where there is one.

    Parameters
    ----------
    shape : tuple of int
    dtype : dtype
        With items of 4 or 8 bytes.
    """
    global _idle_bytes
    needed = math.prod(shape) * dtype.itemsize
    if not LARGE <= needed <= LARGEST:
        return np.empty(shape, dtype)
    size = -(-needed // 4096) * 4096
    try:
        memory = _idle[size].pop()
        _idle_bytes -= size
    except (KeyError, IndexError):
        memory = mmap.mmap(-1, size, **_PRIVATE)
    return np.ndarray(shape, dtype, _Block((size,), np.uint8, memory))


def release_buffers() -> None:
    """Give idle memory back to the system."""
    global _idle_bytes
    _idle.clear()
    _idle_bytes = 0
