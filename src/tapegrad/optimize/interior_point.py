"""Problems for IPOPT, an interior-point method with sparse derivatives, which the package ``cyipopt`` (extra ``ipopt``) calls."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.named_tuples import Named
from tapegrad.optimize.histories import Progress
from tapegrad.optimize.ipopt_interface import ipopt_library
from tapegrad.optimize.limits import check_order, checked_bounds
from tapegrad.optimize.packing import Packing
from tapegrad.optimize.recorded_together import NotTogether, Together
from tapegrad.optimize.sparse_constraints import Linear, limits_of, parts_of

__all__ = ["Problem", "minimized"]

UNBOUNDED = 2e19  # what IPOPT takes for infinite begins at 1e19
SOLVED = frozenset([0, 1, 6])  # IPOPT's status: to its tolerance, to its acceptable one, and of a square system
STOPPED = 5  # IPOPT's status where the user asked it to stop
Vector = np.ndarray


class _Stopped(Exception):  # noqa: N818  # no error: a callback asked for it
    """A callback raised StopIteration."""


class _Grown(Exception):  # noqa: N818  # no error: the problem is set up anew
    """A derivative has entries at a point that its pattern did not have."""


class _Pattern(Named):
    """Where a block of derivatives has entries: rows, columns, which of a matrix's data they are (None for all), of how many."""

    __slots__ = ()
    rows: Vector
    columns: Vector
    taken: Vector | None
    size: int

    @classmethod
    def of(cls, pattern: Any, numbers: Vector | None = None) -> _Pattern:
        """That of compressed rows (a `Sparsity`, a csr_array) with these numbers; without these of their lower triangle."""
        if numbers is not None:
            return cls(np.repeat(numbers, np.diff(pattern.indptr)), pattern.indices, None, pattern.nnz)
        rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
        taken = np.flatnonzero(rows >= pattern.indices)
        return cls(rows[taken], pattern.indices[taken], taken, pattern.nnz)


