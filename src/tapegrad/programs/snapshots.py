"""What functions saw at one time, compared quickly before each run."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

__all__ = ["MISSING", "UNKNOWN", "Snapshot", "parts_in", "same_bits"]

MISSING = object()  # what a name without a value stands for
UNKNOWN = (AttributeError, KeyError, ValueError)  # what is raised where a name has no value any more
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}  # whose comparison knows no nan
SMALL = 4096  # bytes up to which a copy costs less than two views


def same_bits(a: Any, b: Any) -> bool:
    """Whether two arrays have the same contents."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.nbytes > SMALL and a.flags.c_contiguous and b.flags.c_contiguous and a.itemsize in WORDS and a.dtype.kind != "O":
        word = WORDS[a.itemsize]
        return bool(np.array_equal(a.reshape(-1).view(word), b.reshape(-1).view(word)))
    return bool(a.tobytes() == b.tobytes())


class Snapshot:
    """What functions saw at one time, by identity, and the contents of arrays."""

    __slots__ = ("_check", "_conditions", "arrays")

    def __init__(self) -> None:
        self._check: Any = None
        self.arrays: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []  # with what they held
        self._conditions: list[tuple[str, tuple[Any, ...]]] = []

    def ask(self, condition: str, *values: Any) -> None:
        """Have something looked at: an expression with places for values."""
        self._conditions.append((condition, values))

    def ask_of_name(self, space: dict[str, Any], name: str, part: Any) -> None:
        """Have a name stand for an object still, or for nothing where that is `MISSING`."""
        if part is MISSING:
            self.ask("{1} not in {0}", space, name)
        else:
            self.ask("{0}[{1}] is {2}", space, name, part)

    def holds(self) -> bool:
        """Whether everything is the same still."""
        try:
            return bool(self.check())
        except UNKNOWN:
            return False

    @property
    def check(self) -> Callable[[], Any]:
        """What says whether it is, or raises one of `UNKNOWN`."""
        if self._check is None:
            self._check = self._checking()
        check: Callable[[], Any] = self._check
        return check

    def _checking(self) -> Any:
        """A function without loops that looks at all of it: it is called before each run."""
        space, terms = self.terms()
        exec(f"def check():\n    return {' and '.join(terms) or 'True'}", space)
        return space["check"]

    def terms(self) -> tuple[dict[str, Any], list[str]]:
        """What has to be true, as text, with what it names."""
        space: dict[str, Any] = {"same_bits": same_bits, "has_parts": _has_parts, "has_attributes": _has_attributes}
        terms: list[str] = []

        def add(text: str, *values: Any) -> None:
            names = [f"v{len(space) + k}" for k in range(len(values))]
            space.update(zip(names, values, strict=True))
            terms.append(text.format(*names))

        for condition in self._conditions:
            add(condition[0], *condition[1])
        for array in self.arrays:
            add("same_bits({0}, {1})", *array)
        return space, terms


def parts_in(container: Any) -> Iterable[Any]:
    """What a tuple or a list holds, or a dict, whose names come one by one with their values."""
    return itertools.chain.from_iterable(container.items()) if type(container) is dict else container


def _has_parts(container: Any, parts: list[Any]) -> bool:
    now = list(parts_in(container))
    return len(now) == len(parts) and all(map(operator.is_, now, parts))


def _has_attributes(held: Any, names: tuple[str, ...], values: tuple[Any, ...]) -> bool:
    """Whether an object's attributes are these, in their order."""
    if len(held) != len(names):
        return False
    return all(map(operator.is_, held.values(), values)) and (all(map(operator.is_, held, names)) or tuple(held) == names)
