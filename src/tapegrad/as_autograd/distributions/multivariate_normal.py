"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.stats

from tapegrad.as_autograd.tracing import getval
from tapegrad.drivers.leaves import is_tracked

__all__ = ["entropy", "logpdf", "pdf"]

_LOG_TWO_PI = math.log(2.0 * math.pi)


def _covariance(cov: Any, dimension: int) -> Any:
    if np.ndim(cov) == 2:
        return cov
    return cov * np.eye(dimension)  # of one variance, or of a vector of them


def logpdf(x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    """Logarithm of the density; the last axis of `x` is that of the vectors.

    The derivative by a singular matrix is that among matrices of its rank.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    if not is_tracked((x, mean, cov)):
        return scipy.stats.multivariate_normal.logpdf(x, mean, cov, allow_singular)
    dimension = np.shape(cov)[0] if np.ndim(cov) else np.shape(mean)[0] if np.ndim(mean) else np.shape(x)[-1] if np.ndim(x) else 1
    deviation = x if mean is None else x - mean
    if np.ndim(deviation) == 0 or (dimension == 1 and np.shape(deviation)[-1] != 1):
        deviation = np.reshape(deviation, (*np.shape(deviation), 1))
    elif np.ndim(deviation) == 1 and np.shape(deviation)[0] != dimension:
        raise ValueError(f"multivariate_normal: x has the shape {np.shape(x)}, but cov is of dimension {dimension}")
    matrix = _covariance(cov, dimension)
    rows = np.reshape(deviation, (-1, dimension))
    if allow_singular:
        squares = np.sum(rows * np.dot(rows, np.linalg.pinv(matrix)), axis=-1)
        values = np.linalg.eigvalsh(matrix)
        kept = values > 1e6 * np.finfo(float).eps * np.max(np.abs(getval(values)))  # as SciPy
        rank, logdet = int(np.count_nonzero(kept)), np.sum(np.log(values[kept]))
    else:
        squares = np.sum(rows * np.linalg.solve(matrix, rows.T).T, axis=-1)
        rank, logdet = dimension, np.linalg.slogdet(matrix)[1]
    return np.reshape(-0.5 * (rank * _LOG_TWO_PI + logdet + squares), np.shape(deviation)[:-1])


def pdf(x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    """Density."""
    return np.exp(logpdf(x, mean, cov, allow_singular))


def entropy(mean: Any = None, cov: Any = 1.0) -> Any:
    """Differential entropy."""
    if not is_tracked((mean, cov)):
        return scipy.stats.multivariate_normal.entropy(mean, cov)
    dimension = np.shape(cov)[0] if np.ndim(cov) else 1 if mean is None else np.size(mean)
    _, logdet = np.linalg.slogdet(_covariance(cov, dimension))
    return 0.5 * (dimension * (1.0 + _LOG_TWO_PI) + logdet)
