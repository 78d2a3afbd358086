"""A collection at any place, of objects in cycles whose destructors use them and keep them.

The collector clears weak references to what it found first, then runs destructors in any order, and forgets those that were kept.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

__all__ = ["Garbage", "collect_at"]


class Garbage:
    """Objects in a cycle, with what to do with them when they are collected; what that raises is kept, and what it answers with.

    One destructor stands before the objects in the order in which the collector goes, and one behind.
    """

    def __init__(self, make: Callable[[], Any], use: Callable[[Any], None]) -> None:
        self.make, self.use = make, use
        self.errors: list[BaseException] = []
        self.kept: list[Any] = []

    def drop(self) -> None:
        """Make objects, put them in a cycle, drop them, and let the collector find them."""
        first, last = _Destructor(self), _Destructor(self)
        made = self.make()
        first.objects = last.objects = cycle = [made, first, last]
        cycle.append(cycle)
        del first, last, made, cycle
        gc.collect()

    def check(self) -> None:
        """What was kept works after the collections too, and nothing raised."""
        for made in self.kept:
            self.use(made)
        self.kept.clear()
        assert not self.errors, self.errors[0]


class _Destructor:
    objects: Any = None

    def __init__(self, garbage: Garbage) -> None:
        self.garbage = garbage

    def __del__(self) -> None:
        if self.objects is not None:
            made, garbage = self.objects[0], self.garbage
            try:
                garbage.use(made)
            except BaseException as error:
                garbage.errors.append(error)
            if len(garbage.kept) < 4:
                garbage.kept.append(made)


def collect_at(run: Callable[[], Any], places: Iterator[int], garbage: Garbage, *files: str) -> int:
    """Run, and let garbage be made and found at these places in code from files or folders; how many places there are.

    They are those where signals are looked for too: a Python function begins, or a C function has returned.
    """
    count, wanted = 0, next(places)

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count, wanted
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(files):
            count += 1
            if count == wanted:
                wanted = next(places)
                garbage.drop()

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count
