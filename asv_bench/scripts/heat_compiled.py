"""The rod as a compiled loop."""

from __future__ import annotations

import sys

import numpy as np
from heat import BEGINNING, DEVIATION, EVERY, MEASURED, NODES, RATE, SETTINGS, START, STEPS
from numba import njit


@njit(cache=True)
def loss(p, beginning, measured):
    """Squares of the residuals, and of steps in the conductivity."""
    conductivity = np.exp(p)
    value = 0.5 * (p**2).sum() + 10.0 * ((p[1:] - p[:-1]) ** 2).sum()
    temperature = beginning.copy()
    flow = np.empty(NODES - 1)
    for i in range(STEPS):
        for j in range(NODES - 1):
            flow[j] = RATE * conductivity[j] * (temperature[j + 1] - temperature[j])
        for j in range(NODES - 1):
            temperature[j] += flow[j]
            temperature[j + 1] -= flow[j]
        if (i + 1) % EVERY == 0:
            value += 0.5 * ((temperature - measured[i // EVERY]) ** 2).sum() / DEVIATION**2
    return value


def tapegrad():
    import tapegrad as tg

    return tg.optimize.minimize(loss, START, (BEGINNING, MEASURED), **SETTINGS).fun


def scipy():
    from scipy.optimize import minimize

    return minimize(loss, START, (BEGINNING, MEASURED), **SETTINGS).fun


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
