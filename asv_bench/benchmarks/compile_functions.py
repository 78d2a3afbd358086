"""Functions from one statement to two hundred, as people write them for Numba, and where they are differentiated."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from benchmarks import nopython


class Body(NamedTuple):
    """A compiled function, its arguments, and what it is differentiated by."""

    function: Any
    args: tuple[Any, ...]
    argnums: int | tuple[int, ...] = 0


# One or two statements.


@numba.njit
def square(x):
    return x * x


@numba.njit
def square_and_sine(x):
    return x * x + np.sin(x)


@numba.njit
def banana(x):
    return (1.0 - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2


@numba.njit
def damped(t, rate):
    envelope = math.exp(-rate * t)
    return envelope * math.cos(t)


@numba.njit
def sum_of_squares(x):
    return np.sum(x * x)


@numba.njit
def quadratic(x, a):
    return x @ (a @ x)


# Loops and branches on numbers.


@numba.njit
def horner(x, coefficients):
    y = 0.0
    for c in coefficients:
        y = y * x + c
    return y


@numba.njit
def huber(x, width):
    total = 0.0
    for i in range(len(x)):
        r = abs(x[i])
        if r < width:
            total += 0.5 * r * r
        elif r < 10.0 * width:
            total += width * (r - 0.5 * width)
        else:
            total += width * width * math.log(r)
    return total


@numba.njit
def kepler(mean, eccentricity):
    """Newton's method."""
    e = mean
    while True:
        step = (e - eccentricity * math.sin(e) - mean) / (1.0 - eccentricity * math.cos(e))
        e -= step
        if abs(step) < 1e-12:
            break
    return e


@numba.njit
def continued_fraction(x, depth):
    if depth == 0:
        return x
    return x + 1.0 / continued_fraction(x, depth - 1)


# Helpers.


@numba.njit
def normal(x, mean, deviation):
    z = (x - mean) / deviation
    return math.exp(-0.5 * z * z) / (deviation * math.sqrt(2.0 * math.pi))


@numba.njit
def two_normals(parameters, data):
    total = 0.0
    for x in data:
        share = nopython.sigmoid(parameters[0])
        one = normal(x, parameters[1], math.exp(parameters[2]))
        other = normal(x, parameters[3], math.exp(parameters[4]))
        total -= math.log(share * one + (1.0 - share) * other)
    return total


@numba.njit
def black_scholes(spot, strike, rate, volatility, time):
    root = volatility * math.sqrt(time)
    d1 = (math.log(spot / strike) + (rate + 0.5 * volatility * volatility) * time) / root
    return spot * cumulative(d1) - strike * math.exp(-rate * time) * cumulative(d1 - root)


@numba.njit
def cumulative(x):
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@numba.njit
def pendulum(t, state, torque, out):
    out[0] = state[1]
    out[1] = torque - math.sin(state[0]) - 0.1 * state[1]


@numba.njit
def runge_kutta(state, torque, steps):
    y, trial, h = state.copy(), np.empty(2), 0.05
    k1, k2, k3, k4 = np.empty(2), np.empty(2), np.empty(2), np.empty(2)
    for i in range(steps):
        pendulum(i * h, y, torque, k1)
        for j in range(2):
            trial[j] = y[j] + 0.5 * h * k1[j]
        pendulum(i * h + 0.5 * h, trial, torque, k2)
        for j in range(2):
            trial[j] = y[j] + 0.5 * h * k2[j]
        pendulum(i * h + 0.5 * h, trial, torque, k3)
        for j in range(2):
            trial[j] = y[j] + h * k3[j]
        pendulum(i * h + h, trial, torque, k4)
        for j in range(2):
            y[j] += h / 6.0 * (k1[j] + 2.0 * k2[j] + 2.0 * k3[j] + k4[j])
    return (y[0] - math.pi) ** 2 + y[1] ** 2


# Whole arrays and linear algebra.


@numba.njit
def logistic(w, x, labels):
    margins = x @ w
    return np.mean(np.log1p(np.exp(-labels * margins))) + 0.01 * np.sum(w * w)


@numba.njit
def heat(u, steps):
    for _ in range(steps):
        inner = u[1:-1] + 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u = np.concatenate((u[:1], inner, u[-1:]))
    return np.var(u)


@numba.njit
def softmax(x, label):
    shifted = x - np.max(x)
    return np.log(np.sum(np.exp(shifted))) - shifted[label]


@numba.njit
def solved(a, b):
    return np.sum(np.linalg.solve(a, b))


@numba.njit
def conditions(a):
    return np.linalg.cond(a)


@numba.njit
def decomposed(a):
    u, s, vt = np.linalg.svd(a)
    return np.sum(s) * u[0, 0] * vt[1, 1]


@numba.njit
def eigenvalues(a):
    return np.sum(np.linalg.eigh(a)[0] ** 2)


@numba.njit
def fitted(a, b):
    return np.sum(np.linalg.lstsq(a, b)[0])


@numba.njit
def gaussian_process(theta, x, y):
    n = len(x)
    k = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            d = (x[i] - x[j]) / math.exp(theta[0])
            k[i, j] = math.exp(theta[1]) * math.exp(-0.5 * d * d)
        k[i, i] += math.exp(theta[2])
    factor = np.linalg.cholesky(k)
    z = np.linalg.solve(factor, y)
    return 0.5 * z @ z + np.sum(np.log(np.diag(factor)))