class Problem:
    """A minimisation in the form that ``cyipopt.Problem`` calls: values, gradient, and entries of sparse derivatives.

    Entries are those of the patterns at the starting point, block after block. IPOPT adds up entries of one place.

    Parameters
    ----------
    f : callable
        The objective.
    packing : Packing
    constraints : object
        As for `minimize`.
    args : tuple
        Further arguments of the objective.
    second : bool
        Whether Hessians are wanted.
    step : callable, optional
        Called with the problem, a point and the number of iterations after each of these.

    Attributes
    ----------
    functions : Together or Apart
        The objective and the constraints that are recorded.
    is_second_order : bool
        Whether it has Hessians.
    sizes : list of int
        How many numbers each constraint function gives.
    lower, upper : ndarray, shape (m,)
        Limits of constraints.
    latest : ndarray, shape (n,)
        Where the latest gradient was asked for: the point of the iteration.
    slope : ndarray, shape (n,)
        That gradient.
    error : BaseException or None
        What a method raised while IPOPT was running.
    evaluations, gradients, hessians, iterations : int
        How many of these there were.

    Raises
    ------
    ValueError
        If limits do not fit the constraints, or no number keeps to one of them.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        packing: Packing,
        constraints: Any,
        args: tuple[Any, ...] = (),
        second: bool = True,
        step: Callable[[Problem, Vector, int], Any] | None = None,
    ) -> None:
        self.is_second_order, self._step = second, step
        parts = parts_of(constraints, "method='ipopt' takes second derivatives of constraints")
        recorded = [k for k, part in enumerate(parts) if not isinstance(part, Linear)]
        self._given = f, packing, args, [parts[k] for k in recorded], second
        self.error: BaseException | None = None
        self.gradients = self.hessians = self.iterations = self._former = 0
        self.latest, self.slope = packing.start.copy(), np.zeros(packing.size)
        sizes = self._begun(packing.start)
        self._linear = [(k, part) for k, part in enumerate(parts) if isinstance(part, Linear)]
        self.sizes = [0] * len(parts)
        for k, size in [*zip(recorded, sizes, strict=True), *((k, len(part.value(packing.start))) for k, part in self._linear)]:
            self.sizes[k] = size
        limits = limits_of(parts, self.sizes)
        check_order(*limits, "minimize: limits of constraint numbers")
        self.lower, self.upper = _within(limits)
        ends = np.cumsum([0, *self.sizes]).tolist()
        self._slices = [slice(ends[k], ends[k + 1]) for k in recorded]
        self._starts = [ends[k] for k, _ in self._linear]
        self._find_patterns(packing.start)

    def _begun(self, x: Vector) -> Any:
        """Record the functions at the first point; how many numbers each constraint function gives."""
        self.functions: Any = Together(*self._given)
        with contextlib.suppress(NotTogether):
            return self.functions.begin(x)
        return self._begun_apart(x)  # out of the block: what functions raise is not raised because of it

    def _begun_apart(self, x: Vector) -> Any:
        """The same with a recording for each."""
        self._former += self.functions.evaluations
        self.functions.__exit__()
        self.functions = look_up("optimize.recorded_apart:Apart")(*self._given)
        return self.functions.begin(x)

    @property
    def evaluations(self) -> int:
        """How often the objective was run."""
        return self._former + int(self.functions.evaluations)

    def _find_patterns(self, x: Vector) -> None:
        numbers = np.arange(self._slices[-1].stop) if self._slices else np.arange(0)
        rows, found = [numbers[some] for some in self._slices], self.functions.jacobian_patterns(x)
        if len(found) < len(rows):
            rows = [np.concatenate(rows)]
        self._jacobians = [_Pattern.of(pattern, own) for pattern, own in zip(found, rows, strict=True)]
        for (_, part), start in zip(self._linear, self._starts, strict=True):
            matrix = part.jacobian(x)
            self._jacobians.append(_Pattern.of(matrix, start + np.arange(matrix.shape[0])))
        self._hessians: list[_Pattern] = []
        if self.is_second_order:
            ones = [np.ones(some.stop - some.start) for some in self._slices]
            self._hessians = [_Pattern.of(pattern) for pattern in self.functions.hessian_patterns(x, ones)]

    def find_patterns_again(self) -> None:
        """Take entries that came up at the latest point, and record functions apart if they have to be."""
        if isinstance(self.error, NotTogether):
            self._begun_apart(self.latest)
        self.error = None
        self._find_patterns(self.latest)

    def at(self, x: Vector) -> Any:
        """Value and gradient of the objective, where IPOPT ended."""
        with contextlib.suppress(NotTogether):  # IPOPT may have asked for derivatives elsewhere last
            return self.functions.at(x)
        self._begun_apart(x)
        return self.functions.at(x)

    def objective(self, x: Vector) -> float:
        """Value of the objective."""
        return float(self.functions.objective(x))

    def gradient(self, x: Vector) -> Vector:
        """Gradient of the objective."""
        self.gradients += 1
        self.latest = x.copy()
        self.slope = self.functions.gradient(x)
        return self.slope

    def constraints(self, x: Vector) -> Vector:
        """Values of all constraints."""
        found = self.functions.constraints(x)
        if not self._linear and len(found) == 1:
            values: Vector = found[0]
            return values
        values = np.empty(len(self.lower))
        for own, some in zip(self._slices, found, strict=True):
            values[own] = some
        for (_, part), start in zip(self._linear, self._starts, strict=True):
            some = part.value(x)
            values[start : start + len(some)] = some
        return values

    def jacobianstructure(self) -> tuple[Vector, Vector]:
        """Rows and columns of the Jacobian's entries."""
        return _joined(self._jacobians)

    def jacobian(self, x: Vector) -> Vector:
        """These entries."""
        found = self.functions.jacobian_entries(x)
        return _entries([*found, *(part.jacobian_entries(x) for _, part in self._linear)], self._jacobians)

    def hessianstructure(self) -> tuple[Vector, Vector]:
        """Rows and columns of entries in the lower triangle of the Lagrangian's Hessian."""
        return _joined(self._hessians)

    def hessian(self, x: Vector, multipliers: Vector, factor: float) -> Vector:
        """These entries, of ``factor * f + multipliers @ c``."""
        self.hessians += 1
        return _entries(self.functions.hessian_entries(x, factor, [multipliers[some] for some in self._slices]), self._hessians)

    def intermediate(self, *state: Any) -> bool:
        """An iteration is done; whether to go on."""
        if self.error is not None:
            return False
        number = int(state[1])
        if number:
            self.iterations += 1
            if self._step is not None:
                self._step(self, self.latest, self.iterations)
        return True


