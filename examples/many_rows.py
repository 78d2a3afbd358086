"""Fit a logistic regression to rows that the workers make themselves, with one process and with two.

No row passes through this process: a shard is a function that makes it where it is to live. The solutions have the same bits, since
parts are added in the order of the shards whoever computed them. What two processes gain is said twice: by the clock, which depends
on what else uses the cores, and by processor time: what two take more than one is lost to memory and caches that they share.

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

COLUMNS, SHARDS, ROUNDS = 8, 20, 20
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


def own_seconds() -> tuple[int, float]:
    """Which worker this is, and the processor time that it has taken; it waits, so that each worker is asked once."""
    time.sleep(0.3)
    return os.getpid(), time.process_time()


def of_workers(executor: ProcessPoolExecutor, count: int) -> dict[int, float]:
    """Processor time of each worker."""
    asked = [executor.submit(own_seconds) for _ in range(count)]
    return dict(task.result() for task in asked)


def measure(totals: list[Any], rounds: int) -> list[float]:
    """Seconds of the fastest value and gradient of each, in turns."""
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
        pools = {1: one, 2: two}
        totals = [sum_of_shards(rows, executor) for executor in pools.values()]
        before = {count: of_workers(executor, count) for count, executor in pools.items()}
        clock = measure(totals, ROUNDS)
        after = {count: of_workers(executor, count) for count, executor in pools.items()}
        alone, together = (tg.optimize.minimize(total, np.zeros(COLUMNS), method="L-BFGS-B") for total in totals)
    processor = [sum(after[n][pid] - before[n].get(pid, 0.0) for pid in after[n]) / ROUNDS for n in pools]
    print("value and gradient:")
    for count, seconds, own in zip(pools, clock, processor, strict=True):
        print(f"processes {count}: {1e3 * seconds:6.1f} ms by the clock, {1e3 * own:6.1f} ms of processors")
    load = f", while {os.getloadavg()[0]:.1f} processes wanted a core" if hasattr(os, "getloadavg") else ""
    print(f"two are {clock[0] / clock[1]:.2f} times as fast by the clock{load}")
    print(f"two take {processor[1] / processor[0]:.2f} times the processor time of one")
    print(f"fit: {together.history[-1].evaluations} evaluations, loss {together.fun:.6f}")
    print("same bits:", alone.x.tobytes() == together.x.tobytes())
    print(f"largest error of the weights: {np.abs(alone.x - TRUTH).max():.4f}")


if __name__ == "__main__":
    main()
