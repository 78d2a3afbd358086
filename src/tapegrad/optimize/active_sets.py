"""Which bounds and constraints are active at a minimum: those of the quadratic model there, if it leaves no doubt.

A multiplier and a distance cannot be compared: one has units of the objective, the other of the variable. But Newton's method says
how far a variable would go if its bound let it go, and that is compared with how far it is from there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.optimize.linearised import Linearised, SingularError, lengths, require_finite

__all__ = ["ActiveSet", "AmbiguousError", "Limits", "Model", "first_guess"]

DOUBTFUL = 1e-7  # relative distances that are too short to tell on which side of a limit something is
NOISE = 1e-12  # multipliers that are rounding, relative to gradients
FAR = 100.0  # how much more a constraint that is as far away as the variables are long has to explain of the gradient


class AmbiguousError(RuntimeError):
    """A bound or constraint of which it cannot be said whether it is active."""


class Limits(NamedTuple):
    """What bounds variables, or values of constraint functions, from below and above."""

    lower: np.ndarray
    upper: np.ndarray

    def at(self, sides: np.ndarray) -> np.ndarray:
        """Those on sides, which are -1 for lower ones and 1 for upper ones; else zero."""
        found: np.ndarray = np.where(sides < 0, self.lower, np.where(sides > 0, self.upper, 0.0))
        return found


class ActiveSet(NamedTuple):
    """What a minimum is determined by.

    Attributes
    ----------
    held : ndarray of int, shape (n,)
        -1 and 1 for variables at their lower and upper bounds, else 0.
    sides : ndarray of int, shape (m,)
        The same for constraints; 0 for one that is not active.
    """

    held: np.ndarray
    sides: np.ndarray

    @property
    def kept(self) -> np.ndarray:
        """Free variables, and multipliers of active constraints behind all variables."""
        found: np.ndarray = np.flatnonzero(np.concatenate([self.held == 0, self.sides != 0]))
        return found

    def key(self) -> bytes:
        """What tells it from another."""
        return self.held.tobytes() + self.sides.tobytes()


class Model(NamedTuple):
    """The optimality conditions at a point, linearised.

    Attributes
    ----------
    x, start : ndarray, shape (n,)
        The point, and where the solver started.
    multipliers : ndarray, shape (m,)
        Not negative at a lower limit, not positive at an upper one.
    gradient, hessian : ndarray, shapes (n,) and (n, n)
        Of the Lagrangian ``f - multipliers @ c``.
    values, normals : ndarray, shapes (m,) and (m, n)
        Of the constraints.
    bounds, limits : Limits
        Of the variables, and of the constraints.
    fixed : ndarray of bool, shape (n,)
        Variables of which it is known that a bound holds them.
    """

    x: np.ndarray
    start: np.ndarray
    multipliers: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray
    values: np.ndarray
    normals: np.ndarray
    bounds: Limits
    limits: Limits
    fixed: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """What is a long way for each variable."""
        return lengths(self.x, self.start, np.sqrt(np.abs(np.diag(self.hessian))))

    def solved(self, active: ActiveSet) -> tuple[Linearised, np.ndarray]:
        """The equations for an active set, and the Newton step of all variables and multipliers.

        Raises
        ------
        SingularError
            If they do not determine it.
        """
        n, m = len(self.x), len(self.values)
        held, kept = active.held, active.kept
        step = np.zeros(n + m)
        step[:n] = np.where(held == 0, 0.0, self.bounds.at(held) - self.x)
        step[n:] = np.where(active.sides == 0, -self.multipliers, 0.0)
        gaps = np.where(active.sides == 0, 0.0, self.values - self.limits.at(active.sides))
        residual = np.concatenate([self.gradient, gaps])
        free, rows = kept[kept < n], kept[kept >= n] - n
        size = len(free)
        jacobian = np.zeros((len(kept), len(kept)))
        jacobian[:size, :size] = self.hessian[np.ix_(free, free)]
        jacobian[:size, size:] = -self.normals[np.ix_(rows, free)].T
        jacobian[size:, :size] = self.normals[np.ix_(rows, free)]
        require_finite(jacobian, residual[kept])
        if len(rows) and not _independent(jacobian[size:, :size] * self.lengths[free]):
            raise SingularError(
                "the bounds and constraints that are active at the result are not independent of each other (leave out what "
                "follows from others)"
            )
        linear = Linearised(jacobian)
        moved = np.flatnonzero(step[:n])
        right = residual[kept]
        right[:size] += self.hessian[np.ix_(free, moved)] @ step[moved] - self.normals[:, free].T @ step[n:]
        right[size:] += self.normals[np.ix_(rows, moved)] @ step[moved]
        step[kept] = -linear.solve(right)
        return linear, step

    def after(self, step: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Variables, multipliers, values and gradient where a step leads; of the gradient not what is not finite."""
        n = len(self.x)
        with np.errstate(invalid="ignore"):
            gradient = self.gradient + self.hessian @ step[:n] - self.normals.T @ step[n:]
        return self.x + step[:n], self.multipliers + step[n:], self.values + self.normals @ step[:n], gradient

    def settled(self, active: ActiveSet) -> tuple[ActiveSet, Linearised, np.ndarray]:
        """The active set of the quadratic model, from a guess: what a step would violate is active, what pulls is not.

        Raises
        ------
        SingularError
            If the equations on the way do not determine a step.
        AmbiguousError
            If it goes in circles.
        """
        seen = set()
        equal = self.limits.lower == self.limits.upper
        while active.key() not in seen:
            seen.add(active.key())
            linear, step = self.solved(active)
            x, multipliers, values, gradient = self.after(step)
            held, sides = active.held.copy(), active.sides.copy()
            free = held == 0
            held[free & (x < self.bounds.lower)] = -1
            held[free & (x > self.bounds.upper)] = 1
            # At a lower bound the objective grows upwards.
            held[~free & ~self.fixed & (active.held * gradient > 0.0)] = 0
            idle = sides == 0
            sides[idle & (values < self.limits.lower)] = -1
            sides[idle & (values > self.limits.upper)] = 1
            sides[~idle & ~equal & (active.sides * multipliers > 0.0)] = 0
            found = ActiveSet(held, sides)
            if found.key() == active.key():
                return active, linear, step
            active = found
        raise AmbiguousError(
            "it is not clear which bounds and constraints are active at the result: the quadratic model has no minimum"
        )

    def require_certainty(self, active: ActiveSet, linear: Linearised, step: np.ndarray) -> None:
        """See that what is active would go far without its limit, and that what is not is far from it.

        Raises
        ------
        AmbiguousError
            If both are about zero.
        """
        n, kept, lengths_ = len(self.x), active.kept, self.lengths
        x, multipliers, values, gradient = self.after(step)
        known = np.isfinite(self.gradient) & (active.held == 0)
        error = float((np.abs(step[:n]) / lengths_).max(initial=0.0))
        doubt = max(DOUBTFUL, 3.0 * error) * lengths_
        pull = float(np.abs(self.gradient[np.isfinite(self.gradient)] * lengths_[np.isfinite(self.gradient)]).sum())
        pull += float(np.abs(self.multipliers @ (self.normals * lengths_)).sum())
        free = kept[kept < n]
        # Curvature along each variable that is held, where all that is free gives way.
        for i in np.flatnonzero((active.held != 0) & ~self.fixed).tolist():
            along = np.zeros(len(kept))
            along[: len(free)] = self.hessian[free, i]
            along[len(free) :] = self.normals[kept[len(free) :] - n, i]
            give = linear.solve(along)
            back = np.concatenate([self.hessian[i, free], -self.normals[kept[len(free) :] - n, i]])
            curvature = float(self.hessian[i, i] - back @ give)
            released = abs(gradient[i]) / curvature if curvature > 0.0 else np.inf
            if not released > doubt[i] or not abs(gradient[i]) * lengths_[i] > NOISE * pull:
                raise AmbiguousError(_doubt(f"variable {i}", "bound", x[i], self.x[i] - x[i], gradient[i]))
        for side, sign in ((self.bounds.lower, 1.0), (self.bounds.upper, -1.0)):
            gaps = np.where(known & np.isfinite(side), sign * (x - np.where(np.isfinite(side), side, 0.0)), np.inf)
            near = gaps <= np.maximum(DOUBTFUL * lengths_, 3.0 * np.abs(step[:n]))
            for i in np.flatnonzero(near).tolist():
                raise AmbiguousError(_doubt(f"variable {i}", "bound", side[i], gaps[i], self.gradient[i]))
        units = np.abs(self.normals) @ lengths_
        equal = self.limits.lower == self.limits.upper
        for place, j in enumerate((kept[len(free) :] - n).tolist(), len(free)):
            if equal[j]:
                continue
            unit = np.zeros(len(kept))
            unit[place] = 1.0
            change = abs(linear.solve(unit)[place])  # of the multiplier, for a unit by which the limit is moved
            released = abs(multipliers[j]) / change if change > 0.0 else np.inf
            certain = released > max(DOUBTFUL, 3.0 * error) * units[j] and abs(multipliers[j]) * units[j] > NOISE * pull
            if not certain:
                limit = self.limits.at(active.sides)[j]
                raise AmbiguousError(_doubt(f"constraint {j}", "limit", limit, self.values[j] - limit, multipliers[j]))
        changes = np.abs(self.normals @ step[:n])
        for side, sign in ((self.limits.lower, 1.0), (self.limits.upper, -1.0)):
            idle = (active.sides == 0) & np.isfinite(side)
            gaps = np.where(idle, sign * (values - np.where(np.isfinite(side), side, 0.0)), np.inf)
            for j in np.flatnonzero(gaps <= np.maximum(DOUBTFUL * units, 3.0 * changes)).tolist():
                raise AmbiguousError(_doubt(f"constraint {j}", "limit", side[j], gaps[j], 0.0))


