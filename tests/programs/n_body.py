"""Gravity between bodies, integrated by leapfrog; the energy at the end, and how far a body has gone."""

import numba
import numpy as np
from program import Program


@numba.njit
def accelerations(pos, mass, acc, softening):
    n = pos.shape[0]
    acc[:] = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            dx = pos[j, 0] - pos[i, 0]
            dy = pos[j, 1] - pos[i, 1]
            dz = pos[j, 2] - pos[i, 2]
            r2 = dx * dx + dy * dy + dz * dz + softening**2
            inv = r2 ** (-1.5)
            acc[i, 0] += mass[j] * dx * inv
            acc[i, 1] += mass[j] * dy * inv
            acc[i, 2] += mass[j] * dz * inv
            acc[j, 0] -= mass[i] * dx * inv
            acc[j, 1] -= mass[i] * dy * inv
            acc[j, 2] -= mass[i] * dz * inv


@numba.njit
def energy(pos, vel, mass, softening):
    total = 0.0
    for i in range(len(mass)):
        total += 0.5 * mass[i] * np.sum(vel[i] ** 2)
        for j in range(i):
            d = pos[i] - pos[j]
            total -= mass[i] * mass[j] / np.sqrt(np.dot(d, d) + softening**2)
    return total


@numba.njit
def simulate(pos, vel, mass, dt, steps, softening=0.1):
    start = pos[0].copy()
    acc = np.empty_like(pos)
    accelerations(pos, mass, acc, softening)
    for _ in range(steps):
        vel += 0.5 * dt * acc
        pos += dt * vel
        accelerations(pos, mass, acc, softening)
        vel += 0.5 * dt * acc
    return energy(pos, vel, mass, softening) + np.linalg.norm(pos[0] - start)


def twin(pos, vel, mass, dt, steps):
    def accelerate(x):
        d = x[None] - x[:, None]
        return np.einsum("j,ijk->ik", mass, d * ((d**2).sum(2) + 0.01)[..., None] ** -1.5)

    x, v = pos, vel
    for _ in range(steps):
        v = v + dt / 2 * accelerate(x)
        x = x + dt * v
        v = v + dt / 2 * accelerate(x)
    d = x[None] - x[:, None]
    potential = np.outer(mass, mass) / np.sqrt((d**2).sum(2) + 0.01)
    pairs = np.triu_indices(len(mass), 1)
    return (mass * (v**2).sum(1)).sum() / 2 - potential[pairs].sum() + np.sqrt(((x[0] - pos[0]) ** 2).sum())


RANDOM = np.random.default_rng(1)
PROGRAM = Program(
    "n-body",
    simulate,
    (RANDOM.standard_normal((4, 3)), 0.3 * RANDOM.standard_normal((4, 3)), RANDOM.uniform(0.5, 1.5, 4), 0.05, 12),
    (0, 1, 2),
    twin,
)
