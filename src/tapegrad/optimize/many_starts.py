"""`multistart`: the best of many solutions, each from a starting point of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.executors import runner_for
from tapegrad.optimize.histories import Progress

__all__ = ["multistart"]

SOLVERS = {"minimize": "optimize.minimizing:minimize", "least_squares": "optimize.fitting:least_squares"}


def _solve(solver: str, f: Callable[..., Any], start: Any, options: dict[str, Any]) -> Any:
    return look_up(SOLVERS[solver])(f, start, **options)


def _objective(result: Any) -> float:
    value = float(np.asarray(result["cost"] if "cost" in result else result["fun"]))
    return value if value == value else math.inf


def multistart(
    f: Callable[..., Any],
    starts: Sequence[Any],
    executor: Any = None,
    solver: str = "minimize",
    progress: bool = False,
    **options: Any,
) -> Any:
    """Solve from many starting points, and give the best solution.

    Parameters
    ----------
    f : callable
        The function, or residual, that the solver takes. For processes a function of a module, which can be pickled.
    starts : sequence
        Starting points, as the solver takes one.
    executor : Executor, distributed.Client, joblib.Parallel, "joblib", "ray" or None
        Who computes, as for `tapegrad.parallel.sum_over`.
    solver : {"minimize", "least_squares"}
        Of `tapegrad.optimize`.
    progress : bool
        Show a progress bar over the solutions, as for `minimize`.
    **options
        For the solver: ``method``, ``bounds``, ``args``, and others.

    Returns
    -------
    scipy.optimize.OptimizeResult
        The solver's for the best starting point: the least objective among those that succeeded, or among all if none did; the
        first of equal ones. ``results`` has all of them, in the order of `starts`, and ``start`` the number of the best.

    Raises
    ------
    ModuleNotFoundError
        If `progress` is asked for without tqdm, or an executor by the name of a library that is not installed.
    ValueError
        If there are no starting points, or the solver is another one.

    Notes
    -----
    The answer does not depend on the number of workers, nor on which of them is done first.

    Examples
    --------
    >>> best = tg.optimize.multistart(lambda x: np.cos(3.0 * x[0]) + 0.1 * x[0] ** 2, [[-4.0], [0.8], [3.0]])
    >>> best.start, best.x.round(3), len(best.results)
    (1, array([1.024]), 3)
    """
    starts = list(starts)
    if not starts:
        raise ValueError("multistart: there is no starting point")
    if solver not in SOLVERS:
        raise ValueError(f"multistart: the solver is one of {', '.join(SOLVERS)}, not {solver!r}")
    with Progress(progress) as steps:
        results = []
        for result in runner_for(executor).run(_solve, [(solver, f, start, options) for start in starts]):
            results.append(result)
            steps.note(min(map(_objective, results)), math.nan, len(results))
    succeeded = [k for k, result in enumerate(results) if result.success] or range(len(results))
    best = min(succeeded, key=lambda k: _objective(results[k]))
    found = look_up("optimize.results:with_history")(results[best], results[best].history)
    found.results, found.start = results, best
    return found