@numba.njit
def viterbi_like(scores, transitions):
    """The forward algorithm of a hidden Markov model."""
    n, states = scores.shape
    alpha, new = scores[0].copy(), np.empty(states)
    for t in range(1, n):
        for j in range(states):
            largest = alpha[0] + transitions[0, j]
            for i in range(1, states):
                largest = max(largest, alpha[i] + transitions[i, j])
            total = 0.0
            for i in range(states):
                total += math.exp(alpha[i] + transitions[i, j] - largest)
            new[j] = scores[t, j] + largest + math.log(total)
        alpha, new = new, alpha
    return nopython.log_sum_exp(alpha)


# Long bodies, as computer algebra and translators from other languages write them.

KINDS = (
    "v{a} * v{b} + 0.5",
    "math.sin(v{a}) - v{c} * 0.3",
    "(v{a} + v{b} * v{c}) / (1.0 + v{a} * v{a})",
    "math.exp(-v{a} * v{a}) * v{b}",
)
BRANCH = """    if s > {k}.0:
        s = s * 0.5 - t * x[{i}]
    else:
        t = t * 0.9 + math.cos(s)
    s = s + 0.01 * x[{i}] * t"""
ON_ARRAYS = "        w[{a}] = 0.5 * w[{b}] * x[{i}] + math.tanh(w[{c}] - {k}.0 * x[{j}])"


def straight(count: int) -> list[str]:
    """Statements on numbers, each on results of earlier ones."""
    lines = [f"    v{k} = {KINDS[k % 4].format(a=k - 1, b=k - 2, c=k - 3)}" for k in range(3, count)]
    return ["    v0, v1, v2 = x[0], x[1], x[2]", *lines, f"    return v{count - 1} + v{count - 2}"]


def branching(count: int) -> list[str]:
    """Statements of which every fifth is a branch."""
    return ["    s, t = x[0], x[1]", *(BRANCH.format(k=k % 7 - 3, i=k % 3) for k in range(count // 5)), "    return s * t"]


def on_arrays(count: int) -> list[str]:
    """Statements on elements of work arrays, inside of a loop."""
    lines = [ON_ARRAYS.format(a=k % 8, b=(k + 3) % 8, c=(k + 5) % 8, i=k % 3, j=(k + 1) % 3, k=k) for k in range(count - 3)]
    return ["    w = np.zeros(8)", "    for i in range(5):", *lines, "    return np.sum(w)"]


LONG: dict[str, tuple[Callable[[int], list[str]], int]] = {
    "straight_50": (straight, 50),
    "straight_200": (straight, 200),
    "branching_200": (branching, 200),
    "on_arrays_100": (on_arrays, 100),
    "on_arrays_200": (on_arrays, 200),
}


def written(folder: Path) -> dict[str, Any]:
    """The long functions, from a module that is written into a folder: what has no file is not kept on disk."""
    path = folder / "long_bodies.py"
    lines = ["import math", "import numba", "import numpy as np"]
    for name, (write, count) in LONG.items():
        lines += ["@numba.njit", f"def {name}(x):", *write(count)]
    path.write_text("\n".join(lines))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: getattr(module, name) for name in LONG}


def bodies(folder: Path) -> dict[str, Body]:
    """All functions by name, from the shortest to the longest."""
    random = np.random.default_rng(0)
    vector, matrix = random.random(5) + 0.5, random.random((5, 5)) + 5.0 * np.eye(5)
    main, extra, state = random.random((4, 8)), random.random((3, 2)), random.random((4, 2))
    alphas, means, factors, points = (np.random.default_rng(1).random(shape) for shape in (3, (3, 2), (3, 3), (4, 2)))
    plain: list[tuple[Any, ...]] = [
        (square, (0.7,)),
        (square_and_sine, (0.7,)),
        (banana, (vector,)),
        (damped, (0.7, 0.2)),
        (sum_of_squares, (vector,)),
        (quadratic, (vector, matrix)),
        (horner, (0.7, vector)),
        (huber, (vector, 0.9)),
        (kepler, (0.7, 0.2)),
        (continued_fraction, (0.7, 5)),
        (nopython.chain, (0.7, 8)),
        (nopython.rosenbrock, (vector,)),
        (black_scholes, (100.0, 95.0, 0.02, 0.3, 1.5), (0, 3)),
        (two_normals, (vector, random.random(9))),
        (softmax, (vector, 2)),
        (logistic, (vector, random.random((9, 5)), np.ones(9))),
        (heat, (vector, 3)),
        (solved, (matrix, vector)),
        (conditions, (matrix,)),
        (decomposed, (matrix,)),
        (eigenvalues, (matrix,)),
        (fitted, (matrix, vector)),
        (runge_kutta, (vector[:2].copy(), 0.3, 4)),
        (viterbi_like, (random.random((6, 3)), random.random((3, 3))), (0, 1)),
        (gaussian_process, (vector[:3].copy(), vector, vector)),
        (nopython.lstm, (main, extra, state, random.random((5, 2))), (0, 1)),
        (nopython.mixture, (alphas, means, factors, points, 1.0, 0), (0, 1, 2)),
    ]  # fmt: skip
    found = {entry[0].py_func.__name__: Body(*entry) for entry in plain}
    return found | {name: Body(function, (vector,)) for name, function in written(folder).items()}
