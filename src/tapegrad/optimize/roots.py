"""Roots of systems of equations: SciPy's `root` with the exact Jacobian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.optimize.packing import Packing
from tapegrad.optimize.recordings import VectorFunction

__all__ = ["root"]

WITH_JACOBIANS = frozenset(["hybr", "lm"])


def root(function: Callable[..., Any], x0: Any, args: Any = (), method: str = "hybr", **options: Any) -> Any:
    """Find where a function is zero with `scipy.optimize.root` and the exact Jacobian.

    Parameters
    ----------
    function : callable
        Takes the variable and `args`, returns as many numbers as the variable has elements, in an array or a container.
    x0 : array, float or container of these
        The starting point; a list or tuple of floats means an array.
    args : tuple
        Further arguments, constants; what is no tuple is one argument.
    method : str
        SciPy's name of the method; ``"hybr"`` and ``"lm"`` take a Jacobian.
    **options
        SciPy's: ``tol``, ``callback``, ``options``.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's, with ``x`` in the structure of `x0`, and ``flat``, the vector that SciPy worked on.

    Raises
    ------
    TypeError
        If `x0` or the function's result is not of floats.
    ValueError
        If SciPy is to read the Jacobian in columns.

    Examples
    --------
    >>> tg.optimize.root(lambda x: np.stack([x[0] ** 2 - x[1], x[0] + x[1] - 2.0]), [0.5, 0.5]).x.round(6)
    array([1., 1.])
    """
    from scipy import optimize

    packing = Packing(x0, "root")
    vector = VectorFunction(function, packing, args, "root")
    known = {"jac": vector.jacobian} if str(method).lower() in WITH_JACOBIANS else {}
    if known and (options.get("options") or {}).get("col_deriv"):
        raise ValueError("root: the Jacobian has derivatives along its rows; leave out col_deriv.")
    result = optimize.root(vector.value, packing.start, method=method, **known, **options)
    result.flat = result.x
    if not packing.is_vector:
        result.x = packing.structured(result.x)
    return result
