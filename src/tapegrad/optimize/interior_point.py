"""Problems for IPOPT, an interior-point method with sparse derivatives, which the package ``cyipopt`` (extra ``ipopt``) calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.optimize.histories import Progress
from tapegrad.optimize.ipopt_interface import ipopt_library
from tapegrad.optimize.limits import check_order, checked_bounds
from tapegrad.optimize.packing import Packing
from tapegrad.optimize.recordings import ScipyFunction
from tapegrad.optimize.sparse_constraints import limits_of, parts_of

__all__ = ["Problem", "minimized"]

UNBOUNDED = 2e19  # what IPOPT takes for infinite begins at 1e19
SOLVED = frozenset([0, 1, 6])  # IPOPT's status: to its tolerance, to its acceptable one, and of a square system
STOPPED = 5  # IPOPT's status where the user asked it to stop
Vector = np.ndarray


class _Stopped(Exception):  # noqa: N818  # no error: a callback asked for it
    """A callback raised StopIteration."""


class _Grown(Exception):  # noqa: N818  # no error: the problem is set up anew
    """A derivative has entries at a point that its pattern did not have."""


class _Pattern(NamedTuple):
    """Where a block of derivatives has entries: rows, columns, which of a matrix's data they are (None for all), of how many."""

    rows: Vector
    columns: Vector
    taken: Vector | None
    size: int

    @classmethod
    def of(cls, pattern: Any, first_row: int = 0, lower: bool = False) -> _Pattern:
        """That of compressed rows (a `Sparsity`, a csr_array), or of their lower triangle."""
        rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
        taken = np.flatnonzero(rows >= pattern.indices) if lower else None
        columns = pattern.indices
        if taken is not None:
            rows, columns = rows[taken], columns[taken]
        return cls(rows + first_row, columns, taken, pattern.nnz)


