"""Elements at places that index arrays name, as runs of elements with equal steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Run", "runs_of"]

Array = np.ndarray[Any, Any]
Run = tuple[int, int, int, int]  # place in the result, place in the operand, how many elements, and the step between these
MOST_RUNS = 64


def runs_of(take: Callable[[Array], Any], size: int, count: int) -> list[Run] | None:
    """The runs of what is taken out of an array, in the order of the result; None if there are too many.

    What is taken is found by asking for the elements of an array that counts.

    Parameters
    ----------
    take : callable
        Gives the elements of a vector.
    size, count : int
        Numbers of elements of the vector and of the result.
    """
    places = np.asarray(take(np.arange(float(size)))).reshape(-1)
    if places.size != count or not count:
        return None
    numbers = places.astype(np.intp)
    probe = np.random.default_rng(size).random(size)
    if numbers.min() < 0 or numbers.max() >= size or not np.array_equal(np.asarray(take(probe)).reshape(-1), probe[numbers]):
        return None  # it is no choice of elements
    return _runs(numbers.tolist())


def _runs(places: list[int]) -> list[Run] | None:
    found: list[Run] = []
    start = 0
    while start < len(places):
        stop, by = start + 1, 0
        if stop < len(places):
            by = places[stop] - places[start]
            while by and stop < len(places) and places[stop] - places[stop - 1] == by:
                stop += 1
        found.append((start, places[start], stop - start, by if stop - start > 1 else 1))
        if len(found) > MOST_RUNS:
            return None
        start = stop
    return found
