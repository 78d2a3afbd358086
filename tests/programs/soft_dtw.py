"""Dynamic time warping of two series with a soft minimum, on a table bordered by infinities."""

import numba
import numpy as np
from program import Program


@numba.njit
def soft_min(a, b, c, gamma):
    a, b, c = -a / gamma, -b / gamma, -c / gamma
    top = max(a, b, c)
    total = 0.0
    total += np.exp(a - top)
    total += np.exp(b - top)
    total += np.exp(c - top)
    return -gamma * (np.log(total) + top)


@numba.njit
def soft_dtw(x, y, gamma):
    m, n = x.shape[0], y.shape[0]
    cost = np.full((m + 1, n + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            d = 0.0
            for k in range(x.shape[1]):
                d += (x[i - 1, k] - y[j - 1, k]) ** 2
            cost[i, j] = d + soft_min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1], gamma)
    return cost[m, n]


def twin(x, y, gamma):
    """The sum over all alignments, of which the soft minimum is the logarithm."""
    similarity = np.exp(-((x[:, None] - y[None]) ** 2).sum(2) / gamma)
    total = np.zeros((len(x) + 1, len(y) + 1), complex)
    total[0, 0] = 1
    for i, j in np.ndindex(similarity.shape):
        total[i + 1, j + 1] = similarity[i, j] * (total[i, j + 1] + total[i + 1, j] + total[i, j])
    return -gamma * np.log(total[-1, -1])


RANDOM = np.random.default_rng(10)
PROGRAM = Program("soft DTW", soft_dtw, (RANDOM.standard_normal((5, 2)), RANDOM.standard_normal((6, 2)), 0.7), (0, 1, 2), twin)
