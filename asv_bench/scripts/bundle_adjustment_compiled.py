"""The cameras and points as compiled loops."""

from __future__ import annotations

import math
import sys

import numpy as np
from bundle_adjustment import CAMERAS, FOCAL, POINTS, SEEN, SETTINGS, START
from numba import njit


@njit(cache=True)
def residual(variables, seen):
    cameras, points = variables[: 6 * CAMERAS].reshape(CAMERAS, 6), variables[6 * CAMERAS :].reshape(POINTS, 3)
    missed = np.empty((2, CAMERAS, POINTS))
    for i in range(CAMERAS):
        camera = cameras[i]
        angle = math.sqrt(camera[0] ** 2 + camera[1] ** 2 + camera[2] ** 2)
        cosine, sine = math.cos(angle), math.sin(angle)
        a, b, c = camera[0] / angle, camera[1] / angle, camera[2] / angle
        for j in range(POINTS):
            x, y, z = points[j, 0], points[j, 1], points[j, 2]
            along = (1.0 - cosine) * (a * x + b * y + c * z)
            w = cosine * z + sine * (a * y - b * x) + along * c + camera[5]
            missed[0, i, j] = FOCAL * (cosine * x + sine * (b * z - c * y) + along * a + camera[3]) / w
            missed[1, i, j] = FOCAL * (cosine * y + sine * (c * x - a * z) + along * b + camera[4]) / w
    return missed.ravel() - seen


def tapegrad():
    import tapegrad as tg

    return tg.optimize.least_squares(residual, START, args=(SEEN,), **SETTINGS).cost


def scipy():
    from scipy.optimize import least_squares

    return least_squares(residual, START, args=(SEEN,), **SETTINGS).cost


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
