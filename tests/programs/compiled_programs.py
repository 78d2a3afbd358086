"""Programs of the kind that people write for Numba; each returns one number."""

from __future__ import annotations

import math

import numba
import numpy as np
from compiled_case import Table

TABLE = Table()
RANDOM = np.random.default_rng(7)


# An orbit with drag that is followed until it falls below a height: the number of steps depends on the values.


@numba.njit
def acceleration(state, drag, out):
    r = math.sqrt(state[0] ** 2 + state[1] ** 2)
    v = math.sqrt(state[2] ** 2 + state[3] ** 2)
    out[0] = state[2]
    out[1] = state[3]
    out[2] = -state[0] / r**3 - drag * v * state[2]
    out[3] = -state[1] / r**3 - drag * v * state[3]


@TABLE.case(np.array([1.0, 0.0, 0.1, 0.9, 0.05]), 0.02, 400)
def orbit_until_an_event(parameters, dt, steps):
    state, drag = parameters[:4].copy(), parameters[4]
    k = np.zeros((4, 4))
    work = np.empty(4)
    for _ in range(steps):
        acceleration(state, drag, k[0])
        for stage in range(1, 4):
            h = dt if stage == 3 else 0.5 * dt
            work[:] = state + h * k[stage - 1]
            acceleration(work, drag, k[stage])
        before = state.copy()
        state += dt / 6.0 * (k[0] + 2.0 * k[1] + 2.0 * k[2] + k[3])
        height = math.hypot(state[0], state[1])
        if height < 0.8:
            first = math.hypot(before[0], before[1])
            part = (first - 0.8) / (first - height)
            return before[0] + part * (state[0] - before[0])
    return state[0]


# Three bodies, leapfrog.


@numba.njit
def forces(positions, masses, out):
    out[:] = 0.0
    n = len(masses)
    for i in range(n):
        for j in range(i):
            d = positions[j] - positions[i]
            r2 = np.dot(d, d) + 0.01
            pull = d / (r2 * math.sqrt(r2))
            out[i] += masses[j] * pull
            out[j] -= masses[i] * pull


@TABLE.case(np.array([[0.0, 0.0], [1.0, 0.1], [-0.9, 0.3]]), np.array([1.0, 0.3, 0.2]), 0.05)
def bodies(positions, masses, dt):
    velocities = np.zeros_like(positions)
    force = np.empty_like(positions)
    forces(positions, masses, force)
    for _ in range(10):
        velocities += 0.5 * dt * force
        positions += dt * velocities
        forces(positions, masses, force)
        velocities += 0.5 * dt * force
    return (velocities**2).sum() + positions[0, 1]


# Heat in a plate: a stencil with two arrays that exchange places.


@TABLE.case(RANDOM.random((5, 4)), 0.2, 6)
def plate(u, a, steps):
    n, m = u.shape
    new = u.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                new[i, j] = u[i, j] + a * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j])
        u, new = new, u
    return (u[1:-1, 1:-1] ** 2).sum() + new[2, 2]


# Kalman filter of a moving point: the negative log-likelihood of its positions.


@TABLE.case(np.array([0.3, 0.5, 1.2]), np.cumsum(RANDOM.standard_normal(8)))
def kalman_filter(parameters, seen):
    q, r, p0 = parameters
    f = np.array([[1.0, 1.0], [0.0, 1.0]])
    h = np.array([1.0, 0.0])
    noise = np.array([[0.25, 0.5], [0.5, 1.0]]) * q
    x = np.zeros(2)
    p = np.eye(2) * p0
    loss = 0.0
    for z in seen:
        x = f @ x
        p = f @ p @ f.T + noise
        s = h @ p @ h + r
        gain = (p @ h) / s
        y = z - x[0]
        x = x + gain * y
        p = p - np.outer(gain, h @ p)
        loss += 0.5 * (math.log(2.0 * math.pi * s) + y * y / s)
    return loss


# Hidden Markov model: the forward algorithm in logarithms.


@numba.njit
def log_sum(x):
    m = np.max(x)
    return m + math.log(np.sum(np.exp(x - m)))


@TABLE.case(RANDOM.random((3, 3)), RANDOM.random((3, 4)), np.array([0, 2, 1, 3, 3, 0]))
def hidden_markov(transitions, emissions, seen):
    n = len(transitions)
    logs = np.empty_like(transitions)
    for i in range(n):
        logs[i] = transitions[i] - log_sum(transitions[i])
    forward = emissions[:, seen[0]] - math.log(n)
    new = np.empty(n)
    for t in range(1, len(seen)):
        for j in range(n):
            new[j] = log_sum(forward + logs[:, j]) + emissions[j, seen[t]]
        forward[:] = new
    return -log_sum(forward)


# A natural cubic spline: a tridiagonal system, and a search for the interval.


@TABLE.case(RANDOM.random(6), np.array([0.0, 0.7, 1.5, 2.1, 3.3, 4.0]), np.array([0.2, 1.0, 1.9, 3.9]))
def spline(values, knots, points):
    n = len(knots)
    second, upper = np.zeros(n), np.zeros(n)
    for i in range(1, n - 1):
        left, right = knots[i] - knots[i - 1], knots[i + 1] - knots[i]
        slope = (values[i + 1] - values[i]) / right - (values[i] - values[i - 1]) / left
        pivot = 2.0 * (left + right) - left * upper[i - 1]
        upper[i] = right / pivot
        second[i] = (6.0 * slope - left * second[i - 1]) / pivot
    for i in range(n - 2, 0, -1):
        second[i] -= upper[i] * second[i + 1]
    total = 0.0
    for point in points:
        i = min(max(np.searchsorted(knots, point) - 1, 0), n - 2)
        h = knots[i + 1] - knots[i]
        a, b = (knots[i + 1] - point) / h, (point - knots[i]) / h
        y = a * values[i] + b * values[i + 1] + ((a**3 - a) * second[i] + (b**3 - b) * second[i + 1]) * h * h / 6.0
        total += y * y
    return total


