"""What functions saw at one time, compared quickly before each run."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

__all__ = ["MISSING", "UNKNOWN", "Snapshot", "parts_in", "same_bits"]

MISSING = object()  # what a name without a value stands for
UNKNOWN = (KeyError, ValueError)  # what is raised where a name has no value any more
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

    __slots__ = ("_check", "arrays", "cells", "containers", "functions", "names")

    def __init__(self) -> None:
        self._check: Any = None
        self.arrays: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
        self.names: list[tuple[dict[str, Any], str, Any]] = []
        self.cells: list[tuple[Any, Any]] = []
        self.containers: list[tuple[Any, list[Any]]] = []
        self.functions: list[tuple[Any, Any, Any, Any]] = []

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
        space: dict[str, Any] = {"same_bits": same_bits, "has_parts": _has_parts}
        terms: list[str] = []

        def add(text: str, *values: Any) -> None:
            names = [f"v{len(space) + k}" for k in range(len(values))]
            space.update(zip(names, values, strict=True))
            terms.append(text.format(*names))

        for one in self.functions:
            add("{0}.__code__ is {1} and {0}.__defaults__ is {2} and {0}.__kwdefaults__ is {3} and not {0}.__dict__", *one)
        for names, name, part in self.names:
            if part is MISSING:
                add("{1} not in {0}", names, name)
            else:
                add("{0}[{1}] is {2}", names, name, part)
        for cell in self.cells:
            add("{0}.cell_contents is {1}", *cell)
        for container in self.containers:
            add("has_parts({0}, {1})", *container)
        for array in self.arrays:
            add("same_bits({0}, {1})", *array)
        return space, terms


def parts_in(container: Any) -> Iterable[Any]:
    """What a tuple or a list holds, or a dict, whose names come one by one with their values."""
    return itertools.chain.from_iterable(container.items()) if type(container) is dict else container


def _has_parts(container: Any, parts: list[Any]) -> bool:
    now = list(parts_in(container))
    return len(now) == len(parts) and all(map(operator.is_, now, parts))
