"""Which memory recordings of compiled functions hold, and giving it back; apart from what takes it, which needs Numba.

A process that has compiled nothing holds none, and need not import a compiler to be told so.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.tape.tape import TAPE

__all__ = [
    "EMPTYING",
    "IDLE",
    "KNOWN",
    "NATIVE",
    "NATIVE_BYTES",
    "NATIVE_GROW",
    "NATIVE_SLOTS",
    "free_tape_memory",
    "tape_memory",
]

KNOWN: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()  # columns that live, by the address of their header
IDLE: list[Any] = []  # columns for calls to come

# What compiled code takes without Python (`tapegrad.nopython.tape.native_memory`): how many bytes there are, the address of what
# makes room, and the headers of tapes that no call uses.
NATIVE_BYTES, NATIVE_GROW, NATIVE_SLOTS = range(3)
NATIVE = np.zeros(NATIVE_SLOTS + 64, np.int64)
EMPTYING: list[Callable[[], None]] = []  # what gives that memory back, where there is any


def tape_memory() -> int:
    """Bytes that the tapes of compiled functions hold, for calls that run and for calls to come.

    Returns
    -------
    int
        Rows, second partials and what sweeps work on, of all threads.

    Examples
    --------
    >>> before = tg.tape_memory()
    >>> tg.free_tape_memory()
    >>> tg.tape_memory() <= before
    True
    """
    of_python = sum(columns.nbytes for link in KNOWN.valuerefs() if (columns := link()) is not None)
    return of_python + int(NATIVE[NATIVE_BYTES])


def free_tape_memory() -> None:
    """Give back the memory that earlier calls of differentiated compiled functions left for later ones.

    Calls that run, and recordings that somebody holds (the product of `vjp`, a graph with an operation of `njit_op`), keep theirs.

    Examples
    --------
    >>> tg.free_tape_memory()
    """
    TAPE.collect()  # dead rows of operations in graphs hold tapes until it looks for them
    while IDLE:
        with contextlib.suppress(IndexError):  # another thread may be first
            IDLE.pop().dissolve()
    for empty in EMPTYING:
        empty()
