"""Conditions of a minimum of many variables: the active set is read off distances and multipliers, in sparse arrays.

`optimality` solves for how far each variable would go without its bound, one solution of linear equations for each. Here the
curvature along single variables stands for that, which is the larger one where the Hessian is positive definite: what is certain by
it is certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.optimize.active_sets import DOUBTFUL, NOISE, ActiveSet, AmbiguousError, Limits
from tapegrad.optimize.equations import Determined
from tapegrad.optimize.linear_systems import Factorised
from tapegrad.optimize.linearised import lengths, require_finite
from tapegrad.optimize.optimality import Conditions

__all__ = ["LargeConditions"]

NEAR = 1e-4  # relative distances of limits that may hold: interior methods end short of them
REPETITIONS = 10  # of guesses at the active set
Vector = np.ndarray


class LargeConditions(Conditions):
    """The same equations as `Conditions`, with sparse matrices or products in place of dense ones."""

    is_sparse = True

    def _first_guess(self, x: Vector, gradient: Vector, values: Vector, normals: Any) -> tuple[ActiveSet, Vector]:
        """Limits that are near and that the gradient pushes against."""
        bounds, limits = self.variables, self.limits
        size = lengths(x, self.packing.start, np.ones(len(x)))
        gradient = np.where(np.isfinite(gradient), gradient, 0.0)
        units = np.maximum(abs(normals) @ size, np.finfo(float).tiny) if len(values) else np.ones(0)
        sides = np.where(limits.lower == limits.upper, -1, _near(values, limits, NEAR * units))
        near = np.where(bounds.lower == bounds.upper, -1, _near(x, bounds, NEAR * size))
        held, multipliers = near, np.zeros(len(values))
        for _ in range(REPETITIONS):
            multipliers = _fitted(sides, held == 0, gradient, normals)
            reduced = gradient - multipliers @ normals if len(values) else gradient
            found = np.where((near * reduced < 0.0) | (bounds.lower == bounds.upper), near, 0)
            kept = np.where((sides * multipliers < 0.0) | (limits.lower == limits.upper), sides, 0)
            if (found == held).all() and (kept == sides).all():
                break
            held, sides = found, kept
        return ActiveSet(held, sides), multipliers

    @staticmethod
    def _joined(normals: Sequence[Any], n: int) -> Any:
        """Normals of all constraint functions."""
        from scipy.sparse import csr_array, vstack

        return vstack(normals, format="csr") if normals else csr_array((0, n))

    def determined(self, value: Vector, jacobian: Any) -> Determined | None:
        """The equations of the active set; None where that is another one than was recorded."""
        n = len(self.start)
        assert self.bounds is not None
        x, active, limits = self.z[:n], self.active, self.limits
        fixed = self.bounds.lower == self.bounds.upper
        for _ in range(REPETITIONS):
            linear, step = self._solved(value, jacobian, active)
            there = jacobian @ step
            after, multipliers = x + step[:n], self.z[n:] + step[n:]
            gradient = value[:n] + there[:n]
            values = value[n:] + limits.at(self.active.sides) + there[n:]
            held, sides = active.held.copy(), active.sides.copy()
            free, idle = held == 0, sides == 0
            held[free & (after < self.bounds.lower)], held[free & (after > self.bounds.upper)] = -1, 1
            held[~free & ~fixed & (active.held * gradient > 0.0)] = 0
            sides[idle & (values < limits.lower)], sides[idle & (values > limits.upper)] = -1, 1
            sides[~idle & (limits.lower != limits.upper) & (active.sides * multipliers > 0.0)] = 0
            found = ActiveSet(held, sides)
            if found.key() == active.key():
                break
            active = found
        else:
            raise AmbiguousError("it is not clear which bounds and constraints are active at the result")
        if (active.sides != self.active.sides).any():
            self.active, self.z = active, np.concatenate([x, multipliers])
            return None
        self.active = active
        diagonal = jacobian.diagonal()[:n] if hasattr(jacobian, "nnz") else np.ones(n)
        long = lengths(x, self.start, np.sqrt(np.abs(diagonal)))
        self._after = after, multipliers, values, gradient, step, long, np.abs(diagonal)
        return Determined(active.kept, np.flatnonzero((active.held != 0) & ~fixed), linear, step, long)

    def _solved(self, value: Vector, jacobian: Any, active: ActiveSet) -> tuple[Factorised, Vector]:
        """Newton's step of all variables and multipliers for an active set."""
        n = len(self.start)
        assert self.bounds is not None
        step = np.zeros(len(self.z))
        step[:n] = np.where(active.held == 0, 0.0, self.bounds.at(active.held) - self.z[:n])
        step[n:] = np.where(active.sides == 0, -self.z[n:], 0.0)
        gaps = value[n:] + self.limits.at(self.active.sides) - self.limits.at(active.sides)
        kept = active.kept
        right = np.concatenate([value[:n], gaps])[kept] + (jacobian @ step)[kept]
        require_finite(right, jacobian.data if hasattr(jacobian, "nnz") else right)
        linear = self.systems.linearised(_part(jacobian, kept))
        step[kept] = -linear.solve(right)
        return linear, step

    def require_certainty(self) -> None:
        """See that no bound or constraint is about to hold, or to let go."""
        after, multipliers, values, gradient, step, long, curvature = self._after
        bounds, active = self.bounds, self.active
        assert bounds is not None
        n = len(after)
        fixed = bounds.lower == bounds.upper
        doubt = np.maximum(DOUBTFUL, 3.0 * float((np.abs(step[:n]) / long).max(initial=0.0))) * long
        pull = float((np.abs(gradient) * long).sum()) + float(np.abs(multipliers).sum())
        released = np.abs(gradient) / np.where(curvature > 0.0, curvature, np.finfo(float).tiny)
        weak = (active.held != 0) & ~fixed & ~((released > doubt) & (np.abs(gradient) * long > NOISE * pull))
        near = (active.held == 0) & (np.minimum(after - bounds.lower, bounds.upper - after) <= doubt)
        for i in np.flatnonzero(weak | near)[:1].tolist():
            raise AmbiguousError(
                _doubt("bound of variable", i, min(after[i] - bounds.lower[i], bounds.upper[i] - after[i]), gradient[i])
            )
        limits, inequal = self.limits, self.limits.lower != self.limits.upper
        weak = (
            (active.sides != 0)
            & inequal
            & ~(np.abs(multipliers) > max(NOISE * pull, DOUBTFUL * np.abs(multipliers).max(initial=0.0)))
        )
        gaps = np.minimum(values - limits.lower, limits.upper - values)
        near = (active.sides == 0) & (gaps <= DOUBTFUL * np.maximum(np.abs(values), 1.0))
        for j in np.flatnonzero(weak | near)[:1].tolist():
            raise AmbiguousError(_doubt("limit of constraint", j, gaps[j], multipliers[j]))


