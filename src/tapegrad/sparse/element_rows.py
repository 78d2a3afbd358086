"""Rows of single elements from the linear tape of a function of arrays, in an order in which few are in work at once.

A linear tape goes operation by operation, each of them over all elements. Edge-pushing wants all that becomes of one element, and
then the next one. Rows are put in that order once, as places in the tape's memory; after that a call reads its partials from there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.engine import linear_layout as lin
from tapegrad.linear.linear_tape import LinearTape
from tapegrad.sparse.hosted_structure import multiplies
from tapegrad.sparse.patterns import fingerprint, hosts_of
from tapegrad.tape.array_kernels import ARRAY_KERNELS

__all__ = ["ElementLayout", "ElementRows"]

Vector = np.ndarray[Any, Any]
Part = tuple[Vector, ...]
FIRST = np.int32(-(1 << 31))  # the flag of a row's first pair
MOST_PAIRS = 1 << 24  # for each about 100 bytes are in work while they are put in order


class ElementRows:
    """Rows as `FrontPass` reads them, with second partials that have adjoints in them.

    Parameters
    ----------
    references, partials : ndarray of int32 and float64
        The row of each pair, and its partial; the first pair of a row has a flag.
    triplets, seconds : ndarray of int32 and float64
        A row, two others, and what it gives for an edge of these.
    inputs, last : int
        How many inputs and rows there are.
    """

    is_weighed = True
    outs = np.empty(0, np.int32)

    def __init__(self, references: Vector, partials: Vector, triplets: Vector, seconds: Vector, inputs: int, last: int) -> None:
        self._arrays = references, partials, triplets, seconds
        self.linear_rows = references.ctypes.data, partials.ctypes.data, len(references), inputs, last
        self.second_partials = triplets.ctypes.data, seconds.ctypes.data, len(seconds)


class ElementLayout:
    """Where the rows of elements have their partials in a linear tape's memory.

    Parameters
    ----------
    tape : LinearTape
        With second partials, of one output.

    Raises
    ------
    NotImplementedError
        If there are operations in it of which an element's partials are not known.

    Attributes
    ----------
    pairs, triplets : int
        How many first and second partials rows have.
    """

    def __init__(self, tape: LinearTape) -> None:
        ((root, _),) = tape.outputs
        self._key, self._words = fingerprint(tape), _factor_words(tape)
        self._inputs = tape.inputs
        if _pairs_of(tape) > MOST_PAIRS:
            raise NotImplementedError("there are too many rows")
        targets, sources, values = _joined([*_plain_edges(tape), *_mapped_edges(tape), *_hosted_edges(tape)])
        same = _selected_from(tape.places, targets, sources, values)
        root = int(same[root]) if root >= 0 else 0
        if root < tape.inputs:
            raise NotImplementedError("there are no rows")
        is_own = same[targets] == targets
        targets, sources, values = targets[is_own], same[sources[is_own]], values[is_own]
        numbers, last = _numbered(tape, root, targets, sources)
        numbers = numbers[same]
        rows = numbers[targets]
        known = rows > 0
        rows, references, values = rows[known], numbers[sources[known]], values[known]
        # A row has a pair at least.
        empty = 1 + tape.inputs + np.flatnonzero(np.bincount(rows, minlength=last + 1)[tape.inputs + 1 :] == 0)
        rows = np.concatenate([rows, empty])
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        self._references = np.concatenate([references, np.zeros(len(empty), np.int32)])[order]
        self._references[np.concatenate([[True], rows[1:] != rows[:-1]])] |= FIRST
        self._values = np.concatenate([values, np.zeros(len(empty), np.int64)])[order]
        self._last = last
        self._lay_triplets(tape, numbers)
        self.pairs, self.triplets = len(self._references), len(self._seconds)

    def _lay_triplets(self, tape: LinearTape, numbers: Vector) -> None:
        plain, mapped = _plain_curves(tape), _mapped_curves(tape)
        rows, ones, others, values = _joined([*plain, *mapped])
        # An edge of a place with itself counts twice, and mapped ones are there in both directions.
        scales = np.full(len(ones), 0.5)
        first, second = len(plain[0][0]), len(plain[1][0])
        scales[first : first + second] = 1.0
        order = np.flatnonzero(numbers[rows] > 0)
        order = order[np.argsort(numbers[rows[order]], kind="stable")]
        self._triplets = np.stack([numbers[places[order]] for places in (rows, ones, others)], axis=1)
        self._seconds, self._scales = values[order], scales[order]

    def fits(self, tape: LinearTape) -> bool:
        """Whether a tape has the same rows in the same places."""
        return np.array_equal(_factor_words(tape), self._words) and fingerprint(tape) == self._key

    def rows(self, tape: LinearTape) -> ElementRows:
        """The rows with the partials of a tape that it fits."""
        tape.weigh()
        memory = _memory(tape)
        seconds = memory.take(self._seconds)
        seconds *= self._scales
        partials = memory.take(self._values)
        return ElementRows(self._references, partials, self._triplets, seconds, self._inputs, self._last)


def _memory(tape: LinearTape) -> Vector:
    """All numbers of a tape, after a one: its entries, curves, programs and factors."""
    entries, curves, programs = tape.entries.view(np.float64), tape.curves, tape.programs.view(np.float64)
    return np.concatenate([np.ones(1), entries.reshape(-1), curves.reshape(-1), programs, tape.factors])


def _starts(tape: LinearTape) -> tuple[int, int, int]:
    """Where curves, programs and factors begin there."""
    count = len(tape.entries)
    curves = 1 + lin.ENTRY_BYTES // 8 * count
    programs = curves + lin.CURVE_BYTES // 8 * count
    return curves, programs, programs + len(tape.programs)


def _heads(tape: LinearTape) -> Vector:
    """Kind, place, first and second argument of each entry."""
    heads: Vector = tape.entries.view(np.int32)[:, :4]
    return heads


def _programs_of(tape: LinearTape, *kinds: int) -> list[int]:
    """Where the programs of such entries are."""
    heads = tape.entries
    found: list[int] = heads[np.isin(_heads(tape)[:, 0], kinds), 1].tolist()
    return found


def _pairs_of(tape: LinearTape) -> int:
    """How many pairs its maps and plain entries have, at most."""
    maps = np.array(_programs_of(tape, lin.MAP, lin.CURVED_MAP), np.int64)
    return int(tape.programs[maps + lin.MAP_SIZE].sum()) + 2 * len(tape.entries)


def _factor_words(tape: LinearTape) -> Vector:
    """Where maps have their factors."""
    maps = np.array(_programs_of(tape, lin.MAP, lin.CURVED_MAP), np.int64)
    kinds, factors = tape.programs[maps + lin.MAP_KIND], tape.programs[maps + lin.MAP_FACTOR]
    return np.stack([kinds, np.where(kinds == lin.ARRAY_FACTOR, factors, 0)])


def _plain_edges(tape: LinearTape) -> list[Part]:
    heads = _heads(tape)
    found: list[Part] = []
    for argument, word in ((2, 2), (3, 3)):
        own = np.flatnonzero((heads[:, 0] <= lin.CURVED_PLAIN) & (heads[:, argument] >= 0))
        found.append((heads[own, 1].astype(np.int64), heads[own, argument].astype(np.int64), 1 + lin.ENTRY_BYTES // 8 * own + word))
    return found


def _plain_curves(tape: LinearTape) -> list[Part]:
    """By the first argument, by both, and by the second: the row, the two, and where the partial is."""
    heads, (start, _, _) = _heads(tape), _starts(tape)
    found: list[Part] = []
    for one, other, word in ((2, 2, 0), (2, 3, 1), (3, 3, 2)):
        own = np.flatnonzero((heads[:, 0] == lin.CURVED_PLAIN) & (heads[:, one] >= 0) & (heads[:, other] >= 0))
        places = heads[own, one].astype(np.int64), heads[own, other].astype(np.int64)
        found.append((heads[own, 1].astype(np.int64), *places, start + lin.CURVE_BYTES // 8 * own + word))
    return found


def _sides(programs: Vector, word: int) -> tuple[Vector, Vector]:
    """Places of x and of z of each element of a map."""
    rank, at = int(programs[word + lin.MAP_RANK]), word + lin.MAP_DIMENSIONS
    dimensions = programs[at : at + rank].tolist()
    found: list[Vector] = []
    for side, first in ((1, lin.MAP_X), (2, lin.MAP_Z)):
        places = programs[word + first : word + first + 1]
        for extent, stride in zip(dimensions, programs[at + side * rank : at + (side + 1) * rank].tolist(), strict=True):
            places = (places[:, None] + stride * np.arange(extent)).reshape(-1)
        found.append(places)
    return found[0], found[1]


def _mapped_edges(tape: LinearTape) -> list[Part]:
    programs, (_, start, factors) = tape.programs, _starts(tape)
    found: list[Part] = []
    for word in _programs_of(tape, lin.MAP):
        x, z = _sides(programs, word)
        if programs[word + lin.MAP_KIND] == lin.NUMBER_FACTOR:
            values = np.full(len(x), start + word + lin.MAP_FACTOR)
        else:
            values = factors + programs[word + lin.MAP_FACTOR] + np.arange(len(x))
        found.append((z, x, values))
    return found


def _mapped_curves(tape: LinearTape) -> list[Part]:
    programs, (_, _, factors) = tape.programs, _starts(tape)
    found: list[Part] = []
    for word in _programs_of(tape, lin.CURVED_MAP):
        x, z = _sides(programs, word)
        elements = np.arange(len(x))
        found.append((programs[word + lin.MAP_ROW] + elements, x, z, factors + programs[word + lin.MAP_FACTOR] + elements))
    return found


def _hosted_edges(tape: LinearTape) -> list[Part]:
    """Of rows that are what stands elsewhere: an index, a sum at places."""
    found: list[Part] = []
    for host in hosts_of(tape).values():
        row = host.row
        if host.dense or not row.is_linear or not row.is_flat or multiplies(row):
            raise NotImplementedError(f"partials of {row.op.name} are not known element by element")
        for k, sources, targets in host.edges:
            found.append((row.place + targets, row.inputs[k] + sources, np.zeros(len(sources), np.int64)))
    return found


def _joined(parts: list[Part]) -> Part:
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def _selected_from(places: int, targets: Vector, sources: Vector, values: Vector) -> Vector:
    """The place that each place is a copy of, as what an index takes is; itself for all others."""
    is_one = (np.bincount(targets, minlength=places) == 1)[targets] & (values == 0)
    found = np.arange(places)
    found[targets[is_one]] = sources[is_one]
    while not np.array_equal(further := found[found], found):
        found = further
    return found


def _numbered(tape: LinearTape, root: int, targets: Vector, sources: Vector) -> tuple[Vector, int]:
    """The row of each place, zero if the output does not depend on it, and the last row."""
    order = np.argsort(targets, kind="stable")
    items = sources[order].astype(np.int32)
    ends = np.concatenate([[0], np.cumsum(np.bincount(targets, minlength=tape.places))])
    numbers, stack = np.zeros(tape.places, np.int32), np.empty(2 * tape.places, np.int32)
    numbers[: tape.inputs] = np.arange(1, tape.inputs + 1)
    arrays = (ends, items, root, numbers, stack, tape.inputs)
    last: int = ARRAY_KERNELS.order_elements(*(a if isinstance(a, int) else a.ctypes.data for a in arrays))
    return numbers, last
