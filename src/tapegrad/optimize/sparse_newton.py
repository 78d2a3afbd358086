"""Newton's method for systems whose Jacobian is sparse, with SciPy's LU factors of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["newton"]

Vector = np.ndarray
XTOL, MAXITER, SHORTEST = 1e-10, 100, 2.0**-30
DECREASE = 1e-4  # of the norm, by the length of the step, that is asked of a step


def newton(
    value: Callable[[Vector], Vector],
    jacobian: Callable[[Vector], Any],
    start: Vector,
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
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

    Returns
    -------
    scipy.optimize.OptimizeResult
        With ``success`` false and a message where the Jacobian is singular, no step decreases the norm, or iterations ran out.

    Raises
    ------
    ValueError
        If there are not as many equations as variables, the value at the start is not finite, or an option is not known.
    """
    from scipy.optimize import OptimizeResult

    given = dict(options or {})
    limit, xtol = int(given.pop("maxiter", MAXITER)), float(given.pop("xtol", XTOL if tol is None else tol))
    if given:
        raise ValueError(f"root: with sparse=True the options are maxiter and xtol, not {', '.join(given)}")
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
        step, message = _step(jacobian(x), f)
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
        method="newton",
    )


def _step(matrix: Any, f: Vector) -> tuple[Vector, str]:
    """Newton's step, or why there is none."""
    from scipy.sparse.linalg import splu

    if not np.isfinite(matrix.data).all():
        return f, "the Jacobian is not finite"
    try:
        step: Vector = splu(matrix.tocsc()).solve(-f)
    except RuntimeError as error:  # SuperLU's word for singular
        return f, f"the Jacobian is singular: {error}"
    return (step, "") if np.isfinite(step).all() else (f, "the Jacobian is singular to working precision")
