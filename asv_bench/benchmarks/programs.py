"""Programs against the functions that they were made of: value and gradient of one call.

``python -m benchmarks.programs`` (in ``asv_bench``) prints both in microseconds, in turns in one run.
"""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import tapegrad as tg

TURNS, SECONDS = 7, 0.05
_RNG = np.random.default_rng(0)
TIMES = np.linspace(0.0, 3.0, 40)
MEASURED = 2.0 * np.exp(-1.3 * TIMES) + 0.5 + 0.05 * _RNG.normal(size=40)
DATA, LABELS = _RNG.normal(size=(2000, 20)), (_RNG.random(2000) < 0.5) * 1.0
POINTS = _RNG.normal(size=(60, 2))


def rosenbrock(x: Any) -> Any:
    """Rosenbrock's function on arrays."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def numbers(x: Any) -> Any:
    """Rosenbrock's function, number by number."""
    value = 0.0
    for i in range(len(x) - 1):
        value = value + 100.0 * (x[i + 1] - x[i] * x[i]) ** 2 + (1.0 - x[i]) ** 2
    return value


def chain(x: Any) -> Any:
    """Five times five elementwise operations."""
    y = x
    for _ in range(5):
        y = np.tanh(y * 0.9 + 0.1) * np.exp(-y * y)
    return y.sum()


def curve(p: Any) -> Any:
    """A fit of an exponential to forty measurements."""
    residual = p[0] * np.exp(-p[1] * TIMES) + p[2] - MEASURED
    return residual @ residual


def logistic(w: Any) -> Any:
    """Logistic regression of 2,000 x 20."""
    z = DATA @ w
    return np.sum(np.logaddexp(0.0, z) - LABELS * z)


def heat(u: Any) -> Any:
    """A hundred explicit steps of the heat equation, each written into a new array."""
    for _ in range(100):
        new = np.zeros_like(u)
        new[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        new[0], new[-1] = u[0], u[-1]
        u = new
    return (u * u).sum()


def process(p: Any) -> Any:
    """The likelihood of a Gaussian process at sixty points."""
    distances = ((POINTS[:, None] - POINTS) ** 2).sum(-1)
    K = np.exp(p[0]) * np.exp(-0.5 * distances * np.exp(p[1])) + np.exp(p[2]) * np.eye(60)
    return 0.5 * np.linalg.slogdet(K)[1] + 0.5 * POINTS[:, 0] @ np.linalg.solve(K, POINTS[:, 0])


CASES: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "Rosenbrock, n = 10": (rosenbrock, np.linspace(-1.0, 1.0, 10)),
    "Rosenbrock, n = 1,000": (rosenbrock, np.linspace(-1.0, 1.0, 1000)),
    "Rosenbrock, n = 100,000": (rosenbrock, np.linspace(-1.0, 1.0, 100_000)),
    "Rosenbrock by numbers, n = 10": (numbers, np.linspace(-1.0, 1.0, 10)),
    "25 elementwise rows, n = 10": (chain, np.linspace(-1.0, 1.0, 10)),
    "25 elementwise rows, n = 1,000": (chain, np.linspace(-1.0, 1.0, 1000)),
    "curve fit, 40 points": (curve, np.array([1.5, 1.0, 0.3])),
    "logistic regression, 2,000 x 20": (logistic, 0.1 * np.ones(20)),
    "100 heat steps in place, n = 50": (heat, np.sin(np.linspace(0.0, 3.0, 50))),
    "Gaussian process, 60 points": (process, np.array([0.1, 0.2, -1.0])),
}


class Program:
    """Value and gradient of one call."""

    params = (list(CASES), ["called", "program"])
    param_names = ("function", "how")

    def setup(self, name: str, how: str) -> None:
        """Record what is recorded once."""
        function, self.point = CASES[name]
        self.call = tg.value_and_grad(tg.program(function) if how == "program" else function)
        self.call(self.point)

    def time_value_and_gradient(self, name: str, how: str) -> None:
        """One call."""
        self.call(self.point)


def _main() -> None:
    print(f"{'':34}{'called':>10}{'program':>10}{'ratio':>8}")
    for name in CASES:
        runs = []
        for how in Program.params[1]:
            case = Program()
            case.setup(name, how)
            timer = timeit.Timer(lambda case=case: case.call(case.point))
            number = max(1, round(SECONDS / max(timer.timeit(1), 1e-7)))
            runs.append((timer, number))
        taken = [[timer.timeit(number) / number for timer, number in runs] for _ in range(TURNS)]
        called, program = (1e6 * statistics.median(turn[k] for turn in taken) for k in (0, 1))
        print(f"{name:34}{called:10.1f}{program:10.1f}{called / program:8.2f}")


if __name__ == "__main__":
    _main()
