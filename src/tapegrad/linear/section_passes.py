"""Derivatives by sections of a recording that have one structure: eight at once, by steps that are written down once.

This is what `front_passes` does, where a recording is many times the same: what a loop did in each turn.
"""

from __future__ import annotations

import numpy as np

from tapegrad.arrays.memory_pool import large_empty
from tapegrad.engine import section_layout as at
from tapegrad.linear.front_passes import Rows, Vector
from tapegrad.linear.linear_entries import ONE
from tapegrad.linear.section_steps import Steps, hessian_steps, jacobian_steps
from tapegrad.tape.array_kernels import ARRAY_KERNELS

__all__ = ["SectionPass", "sections_of"]

MOST_SECTIONS, MOST_TEMPLATES, MOST_PAIRS = 1 << 22, 32, 1 << 11
MOST_LANES = 2  # times the sections: beyond, too many lanes are empty
LANES = at.SECTION_LANES
FLOAT64 = np.dtype(np.float64)
# Steps of a front's pass that one for eight lanes takes the time of, and adding to an entry.
STEP, ENTRY = 3, 16


class _Group:
    """Sections of one structure."""

    def __init__(self, steps: Steps, starts: Vector, sizes: tuple[int, int, int], places: Vector) -> None:
        self._listed = np.array(steps.listed, np.uint16).reshape(-1, 4)
        self._results = LANES * np.array(list(steps.entries.values()), np.int64)
        self._starts, self._sizes, self._works, self._places = starts, sizes, steps.works, places
        self.steps = len(starts) * (STEP * len(self._listed) + ENTRY * len(self._results))

    def add_to(self, found: Vector, header: Vector, exactly: bool) -> bool:
        """Add what the sections give to the entries; whether all of that is finite."""
        pairs, triplets, _ = self._sizes
        factors, work = _lanes(pairs + triplets + 1), _lanes(self._works)
        work.fill(0.0)
        work[LANES : 2 * LANES] = 1.0
        addresses = np.empty(LANES, np.int64)
        header[at.SECTION_STEP_COUNT], header[at.SECTION_GROUPS] = len(self._listed), len(self._starts)
        header[at.SECTION_ENTRIES] = len(self._results)
        header[at.SECTION_PAIRS_OF_ONE : at.SECTION_FACTORS] = self._sizes
        for word, array in (
            (at.SECTION_STEPS, self._listed),
            (at.SECTION_STARTS, self._starts),
            (at.SECTION_FACTORS, factors),
            (at.SECTION_WORK, work),
            (at.SECTION_RESULTS_AT, self._results),
            (at.SECTION_PLACES, self._places),
            (at.SECTION_ADDRESSES, addresses),
            (at.SECTION_FOUND, found),
        ):
            header[word] = array.ctypes.data
        return not ARRAY_KERNELS.carry_out(header.ctypes.data, int(exactly))


def _lanes(count: int) -> Vector:
    """Room for so many vectors, each on one line of the cache: across two a pass for a Jacobian takes a tenth longer."""
    memory = np.empty(LANES * (count + 1))
    first = -memory.ctypes.data % (8 * LANES) // 8
    return memory[first : first + LANES * count]


class SectionPass:
    """A pass over rows of one structure, section by section.

    Parameters
    ----------
    groups : list of _Group
    second : bool
        Whether it is that of a Hessian.
    direct : ndarray of int
        Places of outputs that are inputs.

    Attributes
    ----------
    steps : int
        What takes about as long as so many steps of a `FrontPass`.
    """

    def __init__(self, groups: list[_Group], second: bool, direct: Vector) -> None:
        self._groups, self._second, self._direct = groups, second, direct
        self.steps = sum(group.steps for group in groups)

    def values(self, rows: Rows, count: int, weights: Vector = ONE) -> Vector:
        """Values of the entries of the pattern, in its order.

        Parameters
        ----------
        rows : Rows
            Of the structure for which it was made.
        count : int
            Number of entries.
        weights : ndarray
            Of the results.
        """
        header = _header(rows, self._second)
        last = int(header[at.SECTION_LAST])
        bars = large_empty((last + 1 if self._second and not rows.is_weighed else 1,), FLOAT64)
        bars.fill(0.0)
        header[at.SECTION_BARS] = bars.ctypes.data
        if len(bars) > 1:
            outs = np.where((rows.outs > 0) & (rows.outs <= last), rows.outs, 0)
            np.add.at(bars, outs, weights)
            bars[0] = 0.0
            ARRAY_KERNELS.pull_adjoints(header.ctypes.data)
        found: Vector = large_empty((count + 1,), FLOAT64)  # the last one for what is in no entry
        for exactly in (False, True):
            found.fill(0.0)
            are_finite = [group.add_to(found, header, exactly) for group in self._groups]
            if all(are_finite):  # an infinity or a nan would be in an entry, whatever it was multiplied with
                break
        found[self._direct] += 1.0
        return found[:count]


