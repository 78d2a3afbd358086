"""Functions with random sparse derivatives, made of what arrays and numbers can do."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

Function = Callable[[Any], Any]
SIZE = 12


def _step(rng: np.random.Generator, size: int) -> Function:
    """One operation from a vector of `size` elements to another vector."""
    half, shift = size // 2, int(rng.integers(1, size))
    index, other = rng.integers(0, size, size), rng.integers(0, size, size)
    matrix = rng.uniform(0.5, 1.5, (3, size)) * (rng.random((3, size)) < 0.3)
    weights, mask = rng.uniform(0.5, 1.5, size), rng.random(size) < 0.5
    a, b = (int(k) for k in rng.integers(0, size, 2))

    def put(v: Any) -> Any:
        made = v * 1.0
        made[a] = v[b] * v[a]
        return made

    steps: list[Function] = [
        lambda v: v[1:] * v[:-1],
        lambda v: v[index] * weights,
        lambda v: v[index] * v[other],
        lambda v: np.sin(v),
        lambda v: np.where(mask, v, v[::-1]),
        lambda v: np.where(v > 0.1, v * v, v[a]),
        lambda v: np.concatenate([v[half:], np.exp(0.1 * v[:half]), v[:1] * v[-1]]),
        lambda v: np.concatenate([matrix @ v, v[3:]]),
        lambda v: np.concatenate([v[:half], (v[half:] ** 2).sum()[None]]),
        lambda v: np.roll(v, shift) + v,
        lambda v: np.stack([v[k] * v[(k + shift) % size] for k in range(size)]),
        lambda v: np.maximum(v, v[other]),
        lambda v: np.sort(v) * weights,
        lambda v: np.concatenate([v[:2], np.cumsum(v[2:5]), v[5:]]),
        lambda v: np.concatenate(
            [v[4:], v[:4].reshape(2, 2).max(axis=0), (v[:4].reshape(2, 2) @ v[2:6].reshape(2, 2)).reshape(-1)]
        ),
        lambda v: np.einsum("ij,ij->i", v[: 2 * half].reshape(half, 2), v[: 2 * half].reshape(half, 2)[::-1]),
        put,
    ]
    return steps[int(rng.integers(len(steps)))]


def random_function(seed: int) -> tuple[Function, Any]:
    """A function from vectors to vectors, and a point."""
    rng = np.random.default_rng(seed)
    steps: list[Function] = []
    x = rng.uniform(-1.0, 1.0, SIZE)
    v = x
    for _ in range(int(rng.integers(2, 6))):
        if len(v) < 8:
            break
        steps.append(_step(rng, len(v)))
        v = steps[-1](v)

    def function(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return x

    return function, x


def combined(kind: Any, a: Any, b: Any) -> Any:
    """What is done with two elements."""
    if kind == 0:
        return a * b
    if kind == 1:
        return a + 2.0 * b
    if kind == 2:
        return np.sin(a)
    if kind == 3:
        return a * a - b
    if a > b:
        return a
    return b


_combined = numba.njit(combined)


def by_table(x: Any, first: Any, second: Any, kinds: Any) -> Any:
    """A program: what is done with which elements is said by tables."""
    work = [x[k] for k in range(len(x))]
    for a, b, kind in zip(first, second, kinds, strict=True):
        work.append(combined(kind, work[a], work[b]))
    return np.stack(work[len(x) :])


@numba.njit  # type: ignore[untyped-decorator]
def compiled_by_table(x: Any, first: Any, second: Any, kinds: Any) -> Any:
    """The same, compiled."""
    work = np.zeros(len(x) + len(kinds))
    for k in range(len(x)):
        work[k] = x[k]
    for k in range(len(kinds)):
        work[len(x) + k] = _combined(kinds[k], work[first[k]], work[second[k]])
    return work[len(x) :]


@numba.njit  # type: ignore[untyped-decorator]
def compiled_sum(x: Any, first: Any, second: Any, kinds: Any) -> Any:
    """A scalar of it."""
    return np.sum(np.sin(compiled_by_table(x, first, second, kinds)))


def random_table(seed: int) -> tuple[Any, Any, Any, Any]:
    """Arguments for it."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(5, 25))
    limits = SIZE + np.arange(count)
    return rng.uniform(-1.0, 1.0, SIZE), rng.integers(0, limits), rng.integers(0, limits), rng.integers(0, 5, count)
