"""Equations that a solver solved, and which of them determine its solution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.optimize.active_sets import Limits
from tapegrad.optimize.dependence import leaf_of
from tapegrad.optimize.linear_systems import DenseSystems, Factorised, Systems
from tapegrad.optimize.linearised import lengths, require_finite
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["Determined", "Equations", "SquareEquations"]


class Determined(NamedTuple):
    """What a solution is determined by, linearised.

    Attributes
    ----------
    kept : ndarray of int
        Rows and columns of the Jacobian.
    held : ndarray of int
        Further rows, which must not change sign.
    linear : Factorised
        These rows and columns.
    step : ndarray
        Newton's, for all unknowns.
    lengths : ndarray, shape (n,)
        What is a long way for each variable.
    """

    kept: np.ndarray
    held: np.ndarray
    linear: Factorised
    step: np.ndarray
    lengths: np.ndarray


class Equations(ABC):
    """Equations of which a solver found a solution.

    Attributes
    ----------
    name : str
        Of the solver, for messages.
    z : ndarray, shape (n + m,)
        The solution: variables, then multipliers.
    start : ndarray, shape (n,)
        Where the solver started.
    failure : str or None
        Why the solver gave up: then whoever asks for the derivative gets an error with that, unless it has a solution all the same.
    bounds : Limits or None
        Of the variables.
    systems : Systems
        How the linear equations are solved.
    """

    def __init__(
        self,
        name: str,
        z: np.ndarray,
        start: np.ndarray,
        failure: str | None,
        bounds: Limits | None = None,
        systems: Systems | None = None,
    ) -> None:
        self.name, self.z, self.start, self.failure, self.bounds = name, z, start, failure, bounds
        self.systems: Systems = DenseSystems() if systems is None else systems

    @abstractmethod
    def residual(self, z: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
        """A tensor like `z`, which is zero where `determined` says so; and what it was computed from, if that depends on more."""

    def evaluate(self, z: np.ndarray) -> np.ndarray:
        """The residual at another point, whose derivative nobody takes."""
        return array_of(self.residual(leaf_of(z))[0])

    @abstractmethod
    def determined(self, value: np.ndarray, jacobian: Any) -> Determined | None:
        """Which of the equations determine which of the unknowns; None if `z` was changed, and they are to be recorded again."""

    def require_certainty(self) -> None:  # noqa: B027  # there is nothing to doubt where all equations hold
        """See that it is certain which of them hold, after they were determined.

        Raises
        ------
        AmbiguousError
            If it is not.
        """


class SquareEquations(Equations):
    """As many equations as unknowns, all of which hold."""

    def __init__(
        self,
        residual: Callable[[Tensor], Tensor],
        z: np.ndarray,
        start: np.ndarray,
        name: str,
        failure: str | None = None,
        systems: Systems | None = None,
    ) -> None:
        super().__init__(name, z, start, failure, systems=systems)
        self._residual = residual

    def residual(self, z: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
        """The residual of a solver."""
        value = self._residual(z)
        if value._data.shape != z._data.shape:
            counts = f"{value._data.size} for {z._data.size}"
            raise ValueError(f"{self.name}: there must be as many equations as unknowns, but there are {counts}")
        return value, ()

    def determined(self, value: np.ndarray, jacobian: Any) -> Determined:
        """All of them."""
        require_finite(value, _numbers(jacobian))
        linear = self.systems.linearised(jacobian)
        weights = _weights(jacobian, np.maximum(np.abs(self.z), np.abs(self.start)))
        everything, nothing = np.arange(len(value)), np.arange(0)
        return Determined(everything, nothing, linear, -linear.solve(value), lengths(self.z, self.start, weights))


def _numbers(jacobian: Any) -> np.ndarray:
    """The entries of a Jacobian; none of an operator."""
    if isinstance(jacobian, np.ndarray):
        return jacobian
    found: np.ndarray = jacobian.data if hasattr(jacobian, "nnz") else np.zeros(0)
    return found


def _weights(jacobian: Any, sizes: np.ndarray) -> np.ndarray:
    """What variables are to be multiplied by to be comparable: how much the equations change with them."""
    if isinstance(jacobian, np.ndarray):
        size = np.abs(jacobian) * sizes
        by_row = np.where(size.max(axis=1, initial=0.0) > 0.0, size.max(axis=1, initial=0.0), 1.0)
        found: np.ndarray = (np.abs(jacobian) / by_row[:, None]).max(axis=0, initial=0.0)
        return found
    if not hasattr(jacobian, "nnz"):  # of products alone nothing is known
        return np.ones(len(sizes))
    entries, rows = abs(jacobian), np.repeat(np.arange(len(sizes)), np.diff(jacobian.indptr))
    by_row = np.zeros(len(sizes))
    np.maximum.at(by_row, rows, entries.data * sizes[entries.indices])
    by_row[by_row == 0.0] = 1.0
    weights = np.zeros(len(sizes))
    np.maximum.at(weights, entries.indices, entries.data / by_row[rows])
    return weights
