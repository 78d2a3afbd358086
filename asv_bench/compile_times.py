"""Print how long derivatives of new compiled functions take to compile, as multiples of Numba's own time for the function.

Run it with ``python asv_bench/compile_times.py [names] [--rounds N]``. One process is warmed: a function of numbers and one of
arrays were called and differentiated in it. It forks a child for each function and order, which calls the function for the first
time and then its derivative; so nothing that one function compiles is there for another one, and both sides find the same.
Processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
from benchmarks.compile_functions import Body, bodies

import tapegrad as tg

LIMITS = {"gradient": 1.5, "Hessian": 2.5}


class Times(NamedTuple):
    """Processor seconds of two first calls."""

    function: float
    derivative: float


def main() -> None:
    """One line a function, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="where to write the ratios")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        warm()
        table = bodies(Path(folder))
        ratios = {
            name: line(name, body, options.rounds) for name, body in table.items() if not options.names or name in options.names
        }
    print("| geometric mean; largest | |", " | ".join(summary([r[order] for r in ratios.values()]) for order in LIMITS), "|")
    for order, limit in LIMITS.items():
        above = [name for name, ratio in ratios.items() if ratio[order] > limit]
        print(f"{order}: {len(ratios) - len(above)} of {len(ratios)} take at most {limit} times as long; above: {above}")
    if options.json:
        options.json.write_text(json.dumps(ratios, indent=1))


def warm() -> None:
    """What the first derivatives of a process load, and Numba's own first functions."""
    point = np.ones(3)
    for function, x in ((numba.njit(lambda x: x * x), 1.0), (numba.njit(lambda x: x[0] * x[1]), point)):
        function(x)
        tg.grad(function)(x)
        tg.hessian(function)(x)


def line(name: str, body: Body, rounds: int) -> dict[str, float]:
    """Medians of one function, printed; its ratios by order."""
    taken = {order: [forked(lambda order=order: first_calls(body, order)) for _ in range(rounds)] for order in LIMITS}
    plain = statistics.median(times.function for found in taken.values() for times in found)
    cells = {order: statistics.median(times.derivative for times in found) for order, found in taken.items()}
    ratios = {order: statistics.median(t.derivative / t.function for t in found) for order, found in taken.items()}
    shown = " | ".join(f"{cells[order]:.3f} s ({ratios[order]:.2f})" for order in LIMITS)
    print(f"| {name} | {plain:.3f} s | {shown} |", flush=True)
    return ratios


def first_calls(body: Body, order: str) -> Times:
    """Times of the function and of one of its derivatives, neither of which was called before."""
    driver = tg.value_and_grad if order == "gradient" else tg.hessian
    derivative = driver(body.function, argnums=body.argnums)
    with tempfile.TemporaryDirectory() as kept:
        numba.config.CACHE_DIR = kept
        start = time.process_time()
        body.function(*body.args)
        between = time.process_time()
        derivative(*body.args)
        return Times(between - start, time.process_time() - between)


def forked(measured: Callable[[], Times]) -> Times:
    """What a function returns in a child of this process."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writer, json.dumps(measured()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return Times(*json.loads(text))


def summary(ratios: list[float]) -> str:
    """Geometric mean and maximum."""
    return f"{statistics.geometric_mean(ratios):.2f}; {max(ratios):.2f}"


if __name__ == "__main__":
    main()
