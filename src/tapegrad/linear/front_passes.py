"""Derivatives of recorded rows without products: edge-pushing for Hessians, and adjoints output by output for Jacobians.

Both go once over rows, where few of these have edges (or few outputs share rows) at once.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tapegrad.engine import edge_layout as at
from tapegrad.linear.linear_entries import ONE
from tapegrad.tape.array_kernels import ARRAY_KERNELS

__all__ = ["FrontPass", "Rows"]

Vector = np.ndarray[Any, Any]
UNLIMITED = 2**62
MOST_PLACES = 1 << 28  # that are written down: 1 GB, or 2 of pairs


class Rows(Protocol):
    """What the passes read: rows with first and second partials, as a compiled function's recording has them."""

    outs: Vector
    is_weighed: bool  # second partials have adjoints in them

    @property
    def linear_rows(self) -> tuple[int, ...]:
        """Address of the pairs' rows, of their partials, how many pairs, inputs and rows there are."""

    @property
    def second_partials(self) -> tuple[int, ...]:
        """Address of the triplets, of their second partials, and how many there are."""


class FrontPass:
    """One pass over rows: the Hessian of a weighted sum of their results, or the Jacobian.

    Where a method gives None, the pass took more steps than `limit`, needed more room at once than there is, or had more places
    to write down than `MOST_PLACES`.

    Parameters
    ----------
    rows : Rows
        They stay where they are until the pass is over.
    second : bool
        Whether it is the Hessian.
    weights : ndarray
        Of the results.
    limit : int

    Attributes
    ----------
    steps : int
        How many the pass took.
    """

    def __init__(self, rows: Rows, second: bool, weights: Vector = ONE, limit: int = UNLIMITED) -> None:
        self._outs, self._second, self._weights, self._limit, self.steps = rows.outs, second, weights, limit, 0
        self._is_weighed = rows.is_weighed
        self._columns = [*rows.linear_rows, *(rows.second_partials if second else (0, 0, 0))]
        self._pairs, self._inputs, self._last = self._columns[2:5]

    def places(self, ends: Vector, items: Vector) -> Vector | None:
        """Places of a pattern's entries in the order in which the pass gives values, -1 where the pattern has none.

        Parameters
        ----------
        ends : ndarray of int64
            Where the entries of each row of the pattern end, with a zero in front; of a Hessian's lower triangle.
        items : ndarray of int32
            Their columns, which ascend in each row.
        """
        return self._listed(at.MAKE_PLACES, 1, {at.FRONT_ENDS: ends, at.FRONT_ITEMS: items})

    def values(self, places: Vector, count: int) -> Vector | None:
        """Values of the entries of a pattern, in its order, from the places that were found for rows of this structure."""
        found = np.zeros(count)
        return None if self._run(at.MAKE_VALUES, {at.FRONT_PLACES: places, at.FRONT_FOUND: found})[0] else found

    def matrix(self) -> Vector | None:
        """The whole Hessian, symmetric to the bit."""
        found = np.zeros((self._inputs, self._inputs))
        return None if self._run(at.MAKE_MATRIX, {at.FRONT_FOUND: found})[0] else found

    def pattern(self) -> tuple[Vector, Vector] | None:
        """Rows and columns of the lower triangle of the Hessian's pattern, perhaps more than once.

        It depends on which partials there are, not on what they are.
        """
        partials, seconds = np.ones(self._pairs), np.ones(self._columns[7])
        self._columns[1], self._columns[6], self._weights = partials.ctypes.data, seconds.ctypes.data, np.ones(len(self._outs))
        pairs = self._listed(at.MAKE_PATTERN, 2, {})
        return None if pairs is None else (pairs[::2], pairs[1::2])

    def _listed(self, kind: int, words: int, given: dict[int, Vector]) -> Vector | None:
        """What a pass writes down, so many words each."""
        room = min(4 * (self._inputs + self._last) + 64, MOST_PLACES)
        while room <= MOST_PLACES:
            found = np.empty(words * room, np.int32)
            answer, header = self._run(kind, {**given, at.FRONT_PLACES: found}, room)
            if answer != at.NO_ROOM_LEFT:
                return None if answer else found[: words * int(header[at.FRONT_AT])].copy()
            room *= 2
        return None

    def _run(self, kind: int, given: dict[int, Vector], room: int = 0) -> tuple[int, Vector]:
        last = self._last
        header: Vector = np.zeros(at.FRONT_WORDS, np.int64)
        header[: at.FRONT_BARS] = self._columns
        header[at.FRONT_KIND], header[at.FRONT_LIMIT], header[at.FRONT_ROOM] = kind, self._limit, room
        header[at.FRONT_WEIGHED] = self._is_weighed
        # One piece of memory and one address: addresses of nine arrays take as long as the pass over a hundred rows.
        numbers = at.MOST_SLOTS * (at.MOST_SLOTS + 1)
        memory = np.zeros(numbers + (last + 1) * self._second + at.MOST_SLOTS + at.MOST_OUTPUTS + last // 2 + 1)
        start = memory.ctypes.data
        header[at.FRONT_SQUARE], header[at.FRONT_ALONG] = start, start + 8 * at.MOST_SLOTS**2
        if self._second:
            header[at.FRONT_BARS] = start + 8 * numbers
            bars = memory[numbers : numbers + last + 1]
            if len(self._outs) == 1 and 0 < self._outs[0] <= last:
                bars[self._outs[0]] = self._weights[0]
            elif len(self._outs):
                np.add.at(bars, np.where((self._outs > 0) & (self._outs <= last), self._outs, 0), self._weights)
            numbers += last + 1
        else:
            order = np.argsort(self._outs, kind="stable").astype(np.int32)
            given = {**given, at.FRONT_ORDER: order, at.FRONT_OUTS: self._outs[order]}
            header[at.FRONT_RESULTS] = len(order)
        small = start + 8 * numbers
        header[at.FRONT_MEMBERS], header[at.FRONT_HOLES] = small, small + 4 * at.MOST_SLOTS
        numbers += at.MOST_SLOTS
        header[at.FRONT_OUTPUTS] = start + 8 * numbers
        numbers += at.MOST_OUTPUTS
        header[at.FRONT_SLOTS] = start + 8 * numbers
        memory[numbers:].view(np.int32).fill(-1)
        for word, array in given.items():
            header[word] = array.ctypes.data
        answer: int = (ARRAY_KERNELS.push_edges if self._second else ARRAY_KERNELS.pull_rows)(header.ctypes.data)
        self.steps = int(header[at.FRONT_STEPS])
        return answer, header
