"""The workloads, defined once: the asv classes beside this file and the table of docs/speed.md both run these.

A workload is built for a library by name and gives the functions to be timed. Everything is float64 and on one thread;
the warm-up is the caller's.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

LIBRARIES = ("tapegrad", "torch", "jax", "autograd")

Step = Callable[[], object]


class Phases(NamedTuple):
    """A graph recorded, swept, and given back; to be called in this order."""

    record: Step
    sweep: Step
    release: Step


class Workload(NamedTuple):
    """What to build, and how to state the time of one call."""

    title: str
    operations: int  # by which the time of a call is divided
    build: Callable[[str], Any]  # library -> Step, or Phases
    libraries: tuple[str, ...] = LIBRARIES


def load(library: str) -> Any:
    """The library, set up for one thread and float64.

    Raises
    ------
    NotImplementedError
        If a peer is not installed, which tells asv to skip.
    """
    if library != "tapegrad" and importlib.util.find_spec(library) is None:
        raise NotImplementedError(f"{library} is not installed")
    module = importlib.import_module(library)
    if library == "torch":
        module.set_num_threads(1)
        module.set_default_dtype(module.float64)
    if library == "jax":
        module.config.update("jax_enable_x64", True)
    return module


# The functions. Each is written once, for arrays and tensors of every library.


def product(x: Any, w: Any) -> Any:
    """Three operations."""
    return (x + w) * (w + 1)


def rosenbrock(x: Any) -> Any:
    """Value of the Rosenbrock function."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def elementwise(x: Any, functions: Any) -> Any:
    """Twelve elementwise operations and a sum."""
    return (functions.tanh(x * 0.7 + 0.1) * functions.exp(-x * x) + x / (1.0 + x * x)).sum()


def chain(x: Any, length: int, sin: Callable[[Any], Any]) -> Any:
    """`length` operations, each on the result of the one before."""
    y = x
    for _ in range(length // 4):
        y = y * x
        y = y + x
        y = sin(y)
        y = y - 0.5
    return y


# Value and gradient as each library wants to be asked.


def _gradient(library: str, function: Callable[[Any, Any], Any], *points: np.ndarray, clear: bool = True) -> Step:
    """Value and gradient of ``function(functions, *points)``; `functions` is the library's counterpart of NumPy."""
    module = load(library)
    if library == "jax":
        compiled = module.jit(module.value_and_grad(lambda *x: function(module.numpy, *x).sum(), argnums=tuple(range(len(points)))))
        arrays = [module.numpy.asarray(point) for point in points]
        return lambda: module.block_until_ready(compiled(*arrays))
    if library == "autograd":
        functions = importlib.import_module("autograd.numpy")
        both = module.value_and_grad(lambda *x: function(functions, *x), argnum=tuple(range(len(points))))
        return lambda: both(*points)
    leaves = [module.tensor(point, requires_grad=True) for point in points]

    def step() -> object:
        if clear:
            for leaf in leaves:
                leaf.grad = None
        value = function(module, *leaves)
        value.backward()
        return value

    return step


def _phases(library: str, length: int, point: np.ndarray) -> Phases:
    module = load(library)
    graph: list[Any] = []
    if library == "autograd":
        functions = importlib.import_module("autograd.numpy")

        def record() -> None:
            graph.append(module.make_vjp(lambda x: chain(x, length, functions.sin))(point)[0])

        def sweep() -> None:
            graph[0](np.ones_like(point))

    else:
        leaf = module.tensor(point, requires_grad=True)
        seed = module.tensor(np.ones_like(point))

        def record() -> None:
            graph.append(chain(leaf, length, module.sin))

        def sweep() -> None:
            graph[0].backward(seed)

    return Phases(record, sweep, graph.clear)


def _points(length: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(length)


# W2 and W6 leave jax out: it would compile a graph of that length for minutes.
_RECORDING = ("tapegrad", "torch", "autograd")

STEPS: dict[str, Workload] = {
    "W1": Workload(
        "`y=(x+w)*(w+1)` on length-1 tensors, forward and backward",
        1,
        lambda library: _gradient(library, lambda _, x, w: product(x, w), np.array([2.0]), np.array([1.0]), clear=False),
    ),
    "W3": Workload(
        "Rosenbrock value and gradient, vectorised, n = 1e5, an element",
        10**5,
        lambda library: _gradient(library, lambda _, x: rosenbrock(x), _points(10**5)),
    ),
    **{
        f"W5 n={n:g}": Workload(
            f"`sum(tanh(x*a+b)*exp(-x*x) + x/(1+x*x))`, n = {n:g}, an element",
            n,
            lambda library, n=n: _gradient(library, lambda functions, x: elementwise(x, functions), _points(n)),
        )
        for n in (10, 10**3, 10**5, 10**7)
    },
}

PHASES: dict[str, Workload] = {
    "W2": Workload(
        "chain of 60,000 scalar operations from Python, an operation",
        60_000,
        lambda library: _phases(library, 60_000, np.array(0.3)),
        _RECORDING,
    ),
    "W6": Workload(
        "1000 operations on length-8 vectors, an operation",
        1000,
        lambda library: _phases(library, 1000, _points(8)),
        _RECORDING,
    ),
}


def build(workload: Workload, library: str) -> Any:
    """The workload for a library; NotImplementedError, which asv takes for a skip, if that cannot be."""
    if library not in workload.libraries:
        raise NotImplementedError(f"{library} is not measured here")
    return workload.build(library)
