"""Fixed points: SciPy's `fixed_point`, differentiable by parameters."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.drivers.containers import Structure
from tapegrad.drivers.leaves import called, is_compiled
from tapegrad.optimize.dependence import constants, flat, frozen, recorded, tracked_in
from tapegrad.optimize.equations import SquareEquations
from tapegrad.optimize.histories import Progress, largest
from tapegrad.optimize.implicit import implicit_solution
from tapegrad.optimize.linear_systems import systems_for
from tapegrad.optimize.packing import Packing, as_arguments
from tapegrad.optimize.recordings import VectorFunction
from tapegrad.optimize.scipy_solvers import solvers
from tapegrad.tensors.tensor import Tensor
from tapegrad.tensors.untracked_values import at_depth

__all__ = ["fixed_point"]


def fixed_point(
    f: Callable[..., Any],
    x0: Any,
    args: Any = (),
    xtol: float = 1e-8,
    maxiter: int = 500,
    method: str = "del2",
    progress: bool = False,
    callback: Callable[[Any], Any] | None = None,
    solver: Any = None,
) -> Any:
    """Find where a function gives what it was given, with `scipy.optimize.fixed_point`.

    Parameters
    ----------
    f : callable
        Takes the variable and `args`, returns the like of the variable. Python's or compiled, as for `value_and_grad`.
    x0 : array, float or container of these
        The starting point; a list or tuple of floats means an array.
    args : tuple
        Further arguments; what is no tuple is one argument. The result is differentiable by what is tracked among them.
    xtol : float
        Relative tolerance.
    maxiter : int
        Number of iterations at most.
    method : {"del2", "iteration"}
        Steffensen's method, or plain iteration.
    progress : bool
        Show a progress bar, as for `minimize`; the objective is the largest element of what a step changes.
    callback : callable, optional
        Called with the structured variable at each evaluation after the first.
    solver : {"dense", "sparse", "gmres", "minres"} or callable, optional
        How the linear equations of derivatives by parameters are solved: with dense or sparse LU factors, or with nothing but
        products, by SciPy's methods or a function of (operator, right side) that gives the solution, or a pair with it in front.
        Dense ones up to 1,000 unknowns if nothing is said, sparse ones beyond.

    Returns
    -------
    array, float or container of these
        In the structure of `x0`; tensors, if `f` depends on tracked ones.

    Raises
    ------
    ModuleNotFoundError
        If `progress` is asked for without tqdm.
    TypeError
        If `x0` or the function's result is not of floats.
    CompileError
        If a compiled function uses what cannot be recorded.
    ValueError
        If the function's result has another size than the variable, or `solver` is another one.
    RuntimeError
        If it is not found in `maxiter` iterations.

    Notes
    -----
    Derivatives are those of the equations ``x - f(x, *args) = 0``, as for `root`, however many iterations it took [1]_.

    References
    ----------
    .. [1] B. Christianson, "Reverse accumulation and attractive fixed points", Optimization Methods and Software 3, 1994.

    Examples
    --------
    >>> babylonian = lambda x, a: 0.5 * (x + a / x)
    >>> tg.optimize.fixed_point(babylonian, 1.0, (9.0,))
    3.0
    >>> round(tg.grad(lambda a: tg.optimize.fixed_point(babylonian, 1.0, (a,)))(9.0), 9)
    0.166666667
    """
    optimize = solvers()

    f = called(f)
    packing = Packing(x0, "fixed_point")
    systems = systems_for("fixed_point", solver, packing.size)
    function = _in_order_of(packing.structure, f)
    vector = VectorFunction(function, packing, constants(as_arguments(args)), "fixed_point")

    def step(x: np.ndarray) -> np.ndarray:
        value = vector.value(x)
        if len(value) != len(x):
            raise ValueError(
                f"fixed_point: the function must give as many numbers as it takes, but gives {len(value)} for {len(x)}"
            )
        steps.note(largest(value - x), math.nan, vector.evaluations, x)
        return value

    solve = functools.partial(optimize.fixed_point, step, packing.start, xtol=xtol, maxiter=maxiter, method=method)
    with vector, Progress(progress, None if callback is None else lambda x: callback(packing.structured(x))) as steps:
        found = at_depth(0, solve)
    parameters = frozen(as_arguments(args))

    def equations(z: Tensor) -> Tensor:
        return z - flat(recorded(function, packing.tensors(z * 1.0), *parameters), "fixed_point")

    square = SquareEquations(equations, np.asarray(found, np.float64), packing.start, "fixed_point", systems=systems)
    x = implicit_solution(square, tracked_in(parameters))
    return packing.structured(found) if x is None else packing.tensors(x)


def _in_order_of(structure: Structure, f: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose results have the items of dicts in the order of the variable's, since they are compared one by one."""
    if structure is None or is_compiled(f):
        return f
    return lambda *arguments: _ordered(structure, f(*arguments))


def _ordered(structure: Structure, value: Any) -> Any:
    if structure is None:
        return value
    if isinstance(structure.like, dict):
        if not isinstance(value, dict) or set(value) != set(structure.keys):
            got = list(value) if isinstance(value, dict) else type(value).__name__
            raise TypeError(
                f"fixed_point: the function must give the like of its variable: a dict with {list(structure.keys)}, not {got}"
            )
        parts = [value[key] for key in structure.keys]
    elif isinstance(value, (list, tuple)) and len(value) == len(structure.keys):
        parts = list(value)
    else:
        return value
    return [_ordered(child, part) for child, part in zip(structure.children, parts, strict=True)]
