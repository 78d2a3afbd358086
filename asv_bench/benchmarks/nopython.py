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


class Objective(NamedTuple):
    """A function and where it is differentiated."""

    title: str
    function: Any
    args: tuple[Any, ...]
    argnums: int | tuple[int, ...]
    units: int  # operations or elements, by which a time is divided
    by_hand: Any = None


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


def objectives() -> dict[str, Objective]:
    """The workloads, with inputs from a fixed seed."""
    random = np.random.default_rng(0)
    d, k, n = 10, 25, 1000
    alphas, means = random.standard_normal(k), random.random((k, d))
    factors, points = random.standard_normal((k, d * (d + 1) // 2)) * 0.5, random.standard_normal((n, d))
    main, extra, state = random.random((4, 56)), random.random((3, 14)), random.random((4, 14))
    sequence = random.random((1024, 14))
    return {
        "W2n": Objective("chain of 60,000 scalar operations, an operation", chain, (0.9, 60_000), 0, 60_000, chain_by_hand),
        "W3n": Objective(
            "Rosenbrock in a scalar loop, an element", rosenbrock, (random.random(10**5),), 0, 10**5, rosenbrock_by_hand
        ),
        "W7 mixture": Objective("Gaussian mixture d10 K25 n1000", mixture, (alphas, means, factors, points, 1.0, 0), (0, 1, 2), 1),
        "W7 lstm": Objective("LSTM l2 c1024", lstm, (main, extra, state, sequence), (0, 1), 1),
    }


NAMES = ["W2n", "W3n", "W7 mixture", "W7 lstm"]


class Compiled:
    """Value and gradient in one call, and the function alone."""

    params = (NAMES,)
    param_names = ("workload",)

    def setup(self, workload: str) -> None:
        self.objective = objectives()[workload]
        self.gradient = tg.value_and_grad(self.objective.function, self.objective.argnums)
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
    tg.value_and_grad(objective.function, objective.argnums)(*objective.args)
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
    tg.grad(lambda x: x * x)(1.0)  # what the first call of a process loads
    print("| workload | gradient | by hand | value | gradient / value | first call |")
    for name, objective in objectives().items():
        first = compile_time(objective)
        gradient = tg.value_and_grad(objective.function, objective.argnums)
        unit, scale = ("ns", 1e9 / objective.units) if objective.units > 1 else ("ms", 1e3)
        ours = seconds(lambda g=gradient, o=objective: g(*o.args))
        plain = seconds(lambda o=objective: o.function(*o.args))
        hand = "-"
        if objective.by_hand is not None:
            objective.by_hand(*objective.args)
            hand = f"{seconds(lambda o=objective: o.by_hand(*o.args)) * scale:.2f} {unit}"
        times = f"{ours * scale:.2f} {unit} | {hand} | {plain * scale:.2f} {unit} | {ours / plain:.1f} | {first:.1f} s"
        print(f"| {name}: {objective.title} | {times} |", flush=True)


if __name__ == "__main__":
    main()
