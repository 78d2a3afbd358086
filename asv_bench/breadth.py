"""Every operation beside PyTorch's: forward and backward, microseconds, ratio, from the worst to the best.

``python asv_bench/breadth.py [--size 8 | 1000 | 100000] [--rounds N] [--only text]`` measures all operations that the tests have a
case of, and idioms that scripts are made of. The libraries are processes of their own, with one thread each, that take turns in
every round; a figure is the median of processor times. Where PyTorch is not installed, its columns are empty. An operation whose
values differ is marked.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import statistics
from typing import Any, NamedTuple

from benchmarks import breadth_operations
from benchmarks.breadth_operations import POINTS
from benchmarks.worker_process import Worker

SAMPLE = 0.004  # seconds; shorter calls are repeated


class Line(NamedTuple):
    """An operation and its medians, in seconds."""

    group: str
    name: str
    ours: float
    theirs: float  # nan where there is none
    remark: str

    @property
    def ratio(self) -> float:
        """How many times longer PyTorch takes."""
        return self.theirs / self.ours


def main() -> None:
    """Measure, and print the table and its summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="text", help="part of the names to measure, or of their groups")
    options = parser.parse_args()
    peers = ["torch"] if importlib.util.find_spec("torch") is not None else []
    if not peers:
        print("PyTorch is not installed here (make breadth installs it): no ratios")
    workers = {library: Worker(library, breadth_operations.__name__, options.size) for library in ("tapegrad", *peers)}
    lines = []
    for number, (group, name) in enumerate(workers["tapegrad"].names):
        if options.only in f"{group}: {name}":
            line = measured(workers, number, group, name, options.rounds)
            if line is not None:
                lines.append(line)
    for worker in workers.values():
        worker.end()
    table(lines)


def measured(workers: dict[str, Worker], number: int, group: str, name: str, rounds: int) -> Line | None:
    """One operation in all processes; None if there is nothing to differentiate."""
    present, remark = [], ""
    for point in range(POINTS):  # the first one where all libraries find the same
        ours = workers["tapegrad"].prepare(number, point)
        if "error" in ours:
            continue
        present, remark = ["tapegrad"], ""
        for library in workers.keys() - {"tapegrad"}:
            theirs = workers[library].prepare(number, point)
            if "error" in theirs:
                remark = f"not in PyTorch: {theirs['error']}"[:60]
                continue
            present.append(library)
            remark = "" if agree(ours["found"], theirs["found"]) else "other values"
        if not remark and all(math.isfinite(float(x)) for x in ours["found"]):
            break
    if not present:
        return None
    calls = {library: max(1, round(SAMPLE / workers[library].seconds(1))) for library in present}
    calls = {library: max(1, round(SAMPLE / workers[library].seconds(min(count, 20)))) for library, count in calls.items()}
    taken: dict[str, list[float]] = {library: [] for library in present}
    for _ in range(rounds):
        for library in present:
            taken[library].append(workers[library].seconds(calls[library]))
    medians = {library: statistics.median(times) for library, times in taken.items()}
    return Line(group, name, medians["tapegrad"], medians.get("torch", math.nan), remark)


def agree(some: list[str], others: list[str]) -> bool:
    """Whether numbers that two libraries found are the same up to rounding."""
    pairs = [(float(x), float(y)) for x, y in zip(some, others, strict=False)]
    return len(some) == len(others) and all(x == y or abs(x - y) <= 1e-6 * max(1.0, abs(x), abs(y)) or x != x for x, y in pairs)


def table(lines: list[Line]) -> None:
    """Operations with a ratio, from the worst; then those without; then groups."""
    with_ratio = sorted((line for line in lines if line.theirs == line.theirs), key=lambda line: line.ratio)
    rest = sorted((line for line in lines if line.theirs != line.theirs), key=lambda line: -line.ours)
    print(f"{'operation':58} {'tapegrad µs':>12} {'PyTorch µs':>11} {'ratio':>6}")
    for line in (*with_ratio, *rest):
        cells = f"{line.theirs * 1e6:11.1f} {line.ratio:6.2f}" if line.theirs == line.theirs else f"{'-':>11} {'-':>6}"
        print(f"{line.group + ': ' + line.name:58} {line.ours * 1e6:12.1f} {cells}  {line.remark}".rstrip())
    print()
    print(f"{'group':14} {'operations':>10} {'below 1':>8} {'worst':>6} {'median':>7} {'geometric mean':>15}")
    groups: dict[str, list[Any]] = {}
    for line in with_ratio:
        groups.setdefault(line.group, []).append(line.ratio)
    for name, ratios in (*sorted(groups.items()), ("all", [line.ratio for line in with_ratio])):
        if ratios:
            below = sum(ratio < 1.0 for ratio in ratios)
            figures = f"{min(ratios):6.2f} {statistics.median(ratios):7.2f} {statistics.geometric_mean(ratios):15.2f}"
            print(f"{name:14} {len(ratios):10d} {below:8d} {figures}")


if __name__ == "__main__":
    main()
