"""An integrator with events: a ball with air drag falls, hits the floor, loses speed, and rises again."""

import math

import numba
import numpy as np
from program import Program


@numba.njit
def rhs(y, drag, out):
    speed = math.sqrt(y[2] * y[2] + y[3] * y[3])
    out[0] = y[2]
    out[1] = y[3]
    out[2] = -drag * speed * y[2]
    out[3] = -9.81 - drag * speed * y[3]


@numba.njit
def rk4_step(y, h, drag, k, stage, out):
    rhs(y, drag, k[0])
    for s in range(1, 4):
        fraction = h if s == 3 else 0.5 * h
        for i in range(4):
            stage[i] = y[i] + fraction * k[s - 1, i]
        rhs(stage, drag, k[s])
    for i in range(4):
        out[i] = y[i] + h / 6.0 * (k[0, i] + 2.0 * k[1, i] + 2.0 * k[2, i] + k[3, i])


@numba.njit
def distance(p, t_end, dt):
    """Where the ball is at the end; p holds speed, angle, drag and restitution."""
    drag, restitution = p[2], p[3]
    y = np.array([0.0, 1.0, p[0] * math.cos(p[1]), p[0] * math.sin(p[1])])
    k = np.empty((4, 4))
    stage, new = np.empty(4), np.empty(4)
    t = 0.0
    bounces = 0
    while t < t_end - 1e-12:
        h = min(dt, t_end - t)
        rk4_step(y, h, drag, k, stage, new)
        if new[1] < 0.0 and new[3] < 0.0:
            # The time of the hit, by Newton's method on the height at the end of a shorter step.
            s = h * y[1] / (y[1] - new[1])
            for _ in range(20):
                rk4_step(y, s, drag, k, stage, new)
                correction = new[1] / new[3]
                s = s - correction
                if abs(correction) < 1e-14:
                    break
            rk4_step(y, s, drag, k, stage, new)
            new[3] *= -restitution
            bounces += 1
            t += s
        else:
            t += h
        y[:] = new
        if bounces == 5:
            break
    return y[0]


def twin(p, t_end, dt):
    def f(y):
        speed = np.sqrt(y[2] ** 2 + y[3] ** 2)
        return np.array([y[2], y[3], -p[2] * speed * y[2], -9.81 - p[2] * speed * y[3]])

    def step(y, h):
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(y + h * k3))

    y, t, bounces = np.array([0, 1, p[0] * np.cos(p[1]), p[0] * np.sin(p[1])]), 0.0, 0
    while t.real < t_end - 1e-12 and bounces < 5:
        h = dt if dt < (t_end - t).real else t_end - t
        new = step(y, h)
        if new[1].real < 0 and new[3].real < 0:
            h = h * y[1] / (y[1] - new[1])
            for _ in range(30):
                new = step(y, h)
                h = h - new[1] / new[3]
            new = step(y, h) * np.array([1, 1, 1, -p[3]])
            bounces += 1
        y, t = new, t + h
    return y[0]


PROGRAM = Program("bouncing ball", distance, (np.array([6.0, 0.8, 0.05, 0.7]), 2.0, 0.05), (0,), twin)
