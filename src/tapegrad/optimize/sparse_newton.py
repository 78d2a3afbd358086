"""Newton's method for systems whose Jacobian is sparse, with SciPy's LU factors of it, or by GMRES with incomplete ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.optimize.sparse_factors import factorised

__all__ = ["newton"]

Vector = np.ndarray
XTOL, MAXITER, SHORTEST = 1e-10, 100, 2.0**-30
RESTART, REPETITIONS, RESIDUAL = 30, 5, 1e-9  # of GMRES: vectors, restarts, and the residual relative to the right side
DROPPED, FILLED = 1e-4, 10.0  # of incomplete factors: what is left out relative to its column, and entries relative to the matrix
DECREASE = 1e-4  # of the norm, by the length of the step, that is asked of a step


def newton(
    value: Callable[[Vector], Vector],
    jacobian: Callable[[Vector], Any],
    start: Vector,
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    krylov: bool = False,
) -> Any:
    """Where a function is zero, by steps of Newton's method that are halved until the norm decreases.

    Parameters
    ----------
    value, jacobian : callable
        Of a vector; the Jacobian is a sparse array.
    start : ndarray, shape (n,)
    tol : float, optional
        How long the last step may be, relative to x.
    callback : callable, optional
        Called with x and the value after each iteration.
    options : dict, optional
        ``maxiter``, and ``xtol`` in place of `tol`.
    krylov : bool
        Whether steps are solved for by GMRES [1]_, preconditioned by incomplete factors of the Jacobian, which have few entries
        where complete ones fill up, as those of equations on two- and three-dimensional grids do.

    Returns
    -------
    scipy.optimize.OptimizeResult
        With ``success`` false and a message where the Jacobian is singular, no step decreases the norm, or iterations ran out.

    Raises
    ------
    ValueError
        If there are not as many equations as variables, the value at the start is not finite, or an option is not known.

    References
    ----------
    .. [1] D. A. Knoll, D. E. Keyes, "Jacobian-free Newton-Krylov methods: a survey of approaches and applications", Journal of
       Computational Physics 193(2), 2004.
    """
    from scipy.optimize import OptimizeResult

    given = dict(options or {})
    limit, xtol = int(given.pop("maxiter", MAXITER)), float(given.pop("xtol", XTOL if tol is None else tol))
    if given:
        raise ValueError(f"root: with sparse=True the options are maxiter and xtol, not {', '.join(given)}")
    solve = _Preconditioned().step if krylov else _step
    x: Vector = start.copy()
    f = value(x)
    if f.shape != x.shape:
        raise ValueError(f"root: there are {f.size} equations for {x.size} variables")
    if not np.isfinite(f).all():
        raise ValueError("root: the function is not finite at x0. Start from another point.")
    count, message, iterations = 1, "", 0
    is_solved = not f.any()
    while not (is_solved or message):
        if iterations == limit:
            message = f"the solution was not reached in {limit} iterations"
            break
        iterations += 1
        step, message = solve(jacobian(x), f)
        if message:
            break
        is_short = bool(np.abs(step).max() <= xtol * max(float(np.abs(x).max()), xtol))
        length, norm = 1.0, np.linalg.norm(f)
        while length > SHORTEST:
            there = x + length * step
            found = value(there)
            count += 1
            if np.isfinite(found).all() and np.linalg.norm(found) <= (1.0 - DECREASE * length) * norm:
                x, f = there, found
                break
            if is_short:
                break  # rounding is all that is left
            length *= 0.5
        else:
            message = "no step along Newton's direction decreases the norm: a minimum of the norm, a kink, or a wrong scale"
        if not message:
            is_solved = is_short or not f.any()
            if callback is not None:
                callback(x.copy(), f.copy())
    return OptimizeResult(
        x=x,
        fun=f,
        success=is_solved,
        status=1 if is_solved else 0,
        message=message or "The solution converged.",
        nit=iterations,
        nfev=count,
        njev=iterations,
        method="newton-krylov" if krylov else "newton",
    )


def _step(matrix: Any, f: Vector) -> tuple[Vector, str]:
    """Newton's step, or why there is none."""
    if not np.isfinite(matrix.data).all():
        return f, "the Jacobian is not finite"
    try:
        step: Vector = factorised(matrix).solve(-f)
    except RuntimeError as error:  # SuperLU's word for singular
        return f, f"the Jacobian is singular: {error}"
    return (step, "") if np.isfinite(step).all() else (f, "the Jacobian is singular to working precision")


class _Preconditioned:
    """Steps by GMRES, with incomplete factors of an earlier Jacobian as long as these serve."""

    def __init__(self) -> None:
        self._factors: Any = None

    def step(self, matrix: Any, f: Vector) -> tuple[Vector, str]:
        """Newton's step, or why there is none."""
        if not np.isfinite(matrix.data).all():
            return f, "the Jacobian is not finite"
        step, is_solved = (f, False) if self._factors is None else self._solved(matrix, -f)
        if not is_solved:
            try:
                self._factors = self._incomplete(matrix)
            except RuntimeError as error:  # SuperLU's word for singular
                return f, f"the Jacobian is singular: {error}"
            step, is_solved = self._solved(matrix, -f)
        if is_solved:
            return step, ""
        return f, "GMRES did not solve for Newton's step: the Jacobian is singular, or badly conditioned. Leave out method='krylov'"

    def _incomplete(self, matrix: Any) -> Any:
        from scipy.sparse.linalg import spilu

        return spilu(matrix.tocsc(), drop_tol=DROPPED, fill_factor=FILLED)

    def _solved(self, matrix: Any, right: Vector) -> tuple[Vector, bool]:
        from scipy.sparse.linalg import LinearOperator, gmres

        nearly = LinearOperator(matrix.shape, matvec=self._factors.solve, dtype=np.float64)
        size = min(RESTART, len(right))
        step, information = gmres(matrix, right, rtol=RESIDUAL, atol=0.0, restart=size, maxiter=REPETITIONS, M=nearly)
        return step, information == 0 and bool(np.isfinite(step).all())
