"""Derivatives of compiled functions, beside the functions themselves and gradients written by hand.

``python -m benchmarks.nopython`` (in ``asv_bench``) prints all of it, in one run, with the compile times.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np

import tapegrad as tg

Step = Callable[[], object]
BLOCK = 2048  # observations a tape: fewer cost calls, many more leave the cache


class Objective(NamedTuple):
    """A function and where it is differentiated."""

    title: str
    function: Any
    args: tuple[Any, ...]
    argnums: int | tuple[int, ...]
    units: int  # operations or elements, by which a time is divided
    by_hand: Any = None
    jacobian: Any = None  # of a function with many values; others have a gradient

    def derivative(self) -> Any:
        """What is timed: value and gradient, or the Jacobian, of the arguments."""
        return self.jacobian or tg.value_and_grad(self.function, self.argnums)


# The functions, as people write them.


@numba.njit
def chain(x, length):
    y = x
    for _ in range(length // 4):
        y = y * x
        y = y + x
        y = math.sin(y)
        y = y - 0.5
    return y


@numba.njit
def chain_by_hand(x, length):
    values = np.empty(length // 4 + 1)
    sums = np.empty(length // 4)
    values[0] = x
    for k in range(length // 4):
        sums[k] = values[k] * x + x
        values[k + 1] = math.sin(sums[k]) - 0.5
    bar, x_bar = 1.0, 0.0
    for k in range(length // 4 - 1, -1, -1):
        bar *= math.cos(sums[k])
        x_bar += bar * values[k] + bar
        bar *= x
    return values[-1], x_bar + bar


@numba.njit
def rosenbrock(x):
    s = 0.0
    for i in range(len(x) - 1):
        t1 = x[i + 1] - x[i] * x[i]
        t2 = 1.0 - x[i]
        s += 100.0 * t1 * t1 + t2 * t2
    return s


@numba.njit
def rosenbrock_by_hand(x):
    s = 0.0
    gradient = np.zeros(len(x))
    for i in range(len(x) - 1):
        t1 = x[i + 1] - x[i] * x[i]
        t2 = 1.0 - x[i]
        s += 100.0 * t1 * t1 + t2 * t2
        gradient[i + 1] += 200.0 * t1
        gradient[i] -= 400.0 * t1 * x[i] + 2.0 * t2
    return s, gradient


@numba.njit
def log_sum_exp(x):
    m = x[0]
    for i in range(1, len(x)):
        if x[i] > m:
            m = x[i]
    s = 0.0
    for i in range(len(x)):
        s += math.exp(x[i] - m)
    return m + math.log(s)


@numba.njit
def mixture(alphas, means, factors, x, gamma, m):
    """Log-likelihood of a Gaussian mixture with a Wishart prior: logarithms of diagonals and lower triangles of the factors."""
    n, d = x.shape
    k = len(alphas)
    diagonals, sums = np.empty((k, d)), np.empty(k)
    for i in range(k):
        s = 0.0
        for j in range(d):
            s += factors[i, j]
            diagonals[i, j] = math.exp(factors[i, j])
        sums[i] = s
    terms, centred, scaled = np.empty(k), np.empty(d), np.empty(d)
    total = 0.0
    for point in range(n):
        for i in range(k):
            for j in range(d):
                centred[j] = x[point, j] - means[i, j]
            for j in range(d):
                scaled[j] = diagonals[i, j] * centred[j]
            place = d
            for j in range(d):
                for row in range(j + 1, d):
                    scaled[row] += factors[i, place] * centred[j]
                    place += 1
            squares = 0.0
            for j in range(d):
                squares += scaled[j] * scaled[j]
            terms[i] = alphas[i] + sums[i] - 0.5 * squares
        total += log_sum_exp(terms)
    prior = 0.0
    for i in range(k):
        norm = 0.0
        for j in range(d):
            norm += diagonals[i, j] * diagonals[i, j]
        for j in range(d, factors.shape[1]):
            norm += factors[i, j] * factors[i, j]
        prior += 0.5 * gamma * gamma * norm - m * sums[i]
    return total - n * log_sum_exp(alphas) - 0.5 * n * d * math.log(2.0 * math.pi) + prior


@numba.njit
def mixture_by_hand(alphas, means, factors, x, gamma, m):
    """Value and gradient of `mixture`: each point is gone through forwards, then backwards, and nothing of it is kept."""
    n, d = x.shape
    k = len(alphas)
    diagonals, sums = np.exp(factors[:, :d]), np.empty(k)
    alphas_bar, means_bar, factors_bar = np.zeros(k), np.zeros((k, d)), np.zeros(factors.shape)
    for i in range(k):
        sums[i] = factors[i, :d].sum()
    terms, centred, scaled = np.empty(k), np.empty((k, d)), np.empty((k, d))
    total = 0.0
    for point in range(n):
        top = -np.inf
        for i in range(k):
            for j in range(d):
                centred[i, j] = x[point, j] - means[i, j]
                scaled[i, j] = diagonals[i, j] * centred[i, j]
            place = d
            for j in range(d):
                for row in range(j + 1, d):
                    scaled[i, row] += factors[i, place] * centred[i, j]
                    place += 1
            squares = 0.0
            for j in range(d):
                squares += scaled[i, j] * scaled[i, j]
            terms[i] = alphas[i] + sums[i] - 0.5 * squares
            top = max(top, terms[i])
        s = 0.0
        for i in range(k):
            terms[i] = math.exp(terms[i] - top)
            s += terms[i]
        total += top + math.log(s)
        for i in range(k):
            share = terms[i] / s
            alphas_bar[i] += share
            place = d
            for j in range(d):
                factors_bar[i, j] += share * (1.0 - scaled[i, j] * diagonals[i, j] * centred[i, j])
                pull = diagonals[i, j] * scaled[i, j]
                for row in range(j + 1, d):
                    pull += factors[i, place] * scaled[i, row]
                    factors_bar[i, place] -= share * scaled[i, row] * centred[i, j]
                    place += 1
                means_bar[i, j] += share * pull
    shares = np.exp(alphas - log_sum_exp(alphas))
    prior = 0.0
    for i in range(k):
        alphas_bar[i] -= n * shares[i]
        for j in range(d):
            prior += 0.5 * gamma * gamma * diagonals[i, j] * diagonals[i, j]
            factors_bar[i, j] += gamma * gamma * diagonals[i, j] * diagonals[i, j] - m
        for j in range(d, factors.shape[1]):
            prior += 0.5 * gamma * gamma * factors[i, j] * factors[i, j]
            factors_bar[i, j] += gamma * gamma * factors[i, j]
        prior -= m * sums[i]
    value = total - n * log_sum_exp(alphas) - 0.5 * n * d * math.log(2.0 * math.pi) + prior
    return value, (alphas_bar, means_bar, factors_bar)


@numba.njit
def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


@numba.njit
def cell_step(weight, bias, hidden, cell, x):
    h = len(hidden)
    for i in range(h):
        forget = sigmoid(x[i] * weight[i] + bias[i])
        ingate = sigmoid(hidden[i] * weight[h + i] + bias[h + i])
        outgate = sigmoid(x[i] * weight[2 * h + i] + bias[2 * h + i])
        change = math.tanh(hidden[i] * weight[3 * h + i] + bias[3 * h + i])
        cell[i] = cell[i] * forget + ingate * change
        hidden[i] = outgate * math.tanh(cell[i])


@numba.njit
def lstm(main, extra, start, sequence):
    """Loss of a network of long short-term memory cells with diagonal weights that predicts the next element."""
    count, b = sequence.shape
    layers = main.shape[0] // 2
    state, out = start.copy(), np.empty(b)
    total = 0.0
    for t in range(count - 1):
        for i in range(b):
            out[i] = sequence[t, i] * extra[0, i]
        for layer in range(layers):
            below = out if layer == 0 else state[2 * layer - 2]
            cell_step(main[2 * layer], main[2 * layer + 1], state[2 * layer], state[2 * layer + 1], below)
        s = 0.0
        for i in range(b):
            out[i] = state[2 * layers - 2, i] * extra[1, i] + extra[2, i]
            s += math.exp(out[i])
        for i in range(b):
            total += sequence[t + 1, i] * (out[i] - math.log(2.0 + s))
    return -total / ((count - 1) * b)


@numba.njit
def rotate(axis, x, out):
    """Rodrigues' formula; nearly no rotation takes the first terms of its series."""
    squared = axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]
    if squared > 0.0:
        angle = math.sqrt(squared)
        cos, sin, inverse = math.cos(angle), math.sin(angle), 1.0 / angle
        a, b, c = axis[0] * inverse, axis[1] * inverse, axis[2] * inverse
        along = (a * x[0] + b * x[1] + c * x[2]) * (1.0 - cos)
        out[0] = x[0] * cos + (b * x[2] - c * x[1]) * sin + a * along
        out[1] = x[1] * cos + (c * x[0] - a * x[2]) * sin + b * along
        out[2] = x[2] * cos + (a * x[1] - b * x[0]) * sin + c * along
    else:
        out[0] = x[0] + axis[1] * x[2] - axis[2] * x[1]
        out[1] = x[1] + axis[2] * x[0] - axis[0] * x[2]
        out[2] = x[2] + axis[0] * x[1] - axis[1] * x[0]


