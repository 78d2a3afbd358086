"""Whole problems beside PyTorch and autograd: milliseconds of a call for value and gradient, or for the Jacobian.

``python asv_bench/problems.py [--rounds N] [--only text] [--markdown]``. The libraries are processes of their own, with one thread
each, that take turns in every round; a figure is the median of processor times. What is not installed has no column.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import statistics

from benchmarks import problems
from benchmarks.worker_process import Worker
from breadth import agree

SAMPLE = 0.05  # seconds; shorter calls are repeated


def options_of(text: str | None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", metavar="text", help="part of the names to measure")
    parser.add_argument("--markdown", action="store_true", help="print rows as the README has them")
    return parser.parse_args()


def print_table(module: str, title: str, peers: list[str], options: argparse.Namespace) -> None:
    """Measure the operations of a module of benchmarks, and print a line for each.

    Parameters
    ----------
    module : str
        Its name, for `Worker`.
    title : str
        What its operations are.
    peers : list of str
        Libraries beside tapegrad, of which those that are not installed are left out.
    options : argparse.Namespace
        What `options_of` gave.
    """
    peers = [library for library in peers if importlib.util.find_spec(library) is not None]
    workers = {library: Worker(library, module, 0) for library in ("tapegrad", *peers)}
    if options.markdown:
        print(f"| {title} | " + " | ".join(workers) + " |\n" + "|---" * (1 + len(workers)) + "|")
    else:
        ratios = "".join(f"{library + ' / ours':>16}" for library in peers)
        print(f"{title:46}" + "".join(f"{library:>10}" for library in workers) + ratios)
    for number, (_, name) in enumerate(workers["tapegrad"].names):
        if options.only not in name:
            continue
        found = {library: worker.prepare(number, 0) for library, worker in workers.items()}
        present = [library for library in workers if "found" in found[library]]
        calls = {library: max(1, round(SAMPLE / workers[library].seconds(1))) for library in present}
        taken: dict[str, list[float]] = {library: [] for library in present}
        for _ in range(options.rounds):
            for library in present:
                taken[library].append(workers[library].seconds(calls[library]))
        medians = {library: statistics.median(taken[library]) if library in taken else math.nan for library in workers}
        if options.markdown:
            cells = ["-" if math.isnan(medians[library]) else f"{1e3 * medians[library]:.3g}" for library in workers]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
            continue
        row = "".join(f"{1e3 * medians[library]:10.3f}" for library in workers)
        ratios = "".join(f"{medians[library] / medians['tapegrad']:16.2f}" for library in peers)
        differs = [library for library in present if not agree(found["tapegrad"]["found"], found[library]["found"])]
        failed = [f"{library}: {found[library]['error']}" for library in workers if library not in present]
        print(
            f"{name:46}{row}{ratios}" + "".join(f"  other values: {library}" for library in differs) + "  ".join(["", *failed]),
            flush=True,
        )
    for worker in workers.values():
        worker.end()


def main() -> None:
    """Measure, and print the table."""
    print_table(problems.__name__, "problem", ["torch", "autograd"], options_of(__doc__))


if __name__ == "__main__":
    main()
