"""Whether equations are near their solution what their Jacobian says: no kink there, and no other solution than the one they have.

The implicit function theorem wants a residual that is continuously differentiable around the solution. A function does not say
whether it is, and at a kink it gives the derivative that convention puts there, which may be zero. So the residual is evaluated
at a few points nearby, on all sides, and compared with what its Jacobian predicts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.optimize.linear_systems import Factorised

__all__ = ["Neighbourhood", "Unsmooth"]

DISTANCES = (1e-5, 1e-7, 1e-9)  # relative to the lengths of variables; shorter ones for functions that change quickly
FARTHER = 1e-3  # where rounding hides what happens nearer
NEAR_ZERO = (1e-12, 1e-14)
BENT = 0.05  # how far the equations may be from their linear model, relative to the distance
GOLDEN = 0.6180339887498949
Evaluate = Callable[[np.ndarray], np.ndarray | None]


class Unsmooth(Exception):  # noqa: N818  # says what was found, and is turned into an error
    """Equations that have no derivative at a solution, or whose derivative says nothing about what is near it."""

    def __init__(self, kink: bool) -> None:
        super().__init__()
        self.kink = kink


class Neighbourhood:
    """Points around a solution.

    Parameters
    ----------
    evaluate : callable
        The residual at a point, of shape (n + m,) for n variables and m multipliers; None where it cannot be evaluated.
    z : ndarray, shape (n + m,)
    lengths : ndarray, shape (n,)
    lower, upper : ndarray, shape (n,)
        Points outside of these are not looked at.
    """

    def __init__(self, evaluate: Evaluate, z: np.ndarray, lengths: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        self.evaluate, self.z, self.lengths = evaluate, z, lengths
        self.lower, self.upper = lower, upper
        self.size = len(lengths)

    def norm(self, step: np.ndarray) -> float:
        """How long a step is for the variables, relative to their lengths."""
        return float((np.abs(step[: self.size]) / self.lengths).max(initial=0.0))

    def _points(self, distance: float, lengths: np.ndarray) -> list[np.ndarray]:
        """Points on all sides: where there are few variables, one in each orthant."""
        numbers = np.arange(self.size)
        found = []
        for k in range(min(4, 2 ** max(self.size - 1, 0))):
            # Sizes that differ, since kinks lie on x[0] = x[1] more often than elsewhere.
            sizes = 0.6 + 0.4 * (GOLDEN * (numbers + 1) * (k + 1) % 1.0)
            signs = 1.0 - 2.0 * (np.bitwise_count(numbers & k) & 1)
            for sign in (1.0, -1.0):
                x = self.z[: self.size]
                y = x + sign * distance * signs * sizes * lengths
                # A variable at a bound is moved away from it, and one near it no farther than half of the way.
                y = np.where((y < self.lower) & (x <= self.lower), 2.0 * x - y, y)
                y = np.where((y > self.upper) & (x >= self.upper), 2.0 * x - y, y)
                y = np.where(y < self.lower, 0.5 * (x + self.lower), y)
                y = np.where(y > self.upper, 0.5 * (x + self.upper), y)
                found.append(np.concatenate([y, self.z[self.size :]]))
        return found

    def padded(self, part: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """A vector of all unknowns from that of some, the others zero."""
        found = np.zeros(len(self.z))
        found[kept] = part
        return found

    def require_smoothness(
        self,
        linear: Factorised,
        kept: np.ndarray,
        value: np.ndarray,
        jacobian: Any,
        held: np.ndarray,
        step: np.ndarray,
    ) -> None:
        """See that the residual is nearby what its Jacobian says.

        Parameters
        ----------
        linear : Factorised
            The rows and columns `kept` of the Jacobian.
        kept : ndarray of int
        value : ndarray
            All rows of the residual at `z`.
        jacobian : ndarray, sparse array or operator
            All rows of its Jacobian.
        held : ndarray of int
            Further rows, which are not zero and are not to change much.
        step : ndarray
            Newton's, within which nothing is known.

        Raises
        ------
        Unsmooth
            If it is not.
        """
        if not len(kept) and not len(held):
            return
        size = self.norm(step)
        distances = [distance for distance in DISTANCES if distance >= 4.0 * size]
        if len(distances) < len(DISTANCES):
            distances += [2.0 * size, 0.2 * size][: 1 if distances else 2]
        # Where everything is about zero, nothing tells lengths but that people write numbers about one.
        for unit in (0.0, 1.0):
            lengths = np.maximum(self.lengths, unit)
            if unit and (lengths == self.lengths).all():
                break
            found: list[list[np.ndarray]] = []
            resolved = True
            for distance in distances:
                errors, moved = self._errors(distance, lengths, linear, kept, value, jacobian, held)
                if _largest(errors) <= BENT:
                    if not self.z[: self.size].any():
                        self._require_no_kink_at_zero(lengths, linear, kept, value, jacobian, held)
                    return
                found.append(errors)
                resolved &= moved
            if resolved and _is_kink(found, distances):
                raise Unsmooth(True)
            errors, _ = self._errors(max(FARTHER, distances[0]), lengths, linear, kept, value, jacobian, held)
            if _largest(errors) <= BENT:
                return
        raise Unsmooth(False)

    def _require_no_kink_at_zero(
        self,
        lengths: np.ndarray,
        linear: Factorised,
        kept: np.ndarray,
        value: np.ndarray,
        jacobian: Any,
        held: np.ndarray,
    ) -> None:
        """Look nearer than numbers about one are told apart: units may be any at zero, and so may be what a kink does."""
        found = [self._errors(distance, lengths, linear, kept, value, jacobian, held) for distance in NEAR_ZERO]
        if all(moved for _, moved in found) and _is_kink([errors for errors, _ in found], NEAR_ZERO):
            raise Unsmooth(True)

    def _errors(
        self,
        distance: float,
        lengths: np.ndarray,
        linear: Factorised,
        kept: np.ndarray,
        value: np.ndarray,
        jacobian: Any,
        held: np.ndarray,
    ) -> tuple[list[np.ndarray], bool]:
        """How far the linear model is off at points of a distance, relative to that, and whether the residual moves there."""
        errors, moved = [], False
        for point in self._points(distance, lengths):
            there = self.evaluate(point)
            if there is None:
                errors.append(np.full(len(kept) + len(held), np.inf))
                continue
            shift = point - self.z
            rows = np.concatenate([kept, held])
            changes = there[rows] - value[rows]
            moved |= bool(changes.any())
            with np.errstate(invalid="ignore"):
                wrong = changes - (jacobian @ shift)[rows]  # multipliers are not shifted
            away = self.padded(linear.solve(wrong[: len(kept)]), kept)
            error = np.concatenate(
                [(away[: self.size] / lengths)[kept[kept < self.size]] / distance, 0.5 * wrong[len(kept) :] / value[held]]
            )
            errors.append(np.where(np.isnan(error), np.inf, error))
        return errors, moved

    def jumps_around(self) -> bool:
        """Whether the residual jumps near the solution."""
        points = self._points(FARTHER, self.lengths)
        return any(self.jumps(a, b) for a, b in zip(points[::2], points[1::2], strict=True))

    def jumps(self, a: np.ndarray, b: np.ndarray) -> bool:
        """Whether much of the change of the residual between two points is a jump: it stays when the interval is halved."""
        at_a, at_b = self.evaluate(a), self.evaluate(b)
        if at_a is None or at_b is None:
            return False
        scale = np.maximum(np.abs(at_a), np.abs(at_b))
        scale[scale == 0.0] = 1.0

        def change(u: np.ndarray, v: np.ndarray) -> float:
            return float((np.abs(u - v) / scale).max(initial=0.0))

        whole = change(at_a, at_b)
        if not whole > 1e-9:
            return False
        for _ in range(12):
            middle = 0.5 * (a + b)
            value = self.evaluate(middle)
            if value is None:
                return False
            if change(at_a, value) > change(value, at_b):
                b, at_b = middle, value
            else:
                a, at_a = middle, value
        return change(at_a, at_b) > 0.1 * whole


def _largest(errors: Sequence[np.ndarray]) -> float:
    return max(float(np.abs(error).max(initial=0.0)) for error in errors)


def _is_kink(found: Sequence[Sequence[np.ndarray]], distances: Sequence[float]) -> bool:
    """Whether errors are those of a jump or of a bend, which are the same nearer to the solution; those of rounding are not."""
    if len(found) < 2:
        return True
    # What was divided by the distance is multiplied by it again, for a jump.
    return any(
        _alike([far * a for far in found[0]], [near * b for near in found[1]], [_largest([near]) > BENT for near in found[1]])
        for a, b in (distances[:2], (1.0, 1.0))
    )


def _alike(far: Sequence[np.ndarray], near: Sequence[np.ndarray], large: Sequence[bool]) -> bool:
    """Whether vectors are about the same, those of them that are large."""
    sizes = [np.abs(a).max(initial=0.0) for a in far]
    alike = [bool(np.abs(a - b).max(initial=0.0) <= 0.5 * size) for a, b, size in zip(far, near, sizes, strict=True)]
    return any(large) and all(same or not one for same, one in zip(alike, large, strict=True))