@numba.njit
def reprojection(cameras, points, weights, seen):
    """Weighted errors of observations, each with its camera (rotation, centre, focal length, principal point, distortion)."""
    errors = np.empty((len(weights), 2))
    shifted, turned = np.empty(3), np.empty(3)
    for k in range(len(weights)):
        camera = cameras[k]
        for i in range(3):
            shifted[i] = points[k, i] - camera[3 + i]
        rotate(camera, shifted, turned)
        u, v = turned[0] / turned[2], turned[1] / turned[2]
        r2 = u * u + v * v
        stretch = 1.0 + camera[9] * r2 + camera[10] * r2 * r2
        errors[k, 0] = weights[k] * (u * stretch * camera[6] + camera[7] - seen[k, 0])
        errors[k, 1] = weights[k] * (v * stretch * camera[6] + camera[8] - seen[k, 1])
    return errors


def jacobian_of_observations(cameras, points, weights, seen, block=BLOCK):
    """Rows of 2 x 15 numbers an observation: no two share an argument, so that a pullback gives a row of every one of a block."""
    rows = np.empty((len(weights), 2, 15))
    for first in range(0, len(weights), block):
        part = slice(first, first + block)
        errors, pullback = tg.vjp(reprojection, cameras[part], points[part], weights[part], seen[part])
        for k in range(2):
            cotangent = np.zeros_like(errors)
            cotangent[:, k] = 1.0
            rows[part, k, :11], rows[part, k, 11:14], rows[part, k, 14], _ = pullback(cotangent)
    return rows