class Problem:
    """A minimisation in the form that ``cyipopt.Problem`` calls: values, gradient, and entries of sparse derivatives.

    Entries are those of the patterns at the starting point, block after block: of the objective and of each constraint function.
    IPOPT adds up entries of one place.

    Parameters
    ----------
    function : ScipyFunction
        The objective; it keeps its recordings if `second` is set.
    packing : Packing
    constraints : object
        As for `minimize`.
    second : bool
        Whether Hessians are wanted.
    step : callable, optional
        Called with a point and the number of iterations after each of these.

    Attributes
    ----------
    is_second_order : bool
        Whether it has Hessians.
    sizes : list of int
        How many numbers each constraint function gives.
    lower, upper : ndarray, shape (m,)
        Limits of constraints.
    latest : ndarray, shape (n,)
        Where the latest gradient was asked for: the point of the iteration.
    error : BaseException or None
        What a method raised while IPOPT was running.
    gradients, hessians, iterations : int
        How many of these there were.

    Raises
    ------
    ValueError
        If limits do not fit the constraints, or no number keeps to one of them.
    """

    def __init__(
        self,
        function: ScipyFunction,
        packing: Packing,
        constraints: Any,
        second: bool = True,
        step: Callable[[Vector, int], Any] | None = None,
    ) -> None:
        self.function, self.is_second_order, self._step = function, second, step
        self.parts = parts_of(constraints, packing, "method='ipopt' takes second derivatives of constraints", second)
        self.error: BaseException | None = None
        self.gradients = self.hessians = self.iterations = 0
        self.latest = packing.start.copy()
        function.value(packing.start)  # which refuses a nan
        self.sizes = [len(part.value(packing.start)) for part in self.parts]
        self._ends = np.cumsum([0, *self.sizes])
        limits = limits_of(self.parts, self.sizes)
        check_order(*limits, "minimize: limits of constraint numbers")
        self.lower, self.upper = _within(limits)
        self._find_patterns(packing.start)

    def _find_patterns(self, x: Vector) -> None:
        starts = self._ends[:-1].tolist()
        self._jacobians = [_Pattern.of(part.jacobian_pattern(x), start) for part, start in zip(self.parts, starts, strict=True)]
        self._hessians: list[_Pattern] = []
        if not self.is_second_order:
            return
        self._hessians = [_Pattern.of(self.function.hessian_pattern(x), lower=True)]
        for part, start, end in zip(self.parts, starts, self._ends[1:].tolist(), strict=True):
            if part.hessian is not None:
                self._hessians.append(_Pattern.of(part.hessian_pattern(x, np.ones(end - start)), lower=True))

    def find_patterns_again(self) -> None:
        """Take entries that came up at the latest point."""
        self.error = None
        self._find_patterns(self.latest)

    def objective(self, x: Vector) -> float:
        """Value of the objective."""
        return self.function.value(x)

    def gradient(self, x: Vector) -> Vector:
        """Gradient of the objective."""
        self.gradients += 1
        self.latest = x.copy()
        return self.function.gradient(x)

    def constraints(self, x: Vector) -> Vector:
        """Values of all constraints."""
        found = [part.value(x) for part in self.parts]
        return found[0] if len(found) == 1 else np.concatenate([np.zeros(0), *found])

    def jacobianstructure(self) -> tuple[Vector, Vector]:
        """Rows and columns of the Jacobian's entries."""
        return _joined(self._jacobians)

    def jacobian(self, x: Vector) -> Vector:
        """These entries."""
        found = [_entries(part.jacobian_entries(x), pattern) for part, pattern in zip(self.parts, self._jacobians, strict=True)]
        return found[0] if len(found) == 1 else np.concatenate([np.zeros(0), *found])

    def hessianstructure(self) -> tuple[Vector, Vector]:
        """Rows and columns of entries in the lower triangle of the Lagrangian's Hessian."""
        return _joined(self._hessians)

    def hessian(self, x: Vector, multipliers: Vector, factor: float) -> Vector:
        """These entries, of ``factor * f + multipliers @ c``."""
        self.hessians += 1
        patterns = iter(self._hessians)
        found = [factor * _entries(self.function.hessian_entries(x), next(patterns))]
        for part, start, end in zip(self.parts, self._ends[:-1].tolist(), self._ends[1:].tolist(), strict=True):
            if part.hessian is not None:
                found.append(_entries(part.hessian_entries(x, multipliers[start:end]), next(patterns)))
        return np.concatenate(found)

    def intermediate(self, *state: Any) -> bool:
        """An iteration is done; whether to go on."""
        if self.error is not None:
            return False
        number = int(state[1])
        if number:
            self.iterations += 1
            if self._step is not None:
                self._step(self.latest, self.iterations)
        return True


