"""Value and gradient of programs: called, by their steps, and by machine code.

``python -m benchmarks.fused_programs`` prints all of them in turns.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import tapegrad as tg


def rosenbrock(x: Any) -> Any:
    """Two slices, four squares."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def elementwise(x: Any) -> Any:
    """Twelve operations on each element, two of them dear."""
    return (np.tanh(x * 0.7 + 0.1) * np.exp(-x * x) + x / (1.0 + x * x)).sum()


def by_numbers(x: Any) -> Any:
    """Rosenbrock's function without arrays."""
    total = 0.0
    for k in range(len(x) - 1):
        total = total + 100.0 * (x[k + 1] - x[k] ** 2) ** 2 + (1.0 - x[k]) ** 2
    return total


def chain(x: Any) -> Any:
    """1,200 operations on numbers."""
    a, b = x[0], x[1]
    for _ in range(200):
        a = a * 0.99 + b * x[1]
        b = b - np.sin(a) * x[0]
    return a


CASES: dict[str, tuple[Callable[[Any], Any], int]] = {
    "rosenbrock 10": (rosenbrock, 10),
    "rosenbrock 1e3": (rosenbrock, 1000),
    "rosenbrock 1e5": (rosenbrock, 100_000),
    "elementwise 10": (elementwise, 10),
    "elementwise 1e3": (elementwise, 1000),
    "elementwise 1e5": (elementwise, 100_000),
    "by numbers 10": (by_numbers, 10),
    "chain": (chain, 2),
}


def forms(case: str) -> dict[str, Callable[[], Any]]:
    """A call of each form, ready to run."""
    function, n = CASES[case]
    x = np.random.default_rng(0).standard_normal(n)
    program, steps = tg.program(function), tg.program(function, fuse=False)
    found = {"called": tg.value_and_grad(function), "steps": tg.value_and_grad(steps), "fused": tg.value_and_grad(program)}
    for run in found.values():
        run(x)
    program.compile()
    for run in found.values():
        run(x)
        run(x)
    return {name: lambda run=run: run(x) for name, run in found.items()}


class FusedPrograms:
    """Value and gradient."""

    params = (list(CASES), ["called", "steps", "fused"])
    param_names = ("case", "form")

    def setup(self, case: str, form: str) -> None:
        """Record and compile."""
        self.run = forms(case)[form]

    def time_value_and_gradient(self, case: str, form: str) -> None:
        """One call."""
        self.run()


if __name__ == "__main__":
    for case in CASES:
        ready = forms(case)
        count = max(1, int(0.02 / timeit.timeit(ready["called"], number=1)))
        rounds = [{name: timeit.timeit(run, number=count) / count for name, run in ready.items()} for _ in range(7)]
        print(f"{case:16s}", *(f"{name} {1e6 * min(r[name] for r in rounds):9.2f} us" for name in ready))
