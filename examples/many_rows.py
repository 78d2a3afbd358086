"""Fit a logistic regression to rows that the workers make themselves, with one process and with two.

No row passes through this process: a shard is a function that makes it where it is to live. The solutions have the same bits, since
parts are added in the order of the shards whoever computed them. What two gain is that of the fastest calls of each, in turns;
where other programs use the cores, two processes get no more than one, and the load that is printed says so.

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

# A worker for each core: threads of matrix products inside of each would take the cores from each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

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


def sum_of_shards(rows: int, executor: ProcessPoolExecutor) -> Any:
    """The loss of all rows, once the workers have made them."""
    shards = [functools.partial(make_shard, number, rows // SHARDS) for number in range(SHARDS)]
    total = tg.parallel.sum_over(loss, shards, executor)
    for _ in range(3):  # until every worker has what it is asked for
        total.value_and_grad(np.zeros(COLUMNS))
    return total


def fastest(totals: list[Any], rounds: int) -> list[float]:
    """Seconds of the fastest gradient of each, in turns."""
    taken: list[list[float]] = [[] for _ in totals]
    for _ in range(rounds):
        for total, own in zip(totals, taken, strict=True):
            begun = time.perf_counter()
            total.value_and_grad(np.zeros(COLUMNS))
            own.append(time.perf_counter() - begun)
    return [min(own) for own in taken]


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    print(f"{rows:,} rows of {COLUMNS} columns in {SHARDS} shards, {os.cpu_count()} cores")
    context = get_context("forkserver")
    with ProcessPoolExecutor(1, context) as one, ProcessPoolExecutor(2, context) as two:
        totals = [sum_of_shards(rows, executor) for executor in (one, two)]
        slow, fast = fastest(totals, 20)
        alone, together = (tg.optimize.minimize(total, np.zeros(COLUMNS), method="L-BFGS-B") for total in totals)
    for processes, seconds in ((1, slow), (2, fast)):
        speed = rows / seconds / 1e6
        print(f"processes {processes}: {1e3 * seconds:.1f} ms for value and gradient, {speed:.0f} million rows a second")
    load = f"; {os.getloadavg()[0]:.1f} processes wanted a core meanwhile" if hasattr(os, "getloadavg") else ""
    print(f"two are {slow / fast:.2f} times as fast as one{load}")
    print(f"fit: {together.history[-1].evaluations} evaluations, loss {together.fun:.6f}")
    print("same bits:", alone.x.tobytes() == together.x.tobytes())
    print(f"largest error of the weights: {np.abs(alone.x - TRUTH).max():.4f}")


if __name__ == "__main__":
    main()
