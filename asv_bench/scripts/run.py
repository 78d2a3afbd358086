"""Twelve optimisation scripts, from ``python script.py`` to the answer, beside the same with peers that are installed.

``python asv_bench/scripts/run.py [names] [--runs N] [--forms tapegrad scipy ...] [--processor]`` prints the median of N fresh
processes for each form, taken in turns after one that fills the caches on disk, in seconds, and how many times longer the fastest
peer takes than the fastest form of ours. Every process must find the known minimum. All are on one core and one thread;
``--processor`` counts processor time instead, which other processes on the machine disturb less.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.script_process import FORMS, measure, problems

OURS = ("tapegrad", "tapegrad compiled")


def main() -> None:
    """The table, row by row as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*problems(), []], metavar="name", help=", ".join(problems()))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS, metavar="form", help=", ".join(FORMS))
    parser.add_argument("--processor", action="store_true")
    options = parser.parse_args()
    print("| script | " + " | ".join(options.forms) + " | fastest peer / tapegrad |")
    print("|---" * (2 + len(options.forms)) + "|")
    ratios = defaultdict(list)
    for problem in options.names or problems():
        medians = medians_of(problem, options.forms, options.runs, options.processor)
        cells = [f"{medians[form]:.2f}" if form in medians else "-" for form in options.forms]
        ours = min((medians[form] for form in OURS if form in medians), default=math.nan)
        peers = {form: medians[form] for form in medians if form not in OURS}
        for form, seconds in peers.items():
            ratios[form].append(seconds / ours)
        fastest = min(peers.values(), default=math.nan) / ours
        ratios["fastest"].append(fastest)
        print(f"| {problem} | " + " | ".join(cells) + f" | {fastest:.2f} |", flush=True)
    means = [f"{statistics.geometric_mean(ratios[form]):.2f}x" if form in ratios else "" for form in (*options.forms, "fastest")]
    print("| geometric mean of a peer / tapegrad | " + " | ".join(means) + " |")


def medians_of(problem: str, wanted: list[str], runs: int, processor: bool) -> dict[str, float]:
    """Seconds of each form whose library is installed; the first process of each is not counted."""
    taken = defaultdict(list)
    present = []
    for form in wanted:
        try:
            measure(problem, form)
        except NotImplementedError:
            continue
        present.append(form)
    for _ in range(runs):
        for form in present:
            cost = measure(problem, form)
            taken[form].append(cost.processor if processor else cost.elapsed)
    return {form: statistics.median(seconds) for form, seconds in taken.items()}


if __name__ == "__main__":
    main()
