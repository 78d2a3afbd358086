"""Functions of a module, which other processes can import, for the tests of sums over shards."""

from __future__ import annotations

import os
from typing import Any

import numba
import numpy as np

import tapegrad as tg

RNG = np.random.default_rng(5)
POINTS, LABELS = RNG.normal(size=(60, 3)), np.sign(RNG.normal(size=60))
SHARDS = [(POINTS[k : k + 13], LABELS[k : k + 13]) for k in range(0, 60, 13)]


def loss(w: Any, x: Any, y: Any) -> Any:
    return np.log1p(np.exp(-y * (x @ w))).sum() + 0.01 * (w * w).sum() * len(y)


def whole(w: Any) -> Any:
    return loss(w, POINTS, LABELS)


def residual(w: Any, x: Any, y: Any) -> Any:
    return np.tanh(x @ w) - y


def of_container(p: Any, x: Any, y: Any) -> Any:
    return ((x @ p["w"] + p["b"] - y) ** 2).sum()


def whole_of_container(p: Any) -> Any:
    return of_container(p, POINTS, LABELS)


@numba.njit
def compiled(w, x, y):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(w.size):
            s += x[i, j] * w[j]
        total += (s - y[i]) ** 2
    return total


def second_shard() -> Any:
    return SHARDS[1]


def where_is_it(w: Any, number: int) -> Any:
    return (w * w).sum() * 0.0 + float(os.getpid())


def dies_once(w: Any, x: Any, y: Any, marker: str) -> Any:
    """Ends its process in the middle of a fit, once."""
    if not os.path.exists(marker) and abs(float(tg.stop_gradient(w)[0])) > 1e-6:
        with open(marker, "w"):
            os._exit(1)
    return loss(w, x, y)


def wavy(x: Any) -> Any:
    return np.cos(3.0 * x[0]) + 0.1 * x[0] ** 2


def wavy_residual(x: Any) -> Any:
    return np.stack([np.sin(2.0 * x[0]) + 0.3 * x[0], 0.1 * (x[0] - 3.0)])


@tg.program
def wave(p: Any, scale: Any = 1.0) -> Any:
    u = np.tanh(p[0] * p[1] + p[2])
    return scale * (np.exp(-u * u) / (1.0 + p * p)).sum()


@tg.program(fuse=False)
def two_ways(p: Any) -> Any:
    return (p * p).sum() if p[0] > 0.0 else np.sin(p[1]) * p[2]


@tg.program
def refuses_the_fifth(p: Any) -> Any:
    if p[0] == 5.0:
        raise ValueError("no fifth")
    return (p * p).sum()
