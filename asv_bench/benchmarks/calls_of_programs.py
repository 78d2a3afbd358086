"""Calls of programs' drivers at ten elements, nearly all of whose time is the way to code; ``python -m`` prints them in turns."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import tapegrad as tg

X, V, ONES = np.linspace(0.5, 1.5, 10), np.cos(np.arange(10.0)), np.ones(18)


class Model:
    """A function with data of its own."""

    def __init__(self) -> None:
        self.weights, self.scale = V.copy(), 2.0

    def loss(self, x: Any) -> Any:
        """A weighted sum of squares."""
        return (self.weights * x * x * self.scale).sum()


def rosenbrock(x: Any) -> Any:
    """Two slices, four squares."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def residuals(x: Any) -> Any:
    """Of the same function."""
    return np.concatenate([10.0 * (x[1:] - x[:-1] ** 2), 1.0 - x[:-1]])


def weighted(d: Any) -> Any:
    """Of a container."""
    return (d["a"] * d["b"] * d["s"]).sum()


def of(driver: Callable[[Any], Any], *args: Any) -> Callable[[Any], Callable[[], Any]]:
    """What makes a call of what a driver gives for a function."""

    def made(f: Any) -> Callable[[], Any]:
        run = driver(f)
        return lambda: run(*args)

    return made


CASES: dict[str, tuple[Callable[..., Any], Callable[[Any], Callable[[], Any]]]] = {
    "value": (rosenbrock, of(lambda f: f, X)),
    "value_and_grad": (rosenbrock, of(tg.value_and_grad, X)),
    "hvp": (rosenbrock, lambda f: lambda: tg.hvp(f, X, V)),
    "hessian": (rosenbrock, of(tg.hessian, X)),
    "jacobian": (residuals, of(tg.jacobian, X)),
    "jvp": (residuals, lambda f: lambda: tg.jvp(f, (X,), (V,))),
    "vjp": (residuals, lambda f: lambda: tg.vjp(f, X)[1](ONES)),
    "linearize": (residuals, lambda f: lambda: tg.linearize(f, X)[1](V)),
    "dict": (weighted, of(tg.value_and_grad, {"a": X, "b": V, "s": 2.0})),
    "object": (Model().loss, of(tg.value_and_grad, X)),
}


def ready(case: str) -> Callable[[], Any]:
    """A call whose code is there."""
    function, made = CASES[case]
    program = tg.program(function)
    run = made(program)
    for _ in range(5):
        run()
        program.compile()
    return run


class CallsOfPrograms:
    """One call."""

    params = (list(CASES),)
    param_names = ("driver",)

    def setup(self, driver: str) -> None:
        """Record and compile."""
        self.run = ready(driver)

    def time_call(self, driver: str) -> None:
        """Its time."""
        self.run()


if __name__ == "__main__":
    calls = {case: ready(case) for case in CASES}
    rounds = [
        {case: timeit.timeit(run, timer=time.process_time, number=2000) / 2000 for case, run in calls.items()} for _ in range(9)
    ]
    for case in calls:
        print(f"{case:16s} {1e6 * min(one[case] for one in rounds):7.2f} us")