def objectives() -> dict[str, Objective]:
    """The workloads, with inputs from a fixed seed."""
    random = np.random.default_rng(0)
    d, k, n = 10, 25, 1000
    alphas, means = random.standard_normal(k), random.random((k, d))
    factors, points = random.standard_normal((k, d * (d + 1) // 2)) * 0.5, random.standard_normal((n, d))
    main, extra, state = random.random((4, 56)), random.random((3, 14)), random.random((4, 14))
    sequence = random.random((1024, 14))
    observations = 31843
    line = np.array([-0.76, -1.11, -0.85, 34.6, 39.7, 53.9, 419.0, 5.9, -8.5, 0.088, 0.0027, 7.2, 0.0011, 3.0])
    cameras_and_points = line * (1.0 + 0.001 * random.standard_normal((observations, 14)))
    cameras, scene = cameras_and_points[:, :11].copy(), cameras_and_points[:, 11:].copy()
    weights, seen = random.random(observations), random.random((observations, 2)) * 800.0
    return {
        "W2n": Objective("chain of 60,000 scalar operations, an operation", chain, (0.9, 60_000), 0, 60_000, chain_by_hand),
        "W3n": Objective(
            "Rosenbrock in a scalar loop, an element", rosenbrock, (random.random(10**5),), 0, 10**5, rosenbrock_by_hand
        ),
        "W7 mixture": Objective(
            "Gaussian mixture d10 K25 n1000", mixture, (alphas, means, factors, points, 1.0, 0), (0, 1, 2), 1, mixture_by_hand
        ),
        "W7 lstm": Objective("LSTM l2 c1024", lstm, (main, extra, state, sequence), (0, 1), 1),
        "W7 bundle": Objective(
            "bundle adjustment ba1, Jacobian",
            reprojection,
            (cameras, scene, weights, seen),
            (0, 1, 2),
            1,
            jacobian=jacobian_of_observations,
        ),
    }


NAMES = ["W2n", "W3n", "W7 mixture", "W7 lstm", "W7 bundle"]


class Compiled:
    """Value and gradient in one call, and the function alone."""

    params = (NAMES,)
    param_names = ("workload",)

    def setup(self, workload: str) -> None:
        self.objective = objectives()[workload]
        self.gradient = self.objective.derivative()
        self.gradient(*self.objective.args)
        self.objective.function(*self.objective.args)

    def time_value_and_gradient(self, workload: str) -> None:
        self.gradient(*self.objective.args)

    def time_value(self, workload: str) -> None:
        self.objective.function(*self.objective.args)

    def track_times_the_value(self, workload: str) -> float:
        function, args = self.objective.function, self.objective.args
        return seconds(lambda: self.gradient(*args)) / seconds(lambda: function(*args))

    track_times_the_value.unit = "x"  # type: ignore[attr-defined]


class CompileTime:
    """Seconds until the first gradient of a function that is called for the first time."""

    params = (NAMES,)
    param_names = ("workload",)
    number = 1
    repeat = 1

    def track_compile_time(self, workload: str) -> float:
        return compile_time(objectives()[workload])

    track_compile_time.unit = "s"  # type: ignore[attr-defined]


def compile_time(objective: Objective) -> float:
    """Of the recording form alone: the function itself has been compiled."""
    objective.function(*objective.args)
    start = time.perf_counter()
    objective.derivative()(*objective.args)
    return time.perf_counter() - start


def seconds(step: Step, rounds: int = 15) -> float:
    """Median over some calls."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    """One line a workload."""
    tg.grad(numba.njit(lambda x: x * x))(1.0)  # what the first call of a process loads
    print("| workload | gradient | by hand | value | gradient / value | gradient / by hand | first call |")
    for name, objective in objectives().items():
        first = compile_time(objective)
        unit, scale = ("ns", 1e9 / objective.units) if objective.units > 1 else ("ms", 1e3)
        steps = [objective.derivative(), objective.function] + ([objective.by_hand] if objective.by_hand else [])
        for step in steps:
            step(*objective.args)
        ours, plain, *hand = (seconds(lambda f=step, o=objective: f(*o.args)) for step in steps)
        by_hand, ratio = (f"{hand[0] * scale:.2f} {unit}", f"{ours / hand[0]:.1f}") if hand else ("-", "-")
        times = f"{ours * scale:.2f} {unit} | {by_hand} | {plain * scale:.2f} {unit} | {ours / plain:.1f} | {ratio} | {first:.1f} s"
        print(f"| {name}: {objective.title} | {times} |", flush=True)


if __name__ == "__main__":
    main()
