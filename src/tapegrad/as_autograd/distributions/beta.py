"""The beta distribution."""

import numpy as np
import scipy.stats
from scipy.special import psi

from tapegrad.as_autograd.distributions.densities import density_and_logarithm, distribution_function

__all__ = ["cdf", "logpdf", "pdf"]

pdf, logpdf = density_and_logarithm(
    scipy.stats.beta.pdf,
    scipy.stats.beta.logpdf,
    (
        lambda x, a, b: (a - 1.0) / x - (b - 1.0) / (1.0 - x),
        lambda x, a, b: np.log(x) - psi(a) + psi(a + b),
        lambda x, a, b: np.log1p(-x) - psi(b) + psi(a + b),
    ),
)
cdf = distribution_function(scipy.stats.beta.cdf, pdf)
