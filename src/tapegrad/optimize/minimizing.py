"""`minimize`: SciPy's, with the derivatives that the chosen method takes."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.drivers.leaves import called
from tapegrad.optimize.constraints import constraint_functions, listed_constraints, recordable, scipy_constraints
from tapegrad.optimize.dependence import constants, depends_on_tracked, frozen, none_tracked, recorded, tracked_in
from tapegrad.optimize.histories import Progress
from tapegrad.optimize.limits import refuse_tracked_limits
from tapegrad.optimize.packing import Packing, as_arguments
from tapegrad.tensors.tensor import Tensor, is_recording
from tapegrad.tensors.untracked_values import at_depth

if TYPE_CHECKING:
    from tapegrad.optimize.recordings import ScipyFunction

__all__ = ["minimize"]

WITHOUT_DERIVATIVES = frozenset(["nelder-mead", "powell", "cobyla", "cobyqa"])
WITH_PRODUCTS = frozenset(["newton-cg", "trust-ncg", "trust-krylov", "trust-constr"])
WITH_HESSIANS = frozenset(["dogleg", "trust-exact"])
WITH_SPARSE = frozenset(["trust-constr", "ipopt"])
FOR_LINEAR = frozenset(["highs", "highs-ds", "highs-ipm"])


def minimize(
    f: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str | None = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    progress: bool = False,
    program: bool = False,
    sparse: bool = False,
    solver: Any = None,
) -> Any:
    """Minimise a scalar function with `scipy.optimize.minimize` and exact derivatives.

    Parameters
    ----------
    f : callable
        Takes the variable and `args`, returns a scalar. Python's or compiled, as for `value_and_grad`; the variable of a compiled
        function is a float64 number or array, or a tuple of these.
    x0 : array, float or container of these
        The starting point. The variable has its structure; a list or tuple of floats means an array.
    args : tuple
        Further arguments; what is no tuple is one argument. The minimum is differentiable by what is tracked among them; see Notes.
    method : str, optional
        SciPy's name of the method. It gets ``jac``, ``hessp`` or ``hess``, whatever it takes. Or ``"ipopt"``, the interior-point
        method of the package ``cyipopt`` (extra ``ipopt``), which gets sparse Jacobians of constraints and the sparse Hessian of
        the Lagrangian. Or ``"highs"`` (``"highs-ds"``, ``"highs-ipm"``), SciPy's solver of linear programs, if `f` and all
        constraints are linear.
    bounds : sequence or scipy.optimize.Bounds, optional
        Of the elements of the variable, one after the other, whatever its structure is.
    constraints : Constraint, dict, SciPy's constraint, or sequence of these
        From `equality`, `inequality` and `between`, or in SciPy's forms. Functions take the structured variable, and dicts get a
        Jacobian if they have none; SciPy's own constraint objects work on the vector.
    tol : float, optional
        SciPy's tolerance.
    callback : callable, optional
        Called with the structured variable after each iteration (for trust-constr also with SciPy's state, if it takes two
        arguments), or with what SciPy gives if it has an argument of the name ``intermediate_result``.
    options : dict, optional
        SciPy's options of the method; IPOPT's for that, and ``maxiter`` and ``disp``. ``hessian_approximation="limited-memory"``
        goes without second derivatives.
    progress : bool
        Show a progress bar of tqdm (extra ``progress``): iterations, objective, gradient norm, evaluations.
    program : bool
        Whether `f` is made a `program`: what its calls record is run again at the next points.
    sparse : bool
        Whether ``"trust-constr"``, the method that takes them, gets Hessians and Jacobians of constraints as sparse arrays
        (`tapegrad.sparse`); IPOPT gets them anyway.
    solver : {"dense", "sparse", "gmres", "minres"} or callable, optional
        How the linear equations of derivatives by parameters are solved, as for `root`.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's, with ``x`` in the structure of `x0`, and ``flat``, the vector that SciPy worked on. Besides, ``history`` has the
        iterations, and ``plot()`` draws them (extra ``plot``).

    Raises
    ------
    ModuleNotFoundError
        If `progress` is asked for without tqdm, or IPOPT without cyipopt.
    TypeError
        If `x0` is not of floats, bounds are a dict, something is no constraint, or the function's result is no scalar or lost its
        derivative.
    CompileError
        If a compiled `f` or constraint uses what cannot be recorded, or what has no second derivative where the method asks for it.
    ValueError
        If the function is nan at `x0`, no number keeps to bounds or there are not as many as variables, `sparse` is asked for with
        another method, `solver` is another one, or something is not linear for a method that is for linear programs.
    NotImplementedError
        If bounds are tracked tensors, or the minimum depends on tracked tensors and a constraint cannot be recorded.

    Notes
    -----
    Each point is recorded once, whatever the method asks for there. A gradient costs a reverse sweep, a product with the Hessian
    (``hessp``) a forward and a reverse sweep, a Hessian n such products of which up to 32 share a sweep.

    Where the function or a constraint depends on tracked tensors, be they in `args` or variables around it, ``x``, ``flat`` and
    ``fun`` hold tensors that are differentiable by these; the other fields of the result are plain numbers. The derivative is that
    of the optimality conditions [1]_: of the gradient for the variables that no bound holds (the others have the derivative zero),
    together with the constraints that are active at the solution and their multipliers. Where a bound or constraint is about to
    hold, the solution has a kink, and so it may have where the function has one: the backward pass raises RuntimeError there. What
    else holds, costs and fails is as for `root`, with the Hessian, bordered by the active constraints, in place of the Jacobian.

    References
    ----------
    .. [1] M. Blondel et al., "Efficient and modular implicit differentiation", NeurIPS 2022.

    Examples
    --------
    >>> def rosenbrock(p):
    ...     return 100.0 * (p["y"] - p["x"] ** 2) ** 2 + (1.0 - p["x"]) ** 2
    >>> result = tg.optimize.minimize(rosenbrock, {"x": -1.2, "y": 1.0}, method="trust-ncg", tol=1e-8)
    >>> round(result.x["x"], 6), round(result.x["y"], 6)
    (1.0, 1.0)

    Ridge regression, and how its solution depends on the penalty:

    >>> def ridge(w, penalty):
    ...     return ((w - 1.0) ** 2).sum() + penalty * (w * w).sum()
    >>> tg.jacobian(lambda p: tg.optimize.minimize(ridge, [0.0, 0.0], (p,), tol=1e-10).x)(1.0).round(6)
    array([-0.25, -0.25])
    """
    packing = Packing(x0, "minimize")
    if solver is not None:
        look_up("optimize.linear_systems:systems_for")("minimize", solver, packing.size)
    f = called(f)
    if program:
        f = look_up("programs.program:program")(f)
    kind = "" if method is None else str(method).lower()
    if sparse and kind not in WITH_SPARSE:
        raise ValueError(
            f"minimize: sparse=True is for method='trust-constr' or 'ipopt', which take sparse Hessians, not {method!r}"
        )
    if isinstance(bounds, dict):
        raise TypeError(
            f"minimize: bounds are {packing.size} pairs (low, high), one for each element of the variable in the order of its "
            "vector (result.flat), but got a dict. Pass a sequence of pairs, or scipy.optimize.Bounds."
        )
    if isinstance(bounds, Iterator):  # as zip gives, which could be looked at once only
        bounds = list(bounds)
    constraints = listed_constraints(constraints)
    refuse_tracked_limits("minimize", bounds, constraints)
    further = constants(as_arguments(args))
    result = at_depth(
        0, _minimized, f, packing, further, method, kind, bounds, constraints, tol, callback, options, progress, sparse
    )
    result.flat = result.x
    x = _with_derivative(f, packing, args, result, bounds, constraints, solver)
    if x is not None:
        result.x, result.flat = packing.tensors(x), x
        result.fun = recorded(f, result.x, *as_arguments(args))
    elif not packing.is_vector:
        result.x = packing.structured(result.x)
    return result


def _with_derivative(f: Any, packing: Packing, args: Any, result: Any, bounds: Any, constraints: Any, solver: Any) -> Tensor | None:
    """The minimum as a tensor, if it depends on tracked ones."""
    if none_tracked(f, as_arguments(args)) and not recordable(constraints):
        return None
    parameters = frozen(as_arguments(args))
    flat = np.asarray(result.flat, np.float64)

    def of_variable(x: Any) -> Any:
        return recorded(f, x, *parameters)

    def everything(z: Tensor) -> list[Any]:
        x = packing.tensors(z)
        plain = packing.structured(flat)
        limited = (recorded(one.function, plain if differenced else x) for one, differenced in recordable(constraints))
        return [recorded(f, x, *parameters), *limited]

    given = tracked_in(parameters)
    if not (depends_on_tracked(everything, flat, "minimize") or (given and is_recording())):
        return None
    from tapegrad.optimize.optimality import implicit_minimum  # with linear algebra, which most minimisations need not

    failure = None if result.success else str(result.message)
    limited = constraint_functions(constraints)
    return implicit_minimum(of_variable, packing, flat, bounds, limited, "minimize", failure, given, solver)


def _minimized(
    f: Any,
    packing: Packing,
    args: tuple[Any, ...],
    method: str | None,
    kind: str,
    bounds: Any,
    constraints: Any,
    tol: float | None,
    callback: Any,
    options: Any,
    progress: bool,
    sparse: bool,
) -> Any:
    """What SciPy finds."""
    if kind == "ipopt":
        with Progress(progress) as steps:
            after = None if callback is None else functools.partial(_with_state, callback, packing)
            minimized = look_up("optimize.interior_point:minimized")
            found = minimized(f, packing, args, bounds, constraints, tol, after, options, steps)
        return look_up("optimize.results:with_history")(found, steps.history)
    second = kind in WITH_PRODUCTS or kind in WITH_HESSIANS or kind in FOR_LINEAR
    function: ScipyFunction = look_up("optimize.recordings:ScipyFunction")(f, packing, args, keeps=second, strict=True)
    if kind in FOR_LINEAR:
        if callback is not None:
            raise ValueError("minimize: method='highs' has no callback: SciPy's HiGHS tells of no iteration")
        with function, Progress(progress) as steps:
            found = look_up("optimize.linear_programs:minimized")(function, packing, kind, bounds, constraints, tol, options, steps)
        return look_up("optimize.results:with_history")(found, steps.history)
    # Not jac=True: SciPy compares whole points then, twice for each, to find out what the function knows itself.
    known: dict[str, Any] = {} if kind in WITHOUT_DERIVATIVES else {"jac": function.gradient}
    if sparse:
        known["hess"] = function.sparse_hess
    elif kind in WITH_PRODUCTS:
        known["hessp"] = function.hessp
    if kind in WITH_HESSIANS:
        known["hess"] = function.hess
    with function, Progress(progress) as steps:
        found = look_up("optimize.scipy_solvers:solvers")().minimize(
            function.value,
            packing.start,
            method=method,
            bounds=bounds,
            constraints=scipy_constraints(constraints, packing, kind == "trust-constr", sparse),
            tol=tol,
            callback=_called_back(callback, packing, functools.partial(_note, steps, function)),
            options=options,
            **known,
        )
        if function.first is not None and not len(steps.history):
            steps.note(*function.first, 1)
    return look_up("optimize.results:with_history")(found, steps.history)


def _note(steps: Progress, function: ScipyFunction, x: np.ndarray) -> None:
    """An iteration of SciPy's came to a point."""
    if not len(steps.history) and function.first is not None:
        steps.note(*function.first, 1)
    point = function.known(x)
    if point is None:
        steps.note(function.latest_value, math.nan, function.evaluations)
    else:
        steps.note(point.value, point.gradient, function.evaluations)


def _called_back(callback: Callable[..., Any] | None, packing: Packing, note: Callable[[np.ndarray], None]) -> Any:
    """A callback in SciPy's form, which notes the iteration first."""
    parameters = {} if callback is None else _parameters(callback)
    if callback is not None and "intermediate_result" in parameters:

        def with_result(intermediate_result: Any) -> Any:
            note(intermediate_result.x)
            return callback(intermediate_result=intermediate_result)

        return with_result

    takes_state = len(parameters) > 1 or any(p.kind is p.VAR_POSITIONAL for p in parameters.values())

    def with_point(xk: Any, *state: Any) -> Any:
        note(xk)
        if callback is None:
            return None
        return callback(packing.structured(xk), *(state if takes_state else ()))

    return with_point


def _with_state(callback: Callable[..., Any], packing: Packing, state: Any) -> Any:
    """Call a callback after an iteration of a solver that is not SciPy's."""
    if "intermediate_result" in _parameters(callback):
        return callback(intermediate_result=state)
    return callback(packing.structured(state.x))


def _parameters(callback: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """What a callback takes, as far as that can be known."""
    try:
        return inspect.signature(callback).parameters
    except (TypeError, ValueError):  # written in C
        return {}