def _header(rows: Rows, second: bool) -> Vector:
    header: Vector = np.zeros(at.SECTION_HEADER_WORDS, np.int64)
    header[: at.SECTION_BARS] = [*rows.linear_rows, *(rows.second_partials if second else (0, 0, 0))]
    return header


def sections_of(rows: Rows, second: bool, ends: Vector, items: Vector) -> SectionPass | None:
    """The pass over rows of a structure; None where sections are long or have many structures.

    Parameters
    ----------
    rows : Rows
    second : bool
        Whether the Hessian is wanted.
    ends, items : ndarray
        The pattern, as `FrontPass.places` takes it.
    """
    found = _Structure(rows, second)
    groups = found.groups(ends, items)
    if groups is None:
        return None
    direct = np.flatnonzero((rows.outs > 0) & (rows.outs <= found.inputs)) if not second else np.empty(0, np.int64)
    places = _places(ends, items, direct, rows.outs[direct].astype(np.int64) - 1)
    return SectionPass(groups, second, places)


def _places(ends: Vector, items: Vector, rows: Vector, columns: Vector) -> Vector:
    """Places of entries; the last one, which is none, for those that the pattern has not."""
    rows, columns = np.ascontiguousarray(rows, np.int64), np.ascontiguousarray(columns, np.int64)
    places = np.empty(rows.size, np.int32)
    arrays = ends, items, rows, columns
    ARRAY_KERNELS.find_places(*(a.ctypes.data for a in arrays), rows.size, places.ctypes.data)
    places[places < 0] = len(items)
    return places


