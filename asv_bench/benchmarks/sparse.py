"""Sparse derivatives beside CasADi: patterns and colours beside its symbolic construction, values beside its compiled functions.

``python -m benchmarks.sparse`` (in ``asv_bench``) prints the tables; CasADi's columns are empty where it is not installed.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SIZE, SIDE = 100_000, 316
PROBLEMS = ("tridiagonal", "stencil", "rosenbrock")


def tridiagonal(x: Any) -> Any:
    """Each element by three."""
    return x[1:-1] ** 2 * 3.0 - x[:-2] * np.sin(x[1:-1]) + x[2:]


def stencil(u: Any) -> Any:
    """The 5-point stencil with a nonlinear term, of a square."""
    u = u.reshape(SIDE, SIDE)
    inside = u[1:-1, 1:-1]
    return 4.0 * inside - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:] + np.exp(inside)


def rosenbrock(x: Any) -> Any:
    """A scalar, for Hessians."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


FUNCTIONS: dict[str, Callable[[Any], Any]] = {"tridiagonal": tridiagonal, "stencil": stencil, "rosenbrock": rosenbrock}


def point(name: str) -> np.ndarray:
    """Where it is evaluated."""
    return np.linspace(0.5, 1.5, SIDE * SIDE if name == "stencil" else SIZE)


def construction(name: str) -> Callable[[], Any]:
    """Pattern and colours of a function."""
    import tapegrad as tg

    x = point(name)
    return lambda: tg.sparse.plan(FUNCTIONS[name], x, second=name == "rosenbrock")


def casadi_construction(name: str) -> Callable[[], Any]:
    """The symbolic derivative as a function; its own array type for vectors, scalars for the Hessian."""
    if importlib.util.find_spec("casadi") is None:
        raise NotImplementedError("casadi is not installed")
    import casadi as ca

    def make() -> Any:
        if name == "stencil":
            u = ca.MX.sym("u", SIDE, SIDE)
            inside = u[1:-1, 1:-1]
            y = 4 * inside - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:] + ca.exp(inside)
            return ca.Function("derivative", [u], [ca.jacobian(ca.vec(y), ca.vec(u))])
        x = ca.SX.sym("x", SIZE)
        if name == "tridiagonal":
            y = x[1:-1] ** 2 * 3 - x[:-2] * ca.sin(x[1:-1]) + x[2:]
            return ca.Function("derivative", [x], [ca.jacobian(y, x)])
        y = ca.sum1(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
        return ca.Function("derivative", [x], [ca.hessian(y, x)[0]])

    return make


def casadi_value(name: str) -> Callable[[], Any]:
    """Its evaluation into memory that is there, the quickest way that it has from Python."""
    made = casadi_construction(name)()
    x, out = point(name), np.zeros(made.nnz_out(0))
    buffer, evaluate = made.buffer()
    buffer.set_arg(0, memoryview(x))
    buffer.set_res(0, memoryview(out))
    kept = made, buffer, x, out
    return lambda: (evaluate(), kept)[0]


def median(step: Callable[[], Any], rounds: int = 7) -> float:
    """Seconds of a call."""
    step()
    found = []
    for _ in range(rounds):
        begun = time.perf_counter()
        step()
        found.append(time.perf_counter() - begun)
    return statistics.median(found)


class Structure:
    """Pattern and colours."""

    params = PROBLEMS
    param_names = ("problem",)

    def setup(self, problem: str) -> None:
        """Once, so that nothing is loaded in what is timed."""
        self.make = construction(problem)
        self.make()

    def time_plan(self, problem: str) -> None:
        """Find the structure."""
        self.make()

    def track_ratio(self, problem: str) -> float:
        """Times CasADi's construction."""
        return median(self.make, 3) / median(casadi_construction(problem), 1)

    track_ratio.unit = "x"  # type: ignore[attr-defined]


class Values:
    """Derivatives where the structure is known."""

    params = PROBLEMS
    param_names = ("problem",)

    def setup(self, problem: str) -> None:
        """Find the structure."""
        self.derivative, self.x = construction(problem)(), point(problem)
        self.derivative(self.x)

    def time_values(self, problem: str) -> None:
        """One derivative, recording included."""
        self.derivative(self.x)

    def track_ratio(self, problem: str) -> float:
        """Times CasADi's evaluation."""
        return median(lambda: self.derivative(self.x)) / median(casadi_value(problem))

    track_ratio.unit = "x"  # type: ignore[attr-defined]


def main() -> None:
    """Both tables."""
    beside = importlib.util.find_spec("casadi") is not None
    print("| problem | entries | colours | plan | CasADi | derivative | CasADi | ns an entry |")
    print("|---|---|---|---|---|---|---|---|")
    for name in PROBLEMS:
        case = Values()
        case.setup(name)
        info = case.derivative.info
        plan, value = median(construction(name), 3), median(lambda case=case: case.derivative(case.x))  # type: ignore[misc]
        others = (median(casadi_construction(name), 1), median(casadi_value(name))) if beside else None
        there = [f"{t * 1e3:.1f} ms" for t in others] if others else ["", ""]
        print(
            f"| {name} | {info.entries} | {info.colours} | {plan * 1e3:.1f} ms | {there[0]} | {value * 1e3:.2f} ms | {there[1]} "
            f"| {value / info.entries * 1e9:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
