"""Student's t distribution."""

from typing import Any

import numpy as np
import scipy.special
import scipy.stats
from scipy.special import gammaln

from tapegrad.as_autograd.distributions.densities import distribution_function
from tapegrad.drivers.leaves import is_tracked

__all__ = ["cdf", "logcdf", "logpdf", "pdf"]


def logpdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Logarithm of the density."""
    if not is_tracked((x, df, loc, scale)):
        return scipy.stats.t.logpdf(x, df, loc, scale)
    z = (x - loc) / scale
    constant = gammaln(0.5 * (df + 1.0)) - gammaln(0.5 * df) - 0.5 * np.log(np.pi * df)
    return constant - np.log(scale) - 0.5 * (df + 1.0) * np.log1p(z**2 / df)


def pdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Density."""
    return np.exp(logpdf(x, df, loc, scale))


_of_standardised = distribution_function(scipy.special.stdtr, lambda df, z: pdf(z, df), argnum=1)


def cdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Distribution function; its derivative by `df` has no closed form."""
    return _of_standardised(df, (x - loc) / scale)


def logcdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Its logarithm."""
    return np.log(cdf(x, df, loc, scale))
