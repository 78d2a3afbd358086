"""Least squares: SciPy's `least_squares` and `curve_fit` with exact Jacobians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.optimize.packing import Packing
from tapegrad.optimize.recordings import VectorFunction

__all__ = ["curve_fit", "least_squares"]


def least_squares(residual: Callable[..., Any], x0: Any, args: Sequence[Any] = (), **options: Any) -> Any:
    """Minimise a sum of squares with `scipy.optimize.least_squares` and the exact Jacobian.

    Parameters
    ----------
    residual : callable
        Takes the variable and `args`, returns an array, a float, or a container of these.
    x0 : array, float or container of these
        The starting point; a list or tuple of floats means an array.
    args : tuple
        Further arguments, constants.
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
    vector = VectorFunction(residual, packing, args, "least_squares")
    result = optimize.least_squares(vector.value, packing.start, jac=vector.jacobian, **options)
    result.flat = result.x
    if not packing.is_vector:
        result.x = packing.structured(result.x)
    return result


def curve_fit(model: Callable[..., Any], xdata: Any, ydata: Any, p0: Sequence[float], **options: Any) -> Any:
    """Fit the parameters of a model to data with `scipy.optimize.curve_fit` and the exact Jacobian.

    Parameters
    ----------
    model : callable
        ``model(xdata, *parameters)`` gives an array of the shape of `ydata`.
    xdata, ydata : array_like
        The data.
    p0 : sequence of float
        Where the parameters start.
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

    packing = Packing(np.asarray(p0), "curve_fit")

    def of_parameters(p: Any) -> Any:
        return model(xdata, *(p[k] for k in range(len(packing.start))))

    vector = VectorFunction(of_parameters, packing, name="curve_fit")

    def values(_: Any, *p: float) -> np.ndarray:
        return vector.value(np.array(p))

    def jacobian(_: Any, *p: float) -> np.ndarray:
        return vector.jacobian(np.array(p))

    return optimize.curve_fit(values, xdata, np.reshape(ydata, -1), p0=packing.start, jac=jacobian, **options)
