"""Value and gradient of programs: called, by their steps, and by machine code.

``python -m benchmarks.fused_programs`` prints all of them in turns.
"""

from __future__ import annotations

import os
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


def of_points(p: Any) -> Any:
    """Thirty operations on five numbers, three of them dear."""
    a, b, c, d, e = p[0], p[1], p[2], p[3], p[4]
    u = a * b + c
    v = u * d - e
    w = np.tanh(v)
    s = w * w + a
    t = s / (1.0 + b * b)
    q = np.exp(-t * t)
    r = q * c - d
    o = r * r + e * w
    k = o * t - u
    m = k * k + v * w
    return np.sin(m) * q * o + k * a - s * d + m * 0.5 + t * e


def short_vectors(x: Any) -> Any:
    """A thousand operations on vectors of eight."""
    a, b = x[:8], x[8:]
    for k in range(250):
        a = np.tanh(a * b) if k % 5 == 0 else a * b
        b = (b - a) * 0.5
        a = a + x[:8]
    return (a * b).sum()


def long_chain(x: Any) -> Any:
    """12,000 operations on numbers."""
    a, b = x[0], x[1]
    for _ in range(2400):
        a = a * 0.99 + b * x[1]
        b = b - a * x[0]
    return a


CASES |= {"vectors of 8": (short_vectors, 16), "long chain": (long_chain, 2)}


def numbers_twice(x: Any) -> Any:
    """A thousand operations on numbers or on vectors, as the argument is."""
    a, b = x[0], x[1]
    for _ in range(250):
        a = a * 0.9 + b
        b = b - 0.01 * a
    return (a * b).sum()


class FirstCalls:
    """The first two calls of a function of a thousand operations, in a process that has recorded others."""

    params = (["numbers", "vectors of 8"],)
    param_names = ("operands",)

    def setup(self, operands: str) -> None:
        """One function first."""
        self.x = np.random.default_rng(0).standard_normal(2 if operands == "numbers" else (2, 8))
        self.time_both(operands)

    def time_both(self, operands: str) -> None:
        """Record, and run again."""
        run = tg.value_and_grad(tg.program(numbers_twice))
        run(self.x)
        run(self.x)


class Network:
    """A step of a network of 784, 128, 64 and 10 in float32: value and gradient for a batch."""

    params = ([32, 256], ["called", "fused", "fast"])
    param_names = ("batch", "form")

    def setup(self, batch: int, form: str) -> None:
        """Record and compile."""
        rng = np.random.default_rng(0)
        sizes = ((784, 128), (128, 64), (64, 10))
        arrays = [part for shape in sizes for part in (rng.normal(size=shape) / shape[0] ** 0.5, np.zeros(shape[1]))]
        arrays += [rng.normal(size=(batch, 784)), np.eye(10)[rng.integers(0, 10, batch)]]
        self.given = [array.astype(np.float32) for array in arrays]
        loss = cross_entropy if form == "called" else tg.program(cross_entropy, fast=form == "fast")
        self.run = tg.value_and_grad(loss, tuple(range(6)))
        self.run(*self.given)
        if form != "called":
            loss.compile()
            self.run(*self.given)

    def time_step(self, batch: int, form: str) -> None:
        """One call."""
        self.run(*self.given)


def cross_entropy(w: Any, b: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any) -> Any:
    """Of two hidden layers with rectifiers."""
    z = np.maximum(np.maximum(x @ w + b, 0.0) @ w2 + b2, 0.0) @ w3 + b3
    return (tg.logsumexp(z, 1) - (z * labels).sum(1)).mean()


def jitted(function: Callable[[Any], Any], x: Any, points: bool = False) -> Callable[[], Any] | None:
    """The same by JAX, where that is installed; loops it would take minutes to compile."""
    try:
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    both = jax.value_and_grad(function)
    run, given = jax.jit(jax.vmap(both) if points else both), jax.numpy.asarray(x)
    return lambda: jax.block_until_ready(run(given))


def _in_jax(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function with JAX's functions in the place of NumPy's."""
    import types

    import jax.numpy

    return types.FunctionType(function.__code__, {**function.__globals__, "np": jax.numpy})


def _print(case: str, ready: dict[str, Callable[[], Any]], scale: float = 1.0) -> None:
    counts = {name: max(1, int(0.03 / timeit.timeit(run, number=1))) for name, run in ready.items()}
    rounds = [{name: timeit.timeit(run, number=counts[name]) / counts[name] for name, run in ready.items()} for _ in range(7)]
    print(f"{case:16s}", *(f"{name} {1e6 / scale * min(r[name] for r in rounds):9.3f} us" for name in ready), flush=True)


if __name__ == "__main__":
    for case, (function, n) in CASES.items():
        ready = forms(case)
        if case not in ("chain", "long chain", "vectors of 8"):
            try:
                other = jitted(_in_jax(function), np.random.default_rng(0).standard_normal(n))
            except ImportError:
                other = None
            if other is not None:
                other()
                ready["jax"] = other
        _print(case, ready)
    if hasattr(os, "sched_setaffinity"):  # the package has one processor for all, and two threads want two
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    many = np.random.default_rng(0).standard_normal((100_000, 5))
    mapped = {f"{threads} threads": tg.value_and_grad(tg.program(of_points, threads=threads)).map for threads in (1, 2)}
    by_threads: dict[str, Callable[[], Any]] = {name: lambda run=run: run(many) for name, run in mapped.items()}
    try:
        other = jitted(_in_jax(of_points), many, points=True)
    except ImportError:
        other = None
    if other is not None:
        by_threads["jax"] = other
    for run in by_threads.values():
        run()
    _print("a point of 1e5", by_threads, 1e5)
