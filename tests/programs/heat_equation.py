"""Heat in a plate whose conductivity varies: five-point stencil, two work arrays that change places, insulated sides."""

import numba
import numpy as np
from program import Program


@numba.njit
def boundary(u):
    u[0, :] = u[1, :]
    u[-1, :] = u[-2, :]
    u[:, 0] = 1.0
    u[:, -1] = 0.0


@numba.njit
def misfit(initial, k, dt, steps, observed):
    nx, ny = initial.shape
    u = initial.copy()
    new = np.zeros_like(u)
    boundary(u)
    for _ in range(steps):
        for i in range(1, nx - 1):
            for j in range(1, ny - 1):
                east = 0.5 * (k[i, j] + k[i + 1, j]) * (u[i + 1, j] - u[i, j])
                west = 0.5 * (k[i, j] + k[i - 1, j]) * (u[i, j] - u[i - 1, j])
                north = 0.5 * (k[i, j] + k[i, j + 1]) * (u[i, j + 1] - u[i, j])
                south = 0.5 * (k[i, j] + k[i, j - 1]) * (u[i, j] - u[i, j - 1])
                new[i, j] = u[i, j] + dt * (east - west + north - south)
        u, new = new, u
        boundary(u)
    return np.sum((u - observed) ** 2)


def twin(initial, k, dt, steps, observed):
    u = np.array(initial)

    def sides():
        u[[0, -1]] = u[[1, -2]]
        u[:, 0], u[:, -1] = 1, 0

    sides()
    for _ in range(steps):
        across = (k[1:] + k[:-1]) / 2 * np.diff(u, axis=0)
        along = (k[:, 1:] + k[:, :-1]) / 2 * np.diff(u, axis=1)
        u[1:-1, 1:-1] += dt * (np.diff(across, axis=0)[:, 1:-1] + np.diff(along, axis=1)[1:-1])
        sides()
    return ((u - observed) ** 2).sum()


RANDOM = np.random.default_rng(2)
PROGRAM = Program(
    "heat equation",
    misfit,
    (RANDOM.uniform(0, 1, (6, 7)), RANDOM.uniform(0.5, 1.5, (6, 7)), 0.1, 9, RANDOM.uniform(0, 1, (6, 7))),
    (0, 1),
    twin,
)
