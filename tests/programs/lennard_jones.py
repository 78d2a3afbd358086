"""Molecular dynamics in a periodic box: Lennard-Jones forces of the nearest images inside of a cut-off, velocity Verlet."""

import numba
import numpy as np
from program import Program


@numba.njit
def forces(x, box, epsilon, sigma, cutoff, f):
    n, dim = x.shape
    f.fill(0.0)
    energy = 0.0
    d = np.empty(dim)
    for i in range(n - 1):
        for j in range(i + 1, n):
            r2 = 0.0
            for k in range(dim):
                d[k] = x[i, k] - x[j, k]
                d[k] -= box * round(d[k] / box)
                r2 += d[k] ** 2
            if r2 > cutoff**2:
                continue
            s6 = (sigma * sigma / r2) ** 3
            energy += 4.0 * epsilon * (s6 * s6 - s6)
            pull = 24.0 * epsilon * (2.0 * s6 * s6 - s6) / r2
            for k in range(dim):
                f[i, k] += pull * d[k]
                f[j, k] -= pull * d[k]
    return energy


@numba.njit
def potential_energy(x, v, epsilon, sigma, box, cutoff, dt, steps):
    f = np.zeros(x.shape)
    energy = forces(x, box, epsilon, sigma, cutoff, f)
    average = 0.0
    for _ in range(steps):
        v += 0.5 * dt * f
        x = (x + dt * v) % box
        energy = forces(x, box, epsilon, sigma, cutoff, f)
        v += 0.5 * dt * f
        average += energy / steps
    return average


def twin(x, v, epsilon, sigma, box, cutoff, dt, steps):
    def energy_and_forces(x):
        d = x[:, None] - x[None]
        d = d - box * np.round(d.real / box)
        r2 = (d**2).sum(2) + np.eye(len(x))
        s6 = np.where(r2.real > cutoff**2, 0, (sigma**2 / r2) ** 3) * (1 - np.eye(len(x)))
        return 2 * epsilon * (s6**2 - s6).sum(), ((24 * epsilon * (2 * s6**2 - s6) / r2)[..., None] * d).sum(1)

    total, f = 0.0, energy_and_forces(x)[1]
    for _ in range(steps):
        v = v + dt / 2 * f
        x = x + dt * v
        energy, f = energy_and_forces(x)
        v = v + dt / 2 * f
        total = total + energy / steps
    return total


PLACES = np.array([[0.2, 0.3], [1.4, 0.5], [2.9, 0.1], [0.5, 1.6], [1.9, 1.8], [2.6, 2.7]])
SPEEDS = np.random.default_rng(11).standard_normal((6, 2))
PROGRAM = Program("Lennard-Jones", potential_energy, (PLACES, SPEEDS, 1.2, 0.9, 3.5, 1.6, 0.005, 8), (0, 1, 2, 3), twin)
