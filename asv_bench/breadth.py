"""Every operation beside PyTorch's: forward and backward, microseconds, ratio, from the worst to the best.

``python asv_bench/breadth.py [--size 8 | 1000 | 100000] [--second] [--rounds N] [--only text] [--markdown]`` measures all
operations that the tests have a case of, and idioms; with ``--second`` the second derivatives of those that are not
linear. The libraries are processes of their own, with one thread each, that take turns in every round; a figure is the median of
processor times. Where PyTorch is not installed, its columns are empty. An operation whose values differ is marked. A case that
cannot be made larger is measured at its own point, listed behind the others, and not counted.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import statistics
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks import breadth_operations, second_order_operations
from benchmarks.breadth_operations import POINTS, SCRIPT
from benchmarks.worker_process import Worker

SAMPLE = 0.004  # seconds; shorter calls are repeated
OTHER_VALUES = "other values"


class Line(NamedTuple):
    """An operation and its medians, in seconds."""

    group: str
    name: str
    ours: float
    theirs: float  # nan where there is none
    remark: str
    small: bool  # whether it is measured at a case's own point instead of one of the size

    @property
    def ratio(self) -> float:
        """How many times longer PyTorch takes."""
        return self.theirs / self.ours


def main() -> None:
    """Measure, and print the table and its summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--second", action="store_true", help="forward, a recorded gradient, and backward through that")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="text", help="part of the names to measure, or of their groups")
    parser.add_argument("--markdown", action="store_true", help="print the groups as docs/speed.md has them")
    options = parser.parse_args()
    peers = ["torch"] if importlib.util.find_spec("torch") is not None else []
    if not peers:
        print("PyTorch is not installed here (make breadth installs it): no ratios")
    module = second_order_operations if options.second else breadth_operations
    workers = {library: Worker(library, module.__name__, options.size) for library in ("tapegrad", *peers)}
    lines = []
    for number, (group, name) in enumerate(workers["tapegrad"].names):
        if options.only in f"{group}: {name}":
            line = measured(workers, number, (group, name), options)
            if line is not None:
                lines.append(line)
    for worker in workers.values():
        worker.end()
    (markdown if options.markdown else table)(lines)


def measured(workers: dict[str, Worker], number: int, names: tuple[str, str], options: argparse.Namespace) -> Line | None:
    """One operation in all processes; None if there is nothing to differentiate."""
    kinds: dict[str, int] = {}  # the first point of each kind, by what is to be remarked on it
    for point in range(POINTS):
        found = {library: worker.prepare(number, point) for library, worker in workers.items()}
        if "error" in found["tapegrad"]:
            continue
        remark = compared(found)
        if not remark and not all(math.isfinite(float(x)) for x in found["tapegrad"]["found"]):
            remark = "not finite"
        kinds.setdefault(remark, point)
        if not remark:
            break
    if not kinds:
        return None
    remark, point = min(kinds.items(), key=lambda kind: (kind[0] != "", kind[0] != "not finite", kind[0] != OTHER_VALUES, kind[1]))
    present = [library for library, worker in workers.items() if "error" not in worker.prepare(number, point)]
    calls = {library: max(1, round(SAMPLE / workers[library].seconds(1))) for library in present}
    calls = {library: max(1, round(SAMPLE / workers[library].seconds(min(count, 20)))) for library, count in calls.items()}
    taken: dict[str, list[float]] = {library: [] for library in present}
    for _ in range(options.rounds):
        for library in present:
            taken[library].append(workers[library].seconds(calls[library]))
    medians = {library: statistics.median(times) for library, times in taken.items()}
    small = options.size > SCRIPT and point == POINTS - 1
    return Line(*names, medians["tapegrad"], medians.get("torch", math.nan), remark, small)


def compared(found: dict[str, dict[str, Any]]) -> str:
    """What is to be remarked on answers of all libraries at one point."""
    for answer in found.values():
        if "error" in answer:
            return f"not in PyTorch: {answer['error']}"[:60]
        if not agree(found["tapegrad"]["found"], answer["found"]):
            return OTHER_VALUES
    return ""


def agree(some: list[str], others: list[str]) -> bool:
    """Whether numbers that two libraries found are the same up to rounding."""
    pairs = [(float(x), float(y)) for x, y in zip(some, others, strict=False)]
    return len(some) == len(others) and all(x == y or abs(x - y) <= 1e-6 * max(1.0, abs(x), abs(y)) or x != x for x, y in pairs)


def table(lines: list[Line]) -> None:
    """Operations with a ratio, from the worst; then those without, and those that were not made larger; then groups."""
    with_ratio = sorted((line for line in lines if line.theirs == line.theirs), key=lambda line: line.ratio)
    of_size = [line for line in with_ratio if not line.small]
    small = [line for line in with_ratio if line.small]
    rest = sorted((line for line in lines if line.theirs != line.theirs), key=lambda line: -line.ours)
    print(f"{'operation':58} {'tapegrad µs':>12} {'PyTorch µs':>11} {'ratio':>6}")
    for line in (*of_size, *small, *rest):
        cells = f"{line.theirs * 1e6:11.1f} {line.ratio:6.2f}" if line.theirs == line.theirs else f"{'-':>11} {'-':>6}"
        remark = ", ".join(part for part in ("at its own point" if line.small else "", line.remark) if part)
        print(f"{line.group + ': ' + line.name:58} {line.ours * 1e6:12.1f} {cells}  {remark}".rstrip())
    print()
    print(f"{'group':14} {'operations':>10} {'below 1':>8} {'worst':>6} {'median':>7} {'geometric mean':>15}")
    for name, count, below, *figures in groups(of_size):
        print(f"{name:14} {count:10d} {below:8d} {figures[0]:6.2f} {figures[1]:7.2f} {figures[2]:15.2f}")


def markdown(lines: list[Line]) -> None:
    """The groups alone."""
    print("| group | operations | slower than PyTorch | worst | median | geometric mean |\n|---|---|---|---|---|---|")
    for name, count, below, *figures in groups([line for line in lines if line.ratio == line.ratio and not line.small]):
        print(f"| {name} | {count} | {below} | " + " | ".join(f"{figure:.2f}" for figure in figures) + " |")


def groups(lines: list[Line]) -> Iterator[tuple[str, int, int, float, float, float]]:
    """Of each group and of all: how many operations, how many are slower than PyTorch's, the least ratio and its means."""
    found: dict[str, list[float]] = {}
    for line in lines:
        found.setdefault(line.group, []).append(line.ratio)
    for name, ratios in (*sorted(found.items()), ("all", [line.ratio for line in lines])):
        if ratios:
            below = sum(ratio < 1.0 for ratio in ratios)
            yield name, len(ratios), below, min(ratios), statistics.median(ratios), statistics.geometric_mean(ratios)


if __name__ == "__main__":
    main()
