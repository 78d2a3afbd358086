"""Tangents of elements that index arrays choose, and their way back: Python does them, as it does such steps themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.programs.steps import Step, Structured

__all__ = ["HostedChoice", "HostedReturn", "is_choice"]

Array = np.ndarray[Any, Any]


def is_choice(step: Step) -> bool:
    """Whether a step chooses elements of an array by index arrays."""
    if not isinstance(step, Structured) or step.name != "IndexBackward0" or len(step.operands) != 1:
        return False
    (x,) = step.operands
    if x.number >= 0 or step.result.number >= 0:
        return False
    places = _places(step)
    if places.size != step.result.array.size or not places.size:
        return False
    probe = np.random.default_rng(places.size).random(x.array.shape)
    return np.array_equal(np.asarray(step.forward([probe])).reshape(-1), probe.reshape(-1)[places])


def _places(step: Structured) -> Array:
    """Places of the chosen elements in C order, by choosing among elements that count."""
    (x,) = step.operands
    counted = np.arange(float(x.array.size)).reshape(x.array.shape)
    return np.asarray(step.forward([counted])).reshape(-1).astype(np.intp)


class _Chosen:
    """Where the elements are: looked at once if that is the same in each run.

    Parameters
    ----------
    step : Structured
    whole, elements : ndarray
    lanes : int
        Of how many directions, which are the last axis of both if there are any.
    """

    __slots__ = ("_elements", "_places", "_step", "_whole")

    def __init__(self, step: Structured, whole: Array, elements: Array, lanes: int) -> None:
        self._step, self._whole, self._elements = step, whole.reshape(-1, lanes), elements.reshape(-1, lanes)
        self._places = _places(step) if step.fixed else None

    def places(self) -> Array | None:
        """Those of this run; None if there is another number of them."""
        found = _places(self._step) if self._places is None else self._places
        return found if found.size == len(self._elements) else None


class HostedChoice(_Chosen):
    """The elements of an array, along all directions."""

    __slots__ = ()

    def run(self) -> bool:
        """Do it."""
        places = self.places()
        if places is None:
            return False
        np.take(self._whole, places, axis=0, out=self._elements, mode="clip")
        return True


class HostedReturn(_Chosen):
    """What goes back to the array: sums over all elements that were chosen from one place."""

    __slots__ = ()

    def run(self) -> bool:
        """Do it."""
        places = self.places()
        if places is None:
            return False
        for k in range(self._whole.shape[1]):
            self._whole[:, k] = np.bincount(places, self._elements[:, k], len(self._whole))
        return True
