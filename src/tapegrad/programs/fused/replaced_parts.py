"""Arrays with another part, which is what writes in place make of them."""

from __future__ import annotations

import numpy as np

from tapegrad.programs.steps import Step, Value

__all__ = ["Replaced"]


class Replaced(Step):
    """An array with another part: what a write into a part of it makes of it."""

    __slots__ = ("before", "part", "result", "where")

    def __init__(self, before: Value, part: Value, where: Value, result: Value) -> None:
        self.before, self.part, self.where, self.result = before, part, where, result

    def run(self) -> bool:
        """Do it."""
        np.copyto(self.result.array, self.before.array)
        np.copyto(self.where.array, self.part.array)
        return True

    def describe(self) -> str:
        """Its name."""
        return "a write in place"
