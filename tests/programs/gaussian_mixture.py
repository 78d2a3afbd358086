"""The log-likelihood of a Gaussian mixture, with whole-array arithmetic and factors of the precisions."""

import numba
import numpy as np
from program import Program


@numba.njit
def lower_triangle(values, d):
    out = np.zeros((d, d))
    place = 0
    for i in range(d):
        for j in range(i):
            out[i, j] = values[place]
            place += 1
        out[i, i] = np.exp(values[place])
        place += 1
    return out


@numba.njit
def log_likelihood(logits, means, factors, x):
    n, d = x.shape
    k = means.shape[0]
    log_weights = logits - np.log(np.sum(np.exp(logits)))
    log_prob = np.empty((n, k))
    for c in range(k):
        factor = lower_triangle(factors[c], d)
        log_det = np.sum(np.log(np.diag(factor)))
        for i in range(n):
            z = factor @ (x[i] - means[c])
            log_prob[i, c] = log_weights[c] + log_det - 0.5 * np.sum(z**2)
    total = -0.5 * n * d * np.log(2.0 * np.pi)
    for i in range(n):
        row = log_prob[i]
        top = row.max()
        total += top + np.log(np.exp(row - top).sum())
    return total


def twin(logits, means, factors, x):
    d = x.shape[1]
    weights = np.exp(logits) / np.exp(logits).sum()
    density = 0.0
    for weight, mean, values in zip(weights, means, factors, strict=True):
        factor = np.zeros((d, d), complex)
        factor[np.tril_indices(d)] = values
        factor[np.diag_indices(d)] = np.exp(np.diag(factor))
        distance = np.einsum("ni,ji,jk,nk->n", x - mean, factor, factor, x - mean)
        density = density + weight * np.linalg.det(factor) * np.exp(-distance / 2)
    return np.log(density * (2 * np.pi) ** (-d / 2)).sum()


RANDOM = np.random.default_rng(7)
PROGRAM = Program(
    "Gaussian mixture",
    log_likelihood,
    (
        RANDOM.standard_normal(3),
        RANDOM.standard_normal((3, 3)),
        0.4 * RANDOM.standard_normal((3, 6)),
        RANDOM.standard_normal((7, 3)),
    ),
    (0, 1, 2),
    twin,
)
