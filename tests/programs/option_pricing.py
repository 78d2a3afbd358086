"""Monte Carlo price of an Asian call with a barrier, from an array of normals that the caller drew."""

import math

import numba
import numpy as np
from program import Program


@numba.njit(parallel=True)
def simulate(s0, drift, vol, strike, barrier, normals, payoffs):
    paths, steps = normals.shape
    for i in numba.prange(paths):
        s = s0
        total = 0.0
        alive = True
        for j in range(steps):
            s *= math.exp(drift + vol * normals[i, j])
            if s > barrier:
                alive = False
                break
            total += s
        payoffs[i] = max(total / steps - strike, 0.0) if alive else 0.0


@numba.njit
def asian_call(s0, sigma, rate, strike, barrier, maturity, normals):
    dt = maturity / normals.shape[1]
    payoffs = np.empty(normals.shape[0])
    simulate(s0, (rate - 0.5 * sigma**2) * dt, sigma * math.sqrt(dt), strike, barrier, normals, payoffs)
    return math.exp(-rate * maturity) * payoffs.mean()


def twin(s0, sigma, rate, strike, barrier, maturity, normals):
    dt = maturity / normals.shape[1]
    s = s0 * np.exp(np.cumsum((rate - sigma**2 / 2) * dt + sigma * np.sqrt(dt) * normals, axis=1))
    mean = s.mean(axis=1)
    paid = np.all(s.real <= barrier, axis=1) & (mean.real > strike)
    return np.exp(-rate * maturity) * np.where(paid, mean - strike, 0).mean()


NORMALS = np.random.default_rng(9).standard_normal((40, 6))
PROGRAM = Program("option pricing", asian_call, (100.0, 0.3, 0.03, 98.0, 150.0, 1.0, NORMALS), (0, 1, 2, 3), twin)
