"""The forward algorithm of a hidden Markov model with Gaussian emissions, in logarithms; a chain may be forbidden a step."""

import math

import numba
import numpy as np
from program import Program


@numba.njit
def logsumexp(values):
    largest = values[0]
    for v in values:
        if v > largest:
            largest = v
    if math.isinf(largest):
        return largest
    total = 0.0
    for v in values:
        total += math.exp(v - largest)
    return math.log(total) + largest


@numba.njit
def normal_logpdf(x, mean, log_sd):
    z = (x - mean) * math.exp(-log_sd)
    return -0.5 * z * z - log_sd - 0.5 * math.log(2 * math.pi)


@numba.njit
def forward(obs, log_start, log_trans, means, log_sds):
    n_states = len(log_start)
    n = len(obs)
    alpha = np.full((n, n_states), -np.inf)
    work = np.empty(n_states)
    for s in range(n_states):
        alpha[0, s] = log_start[s] + normal_logpdf(obs[0], means[s], log_sds[s])
    for t in range(1, n):
        for s in range(n_states):
            for r in range(n_states):
                work[r] = alpha[t - 1, r] + log_trans[r, s]
            alpha[t, s] = logsumexp(work) + normal_logpdf(obs[t], means[s], log_sds[s])
    return logsumexp(alpha[-1])


def twin(obs, log_start, log_trans, means, log_sds):
    def emission(x):
        return np.exp(-(((x - means) / np.exp(log_sds)) ** 2) / 2) / np.exp(log_sds) / np.sqrt(2 * np.pi)

    p = np.exp(log_start) * emission(obs[0])
    for x in obs[1:]:
        p = (p @ np.exp(log_trans)) * emission(x)
    return np.log(p.sum())


RANDOM = np.random.default_rng(4)
LOG_TRANS = np.log(np.array([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [1e-300, 0.5, 0.5]]))
LOG_START = np.array([0.0, -np.inf, -np.inf])  # begins in the first state
PROGRAM = Program(
    "hidden Markov model",
    forward,
    (RANDOM.standard_normal(10), LOG_START, LOG_TRANS, np.array([-1.0, 0.3, 1.2]), np.array([0.1, -0.2, 0.05])),
    (0, 3, 4),
    twin,
)
