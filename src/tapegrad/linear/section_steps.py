"""What is done in a section of a recording, written down once for all sections of the same structure.

Words are as `tapegrad.engine.section_layout` has them: an even one is twice the distance of a row from the section's last one, an
odd one an input's number in the section, twice and one; zero in a pair is nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapegrad.engine.section_layout import CONSTANT_WORKS, NOTHING_WORD

__all__ = ["MOST_STEPS", "Steps", "hessian_steps", "jacobian_steps"]

MASK = 0x7FFFFFFF
MOST_STEPS = 1 << 14
NOTHING, ONES = 0, 1  # work that is zero, and that is one

Edge = tuple[int, int]


class Steps:
    """Steps ``work[to] = work[base] + factors[by] * work[of]``, and where the results are.

    Factors are the pairs' partials, and after them second partials; the first work is zero, the second one, then come adjoints of
    rows, the section's last row last.

    Attributes
    ----------
    listed : list of tuple
        Of four numbers each.
    works : int
        How many are in use at once.
    entries : dict
        Work of each result, by its two numbers: of the output and of the input, or of two inputs.
    """

    def __init__(self, bars: int) -> None:
        self.listed: list[tuple[int, int, int, int]] = []
        self.works = CONSTANT_WORKS + bars
        self.entries: dict[Edge, int] = {}
        self._free: list[int] = []

    def product(self, by: int, of: int) -> int:
        """Work of its own that holds a product."""
        to = self._free.pop() if self._free else self.works
        self.works = max(self.works, to + 1)
        self._append(to, NOTHING, by, of)
        return to

    def add(self, to: int, by: int, of: int) -> None:
        """Add a product to work."""
        self._append(to, to, by, of)

    def release(self, work: int) -> None:
        """Work that is not needed any more."""
        if work != ONES:
            self._free.append(work)

    def _append(self, *step: int) -> None:
        if len(self.listed) == MOST_STEPS:
            raise NotImplementedError("there are too many steps")
        self.listed.append(step)  # type: ignore[arg-type]


def rows_of(words: Sequence[int]) -> list[list[tuple[int, int]]]:
    """Number and word of the pairs of each row that are something, the last row first."""
    rows: list[list[tuple[int, int]]] = []
    for k, word in enumerate(words):
        if word < 0:  # the first of a row
            rows.append([])
        if word & MASK != NOTHING_WORD:
            rows[-1].append((k, word & MASK))
    return rows[::-1]


def jacobian_steps(words: Sequence[int], outs: Sequence[int]) -> Steps:
    """Adjoints of each output of a section.

    Parameters
    ----------
    words : sequence of int
        Of its pairs.
    outs : sequence of int
        Distances of the outputs' rows from the last row.

    Raises
    ------
    NotImplementedError
        If there are too many steps.
    """
    steps = Steps(0)
    bars: list[dict[int, int]] = [{} for _ in range(len(words))]  # of each row, by the output
    for output, distance in enumerate(outs):
        bars[distance][output] = ONES
    for number, pairs in enumerate(rows_of(words)):
        for k, word in pairs:
            for output, of in bars[number].items():
                own = steps.entries if word & 1 else bars[word >> 1]
                key = (output, word >> 1) if word & 1 else output
                _accumulate(steps, own, key, k, of)
        for work in bars[number].values():
            steps.release(work)
    return steps


def _accumulate(steps: Steps, own: dict, key: object, by: int, of: int) -> None:  # type: ignore[type-arg]
    if key in own:
        steps.add(own[key], by, of)
    else:
        own[key] = steps.product(by, of)


def hessian_steps(words: Sequence[int], curves: Sequence[Sequence[int]], bars: int) -> Steps:
    """Edge-pushing through a section.

    Parameters
    ----------
    words : sequence of int
        Of its pairs.
    curves : sequence of three int
        Distance of a row from the last one and words of the two that it has a second partial by; the first is -1 for none.
    bars : int
        Of how many rows, up to the last one, adjoints are among the work; zero if second partials have them in them.

    Raises
    ------
    NotImplementedError
        If there are too many steps.
    """
    pushing = _Pushing(Steps(bars))
    of_row: dict[int, list[tuple[int, int, int]]] = {}
    for u, (distance, a, b) in enumerate(curves):
        of_row.setdefault(distance, []).append((len(words) + u, a, b))
    for number, pairs in enumerate(rows_of(words)):
        pushing.push(2 * number, pairs)
        for by, a, b in of_row.get(number, ()):
            pushing.add(a, b, by, CONSTANT_WORKS + bars - 1 - number if bars else ONES, a == b)
    pushing.finish()
    return pushing.steps


class _Pushing:
    """Edges of a section while its rows are gone through: second derivatives by two of its rows or inputs."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self._edges: dict[int, dict[int, int]] = {}  # work of each edge, from both ends

    def add(self, a: int, b: int, by: int, of: int, twice: bool) -> None:
        """Add a product to the edge of two; twice for what is there in both directions, or as half."""
        own = self._edges.setdefault(a, {})
        if b in own:
            self.steps.add(own[b], by, of)
        else:
            own[b] = self._edges.setdefault(b, {})[a] = self.steps.product(by, of)
        if twice:
            self.steps.add(own[b], by, of)

    def push(self, row: int, pairs: Sequence[tuple[int, int]]) -> None:
        """The edges of a row go on to what it was made of."""
        own = self._edges.pop(row, {})
        itself = own.pop(row, None)
        for other in own:
            del self._edges[other][row]
        for other, of in own.items():
            for k, word in pairs:
                self.add(word, other, k, of, word == other)
            self.steps.release(of)
        if itself is None:
            return
        for number, (k, word) in enumerate(pairs):
            along = self.steps.product(k, itself)
            self.add(word, word, k, along, False)
            for m, further in pairs[number + 1 :]:
                self.add(word, further, m, along, word == further)
            self.steps.release(along)
        self.steps.release(itself)

    def finish(self) -> None:
        """What is left are edges of inputs; in order, so that entries of one row are added to one after the other."""
        self.steps.entries = {(a >> 1, b >> 1): own[b] for a, own in sorted(self._edges.items()) for b in sorted(own) if a <= b}
