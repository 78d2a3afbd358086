"""The gamma distribution with scale 1."""

import numpy as np
import scipy.stats
from scipy.special import psi

from tapegrad.as_autograd.distributions.densities import density_and_logarithm, distribution_function

__all__ = ["cdf", "logpdf", "pdf"]

pdf, logpdf = density_and_logarithm(
    scipy.stats.gamma.pdf, scipy.stats.gamma.logpdf, (lambda x, a: (a - 1.0) / x - 1.0, lambda x, a: np.log(x) - psi(a))
)
cdf = distribution_function(scipy.stats.gamma.cdf, pdf)
