"""The log-likelihood of a Kalman filter for one series, with products of matrices as statisticians write them."""

import numba
import numpy as np
from program import Program


@numba.njit
def kalman_loglike(y, transition, design, q, r, a, p):
    state_cov = np.diag(q)
    llf = 0.0
    for t in range(len(y)):
        a = transition @ a
        p = transition @ p @ transition.T + state_cov
        v = y[t] - design @ a
        pz = p @ design
        f = design @ pz + r
        gain = pz / f
        llf -= 0.5 * (np.log(2 * np.pi) + np.log(f) + v * v / f)
        a = a + gain * v
        p = p - np.outer(gain, pz)
    return llf


def twin(y, transition, design, q, r, a, p):
    """The joint normal density of the whole series."""
    n = len(y)
    mean, cov = np.zeros(n, complex), np.zeros((n, n), complex)
    for t in range(n):
        a, p = transition @ a, transition @ p @ transition.T + np.diag(q)
        mean[t], cov[t, t] = design @ a, design @ p @ design + r
        ahead = p
        for s in range(t + 1, n):
            ahead = transition @ ahead
            cov[s, t] = cov[t, s] = design @ ahead @ design
    d = y - mean
    return -(n * np.log(2 * np.pi) + np.log(np.linalg.det(cov)) + d @ np.linalg.solve(cov, d)) / 2


PROGRAM = Program(
    "Kalman filter",
    kalman_loglike,
    (
        np.random.default_rng(3).standard_normal(8),
        np.array([[1.0, 0.1, 0.0], [0.0, 0.95, 0.1], [0.0, 0.0, 0.9]]),
        np.array([1.0, 0.0, 0.5]),
        np.array([0.1, 0.2, 0.3]),
        0.4,
        np.array([0.1, -0.2, 0.3]),
        np.eye(3),
    ),
    (1, 2, 3, 4, 5, 6),
    twin,
)
