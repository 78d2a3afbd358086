"""The Lotka-Volterra system as a compiled loop."""

from __future__ import annotations

import sys

import numpy as np
from lotka_volterra import DEVIATION, DT, EVERY, MEASURED, SETTINGS, START, STEPS
from numba import njit


@njit(cache=True)
def slope(z, rates):
    return np.array([z[0] * (rates[0] - rates[1] * z[1]), z[1] * (rates[3] * z[0] - rates[2])])


@njit(cache=True)
def loss(p, measured):
    rates, z = np.exp(p[:4]), np.exp(p[4:])
    value = 0.5 * (p**2).sum()
    for i in range(STEPS):
        z1 = slope(z, rates)
        z2 = slope(z + 0.5 * DT * z1, rates)
        z3 = slope(z + 0.5 * DT * z2, rates)
        z4 = slope(z + DT * z3, rates)
        z = z + DT / 6.0 * (z1 + 2.0 * z2 + 2.0 * z3 + z4)
        if (i + 1) % EVERY == 0:
            value += 0.5 * ((np.log(z) - measured[i // EVERY]) ** 2).sum() / DEVIATION**2
    return value


def tapegrad():
    import tapegrad as tg

    return tg.optimize.minimize(loss, START, (MEASURED,), **SETTINGS).fun


def scipy():
    from scipy.optimize import minimize

    return minimize(loss, START, (MEASURED,), **SETTINGS).fun


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
