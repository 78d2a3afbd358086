"""An objective and constraints with a recording each: of compiled functions and programs, which have tapes of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.optimize.constraints import Constraint
from tapegrad.optimize.packing import Packing
from tapegrad.optimize.recordings import ScipyFunction
from tapegrad.optimize.sparse_constraints import Recorded

__all__ = ["Apart"]

Vector = np.ndarray


class Apart:
    """What `Together` gives, with a block of second derivatives for each function.

    Parameters
    ----------
    f : callable
    packing : Packing
    args : tuple
    constraints : sequence of Constraint
    second : bool
        Whether Hessians are wanted.
    """

    def __init__(
        self, f: Callable[..., Any], packing: Packing, args: tuple[Any, ...], constraints: Sequence[Constraint], second: bool
    ) -> None:
        self._function = ScipyFunction(f, packing, args, keeps=second, strict=True)
        self._parts = [Recorded(one, packing, second) for one in constraints]
        self.objective, self.gradient = self._function.value, self._function.gradient

    def __enter__(self) -> Apart:
        return self

    def __exit__(self, *exception: object) -> None:
        self._function.__exit__(*exception)
        for part in self._parts:
            part.function.__exit__(*exception)

    def begin(self, x: Vector) -> list[int]:
        """Run all functions at the first point; how many numbers each constraint function gives."""
        self._function.value(x)
        return [len(part.value(x)) for part in self._parts]

    def at(self, x: Vector) -> tuple[float, Vector]:
        """The objective and its gradient at a point."""
        return self._function(x)

    @property
    def first(self) -> tuple[float, float] | None:
        """Value and largest element of the gradient at the first point."""
        return self._function.first

    @property
    def latest_value(self) -> float:
        """The objective at the latest point."""
        return self._function.latest_value

    @property
    def evaluations(self) -> int:
        """How often the objective was run."""
        return self._function.evaluations

    def constraints(self, x: Vector) -> list[Vector]:
        """Values of each constraint function."""
        return [part.value(x) for part in self._parts]

    def jacobian_patterns(self, x: Vector) -> list[Any]:
        """Patterns of blocks of rows of the constraints' Jacobian."""
        return [part.jacobian_pattern(x) for part in self._parts]

    def jacobian_entries(self, x: Vector) -> list[tuple[Any, Vector]]:
        """These, and values of their entries."""
        return [part.jacobian_entries(x) for part in self._parts]

    def hessian_patterns(self, x: Vector, multipliers: Sequence[Vector]) -> list[Any]:
        """Patterns of matrices whose sum is the Lagrangian's Hessian."""
        found = [part.hessian_pattern(x, some) for part, some in zip(self._parts, multipliers, strict=True)]
        return [self._function.hessian_pattern(x), *found]

    def hessian_entries(self, x: Vector, factor: float, multipliers: Sequence[Vector]) -> list[tuple[Any, Vector]]:
        """These for ``factor * f + multipliers @ c``, and values of their entries."""
        pattern, values = self._function.hessian_entries(x)
        found = [part.hessian_entries(x, some) for part, some in zip(self._parts, multipliers, strict=True)]
        return [(pattern, factor * values), *found]
