"""`minimize`: SciPy's, with the derivatives that the chosen method takes."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tapegrad.optimize.constraints import scipy_constraints
from tapegrad.optimize.packing import Packing
from tapegrad.optimize.recordings import ScipyFunction

__all__ = ["minimize"]

WITHOUT_DERIVATIVES = frozenset(["nelder-mead", "powell", "cobyla", "cobyqa"])
WITH_PRODUCTS = frozenset(["newton-cg", "trust-ncg", "trust-krylov", "trust-constr"])
WITH_HESSIANS = frozenset(["dogleg", "trust-exact"])


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
) -> Any:
    """Minimise a scalar function with `scipy.optimize.minimize` and exact derivatives.

    Parameters
    ----------
    f : callable
        Takes the variable and `args`, returns a scalar.
    x0 : array, float or container of these
        The starting point. The variable has its structure; a list or tuple of floats means an array.
    args : tuple
        Further arguments, constants; what is no tuple is one argument.
    method : str, optional
        SciPy's name of the method. It gets ``jac``, ``hessp`` or ``hess``, whatever it takes.
    bounds : sequence or scipy.optimize.Bounds, optional
        Of the elements of the variable, one after the other.
    constraints : Constraint, dict, SciPy's constraint, or sequence of these
        From `equality`, `inequality` and `between`, or in SciPy's forms. Functions take the structured variable, and dicts get a
        Jacobian if they have none; SciPy's own constraint objects work on the vector.
    tol : float, optional
        SciPy's tolerance.
    callback : callable, optional
        Called with the structured variable after each iteration (for trust-constr also with SciPy's state, if it takes two
        arguments), or with what SciPy gives if it has an argument of the name ``intermediate_result``.
    options : dict, optional
        SciPy's options of the method.
    progress : bool
        Show a progress bar, if tqdm is installed.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's, with ``x`` in the structure of `x0`, and ``flat``, the vector that SciPy worked on.

    Raises
    ------
    TypeError
        If `x0` is not of floats, or the function's result is no scalar or lost its derivative.
    ValueError
        If the function is nan at `x0`.

    Examples
    --------
    >>> def rosenbrock(p):
    ...     return 100.0 * (p["y"] - p["x"] ** 2) ** 2 + (1.0 - p["x"]) ** 2
    >>> result = tg.optimize.minimize(rosenbrock, {"x": -1.2, "y": 1.0}, method="trust-ncg", tol=1e-8)
    >>> round(result.x["x"], 6), round(result.x["y"], 6)
    (1.0, 1.0)
    """
    from scipy import optimize

    packing = Packing(x0, "minimize")
    kind = "" if method is None else str(method).lower()
    second = kind in WITH_PRODUCTS or kind in WITH_HESSIANS
    function = ScipyFunction(f, packing, args, keeps=second, strict=True)
    known: dict[str, Any] = {} if kind in WITHOUT_DERIVATIVES else {"jac": True}
    if kind in WITH_PRODUCTS:
        known["hessp"] = function.hessp
    if kind in WITH_HESSIANS:
        known["hess"] = function.hess
    with _showing(progress, function) as count:
        result = optimize.minimize(
            function if "jac" in known else function.value,
            packing.start,
            method=method,
            bounds=bounds,
            constraints=scipy_constraints(constraints, packing, kind == "trust-constr"),
            tol=tol,
            callback=_called_back(callback, packing, count),
            options=options,
            **known,
        )
    result.flat = result.x
    if not packing.is_vector:
        result.x = packing.structured(result.x)
    return result


def _called_back(callback: Callable[..., Any] | None, packing: Packing, count: Callable[[], None] | None) -> Any:
    """A callback in SciPy's form."""
    if callback is None and count is None:
        return None
    parameters = {} if callback is None else _parameters(callback)
    if callback is not None and "intermediate_result" in parameters:

        def with_result(intermediate_result: Any) -> Any:
            if count is not None:
                count()
            return callback(intermediate_result=intermediate_result)

        return with_result

    takes_state = len(parameters) > 1 or any(p.kind is p.VAR_POSITIONAL for p in parameters.values())

    def with_point(xk: Any, *state: Any) -> Any:
        if count is not None:
            count()
        if callback is None:
            return None
        return callback(packing.structured(xk), *(state if takes_state else ()))

    return with_point


def _parameters(callback: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """What a callback takes, as far as that can be known."""
    try:
        return inspect.signature(callback).parameters
    except (TypeError, ValueError):  # written in C
        return {}


@contextlib.contextmanager
def _showing(progress: bool, function: ScipyFunction) -> Iterator[Callable[[], None] | None]:
    """A progress bar, and what counts an iteration on it."""
    try:
        bar: Any = __import__("tqdm").tqdm(unit=" iterations") if progress else None
    except ImportError:
        bar = None
    if bar is None:
        yield None
        return

    def count() -> None:
        bar.set_postfix(f=function.latest_value, refresh=False)
        bar.update()

    with bar:
        yield count
