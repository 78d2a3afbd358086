"""The Poisson distribution."""

import numpy as np
import scipy.stats

from tapegrad.as_autograd.distributions.densities import density_and_logarithm, distribution_function

__all__ = ["cdf", "logpmf", "pmf"]

pmf, logpmf = density_and_logarithm(scipy.stats.poisson.pmf, scipy.stats.poisson.logpmf, (None, lambda k, mu: k / mu - 1.0))
cdf = distribution_function(scipy.stats.poisson.cdf, lambda k, mu: -pmf(np.floor(k), mu), argnum=1)
