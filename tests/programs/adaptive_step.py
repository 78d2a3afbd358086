"""The Bogacki-Shampine method with step control for predators and prey; steps are accepted, rejected, grown and shrunk."""

import numba
import numpy as np
from program import Program


@numba.njit
def lotka_volterra(y, p):
    return np.array([y[0] * (p[0] - p[1] * y[1]), y[1] * (p[2] * y[0] - p[3])])


@numba.njit
def integrate(f, y, p, t_end, tol):
    t, h = 0.0, 0.1
    k1 = f(y, p)
    accepted = rejected = 0
    while t < t_end:
        if t + h > t_end:
            h = t_end - t
        k2 = f(y + 0.5 * h * k1, p)
        k3 = f(y + 0.75 * h * k2, p)
        new = y + h * (2.0 * k1 + 3.0 * k2 + 4.0 * k3) / 9.0
        k4 = f(new, p)
        err = np.max(np.abs(h * (-5.0 * k1 + 6.0 * k2 + 8.0 * k3 - 9.0 * k4) / 72.0))
        if err <= tol:
            t += h
            y, k1 = new, k4
            accepted += 1
        else:
            rejected += 1
        h *= min(4.0, max(0.2, 0.9 * (tol / err) ** (1.0 / 3.0)))
    assert accepted > 0
    return y


@numba.njit
def final_prey(start, p, t_end, tol):
    return integrate(lotka_volterra, start, p, t_end, tol)[0]


def twin(start, p, t_end, tol):
    """The same steps, of which the derivative takes part too."""

    def f(y):
        return y * np.array([p[0] - p[1] * y[1], p[2] * y[0] - p[3]])

    y, t, h = start, 0.0, 0.1
    k = [f(y)]
    while np.real(t) < t_end:
        if np.real(t + h) > t_end:
            h = t_end - t
        k = [k[0], f(y + h / 2 * k[0])]
        k.append(f(y + 3 * h / 4 * k[1]))
        new = y + h / 9 * (2 * k[0] + 3 * k[1] + 4 * k[2])
        k.append(f(new))
        errors = h / 72 * (-5 * k[0] + 6 * k[1] + 8 * k[2] - 9 * k[3])
        err = errors[np.argmax(np.abs(errors.real))]
        err = err if err.real > 0 else -err
        if err.real <= tol:
            t, y, k = t + h, new, k[3:]
        growth = 0.9 * (tol / err) ** (1 / 3)
        h = h * (4.0 if growth.real > 4 else 0.2 if growth.real < 0.2 else growth)
    return y[0]


PROGRAM = Program("adaptive steps", final_prey, (np.array([1.0, 0.8]), np.array([1.1, 0.5, 0.4, 0.6]), 3.0, 1e-4), (0, 1), twin)
