"""The pendulum's motion as compiled loops."""

from __future__ import annotations

import math
import sys

import numpy as np
from numba import njit
from swing_up import DT, POINTS, SETTINGS, START


@njit(cache=True)
def effort(z):
    value = 0.0
    for i in range(2 * POINTS, 3 * POINTS - 1):
        value += 0.5 * DT * (z[i] ** 2 + z[i + 1] ** 2)
    return value


@njit(cache=True)
def defects(z):
    """What every interval and both ends violate of the motion."""
    angle, speed, torque = z[:POINTS], z[POINTS : 2 * POINTS], z[2 * POINTS :]
    n = POINTS - 1
    violated = np.empty(2 * n + 4)
    for i in range(n):
        now = torque[i] - math.sin(angle[i]) - 0.1 * speed[i]
        later = torque[i + 1] - math.sin(angle[i + 1]) - 0.1 * speed[i + 1]
        violated[i] = angle[i + 1] - angle[i] - 0.5 * DT * (speed[i + 1] + speed[i])
        violated[n + i] = speed[i + 1] - speed[i] - 0.5 * DT * (later + now)
    violated[2 * n], violated[2 * n + 1] = angle[0], angle[n] - math.pi
    violated[2 * n + 2], violated[2 * n + 3] = speed[0], speed[n]
    return violated


def tapegrad():
    import tapegrad as tg

    return tg.optimize.minimize(effort, START, constraints=tg.optimize.equality(defects), **SETTINGS).fun


def scipy():
    from scipy.optimize import minimize

    return minimize(effort, START, constraints={"type": "eq", "fun": defects}, **SETTINGS).fun


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
