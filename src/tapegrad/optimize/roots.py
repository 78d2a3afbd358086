"""Roots of systems of equations: SciPy's `root` with the exact Jacobian."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.drivers.leaves import called
from tapegrad.optimize.dependence import constants, flat, frozen, recorded, tracked_in
from tapegrad.optimize.equations import SquareEquations
from tapegrad.optimize.histories import Progress, largest
from tapegrad.optimize.implicit import implicit_solution
from tapegrad.optimize.linear_systems import systems_for
from tapegrad.optimize.packing import Packing, as_arguments
from tapegrad.optimize.recordings import VectorFunction
from tapegrad.optimize.scipy_solvers import solvers
from tapegrad.optimize.sparse_newton import newton
from tapegrad.tensors.tensor import Tensor
from tapegrad.tensors.untracked_values import at_depth

__all__ = ["root"]

WITH_JACOBIANS = frozenset(["hybr", "lm"])


def root(
    function: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    sparse: bool = False,
    progress: bool = False,
    callback: Callable[..., Any] | None = None,
    solver: Any = None,
    **options: Any,
) -> Any:
    """Find where a function is zero with `scipy.optimize.root` and the exact Jacobian.

    Parameters
    ----------
    function : callable
        Takes the variable and `args`, returns as many numbers as the variable has elements, in an array or a container. Python's
        or compiled, as for `value_and_grad`.
    x0 : array, float or container of these
        The starting point; a list or tuple of floats means an array.
    args : tuple
        Further arguments; what is no tuple is one argument. The solution is differentiable by those that are tracked; see Notes.
    method : str
        SciPy's name of the method; ``"hybr"`` and ``"lm"`` take a Jacobian.
    sparse : bool
        Whether Newton's method with the sparse Jacobian (`tapegrad.sparse.jacobian`) and its LU factors is to be used instead,
        whose steps are halved until the norm decreases. It takes ``tol`` (the last step's length, relative to x), ``callback``
        and the options ``maxiter`` and ``xtol``; with ``method="krylov"`` its steps are solved for by GMRES with
        incomplete factors.
    progress : bool
        Show a progress bar, as for `minimize`.
    callback : callable, optional
        SciPy's, called with x and the function's value there; with ``"hybr"`` and ``"lm"``, where SciPy has none, with the
        structured variable at each evaluation after the first.
    solver : {"dense", "sparse", "gmres", "minres"} or callable, optional
        How the linear equations of derivatives by parameters are solved: with dense or sparse LU factors, or with nothing but
        products, by SciPy's methods or a function of (operator, right side) that gives the solution, or a pair with it in front.
        Dense ones up to 1,000 unknowns if nothing is said, sparse ones beyond, and with `sparse`.
    **options
        SciPy's: ``tol``, ``options``.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's, with ``x`` in the structure of `x0`, and ``flat``, the vector that SciPy worked on. Besides, ``history`` has the
        largest element of the function at each evaluation as the objective, and ``plot()`` draws them.

    Raises
    ------
    ModuleNotFoundError
        If `progress` is asked for without tqdm.
    TypeError
        If `x0` or the function's result is not of floats.
    CompileError
        If a compiled function uses what cannot be recorded.
    ValueError
        If SciPy is to read the Jacobian in columns, `sparse` is asked for with another method, or `solver` is another one.

    Notes
    -----
    Where the function depends on tracked tensors, be they in `args` or variables around it, ``x`` and ``flat`` hold tensors that
    are differentiable by these, as often as one likes, by the implicit function theorem [1]_ [2]_; the other fields of the result
    are plain numbers. The derivative by `x0` is zero. It takes about ten evaluations of the function more, and the Jacobian, whose
    LU factors (dense: time of order n³, n² numbers) serve all passes of first order; each pass of higher order takes n recorded
    ones, and is refused beyond 1,000 unknowns. With products alone each pass is a solution by iterations.
    The backward pass raises `LinAlgError` if the Jacobian is singular, and RuntimeError if the solver found no solution, or the
    function has a kink there. Under ``no_grad`` nothing is tracked.

    References
    ----------
    .. [1] B. Christianson, "Reverse accumulation and attractive fixed points", Optimization Methods and Software 3, 1994.
    .. [2] M. Blondel et al., "Efficient and modular implicit differentiation", NeurIPS 2022.

    Examples
    --------
    >>> tg.optimize.root(lambda x: np.stack([x[0] ** 2 - x[1], x[0] + x[1] - 2.0]), [0.5, 0.5]).x.round(6)
    array([1., 1.])

    The derivative of a square root:

    >>> round(tg.grad(lambda a: tg.optimize.root(lambda x, a: x * x - a, 1.0, (a,)).x)(4.0), 12)
    0.25
    """
    optimize = solvers()

    function = called(function)
    packing = Packing(x0, "root")
    systems = systems_for("root", "sparse" if sparse and solver is None else solver, packing.size)
    vector = VectorFunction(function, packing, constants(as_arguments(args)), "root", sparse=sparse)
    if sparse and method not in ("hybr", "krylov"):
        raise ValueError(f"root: sparse=True is Newton's method, and {method!r} another one; leave out one of them")
    known = {"jac": vector.jacobian} if str(method).lower() in WITH_JACOBIANS else {}
    if known and (options.get("options") or {}).get("col_deriv"):
        raise ValueError("root: the Jacobian has derivatives along its rows; leave out col_deriv.")
    steps = Progress(progress, None if callback is None or not known or sparse else lambda x: callback(packing.structured(x)))
    if callback is not None and (sparse or not known):
        options["callback"] = callback

    def value(x: np.ndarray) -> np.ndarray:
        found = vector.value(x)
        steps.note(largest(found), math.nan, vector.evaluations, x)
        return found

    solve = functools.partial(optimize.root, value, packing.start, method=method, **known, **options)
    if sparse:
        solve = functools.partial(newton, value, vector.jacobian, packing.start, krylov=method == "krylov", **options)
    with vector, steps:
        result = at_depth(0, solve)
    result = look_up("optimize.results:with_history")(result, steps.history)
    result.flat = result.x
    parameters = frozen(as_arguments(args))

    def equations(z: Tensor) -> Tensor:
        return flat(recorded(function, packing.tensors(z * 1.0), *parameters), "root")

    failure = None if result.success else str(result.message)
    square = SquareEquations(equations, np.asarray(result.flat, np.float64), packing.start, "root", failure, systems)
    x = implicit_solution(square, tracked_in(parameters))
    if x is not None:
        result.x, result.flat = packing.tensors(x), x
    elif not packing.is_vector:
        result.x = packing.structured(result.x)
    return result
