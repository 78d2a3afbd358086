"""Memory of recordings of compiled functions: taken for a call, kept for the next one.

Every call that runs has columns of its own, so calls in several threads, or one inside another, do not meet. Whoever took columns
is the only one who holds them: if an exception keeps him from giving them back, or the collector finds him in a cycle, where other
objects' destructors may still use them, they die with him. Compiled code, which runs while somebody holds them, finds them from
their header, for the collector clears weak references at any moment.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

import numpy as np

from tapegrad.interrupts import undone
from tapegrad.nopython.tape.columns import (
    FIRST,
    GROW,
    GROW_TRIPLETS,
    LIMIT,
    MOST,
    ODD,
    OWNER,
    PAIRS,
    ROWS,
    TANGENT_COLUMN,
    TRIPLET_LIMIT,
    TRIPLETS,
    WORDS,
)
from tapegrad.nopython.tape.held_memory import IDLE, KNOWN

__all__ = ["Columns", "give_back", "take"]


class Columns:
    """The columns, their header, and what sweeps work on.

    Attributes
    ----------
    address : int
        Where the header is.
    header : ndarray of int64, shape (WORDS,)
        What compiled code reads and writes: see `tapegrad.nopython.tape.columns`.
    rows : ndarray of int32
        Row of each pair, with the flag of the first pair of a row.
    partials : ndarray of float64
        Partial of each pair.
    triplets : ndarray of int32
        Three rows of each second partial. Empty until second derivatives are recorded.
    seconds : ndarray of float64
        The second partials.
    changes : ndarray of float64
        How the partial of each pair changes along a direction. Empty until one is given.
    bar : ndarray of float64
        Adjoints of rows, for the sweeps that follow a recording.
    tangents, weights : ndarray of float64
        Tangents of rows, and second partials times adjoints, for sweeps that need them.
    cleared : ndarray of float64
        Zeros between sweeps: adjoints of rows for one that clears what it is done with.
    """

    __slots__ = (
        "__weakref__", "_inputs", "address", "bar", "changes", "cleared", "header", "partials", "rows", "seconds", "tangents",
        "triplets", "weights",
    )  # fmt: skip

    def __init__(self) -> None:
        self.header = np.zeros(WORDS, np.int64)
        self.header[GROW], self.header[GROW_TRIPLETS], self.header[OWNER] = id(_grow), id(_grow_triplets), id(self)
        self.address = int(self.header.ctypes.data)
        self.bar = self.tangents = self.weights = self.changes = self.cleared = np.empty(0)
        self.triplets, self.seconds = np.empty(0, np.int32), np.empty(0)
        self.rows = np.empty(0, np.int32)
        self.partials = np.empty(0)
        self.resize(FIRST)
        KNOWN[self.address] = self

    # Growth may end with an exception at every call: no memory, or an interrupt. A function may catch that and go on recording. So
    # new memory is complete first, and then the arrays and the words of the header change, all of them or none. The old arrays live
    # until the function returns.

    def resize(self, capacity: int) -> None:
        """Make room for `capacity` pairs; those that were written stay."""
        used = int(self.header[PAIRS])
        rows, partials = np.empty(capacity + ODD, np.int32), np.empty(capacity)
        rows[:used], partials[:used] = self.rows[:used], self.partials[:used]
        if self.directed:
            self._resize_along(capacity)
        words = np.array([capacity, rows.ctypes.data, partials.ctypes.data])
        self._replace(("rows", "partials"), (rows, partials), LIMIT, words)

    def resize_triplets(self, capacity: int) -> None:
        """Make room for `capacity` triplets; those that were written stay."""
        used = int(self.header[TRIPLETS])
        triplets, seconds = np.empty(3 * capacity + ODD, np.int32), np.empty(capacity)
        triplets[: 3 * used], seconds[:used] = self.triplets[: 3 * used], self.seconds[:used]
        words = np.array([capacity, triplets.ctypes.data, seconds.ctypes.data])
        self._replace(("triplets", "seconds"), (triplets, seconds), TRIPLET_LIMIT, words)

    @property
    def directed(self) -> bool:
        """Whether derivatives along a direction are being recorded."""
        return bool(self.header[TANGENT_COLUMN])

    def steer(self, direction: np.ndarray) -> None:
        """Record derivatives along a direction, which has an element for each element of the inputs."""
        self._inputs = direction.size
        self._resize_along(int(self.header[LIMIT]))
        self.tangents[0] = 0.0
        # No copy: the C library's takes ten times as long where the target is 8 bytes further into its page than the source.
        np.multiply(direction, 1.0, out=self.tangents[1 : direction.size + 1])

    def _resize_along(self, capacity: int) -> None:
        """Make room beside `capacity` pairs, of which each may be a row; what was written stays."""
        pairs, rows, room = int(self.header[PAIRS]), int(self.header[ROWS]) + 1, capacity + self._inputs + 1
        changes, tangents = self.changes, self.tangents
        if changes.size < capacity:
            changes = np.empty(capacity + 2 * ODD)
            changes[:pairs] = self.changes[:pairs]
        if tangents.size < room:
            tangents, known = np.empty(room), self.tangents[:rows]
            tangents[: known.size] = known
        words = np.array([tangents.ctypes.data, changes.ctypes.data])
        self._replace(("changes", "tangents"), (changes, tangents), TANGENT_COLUMN, words)

    def _replace(self, names: tuple[str, str], arrays: tuple[np.ndarray, np.ndarray], first: int, words: np.ndarray) -> None:
        """Take two arrays in the place of others, and words of the header from `first` on with them."""
        before = getattr(self, names[0]), getattr(self, names[1])
        words_before = self.header[first : first + words.size].copy()
        undone(partial(self._set, names, before, first, words_before), self._set, names, arrays, first, words)

    def _set(self, names: tuple[str, str], arrays: tuple[np.ndarray, np.ndarray], first: int, words: np.ndarray) -> None:
        setattr(self, names[0], arrays[0])
        setattr(self, names[1], arrays[1])
        self.header[first : first + words.size] = words

    def clear(self) -> None:
        """Forget all rows."""
        self.header[ROWS] = self.header[PAIRS] = self.header[TRIPLETS] = 0

    def adjoints(self) -> np.ndarray:
        """An adjoint for every row, all zero."""
        count = self.header.item(ROWS) + 1
        if self.bar.size < count:
            self.bar = np.zeros(count + count // 8)
        else:
            self.bar[:count] = 0.0
        return self.bar

    def room(self, name: str, size: int) -> np.ndarray:
        """One of the arrays that sweeps work on, with room for `size` numbers; what stands in them is left over."""
        array: np.ndarray = getattr(self, name)
        if array.size < size:
            array = np.empty(size + size // 8)
            setattr(self, name, array)
        return array

    def zeros(self, size: int) -> np.ndarray:
        """Zeros, at least so many, for a sweep that leaves nothing else behind."""
        if self.cleared.size < size:
            self.cleared = np.zeros(size + size // 8)
        return self.cleared

    def dissolve(self) -> None:
        """Give the memory back, whoever still refers to the object: errors of the compiler, which it keeps, hold frames."""
        KNOWN.pop(self.address, None)
        self.rows = self.triplets = np.empty(0, np.int32)
        self.partials = self.seconds = self.changes = self.bar = self.tangents = self.weights = self.cleared = np.empty(0)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        arrays = (self.header, self.rows, self.partials, self.triplets, self.seconds, self.bar, self.tangents, self.weights)
        return sum(int(array.nbytes) for array in (*arrays, self.changes, self.cleared))


def _grow(columns: Columns, count: int) -> None:
    """Called from compiled code when a tape is full, and which looks itself whether there is room then."""
    used = int(columns.header[PAIRS])
    needed = used + count
    if needed + int(columns.header[ROWS]) <= MOST:
        with contextlib.suppress(MemoryError):  # the user's function may catch that one
            columns.resize(min(max(needed, 2 * used) + ODD, MOST))


def _grow_triplets(columns: Columns, count: int) -> None:
    """The same for the columns of triplets, which have no room at first."""
    used = int(columns.header[TRIPLETS])
    with contextlib.suppress(MemoryError):
        columns.resize_triplets(max(used + count, 2 * used, FIRST) + ODD)


def take() -> Columns:
    """Empty columns for a call: those of an earlier one where there are any."""
    try:
        columns = IDLE.pop()
    except IndexError:
        columns = Columns()
    columns.clear()
    columns.header[TANGENT_COLUMN] = 0
    return columns


def give_back(columns: Columns, idle: list[Any] = IDLE) -> None:
    """Keep the columns of a call that has ended for the next one; also when the module's names are gone already.

    The caller has forgotten them before, unless he ends with this call: else an interrupt at its end would let him give them back
    once more, and two calls would get them.
    """
    idle.append(columns)
