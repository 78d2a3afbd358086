"""Index sets in columns that grow: which inputs each place of a linear tape, or row of a compiled recording, depends on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.engine import linear_layout as lin
from tapegrad.engine import set_layout as at
from tapegrad.linear.linear_entries import entry_of

__all__ = ["IndexSets"]

Ints = np.ndarray[Any, np.dtype[np.int32]]
Words = np.ndarray[Any, np.dtype[np.int64]]
MOST_ELEMENTS = 1 << 29  # of all rows of a pattern together
# So many rows tell how many elements all have; the longest of these are left out, as a few dense rows are no harm. If fewer than
# one row in twenty is long, a pattern is taken for a dense one once in a million.
SAMPLED, LEFT_OUT = 32, 10


class IndexSets:
    """Sets of indices of inputs, by number; place k has set ``places[k]``.

    Parameters
    ----------
    inputs : int
        How many there are: the first places have one each.
    places : int
    first : int
        Place of the first input.
    """

    table: Words
    elements: Ints

    def __init__(self, inputs: int, places: int, first: int = 0) -> None:
        self.inputs = inputs
        self.header: Words = np.zeros(at.SET_WORDS, np.int64)
        self.address = self.header.ctypes.data
        self._grow_sets(2 * (inputs + places) + 64, 0)
        self._grow_elements(inputs + 4 * places + 2 * at.SMALL_SET, 0)
        self.table[:2] = 0
        self.table[2 : 2 * inputs + 2 : 2] = np.arange(inputs)
        self.table[3 : 2 * inputs + 3 : 2] = 1
        self.elements[:inputs] = np.arange(inputs)
        self.header[at.SET_COUNT], self.header[at.SET_USED] = inputs + 1, inputs
        self.places: Ints = np.zeros(places, np.int32)
        self.places[first : first + inputs] = np.arange(1, inputs + 1)
        self.header[at.SET_PLACES] = self.places.ctypes.data

    @property
    def count(self) -> int:
        """How many sets there are."""
        return int(self.header[at.SET_COUNT])

    def _grow_sets(self, limit: int, used: int) -> None:
        if limit >= 2**31:
            raise MemoryError(f"the derivative's structure takes more than {2**31} index sets")
        table: Words = np.empty(2 * limit, np.int64)
        if used:
            table[: 2 * used] = self.table[: 2 * used]
        self.table = table
        self.header[at.SET_TABLE], self.header[at.SET_LIMIT] = table.ctypes.data, limit

    def _grow_elements(self, room: int, used: int) -> None:
        elements: Ints = np.empty(room, np.int32)
        if used:
            elements[:used] = self.elements[:used]
        self.elements = elements
        self.header[at.SET_ELEMENTS], self.header[at.SET_ROOM] = elements.ctypes.data, room

    def _grow(self) -> None:
        """More room for whichever column is full."""
        count, used = int(self.header[at.SET_COUNT]), int(self.header[at.SET_USED])
        if count >= int(self.header[at.SET_LIMIT]):
            self._grow_sets(2 * count, count)
        if used + at.SMALL_SET > int(self.header[at.SET_ROOM]):
            self._grow_elements(2 * (used + at.SMALL_SET), used)

    def run(self, entry: Callable[..., int], *before: int, start: int = 0, after: tuple[int, ...] = ()) -> int:
        """Call a compiled sweep from `start` on, with more room as often as it asks for it; what else it answers."""
        while (answer := entry(*before, start, *after)) == at.NO_ROOM:
            self._grow()
            start = int(self.header[at.SET_AT])
        return answer

    def add_edges(self, sources: Any, targets: Any) -> None:
        """The set of each target's place gains that of its source's place."""
        one, two = np.ascontiguousarray(sources, np.int32), np.ascontiguousarray(targets, np.int32)
        addresses = self.address, one.ctypes.data, two.ctypes.data
        self.run(entry_of("spread_edges"), *addresses, after=(len(one),))

    def scratch(self, count: int) -> Words:
        """Places behind all others, with empty sets."""
        first = len(self.places)
        self.places = np.concatenate([self.places, np.zeros(count, np.int32)])
        self.header[at.SET_PLACES] = self.places.ctypes.data
        return np.arange(first, first + count)

    def estimated(self, numbers: Any) -> int:
        """How many elements sets have together, from a sample: too few rather than too many, and zero for few or short sets."""
        wanted: Ints = np.ascontiguousarray(numbers, np.int32)
        if len(wanted) <= 4 * SAMPLED or not (self.table[2 * wanted.astype(np.int64) + 1] < 0).any():
            return 0
        sample = wanted[np.random.default_rng(0).choice(len(wanted), SAMPLED, replace=False)]
        lengths = np.sort(np.diff(self.collected(sample)[0]))[: SAMPLED - LEFT_OUT]
        return int(lengths.sum() / SAMPLED * len(wanted))

    def collected(self, numbers: Any) -> tuple[Words, Ints]:
        """Elements of sets: where those of each end, with a zero in front, and the elements one set after the other."""
        wanted: Ints = np.ascontiguousarray(numbers, np.int32)
        count = int(self.header[at.SET_COUNT])
        marks, node_marks, stack = np.zeros(self.inputs, np.int32), np.zeros(count, np.int32), np.empty(count + 1, np.int32)
        self.header[at.SET_MARKS], self.header[at.SET_NODE_MARKS] = marks.ctypes.data, node_marks.ctypes.data
        self.header[at.SET_STACK], self.header[at.SET_CLOCK] = stack.ctypes.data, 0
        lengths = self.table[2 * wanted.astype(np.int64) + 1]
        small = int(lengths[lengths > 0].sum())
        room = small + (4 * self.inputs if (lengths < 0).any() else 0) + 1
        out: Ints = np.empty(room, np.int32)
        ends: Words = np.zeros(len(wanted) + 1, np.int64)
        collect, done = entry_of("collect_sets"), 0
        while True:
            addresses = self.address, wanted.ctypes.data, done, len(wanted), ends.ctypes.data, out.ctypes.data, len(out)
            done = collect(*addresses)
            if done == len(wanted):
                return ends, out[: int(ends[-1])]
            if len(out) > MOST_ELEMENTS:
                raise MemoryError(
                    f"the derivative's pattern has more than {MOST_ELEMENTS:.2g} entries: {done} of its {len(wanted)} rows have "
                    f"{int(ends[done])}. Where every row depends on a sum of all inputs, make the sum a variable of its own."
                )
            more: Ints = np.empty(2 * len(out) + self.inputs, np.int32)
            more[: int(ends[done])] = out[: int(ends[done])]
            out = more

    def pairs(self, find: Callable[..., int], tape: int) -> Ints:
        """Pairs of sets that curved entries give, of shape (pairs, 2)."""
        recent: Words = np.zeros(at.RECENT_PAIRS, np.int64)
        limit = 2 * self.inputs + 64
        pairs: Ints = np.empty((limit, 2), np.int32)
        start = 0
        self.header[at.SET_RECENT], self.header[at.SET_PAIR_COUNT] = recent.ctypes.data, 0
        while True:
            self.header[at.SET_PAIRS], self.header[at.SET_PAIR_LIMIT] = pairs.ctypes.data, len(pairs)
            answer = find(tape, self.address, start)
            count = int(self.header[at.SET_PAIR_COUNT])
            if answer != at.NO_ROOM:
                assert answer == lin.FINISHED
                return pairs[:count]
            start = int(self.header[at.SET_AT])
            more: Ints = np.empty((2 * len(pairs), 2), np.int32)
            more[:count] = pairs[:count]
            pairs = more
