"""A linear system solved by conjugate gradients until the residual is small, the matrix being a variable Laplacian."""

import numba
import numpy as np
from program import Program


@numba.njit
def apply(k, u, out):
    n = len(u)
    for i in range(n):
        left = u[i - 1] if i > 0 else 0.0
        right = u[i + 1] if i < n - 1 else 0.0
        out[i] = k[i] * (u[i] - left) - k[i + 1] * (right - u[i])


@numba.njit
def compliance(k, load, tol, max_iter):
    x = np.zeros(load.size)
    r = load.copy()
    p = r.copy()
    ap = np.empty_like(load)
    rho = np.dot(r, r)
    for _ in range(max_iter):
        apply(k, p, ap)
        alpha = rho / np.dot(p, ap)
        x += alpha * p
        r -= alpha * ap
        rho_new = np.dot(r, r)
        if np.sqrt(rho_new) < tol:
            return np.dot(load, x)
        p = r + (rho_new / rho) * p
        rho = rho_new
    raise ValueError("no convergence")


def twin(k, load, tol, max_iter):
    matrix = np.diag(k[:-1] + k[1:]) - np.diag(k[1:-1], 1) - np.diag(k[1:-1], -1)
    return load @ np.linalg.solve(matrix, load)


RANDOM = np.random.default_rng(12)
PROGRAM = Program(
    "conjugate gradients", compliance, (RANDOM.uniform(0.5, 2.0, 8), RANDOM.uniform(0.5, 1.5, 7), 1e-12, 50), (0, 1), twin
)
