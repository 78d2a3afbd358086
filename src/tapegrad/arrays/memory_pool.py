"""Memory for large results, used again instead of being given back to the system.

A fresh 800 kB array costs 200 page faults when it is first written, more than the addition that fills it. A training step needs
the same sizes again and again, so blocks are kept, up to a limit, when the arrays on them die. Most of them are kept with the
system's leave to take their pages back when it is short of memory (``MADV_FREE``): those whose size was not asked for lately, since
the call takes as long as a pass over the block.

Temporaries are NumPy's own arrays, and NumPy's memory is the C library's. See `warm_allocator`.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import os
from typing import Any

import numpy as np

__all__ = [
    "SMALL", "Block", "large_empty", "large_like", "memory_of_machine", "owns_memory", "pooled_copy", "release_buffers",
    "warm_allocator", "working_empty",
]  # fmt: skip

SMALL = 2048  # elements up to which NumPy's own memory is as good
LARGE = 1 << 16  # bytes from which a block is kept
HUGE = 1 << 22  # bytes from which the system is asked for large pages, as NumPy does
KEPT = 1 << 27  # bytes of idle blocks that stay the process's own
PAGE, HUGE_PAGE = 1 << 12, 1 << 21
HEAP = 1 << 25  # bytes of the largest block that glibc's heap comes to hold
WORKING = 1 << 20  # bytes of working memory up to which its heap is as good: what was freed last is used first, and found sooner

FLOAT64 = np.dtype(np.float64)
# Python's default is memory that a forked process shares: what the child computes would appear in the parent's arrays.
_PRIVATE: dict[str, Any] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
_LARGE_PAGES: int | None = getattr(mmap, "MADV_HUGEPAGE", None)
_MAY_BE_TAKEN: int | None = getattr(mmap, "MADV_FREE", None)

_idle: dict[int, list[Any]] = {}  # blocks of each size; sizes in the order in which a block of them died last
_lent: dict[int, list[Any]] = {}  # those whose pages the system may take
_idle_bytes = 0  # of both
_own_bytes = 0  # of the first ones


def memory_of_machine() -> int:
    """Bytes of its memory; more than anybody has where the system does not tell."""
    if not hasattr(os, "sysconf"):
        return 1 << 62
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _limit_of_idle_bytes() -> int:
    """Bytes of idle blocks at most: a quarter of the machine's memory where the system may take them back."""
    if _MAY_BE_TAKEN is None:
        return KEPT
    return max(KEPT, memory_of_machine() // 4)


_limit = _limit_of_idle_bytes()


class Block(np.ndarray):
    """The memory under one result; when the last array on it dies, it waits for the next result of its size."""

    def __del__(self, mmap: Any = mmap) -> None:
        memory: Any = self.base
        if type(memory) is mmap.mmap and _idle_bytes + self.nbytes <= _limit:
            _keep(memory, self.nbytes)


def _keep(memory: Any, size: int) -> None:
    """Let a block wait for the next result of its size. Other threads, or the collector of cycles, may do so at the same time."""
    global _idle_bytes, _own_bytes
    _idle_bytes += size
    if size > KEPT:
        _lend(memory, size)
        return
    blocks = _idle.pop(size, None) or []
    blocks.append(memory)
    waiting = _idle.setdefault(size, blocks)
    if waiting is not blocks:  # another thread was here, and a third one may be about to take from the list that was there
        with contextlib.suppress(IndexError):
            while True:  # one by one: a block that stands in two lists would be given to two results
                waiting.append(blocks.pop())
    _own_bytes += size
    while _own_bytes > KEPT:
        lent = _lend_oldest()  # meanwhile other threads may run
        _own_bytes -= lent


def _lend_oldest() -> int:
    """Lend a block of the size of which none died for the longest time; its bytes, or all that are counted if there is none."""
    try:
        size = next(iter(_idle))
    except (StopIteration, RuntimeError):  # another thread changes sizes at this moment: those that are counted are few
        return _own_bytes
    try:
        memory = _idle[size].pop(0)
    except (KeyError, IndexError):
        _idle.pop(size, None)
        return 0
    _lend(memory, size)
    return size


def _lend(memory: Any, size: int) -> None:
    """Allow the system to take the pages of a block."""
    global _idle_bytes
    try:
        memory.madvise(_MAY_BE_TAKEN)
    except OSError:  # an old kernel
        _idle_bytes -= size
    else:
        _lent.setdefault(size, []).append(memory)


def large_empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An uninitialised array; its memory comes from an idle block where there is one.

    Parameters
    ----------
    shape : tuple of int
    dtype : dtype
        With items of 4 or 8 bytes.

    Raises
    ------
    MemoryError
        There is not as much memory, also without what is idle.
    """
    needed = math.prod(shape) * dtype.itemsize
    if needed < LARGE:
        return np.empty(shape, dtype)
    page = PAGE if needed < HUGE else HUGE_PAGE
    size = -(-needed // page) * page
    memory = _waiting(size)
    if memory is None:
        try:
            memory = _fresh(size)
        except (OSError, OverflowError):
            release_buffers()
            return np.empty(shape, dtype)  # or its error
    return np.ndarray(shape, dtype, Block((size,), np.uint8, memory))


def _is_glibc() -> bool:
    try:
        return bool(os.confstr("CS_GNU_LIBC_VERSION"))
    except (AttributeError, ValueError, OSError):
        return False


_from_heap = WORKING if _is_glibc() else 0


def working_empty(shape: tuple[int, ...]) -> np.ndarray:
    """Uninitialised numbers to work on, for once the allocator is warm: a few hundred thousand of them are the C library's."""
    return np.empty(shape) if 8 * math.prod(shape) < _from_heap else large_empty(shape, FLOAT64)


def large_like(array: np.ndarray) -> np.ndarray:
    """An uninitialised array of another one's shape and dtype."""
    return large_empty(array.shape, array.dtype)


def owns_memory(base: object) -> bool:
    """Whether what an array stands on is a block of the pool, which serves one result alone."""
    return type(base) is Block


def pooled_copy(array: np.ndarray) -> np.ndarray:
    """A contiguous copy on memory of the pool."""
    made = large_empty(array.shape, array.dtype)
    made[...] = array
    return made


def _waiting(size: int) -> Any:
    """An idle block of this size; None if there is none."""
    global _idle_bytes, _own_bytes
    for blocks, own in ((_idle.get(size), size), (_lent.get(size), 0)):
        if blocks:
            try:
                memory = blocks.pop()
            except IndexError:  # another thread took the last one
                continue
            _idle_bytes -= size
            _own_bytes -= own
            return memory
    return None


def _fresh(size: int) -> Any:
    """Memory from the system. Idle blocks of sizes that were asked for longer ago go where they leave no room for this one."""
    global _idle_bytes, _own_bytes
    for blocks, own in ((_lent, 0), (_idle, 1)):
        for other in list(blocks):
            if _idle_bytes + size <= _limit:
                break
            gone = other * len(blocks.pop(other, ()))
            _idle_bytes -= gone
            _own_bytes -= own * gone
    memory = mmap.mmap(-1, size, **_PRIVATE)
    if size >= HUGE and _LARGE_PAGES is not None:
        memory.madvise(_LARGE_PAGES)
    return memory


def warm_allocator() -> None:
    """Bring the C library's heap to where it comes once an array of 32 MB has died: large blocks are used again, too.

    glibc gives a block of 128 kB back to the system at once until it has seen larger ones die, and the top of its heap when that
    is twice as large. Until then a temporary of 800 kB costs 200 page faults each time it is made, two to five times what is
    computed in it. Nothing is set, so what users set stays, and other C libraries only make an array and drop it.

    A second one comes from the top of that heap, where NumPy asks the system for large pages, as for all large arrays, and it stays
    so: what this process comes to hold there, also that of other libraries, costs one page fault in the place of up to 512.
    """
    with contextlib.suppress(MemoryError):
        for _ in range(2):
            np.empty(HEAP - 4 * PAGE, np.uint8)  # address space: its pages are never touched


def release_buffers() -> None:
    """Give idle memory back to the system."""
    global _idle_bytes, _own_bytes
    _idle.clear()
    _lent.clear()
    _idle_bytes = _own_bytes = 0