def _independent(normals: np.ndarray) -> bool:
    """Whether rows are linearly independent, whatever their sizes."""
    sizes = np.linalg.norm(normals, axis=1)
    if len(normals) > normals.shape[1] or not sizes.all():
        return False
    return bool(np.linalg.svd(normals / sizes[:, None], compute_uv=False)[-1] > DOUBTFUL)


def _doubt(what: str, limit: str, value: Any, gap: Any, multiplier: Any) -> str:
    return (
        f"it is not clear whether the {limit} {value:.6g} of {what} (in the order of result.flat) is active at the result: "
        f"distance {abs(gap):.2g} and multiplier {abs(multiplier):.2g} are both about zero, for the scale of the problem. Where a "
        f"{limit} begins to hold, the solution has a kink. Ask for a smaller tolerance, or leave the {limit} out if it does nothing"
    )


def first_guess(
    x: np.ndarray, start: np.ndarray, gradient: np.ndarray, bounds: Limits, values: np.ndarray, normals: np.ndarray, limits: Limits
) -> tuple[ActiveSet, np.ndarray]:
    """An active set to begin with, and multipliers of the constraints.

    Multipliers that are not negative are fitted to the gradient of the objective; a limit that is away from the point, relative to
    the size of the variables, has to explain more of it.
    """
    n, m = len(x), len(values)
    equal = limits.lower == limits.upper
    held = np.zeros(n, np.int64)
    held[x <= bounds.lower], held[x >= bounds.upper] = -1, 1
    sides = np.where(equal, -1, 0)
    if not m:
        return ActiveSet(held, sides), np.zeros(0)
    size = lengths(x, start, np.ones(n))
    gradient = np.where(np.isfinite(gradient), gradient, 0.0)
    units = np.abs(normals) @ size
    columns, costs, owners = [], [], []
    for sign, side in ((1.0, limits.lower), (-1.0, limits.upper)):
        for j in np.flatnonzero(np.isfinite(side) & (units > 0.0)).tolist():
            columns.append(sign * normals[j] * size / units[j])
            costs.append(0.0 if equal[j] else FAR * abs(values[j] - side[j]) / units[j])
            owners.append((n + j, -int(sign)))
    for sign, side in ((1.0, bounds.lower), (-1.0, bounds.upper)):
        for i in np.flatnonzero(np.isfinite(side)).tolist():
            column = np.zeros(n)
            column[i] = sign
            columns.append(column)
            costs.append(FAR * abs(x[i] - side[i]) / size[i])
            owners.append((i, -int(sign)))
    if columns:
        from scipy.optimize import nnls

        target = np.concatenate([gradient * size, np.zeros(len(columns))])
        scale = np.abs(target).max() or 1.0
        fitted = nnls(np.concatenate([np.stack(columns, axis=1), np.diag(costs)]), target / scale)[0]
        for weight, cost, (owner, side_) in zip(fitted, costs, owners, strict=True):
            if weight > 0.1 * cost / FAR:
                if owner >= n:
                    sides[owner - n] = side_ if not equal[owner - n] else -1
                else:
                    held[owner] = side_
    return ActiveSet(held, sides), fitted_multipliers(ActiveSet(held, sides), gradient, normals)


def fitted_multipliers(active: ActiveSet, gradient: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Multipliers of the active constraints that leave least of the gradient of the free variables."""
    found = np.zeros(len(normals))
    rows, free = np.flatnonzero(active.sides), np.flatnonzero(active.held == 0)
    if len(rows) and len(free):
        found[rows] = np.linalg.lstsq(normals[np.ix_(rows, free)].T, gradient[free], rcond=None)[0]
    return found
