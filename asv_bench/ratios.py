"""Print the table of workloads in docs/speed.md: every workload for tapegrad and its peers, in one run.

Run it with ``python asv_bench/ratios.py [--rounds N] [--only W1]``; ``make table TABLES=workloads`` writes it there. The
libraries take turns in every round, on one core, after a call that is not counted. A cell is the median over the rounds, and in
brackets how many times longer than tapegrad that is.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.fresh_process import measure
from benchmarks.tape_memory import bytes_a_row
from benchmarks.workloads import LIBRARIES, PHASES, STEPS, Phases, Step, Workload, build

Medians = dict[str, float]

SHORTEST_SAMPLE = 0.02  # seconds; shorter calls are repeated


def main() -> None:
    """The table, row by row as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", metavar="text", help="part of the names of workloads to measure")
    options = parser.parse_args()
    print("| # | workload | " + " | ".join(LIBRARIES) + " |")
    print("|---" * (2 + len(LIBRARIES)) + "|")
    for name, title, medians in rows(options.rounds, options.only):
        print(f"| {name} | {title} | " + " | ".join(cell(medians, library) for library in LIBRARIES) + " |", flush=True)
    if options.only in "W10":
        print(f"| W10 | tape bytes a scalar operation | {bytes_a_row():.1f} |" + " |" * (len(LIBRARIES) - 1))


def rows(rounds: int, only: str = "") -> Iterator[tuple[str, str, Medians]]:
    """Name, title and medians in seconds, of every line that is a time."""
    for key, workload in sorted({**STEPS, **PHASES}.items()):
        name = key.split()[0]
        if only not in key:
            continue
        built = everywhere(workload)
        if key in STEPS:
            yield name, workload.title, scaled(steps(built, rounds), workload.operations)
        else:
            for phase, medians in phases(built, rounds).items():
                yield name, f"{workload.title}: {phase}", scaled(medians, workload.operations)
        built.clear()
        gc.collect()
    if only in "W8":
        yield from starts(max(3, rounds // 2))


def steps(built: dict[str, Step], rounds: int) -> Medians:
    """One call each in turn, repeated within a sample if it is short."""
    calls = {}
    for library, step in built.items():
        step()
        calls[library] = max(1, round(SHORTEST_SAMPLE / timed(step)))
    samples = defaultdict(list)
    for _ in range(rounds):
        for library, step in built.items():
            samples[library].append(timed(step, calls[library]))
    return {library: statistics.median(times) for library, times in samples.items()}


def phases(built: dict[str, Phases], rounds: int) -> dict[str, Medians]:
    """Record and sweep apart; the first round is the warm-up."""
    samples = {"record": defaultdict(list), "sweep": defaultdict(list)}
    for turn in range(rounds + 1):
        for library, phase in built.items():
            record, sweep = timed(phase.record), timed(phase.sweep)
            phase.release()
            if turn:
                samples["record"][library].append(record)
                samples["sweep"][library].append(sweep)
    return {name: {lib: statistics.median(times) for lib, times in taken.items()} for name, taken in samples.items()}


def starts(rounds: int) -> Iterator[tuple[str, str, Medians]]:
    """Fresh processes; the first of each library fills its disk caches and is not counted."""
    present = [library for library in LIBRARIES if attempt(measure, library) is not None]
    taken = defaultdict(list)
    numpy, cold = [], []
    for _ in range(rounds):
        numpy.append(measure("numpy").importing)
        for library in present:
            taken[library].append(measure(library))
        with tempfile.TemporaryDirectory() as cache:
            cold.append(measure("tapegrad", cache).first_gradient)
    base = statistics.median(numpy)
    yield (
        "W8",
        f"fresh process: import, over the {base * 1e3:.0f} ms of `import numpy`",
        {library: statistics.median(cost.importing for cost in costs) - base for library, costs in taken.items()},
    )
    yield (
        "W8",
        "fresh process: first gradient, after the import",
        {library: statistics.median(cost.first_gradient for cost in costs) for library, costs in taken.items()},
    )
    yield "W8", "the same without the built engine, and with no compiled code on disk", {"tapegrad": statistics.median(cold)}


def timed(step: Callable[[], object], calls: int = 1) -> float:
    """Seconds a call, with the collector off as in `timeit`."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(calls):
            step()
        return (time.perf_counter() - start) / calls
    finally:
        gc.enable()


def everywhere(workload: Workload) -> dict[str, Any]:
    """The workload for every library that is there."""
    built = {library: attempt(build, workload, library) for library in LIBRARIES}
    return {library: run for library, run in built.items() if run is not None}


def attempt(function: Callable[..., Any], *arguments: object) -> Any:
    """The function's value, None where the library is missing or left out."""
    try:
        return function(*arguments)
    except NotImplementedError:
        return None


def scaled(medians: Medians, operations: int) -> Medians:
    """Seconds an operation."""
    return {library: seconds / operations for library, seconds in medians.items()}


def cell(medians: Medians, library: str) -> str:
    """``1.2 µs (3.4x)``; a dash where there is no measurement."""
    if library not in medians:
        return "-"
    text = duration(medians[library])
    if library == "tapegrad" or "tapegrad" not in medians or medians["tapegrad"] <= 0:
        return text
    return f"{text} ({medians[library] / medians['tapegrad']:.3g}x)"


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


if __name__ == "__main__":
    main()
