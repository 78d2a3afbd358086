"""Constraints for solvers that work on sparse derivatives, each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.optimize.constraints import Constraint, recordable
from tapegrad.optimize.packing import Packing

__all__ = ["Linear", "Recorded", "limits_of", "parts_of"]

Vector = np.ndarray


class Recorded:
    """Constraints ``lower <= function(x) <= upper`` of a function that is recorded."""

    def __init__(self, one: Constraint, packing: Packing, second: bool = True) -> None:
        vector = look_up("optimize.recordings:VectorFunction")
        self.function = vector(one.function, packing, name="constraint", keeps=second, sparse=True)
        self.value, self.jacobian, self.hessian = self.function.value, self.function.jacobian, self.function.hessian
        self.jacobian_entries, self.hessian_entries = self.function.jacobian_entries, self.function.hessian_entries
        self.jacobian_pattern, self.hessian_pattern = self.function.jacobian_pattern, self.function.hessian_pattern
        self.lower, self.upper = one.lower, one.upper


class Linear:
    """Constraints ``lower <= A x <= upper``, SciPy's."""

    hessian = None

    def __init__(self, given: Any) -> None:
        from scipy.sparse import csr_array

        self.matrix: Any = csr_array(np.atleast_2d(given.A) if not hasattr(given.A, "tocsr") else given.A, dtype=np.float64)
        self.lower, self.upper = given.lb, given.ub

    def value(self, x: Vector) -> Vector:
        """Values at a point."""
        found: Vector = self.matrix @ x
        return found

    def jacobian(self, x: Vector) -> Any:
        """The matrix, whatever the point."""
        return self.matrix

    def jacobian_entries(self, x: Vector) -> tuple[Any, Vector]:
        """Its pattern, and the values of its entries."""
        return self.matrix, self.matrix.data


def parts_of(given: Any, why: str) -> list[Any]:
    """Constraints in any of the forms that `minimize` takes.

    Parameters
    ----------
    given : object
    why : str
        What the method does with them that differences are no good for, for the message.

    Returns
    -------
    list of Constraint or Linear

    Raises
    ------
    NotImplementedError
        If one has derivatives by differences.
    """
    if not isinstance(given, (Constraint, dict)) and isinstance(given, Sequence):
        return [part for one in given for part in parts_of(one, why)]
    if hasattr(given, "A") and not hasattr(given, "fun"):
        return [Linear(given)]
    found = recordable(given)
    if not found:
        raise NotImplementedError(
            f"minimize: {why}, which differences do not give: leave jac out of the {type(given).__name__}, or give "
            "tg.optimize.equality, inequality or between"
        )
    return [one for one, _ in found]


def limits_of(parts: Sequence[Any], sizes: Sequence[int]) -> tuple[Vector, Vector]:
    """Lower and upper limits of all numbers that constraints give.

    Parameters
    ----------
    parts : sequence of Constraint, Recorded or Linear
    sizes : sequence of int
        How many numbers each gives.

    Raises
    ------
    ValueError
        If limits do not fit the constraints.
    """
    found: dict[str, list[Vector]] = {"lower": [np.zeros(0)], "upper": [np.zeros(0)]}
    for part, size in zip(parts, sizes, strict=True):
        for side, limits in found.items():
            limit = np.asarray(getattr(part, side), np.float64)
            if limit.size not in (1, size):
                raise ValueError(f"minimize: a constraint gives {size} numbers, but has {limit.size} limits ({side})")
            limits.append(np.broadcast_to(limit.reshape(-1), size))
    return np.concatenate(found["lower"]), np.concatenate(found["upper"])
