"""Linear programs for HiGHS, which SciPy has: what is linear is found from derivatives and their patterns."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.optimize.histories import Progress
from tapegrad.optimize.limits import bounds_as_arrays
from tapegrad.optimize.packing import Packing
from tapegrad.optimize.recordings import ScipyFunction
from tapegrad.optimize.scipy_solvers import solvers
from tapegrad.optimize.sparse_constraints import Linear, Recorded, limits_of, parts_of

__all__ = ["minimized"]

TOLERANCE = 1e-9  # of what a linear function gives at another point, by the size of what is summed there
Vector = np.ndarray


class _Objective:
    """The objective as a constraint function has it: one number, and a matrix of one row."""

    def __init__(self, function: ScipyFunction) -> None:
        self._function = function

    def value(self, x: Vector) -> Vector:
        return np.array([self._function.value(x)])

    def jacobian(self, x: Vector) -> Any:
        from scipy.sparse import csr_array

        return csr_array(self._function.gradient(x)[None, :])

    def hessian(self, x: Vector, weights: Vector) -> Any:
        return self._function.sparse_hess(x)


class _Piece:
    """``value + matrix @ (x - start)``, which a function is said to be.

    Raises
    ------
    ValueError
        If it has second derivatives, or anything is not finite.
    """

    def __init__(self, part: Any, name: str, start: Vector) -> None:
        self._part, self._name, self.start = part, name, start
        self.value = part.value(start).copy()
        self.matrix = part.jacobian(start)
        curved = None if part.hessian is None else part.hessian(start, np.ones(len(self.value)))
        if curved is not None and curved.nnz:
            row = int(np.flatnonzero(np.diff(curved.indptr))[0])
            column = int(curved.indices[curved.indptr[row]])
            raise ValueError(
                f"minimize: method='highs' is for linear functions, but {name} has a second derivative by elements {row} and "
                f"{column} of the variable. Take method='trust-constr' with sparse=True, or 'ipopt'."
            )
        if not (np.isfinite(self.value).all() and np.isfinite(self.matrix.data).all()):
            raise ValueError(f"minimize: method='highs' needs finite values and derivatives at x0, which {name} has not.")

    @property
    def constant(self) -> Vector:
        """The value at zero."""
        return self.value - self.matrix @ self.start

    def check(self, x: Vector) -> None:
        """Compare with the function at another point.

        Raises
        ------
        ValueError
            If it gives something else there: it has kinks or branches.
        """
        found, matrix = self._part.value(x), self._part.jacobian(x)
        size = abs(self.value) + abs(self.matrix) @ abs(x - self.start)
        far = ~(abs(found - self.value - self.matrix @ (x - self.start)) <= TOLERANCE * (1.0 + size))
        turned = abs(matrix - self.matrix)
        if far.any() or turned.max() > TOLERANCE * (1.0 + abs(self.matrix).max()):
            k = int(np.flatnonzero(far)[0]) if far.any() else int(turned.argmax() // max(turned.shape[1], 1))
            which = self._name if len(found) == 1 else f"number {k} of {self._name}"
            raise ValueError(
                f"minimize: method='highs' is for linear functions, but {which} is another function at another point (abs, maximum "
                "or a branch): write it with more variables and constraints, or take method='trust-constr' or 'SLSQP'."
            )


def minimized(
    function: ScipyFunction,
    packing: Packing,
    method: str,
    bounds: Any,
    constraints: Any,
    tol: float | None,
    options: dict[str, Any] | None,
    steps: Progress,
) -> Any:
    """What HiGHS finds.

    Parameters
    ----------
    function : ScipyFunction
    packing : Packing
    method : {"highs", "highs-ds", "highs-ipm"}
        Whichever it takes, the dual simplex method, or its interior-point method.
    bounds, constraints, tol, options
        As for `minimize`.
    steps : Progress

    Returns
    -------
    scipy.optimize.OptimizeResult
        Its ``x`` is nan where there is none.

    Raises
    ------
    ValueError
        If something is not linear.

    Notes
    -----
    Linear is what has no entry in the pattern of its second derivatives, and at the solution, and at a random point within the
    bounds, what its value and derivatives at the start say.
    """
    from scipy.optimize import OptimizeResult
    from scipy.sparse import csr_array, vstack

    start = packing.start
    limits = bounds_as_arrays(bounds, packing.size)
    inside = np.clip(start, *limits)
    objective = _Piece(_Objective(function), "the objective", inside)
    parts = parts_of(constraints, "method='highs' takes exact derivatives of constraints")
    recorded = (part if isinstance(part, Linear) else Recorded(part, packing) for part in parts)
    pieces = [_Piece(part, f"constraint {k}", inside) for k, part in enumerate(recorded)]
    if function.first is not None:
        steps.note(*function.first, 1)
    sizes = [len(piece.value) for piece in pieces]
    lower, upper = limits_of(parts, sizes)
    whole = csr_array(vstack([piece.matrix for piece in pieces])) if pieces else csr_array((0, packing.size))
    constant = np.concatenate([np.zeros(0), *(piece.constant for piece in pieces)])
    equal = lower == upper
    above, below = ~equal & np.isfinite(upper), ~equal & np.isfinite(lower)
    known = dict(options or {})
    if tol is not None:
        known = {"primal_feasibility_tolerance": tol, "dual_feasibility_tolerance": tol} | known
    found = solvers().linprog(
        objective.matrix.toarray()[0],
        csr_array(vstack([whole[above], -whole[below]])),
        np.concatenate([(upper - constant)[above], (constant - lower)[below]]),
        whole[equal],
        (upper - constant)[equal],
        np.stack(limits, axis=1),
        method,
        options=known,
    )
    is_there = found.x is not None
    other = _within(limits, inside)
    for piece in (objective, *pieces):
        for point in [other, found.x] if is_there else [other]:
            piece.check(point)
    x = np.asarray(found.x, np.float64) if is_there else np.full(packing.size, np.nan)
    if is_there:
        steps.note(function.value(x), function.gradient(x), function.evaluations)
    return OptimizeResult(
        x=x,
        fun=function.value(x) if is_there else np.nan,
        jac=objective.matrix.toarray()[0],
        success=found.success,
        status=found.status,
        message=found.message,
        nit=found.nit,
        nfev=function.evaluations,
        v=_multipliers(found, equal, above, below, sizes) if is_there else [],
        bound_multipliers=(found.lower.marginals, -found.upper.marginals) if is_there else (),
    )


def _within(limits: tuple[Vector, Vector], x: Vector) -> Vector:
    """A random point within bounds; at a distance of ten times its size from another point where there are none."""
    rng = np.random.default_rng(0)
    low, high = (np.where(np.isfinite(side), side, x) for side in limits)
    is_between = np.isfinite(limits[0]) & np.isfinite(limits[1])
    far = np.clip(x + 10.0 * rng.normal(size=len(x)) * (1.0 + abs(x)), *limits)
    return np.where(is_between, low + rng.random(len(x)) * (high - low), far)


def _multipliers(found: Any, equal: Vector, above: Vector, below: Vector, sizes: list[int]) -> list[Vector]:
    """Multipliers of constraint functions, of the sign that they have in the Lagrangian ``f + v @ g``."""
    whole = np.zeros(len(equal))
    whole[equal] = -found.eqlin.marginals
    count = int(above.sum())
    whole[above] -= found.ineqlin.marginals[:count]
    whole[below] += found.ineqlin.marginals[count:]
    return np.split(whole, np.cumsum(sizes)[:-1]) if sizes else []
