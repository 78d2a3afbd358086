"""A simulation of sums over shards on a cluster: no cluster was there. Prints the tables of how-to/cluster.md.

    python docs/cluster_simulation.py

An evaluation is one visit to all shards, as `tapegrad.parallel.sum_over` makes it with Dask. The scheduler takes each task in turn,
and each result in turn; the variable goes to each task and a gradient of its size comes back, all through one link of the client.
Workers are alike, but for noise; now and then one is a straggler for the length of an evaluation. What one core does and what the
scheduler takes for a task were measured on a machine with two cores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

ROWS_A_SECOND = 30e6  # of eight columns by a core: examples/many_rows.py
TASK = 1.0e-3  # seconds of the scheduler for a task, there and back
LATENCY = 0.5e-3  # seconds
BANDWIDTH = 1.25e9  # bytes a second: a link of 10 Gbit/s
NOISE = 0.05  # of the logarithm of a worker's time
STRAGGLERS, SLOWER = 0.002, 4.0  # how often a worker is one in an evaluation, and how many times as long it takes
EVALUATIONS = 200


class Cluster(NamedTuple):
    """What is simulated."""

    workers: int
    rows: float = 1e9
    shards_each: int = 1
    variables: int = 8
    stragglers: float = STRAGGLERS


def seconds(cluster: Cluster, evaluations: int = EVALUATIONS, seed: int = 0) -> np.ndarray:
    """Seconds of each evaluation."""
    rng = np.random.default_rng(seed)
    return np.array([_evaluation(cluster, rng) for _ in range(evaluations)])


def _evaluation(cluster: Cluster, rng: np.random.Generator) -> float:
    workers, shards = cluster.workers, cluster.workers * cluster.shards_each
    transfer = 8.0 * cluster.variables / BANDWIDTH
    alone = cluster.rows / shards / ROWS_A_SECOND
    factors = np.exp(NOISE * rng.normal(size=workers)) * np.where(rng.uniform(size=workers) < cluster.stragglers, SLOWER, 1.0)
    sent = (np.arange(shards) + 1) * (0.5 * TASK + transfer) + LATENCY
    free = np.zeros(workers)
    done = np.empty(shards)
    for shard in range(shards):
        worker = shard % workers
        free[worker] = max(free[worker], sent[shard]) + alone * factors[worker]
        done[shard] = free[worker] + LATENCY
    client = sent[-1] - LATENCY  # which sends first
    for arrival in np.sort(done):
        client = max(client, arrival) + 0.5 * TASK + transfer
    return float(client)


def table(title: str, clusters: dict[str, Cluster]) -> str:
    """Times of clusters beside what they would be if nothing but the work took time."""
    lines = [f"| {title} | median | slowest of 20 | efficiency |", "|---|---|---|---|"]
    for name, cluster in clusters.items():
        found = seconds(cluster)
        ideal = cluster.rows / cluster.workers / ROWS_A_SECOND
        lines.append(
            f"| {name} | {duration(np.median(found))} | {duration(np.quantile(found, 0.95))} | {ideal / found.mean():.0%} |"
        )
    return "\n".join(lines)


def duration(value: float) -> str:
    """Three digits and a unit."""
    return f"{value:.3g} s" if value >= 1.0 else f"{1e3 * value:.3g} ms"


WORKERS = (1, 2, 8, 32, 128, 512)


def tables() -> list[str]:
    """All that the page shows."""
    return [
        table("cores, 10⁹ rows", {str(count): Cluster(count) for count in WORKERS}),
        table("the same without stragglers", {str(count): Cluster(count, stragglers=0.0) for count in WORKERS}),
        table(
            "512 cores, rows", {f"10{power}": Cluster(512, rows=rows) for power, rows in (("⁹", 1e9), ("¹⁰", 1e10), ("¹¹", 1e11))}
        ),
        table("128 cores, shards a core", {str(count): Cluster(128, shards_each=count) for count in (1, 4, 16)}),
        table("128 cores, variables", {f"{count:,}": Cluster(128, variables=count) for count in (8, 1_000, 100_000, 1_000_000)}),
    ]


if __name__ == "__main__":
    print("\n\n".join(tables()))