def _within(limits: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
    """Limits with what IPOPT takes for infinite, on the side where that limits nothing."""
    return np.maximum(limits[0], -UNBOUNDED), np.minimum(limits[1], UNBOUNDED)


def _joined(patterns: Sequence[_Pattern]) -> tuple[Vector, Vector]:
    """Rows and columns of all blocks."""
    nothing = np.zeros(0, np.int64)
    return np.concatenate([nothing, *(p.rows for p in patterns)]), np.concatenate([nothing, *(p.columns for p in patterns)])


def _entries(found: tuple[Any, Vector], pattern: _Pattern) -> Vector:
    """Values of entries at the places of a pattern.

    Raises
    ------
    _Grown
        If there are more places now: patterns of functions with branches grow, and never lose an entry.
    """
    now, data = found
    if now.nnz != pattern.size:
        raise _Grown
    return data if pattern.taken is None else data.take(pattern.taken)


class _Guarded:
    """A problem whose exceptions wait until IPOPT has come back, which it does as soon as it hears of one."""

    def __init__(self, problem: Problem, failure: type[Exception]) -> None:
        names = ["objective", "gradient", "constraints", "jacobian", "intermediate", *["hessian"] * problem.is_second_order]
        for name in names:
            setattr(self, name, functools.partial(_guarded, problem, failure, getattr(problem, name)))
        self.jacobianstructure = problem.jacobianstructure
        if problem.is_second_order:
            self.hessianstructure = problem.hessianstructure


def _guarded(problem: Problem, failure: type[Exception], method: Callable[..., Any], *arguments: Any) -> Any:
    is_last = method == problem.intermediate
    if problem.error is None:
        try:
            return method(*arguments)
        except BaseException as error:  # also an interrupt: C code is around this, which would lose it
            problem.error = error
    if is_last:
        return False
    raise failure


def minimized(
    function: ScipyFunction,
    packing: Packing,
    bounds: Any,
    constraints: Any,
    tol: float | None,
    callback: Callable[[Any], Any] | None,
    options: dict[str, Any] | None,
    steps: Progress,
) -> dict[str, Any]:
    """What IPOPT finds.

    Parameters
    ----------
    function : ScipyFunction
    packing : Packing
    bounds, constraints, tol, options
        As for `minimize`.
    callback : callable, optional
        Called after each iteration with a result that has ``x``, ``fun`` and ``nit``; StopIteration ends the solution.
    steps : Progress

    Returns
    -------
    dict
        The fields of a result.

    Raises
    ------
    ModuleNotFoundError
        If ``cyipopt`` is not installed.
    """
    try:
        library = ipopt_library()
    except ImportError as error:
        raise ModuleNotFoundError(
            "minimize: method='ipopt' needs cyipopt: pip install 'tapegrad[ipopt]', which needs the library IPOPT and its headers "
            "(Debian's coinor-libipopt-dev, liblapack-dev and libblas-dev, or conda install cyipopt, which brings them). "
            f"It said: {error}",
            name="cyipopt",
        ) from None

    limits = checked_bounds(bounds, packing.size)
    given = _options(tol, options)
    second = given.get("hessian_approximation", "exact") != "limited-memory"

    def step(x: Vector, number: int) -> None:
        steps.note(function.latest_value, function.gradient(x), function.evaluations)
        if callback is not None:
            try:
                callback(
                    look_up("optimize.scipy_solvers:solvers")().OptimizeResult(x=x.copy(), fun=function.latest_value, nit=number)
                )
            except StopIteration:
                raise _Stopped from None

    problem = Problem(function, packing, constraints, second, step)
    if not len(steps.history) and function.first is not None:
        steps.note(*function.first, 1)
    x, info = _solved(library, problem, packing.start, limits, given)
    status, message = int(info["status"]), info["status_msg"]
    if isinstance(problem.error, _Stopped):
        x, status, message = problem.latest, STOPPED, "`callback` raised `StopIteration`."
    elif problem.error is not None:
        raise problem.error
    return {
        "x": x,
        "fun": function.value(x),
        "jac": function.gradient(x),
        "success": status in SOLVED,
        "status": status,
        "message": message.decode() if isinstance(message, bytes) else message,
        "nit": problem.iterations,
        "nfev": function.evaluations,
        "njev": problem.gradients,
        "nhev": problem.hessians,
        "v": np.split(np.asarray(info["mult_g"]), np.cumsum(problem.sizes)[:-1]) if problem.sizes else [],
        "bound_multipliers": (info["mult_x_L"], info["mult_x_U"]),
    }


def _solved(
    library: Any, problem: Problem, x: Vector, bounds: tuple[Vector, Vector], options: dict[str, Any]
) -> tuple[Vector, Any]:
    """Where IPOPT ends, and what it says; where entries come up it begins anew from there, with these."""
    limits = _within(bounds)
    most, guarded = int(options.get("max_iter", 3000)), _Guarded(problem, library.CyIpoptEvaluationError)
    while True:
        solver = library.Problem(len(x), len(problem.lower), guarded, *limits, problem.lower, problem.upper)
        for name, value in options.items():
            try:
                solver.add_option(name, value)
            except TypeError as error:
                raise ValueError(f"minimize: IPOPT does not take the option {name}={value!r}: {error}") from None
        x, info = solver.solve(x)
        if not isinstance(problem.error, _Grown):
            return x, info
        problem.find_patterns_again()
        x, options["max_iter"] = problem.latest, max(most - problem.iterations, 0)


def _options(tol: float | None, options: dict[str, Any] | None) -> dict[str, Any]:
    """IPOPT's options, silent unless something else is said; SciPy's ``maxiter`` and ``disp`` are taken too."""
    given = dict(options or {})
    found: dict[str, Any] = {"sb": "yes", "print_level": 5 if given.pop("disp", False) else 0}
    if "maxiter" in given:
        found["max_iter"] = int(given.pop("maxiter"))
    if tol is not None:
        found["tol"] = float(tol)
    return found | given
