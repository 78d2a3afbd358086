"""The hidden Markov model as compiled loops."""

from __future__ import annotations

import math
import sys

import numpy as np
from hidden_markov import MEASURED, SETTINGS, START, STATES
from numba import njit


@njit(cache=True)
def loss(p, measured):
    """The forward algorithm, scaled at each step."""
    weights = np.exp(p[:9]).reshape(STATES, STATES)
    transitions = np.empty((STATES, STATES))
    for j in range(STATES):
        transitions[j] = weights[j] / weights[j].sum()
    means, logarithms = p[9:12], p[12:]
    value = 0.05 * (p**2).sum()
    state = np.full(STATES, 1.0 / STATES)
    reached = np.empty(STATES)
    for i in range(len(measured)):
        total = 0.0
        for k in range(STATES):
            scaled = (measured[i] - means[k]) * math.exp(-logarithms[k])
            state[k] *= math.exp(-0.5 * scaled**2 - logarithms[k])
            total += state[k]
        value -= math.log(total)
        for k in range(STATES):
            reached[k] = 0.0
            for j in range(STATES):
                reached[k] += state[j] / total * transitions[j, k]
        state[:] = reached
    return value


def tapegrad():
    import tapegrad as tg

    return tg.optimize.minimize(loss, START, (MEASURED,), **SETTINGS).fun


def scipy():
    from scipy.optimize import minimize

    return minimize(loss, START, (MEASURED,), **SETTINGS).fun


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
