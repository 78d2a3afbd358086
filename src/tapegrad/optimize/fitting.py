"""Least squares: SciPy's `least_squares` and `curve_fit` with exact Jacobians."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.optimize.packing import AnyVector, Packing
from tapegrad.optimize.recordings import VectorFunction

__all__ = ["curve_fit", "least_squares"]


def least_squares(
    residual: Callable[..., Any], x0: Any, args: Any = (), kwargs: dict[str, Any] | None = None, **options: Any
) -> Any:
    """Minimise a sum of squares with `scipy.optimize.least_squares` and the exact Jacobian.

    Parameters
    ----------
    residual : callable
        Takes the variable and `args`, returns an array, a float, or a container of these.
    x0 : array, float or container of these
        The starting point; a list or tuple of floats means an array.
    args : tuple
        Further arguments, constants; what is no tuple is one argument.
    kwargs : dict, optional
        Further arguments by keyword.
    **options
        SciPy's: ``bounds``, ``method``, ``loss``, tolerances, and others.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's, with ``x`` in the structure of `x0`, and ``flat``, the vector that SciPy worked on.

    Raises
    ------
    TypeError
        If `x0` or the residual is not of floats.

    Examples
    --------
    >>> def residual(x):
    ...     return np.stack([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]])
    >>> tg.optimize.least_squares(residual, [-1.2, 1.0]).x.round(6)
    array([1., 1.])
    """
    from scipy import optimize

    packing = Packing(x0, "least_squares")
    vector = VectorFunction(functools.partial(residual, **kwargs) if kwargs else residual, packing, args, "least_squares")
    result = optimize.least_squares(vector.value, packing.start, jac=vector.jacobian, **options)
    result.flat = result.x
    if not packing.is_vector:
        result.x = packing.structured(result.x)
    return result


def curve_fit(model: Callable[..., Any], xdata: Any, ydata: Any, p0: Any = None, **options: Any) -> Any:
    """Fit the parameters of a model to data with `scipy.optimize.curve_fit` and the exact Jacobian.

    Parameters
    ----------
    model : callable
        ``model(xdata, *parameters)`` gives an array of the shape of `ydata`. It gets `xdata` as SciPy does: lists, tuples and
        arrays as an array of float64.
    xdata, ydata : array_like
        The data.
    p0 : sequence of float, optional
        Where the parameters start; without it where SciPy would start.
    **options
        SciPy's: ``sigma``, ``absolute_sigma``, ``bounds``, ``method``, and others.

    Returns
    -------
    tuple
        Parameters and their covariance, and what SciPy adds to these.

    Raises
    ------
    TypeError
        If the parameters or the model's values are not of floats.

    Examples
    --------
    >>> t = np.linspace(0.0, 2.0, 20)
    >>> parameters, covariance = tg.optimize.curve_fit(lambda t, a, k: a * np.exp(-k * t), t, 3.0 * np.exp(-0.7 * t), [1.0, 1.0])
    >>> parameters.round(6)
    array([3. , 0.7])
    """
    from scipy import optimize

    packing = AnyVector("curve_fit") if p0 is None else Packing(np.atleast_1d(p0), "curve_fit")
    data = xdata

    def of_parameters(p: Any) -> Any:
        return model(data, *p)

    vector = VectorFunction(of_parameters, packing, name="curve_fit")

    def values(x: Any, *p: float) -> np.ndarray:
        nonlocal data
        data = x  # what SciPy made of it: converted, and without what belongs to missing values
        return vector.value(np.array(p, np.float64))

    def jacobian(_: Any, *p: float) -> np.ndarray:
        return vector.jacobian(np.array(p, np.float64))

    start = None if p0 is None else packing.start
    if p0 is None:
        values.__signature__ = inspect.signature(model)  # type: ignore[attr-defined]  # SciPy counts the parameters
    return optimize.curve_fit(values, xdata, np.reshape(ydata, -1), p0=start, jac=jacobian, **options)
