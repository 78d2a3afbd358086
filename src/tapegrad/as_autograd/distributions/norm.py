"""The normal distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats
from scipy.special import log_ndtr, ndtr

from tapegrad.drivers.leaves import is_tracked

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def _of_standardised(formula: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """SciPy's function of that name, or a formula in ``(x - loc) / scale`` and `scale` where something is being differentiated."""
    name = formula.__name__
    function = getattr(scipy.stats.norm, name)

    def call(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        if not (is_tracked(x) or is_tracked(loc) or is_tracked(scale)):
            return function(x, loc, scale)
        return formula((x - loc) / scale, scale)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = formula.__doc__
    return call


@_of_standardised
def logpdf(z: Any, scale: Any) -> Any:
    """Logarithm of the density."""
    return -0.5 * z**2 - _LOG_ROOT_TWO_PI - np.log(scale)


@_of_standardised
def pdf(z: Any, scale: Any) -> Any:
    """Density."""
    return np.exp(-0.5 * z**2 - _LOG_ROOT_TWO_PI) / scale


@_of_standardised
def cdf(z: Any, scale: Any) -> Any:
    """Distribution function."""
    return ndtr(z)


@_of_standardised
def logcdf(z: Any, scale: Any) -> Any:
    """Its logarithm."""
    return log_ndtr(z)


@_of_standardised
def sf(z: Any, scale: Any) -> Any:
    """One minus the distribution function."""
    return ndtr(-z)


@_of_standardised
def logsf(z: Any, scale: Any) -> Any:
    """Its logarithm."""
    return log_ndtr(-z)