def _within(limits: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
    """Limits with what IPOPT takes for infinite, on the side where that limits nothing."""
    return np.maximum(limits[0], -UNBOUNDED), np.minimum(limits[1], UNBOUNDED)


def _joined(patterns: Sequence[_Pattern]) -> tuple[Vector, Vector]:
    """Rows and columns of all blocks."""
    nothing = np.zeros(0, np.int64)
    return np.concatenate([nothing, *(p.rows for p in patterns)]), np.concatenate([nothing, *(p.columns for p in patterns)])


def _entries(found: Sequence[tuple[Any, Vector]], patterns: Sequence[_Pattern]) -> Vector:
    """Values of entries at the places of patterns.

    Raises
    ------
    _Grown
        If there are more places now: patterns of functions with branches grow, and never lose an entry.
    """
    values = []
    for (now, data), pattern in zip(found, patterns, strict=True):
        if now.nnz != pattern.size:
            raise _Grown
        values.append(data if pattern.taken is None else data.take(pattern.taken))
    return values[0] if len(values) == 1 else np.concatenate([np.zeros(0), *values])


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
    if problem.error is None:
        try:
            return method(*arguments)
        except BaseException as error:  # also an interrupt: C code is around this, which would lose it
            problem.error = error
    if method == problem.intermediate:
        return False
    raise failure


def minimized(
    f: Callable[..., Any],
    packing: Packing,
    args: tuple[Any, ...],
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
    f : callable
    packing : Packing
    args, bounds, constraints, tol, options
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

    def step(problem: Problem, x: Vector, number: int) -> None:
        value = problem.functions.latest_value
        steps.note(value, problem.slope, problem.evaluations)
        if callback is not None:
            try:
                callback(look_up("optimize.scipy_solvers:solvers")().OptimizeResult(x=x.copy(), fun=value, nit=number))
            except StopIteration:
                raise _Stopped from None

    problem = Problem(f, packing, constraints, args, second, step)
    try:
        return _found(library, problem, packing.start, limits, given, steps)
    finally:
        problem.functions.__exit__()


def _found(
    library: Any, problem: Problem, start: Vector, limits: tuple[Vector, Vector], options: dict[str, Any], steps: Progress
) -> dict[str, Any]:
    value, slope = problem.functions.first
    steps.note(value, slope, 1)
    x, info = _solved(library, problem, start, limits, options)
    status, message = int(info["status"]), info["status_msg"]
    if isinstance(problem.error, _Stopped):
        x, status, message = problem.latest, STOPPED, "`callback` raised `StopIteration`."
    elif problem.error is not None:
        raise problem.error
    value, gradient = problem.at(x)
    return {
        "x": x,
        "fun": value,
        "jac": gradient,
        "success": status in SOLVED,
        "status": status,
        "message": message.decode() if isinstance(message, bytes) else message,
        "nit": problem.iterations,
        "nfev": problem.evaluations,
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
        if not isinstance(problem.error, (_Grown, NotTogether)):
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
