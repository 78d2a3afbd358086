"""The Dirichlet distribution."""

import numpy as np
import scipy.stats
from scipy.special import psi

from tapegrad.as_autograd.distributions.densities import density_and_logarithm

__all__ = ["logpdf", "pdf"]

pdf, logpdf = density_and_logarithm(
    scipy.stats.dirichlet.pdf,
    scipy.stats.dirichlet.logpdf,
    (lambda x, alpha: (alpha - 1.0) / x, lambda x, alpha: np.log(x) + psi(np.sum(alpha)) - psi(alpha)),
)