class _Structure:
    """Sections, their words and bounds."""

    def __init__(self, rows: Rows, second: bool) -> None:
        header = _header(rows, second)
        pairs, self.inputs, last, triplets = (int(header[k]) for k in (2, 3, 4, 7))
        self._second, self._is_weighed = second, rows.is_weighed
        outs = np.where(rows.outs > last, 0, rows.outs).astype(np.int32) if not second else np.empty(0, np.int32)
        self._order = np.argsort(outs, kind="stable")
        self._outs = outs[self._order]
        self._words, self._curves = np.zeros(pairs, np.int32), np.zeros((triplets, 3), np.int32)
        room = min(MOST_SECTIONS, max(last - self.inputs, 1))
        self._bounds = np.empty((room, at.BOUND_WORDS), np.int64)
        self._locals = np.empty(pairs + 2 * triplets, np.int32)
        live, stamps, numbers = (
            np.zeros(last + 1, np.uint8),
            np.zeros(self.inputs + 1, np.int32),
            np.zeros(self.inputs + 1, np.int32),
        )
        header[at.SECTION_RESULTS], header[at.SECTION_ROOM] = len(self._outs), room
        for word, array in (
            (at.SECTION_OUTS, self._outs),
            (at.SECTION_WORDS, self._words),
            (at.SECTION_CURVES, self._curves),
            (at.SECTION_BOUNDS, self._bounds),
            (at.SECTION_LOCALS, self._locals),
            (at.SECTION_LIVE, live),
            (at.SECTION_STAMPS, stamps),
            (at.SECTION_NUMBERS, numbers),
        ):
            header[word] = array.ctypes.data
        count = ARRAY_KERNELS.find_sections(header.ctypes.data)
        self._bounds = self._bounds[: max(count, 0)].copy()
        self._is_known = count >= 0

    def groups(self, ends: Vector, items: Vector) -> list[_Group] | None:
        """Sections by their structure, with places of entries in a pattern; None where that is not worth it."""
        templates = self._templates() if self._is_known else None
        if templates is None or sum(-len(own) % LANES + len(own) for own in templates) > max(MOST_LANES * len(self._bounds), LANES):
            return None
        try:
            return [self._group(own, ends, items) for own in templates]
        except NotImplementedError:
            return None

    def _templates(self) -> list[Vector] | None:
        """Numbers of sections that have one structure; None if they are too long or too many."""
        bounds = self._bounds
        lengths = np.stack([bounds[:, k + 1] - bounds[:, k] for k in (at.BOUND_PAIRS, at.BOUND_TRIPLETS, at.BOUND_OUTS)], axis=1)
        if lengths[:, :2].max(initial=0) > MOST_PAIRS:
            return None
        most = lengths.max(axis=0, initial=0) + 1
        kinds, firsts, of_kind = np.unique(np.ravel_multi_index(lengths.T, most), return_index=True, return_inverse=True)
        found: list[Vector] = []
        for kind in range(len(kinds)):
            pairs, triplets, outs = lengths[firsts[kind]].tolist()
            left = np.flatnonzero(of_kind == kind)
            rows = bounds[left, at.BOUND_ROW][:, None]
            structure = np.concatenate(
                [
                    self._words[bounds[left, at.BOUND_PAIRS][:, None] + np.arange(pairs)],
                    self._curves[bounds[left, at.BOUND_TRIPLETS][:, None] + np.arange(triplets)].reshape(len(left), -1),
                    (rows - self._outs[bounds[left, at.BOUND_OUTS][:, None] + np.arange(outs)]).astype(np.int32),
                ],
                axis=1,
            )
            while len(left):
                same = (structure == structure[0]).all(axis=1)
                found.append(left[same])
                if len(found) > MOST_TEMPLATES:
                    return None
                left, structure = left[~same], structure[~same]
        return found

    def _group(self, own: Vector, ends: Vector, items: Vector) -> _Group:
        first = self._bounds[own[0]].tolist()
        words = self._words[first[at.BOUND_PAIRS] : first[at.BOUND_PAIRS + 1]].tolist()
        curves = self._curves[first[at.BOUND_TRIPLETS] : first[at.BOUND_TRIPLETS + 1]]
        padded = self._bounds[np.concatenate([own, np.full(-len(own) % LANES, own[-1])])]
        bars = int(curves[:, 0].max(initial=-1)) + 1 if self._second and not self._is_weighed else 0
        if self._second:
            steps = hessian_steps(words, curves.tolist(), bars)
        else:
            outs = first[at.BOUND_ROW] - self._outs[first[at.BOUND_OUTS] : first[at.BOUND_OUTS + 1]]
            steps = jacobian_steps(words, outs.tolist())
        one, other = (np.array([key[k] for key in steps.entries], np.int64) for k in (0, 1))
        inputs = padded[:, at.BOUND_LOCALS][:, None]
        columns = self._locals[inputs + other].astype(np.int64) - 1
        if self._second:
            others = self._locals[inputs + one].astype(np.int64) - 1
            rows, columns = np.maximum(columns, others), np.minimum(columns, others)
        else:
            rows = self._order[padded[:, at.BOUND_OUTS][:, None] + one]
        places = _places(ends, items, rows, columns).reshape(rows.shape)
        places[len(own) :] = len(items)  # lanes that do what another does
        starts = np.stack([padded[:, at.BOUND_PAIRS], padded[:, at.BOUND_TRIPLETS], padded[:, at.BOUND_ROW] - max(bars - 1, 0)])
        lanes = len(padded) // LANES, LANES
        return _Group(
            steps,
            np.ascontiguousarray(starts.reshape(3, *lanes).transpose(1, 0, 2)),
            (len(words), len(curves), bars),
            np.ascontiguousarray(places.reshape(*lanes, -1 if places.size else 0).transpose(0, 2, 1)),
        )
