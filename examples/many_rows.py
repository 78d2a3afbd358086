"""Fit a logistic regression to rows that the workers make themselves, with one process and with two.

No row passes through this process: a shard is a function that makes it where it is to live. The solutions have the same bits, since
parts are added in the order of the shards whoever computed them.

Run it with ``python examples/many_rows.py``, or with ``python examples/many_rows.py 10_000_000`` for another number of rows. It
needs SciPy, which ``pip install 'tapegrad[examples]'`` installs.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

import tapegrad as tg

COLUMNS, SHARDS = 8, 20
TRUTH = np.linspace(-1.0, 1.0, COLUMNS)


def make_shard(number: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels that belong to a number."""
    rng = np.random.default_rng(number)
    points = rng.normal(size=(rows, COLUMNS))
    return points, np.where(rng.uniform(size=rows) < 1.0 / (1.0 + np.exp(-points @ TRUTH)), 1.0, -1.0)


def loss(w: Any, points: np.ndarray, labels: np.ndarray) -> Any:
    """Negative logarithm of the likelihood of a shard."""
    return np.logaddexp(0.0, -labels * (points @ w)).sum()


def fit(rows: int, processes: int) -> tuple[Any, float]:
    """The solution with so many processes, and the seconds that it took once the shards were there."""
    shards = [functools.partial(make_shard, number, rows // SHARDS) for number in range(SHARDS)]
    with ProcessPoolExecutor(processes, mp_context=get_context("forkserver")) as executor:
        total = tg.parallel.sum_over(loss, shards, executor)
        total.value_and_grad(np.zeros(COLUMNS))
        begun = time.perf_counter()
        return tg.optimize.minimize(total, np.zeros(COLUMNS), method="L-BFGS-B"), time.perf_counter() - begun


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
    print(f"{rows:,} rows of {COLUMNS} columns in {SHARDS} shards, {os.cpu_count()} cores")
    (alone, slow), (together, fast) = fit(rows, 1), fit(rows, 2)
    for count, result, seconds in ((1, alone, slow), (2, together, fast)):
        entry = result.history[-1]
        print(f"processes {count}: {seconds:6.2f} s, {entry.evaluations} evaluations, loss {entry.objective:.6f}")
    print(f"two are {slow / fast:.2f} times as fast as one")
    print("same bits:", alone.x.tobytes() == together.x.tobytes())
    print(f"largest error of the weights: {np.abs(alone.x - TRUTH).max():.4f}")


if __name__ == "__main__":
    main()