def _part(jacobian: Any, kept: Vector) -> Any:
    """Some rows and the same columns."""
    size = jacobian.shape[0]
    if len(kept) == size:
        return jacobian
    if hasattr(jacobian, "nnz"):
        return jacobian[kept][:, kept]
    from scipy.sparse.linalg import LinearOperator

    def placed(v: Vector) -> Vector:
        found = np.zeros(size)
        found[kept] = v.reshape(-1)
        return found

    return LinearOperator(
        (len(kept), len(kept)),
        matvec=lambda v: (jacobian @ placed(v))[kept],
        rmatvec=lambda v: (jacobian.T @ placed(v))[kept],
        dtype=np.float64,
    )


def _near(values: Vector, limits: Limits, distances: Vector) -> Vector:
    """-1 and 1 for values that are at or near their lower and upper limits."""
    below, above = values - limits.lower <= distances, limits.upper - values <= distances
    found: Vector = np.where(below & (~above | (values - limits.lower <= limits.upper - values)), -1, np.where(above, 1, 0))
    return found


def _fitted(sides: Vector, free: Vector, gradient: Vector, normals: Any) -> Vector:
    """Multipliers of active constraints that leave least of the gradient of free variables."""
    found = np.zeros(len(sides))
    rows = np.flatnonzero(sides)
    if len(rows) and free.any():
        from scipy.sparse.linalg import lsmr

        found[rows] = lsmr(normals[rows][:, np.flatnonzero(free)].T, gradient[free], atol=1e-12, btol=1e-12, maxiter=5 * len(rows))[
            0
        ]
    return found


def _doubt(what: str, number: int, gap: Any, multiplier: Any) -> str:
    return (
        f"it is not clear whether the {what} {number} (in the order of result.flat) is active at the result: distance "
        f"{abs(gap):.2g} and multiplier {abs(multiplier):.2g} are both about zero, for the scale of the problem. Ask for a smaller "
        "tolerance, or leave the limit out if it does nothing"
    )
