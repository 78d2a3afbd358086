"""The chi-squared distribution."""

import numpy as np
import scipy.stats
from scipy.special import psi

from tapegrad.as_autograd.distributions.densities import density_and_logarithm, distribution_function

__all__ = ["cdf", "logpdf", "pdf"]

pdf, logpdf = density_and_logarithm(
    scipy.stats.chi2.pdf,
    scipy.stats.chi2.logpdf,
    (lambda x, df: (0.5 * df - 1.0) / x - 0.5, lambda x, df: 0.5 * (np.log(0.5 * x) - psi(0.5 * df))),
)
cdf = distribution_function(scipy.stats.chi2.cdf, pdf)