# Bundle adjustment: the reprojection error of one observation.


@numba.njit
def rotate(r, x):
    squared = np.dot(r, r)
    if squared < 1e-16:
        return x + np.cross(r, x)
    theta = math.sqrt(squared)
    w = r / theta
    return x * math.cos(theta) + np.cross(w, x) * math.sin(theta) + w * (np.dot(w, x) * (1.0 - math.cos(theta)))


@TABLE.case(np.array([0.1, -0.2, 0.05, 0.3, 0.1, -0.4, 1.1, 0.02, -0.01, 0.01, 0.02]), np.array([0.5, 0.4, 3.0]))
def reprojection(camera, point):
    local = rotate(camera[:3], point - camera[3:6])
    projected = local[:2] / local[2]
    r2 = np.sum(projected**2)
    distorted = projected * (1.0 + camera[9] * r2 + camera[10] * r2 * r2)
    pixel = camera[6] * distorted + camera[7:9]
    return np.sum((pixel - np.array([0.3, 0.2])) ** 2)


# A Gaussian mixture with diagonal covariances.


@TABLE.case(RANDOM.random((2, 5)), RANDOM.standard_normal((6, 2)))
def mixture(parameters, points):
    total = 0.0
    for x in points:
        terms = np.empty(2)
        for k in range(2):
            weight, mean, scale = parameters[k, 0], parameters[k, 1:3], parameters[k, 3:]
            z = (x - mean) * np.exp(-scale)
            terms[k] = weight - 0.5 * (z * z).sum() - scale.sum()
        total -= log_sum(terms)
    return total


# One cell of long short-term memory over a sequence.


@numba.njit
def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


@TABLE.case(RANDOM.random((8, 3)) - 0.5, RANDOM.standard_normal((5, 2)))
def memory_cell(weights, sequence):
    hidden, cell = np.zeros(2), np.zeros(2)
    loss = 0.0
    for x in sequence:
        gates = np.empty(8)
        for k in range(8):
            gates[k] = weights[k, 0] * x[k % 2] + weights[k, 1] * hidden[k % 2] + weights[k, 2]
        cell = sigmoid(gates[:2]) * cell + sigmoid(gates[2:4]) * np.tanh(gates[4:6])
        hidden = sigmoid(gates[6:]) * np.tanh(cell)
        loss += ((hidden - x) ** 2).mean()
    return loss


# An Asian option by Monte Carlo, with the random numbers passed in.


@TABLE.case(np.array([100.0, 0.2, 0.03]), 98.0, 1.0, RANDOM.standard_normal((20, 6)))
def option_price(market, strike, maturity, normals):
    spot, volatility, rate = market
    paths, steps = normals.shape
    dt = maturity / steps
    payoff = 0.0
    for i in range(paths):
        s, mean = spot, 0.0
        for j in range(steps):
            s *= math.exp((rate - 0.5 * volatility**2) * dt + volatility * math.sqrt(dt) * normals[i, j])
            mean += s / steps
        payoff += max(mean - strike, 0.0)
    return math.exp(-rate * maturity) * payoff / paths


# Dynamic time warping with a soft minimum: a table of infinities.


@numba.njit
def soft_minimum(a, b, c, gamma):
    m = min(a, min(b, c))
    return m - gamma * math.log(math.exp(-(a - m) / gamma) + math.exp(-(b - m) / gamma) + math.exp(-(c - m) / gamma))


@TABLE.case(RANDOM.random(5), RANDOM.random(4), 0.3)
def soft_time_warping(x, y, gamma):
    table = np.full((len(x) + 1, len(y) + 1), np.inf)
    table[0, 0] = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            d = (x[i] - y[j]) ** 2
            table[i + 1, j + 1] = d + soft_minimum(table[i, j + 1], table[i + 1, j], table[i, j], gamma)
    return table[-1, -1]


# Rays and spheres: branches, early exits, and a reflection.


@TABLE.case(
    np.array([[0.0, 0.0, 3.0, 1.0], [0.9, 0.4, 2.0, 0.5]]),
    np.array([[0.05, 0.02, 1.0], [0.3, 0.1, 1.0], [0.9, 0.0, 1.0], [-2.0, 0.0, 1.0]]),
)
def rays(spheres, directions):
    light = 0.0
    for direction in directions:
        d = direction / np.linalg.norm(direction)
        nearest, hit = np.inf, -1
        for k in range(len(spheres)):
            to = spheres[k, :3]
            along = np.dot(to, d)
            inside = spheres[k, 3] ** 2 - np.dot(to, to) + along * along
            if inside < 0.0:
                continue
            t = along - math.sqrt(inside)
            if 1e-6 < t < nearest:
                nearest, hit = t, k
        if hit < 0:
            continue
        normal = (nearest * d - spheres[hit, :3]) / spheres[hit, 3]
        light += max(0.0, -normal[2]) / (1.0 + nearest)
    return light
