"""Say what a change did to benchmarks, and with which noise.

``python asv_bench/compare.py --base main --bench '^eager'`` (``make bench-compare BASE=main BENCHMARKS='^eager'``) measures the
benchmarks of this checkout on its own code and on that of another commit. Each round is three processes, whose order changes: the
base, the change, and the base once more. A ratio is that of the two in a round, so that what slows the machine for seconds slows
both. The second measurement of the base says what the machine does by itself: no difference is reported that is not far outside
of that. Peers are left out, and so is ``peakmem_``, which `asv run` measures.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import io
import itertools
import json
import os
import pkgutil
import re
import shutil
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from conditions import conditions
from result_pages import quantity

ROOT = Path(__file__).parents[1]
PEERS = {"torch", "jax", "autograd", "casadi", "scipy", "differences", "by hand"}
SAMPLES, SHORTEST = 5, 0.01  # of a figure in one process; seconds, for which shorter calls are repeated
FAR = 3.0  # times the machine's own noise


class Difference(NamedTuple):
    """What a change did to one benchmark."""

    name: str
    unit: str
    before: float
    after: float
    ratio: float  # after / before: the median of the rounds
    low: float
    high: float
    noise: float  # of the same code measured twice: the median distance of the ratio from one

    @property
    def verdict(self) -> str:
        """Whether it is more than noise."""
        if not (self.low > 1.0 or self.high < 1.0) or abs(self.ratio - 1.0) <= FAR * self.noise:
            return ""
        if self.unit == "x":  # how many times longer others take
            return "better" if self.ratio > 1.0 else "worse"
        return "slower" if self.ratio > 1.0 else "faster"


def main() -> None:
    """Measure both, and print a line for each benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="main", help="commit to compare with")
    parser.add_argument("--bench", default=".", metavar="pattern", help="regular expression for the names of benchmarks")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--fail", action="store_true", help="end with an error if something is slower")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps({name: [value, unit] for name, value, unit in figures(options.bench)}))
        return
    commit = resolved(options.base)
    base = checkout(commit)
    print(f"{conditions()}\nratio: this checkout / {options.base} ({commit[:10]}), median and range of {options.rounds} rounds")
    taken = rounds(base, ROOT / "src", options.bench, options.rounds)
    if not taken[0]["base"]:
        sys.exit(f"no benchmark's name matches {options.bench!r}")
    differences = compared(taken)
    print_table(differences)
    if options.fail and any(one.verdict in ("slower", "worse") for one in differences):
        sys.exit(1)


# The other commit.


def resolved(base: str) -> str:
    """The hash of a commit, also of a branch that only the remote has: a fresh clone has no other ones."""
    for name in (base, f"origin/{base}"):
        command = ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.strip()
    sys.exit(f"there is no commit {base!r}: choose another with BASE=")


def checkout(commit: str, folder: Path = ROOT / ".asv" / "compared") -> Path:
    """The sources of a commit with an engine of their own; this checkout's, if that was made from the same."""
    source = folder / commit / "src"
    if not source.exists():
        archive = subprocess.check_output(["git", "-C", str(ROOT), "archive", "--format=zip", commit, "src"])
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            files.extractall(folder / commit)
    compiled = source / "tapegrad" / "compiled"
    own = ROOT / "src" / "tapegrad" / "compiled"
    if not compiled.exists() and own.exists():
        shutil.copytree(own, compiled)
    question = "from tapegrad.kernels import library; print(library.why_compiled() or '')"
    if child(source, "-c", question).strip():
        print(f"The engine of {commit[:10]} differs: it is built once, which takes minutes", flush=True)
        child(source, "-m", "tapegrad.library_build")
    return source


def child(source: Path, *words: str) -> str:
    """What a process prints that imports the package from a folder."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed with the package of {source}:\n{done.stderr}")
    return done.stdout


# Measuring.


def rounds(base: Path, change: Path, pattern: str, count: int) -> list[dict[str, dict[str, Any]]]:
    """Figures of base, change and base again, of every round; each is first as often as the others."""
    turns = {"base": base, "change": change, "again": base}
    orders = itertools.cycle(itertools.permutations(turns))
    words = (str(Path(__file__).resolve()), "--measure", "--bench", pattern)
    taken = []
    for _ in range(count):
        found = {name: json.loads(child(turns[name], *words).splitlines()[-1]) for name in next(orders)}
        taken.append(found)
    return taken


def figures(pattern: str) -> Iterator[tuple[str, float, str]]:
    """Name, value and unit of every benchmark whose name matches, in this process."""
    for name, make in benchmarks():
        if not re.search(pattern, name):
            continue
        try:
            value, unit = make()
        except NotImplementedError:
            continue  # something is not installed
        if value == value:
            yield name, value, unit


def benchmarks() -> Iterator[tuple[str, Callable[[], tuple[float, str]]]]:
    """Names as asv has them, with their parameters, and what measures them."""
    package = importlib.import_module("benchmarks")
    for module in pkgutil.iter_modules(package.__path__):
        content = vars(importlib.import_module(f"benchmarks.{module.name}"))
        for kind in content.values():
            if inspect.isclass(kind) and kind.__module__ == f"benchmarks.{module.name}":
                yield from of_class(f"{module.name}.{kind.__name__}", kind)


def of_class(name: str, kind: Any) -> Iterator[tuple[str, Callable[[], tuple[float, str]]]]:
    """The methods of a class of benchmarks, at each of their parameters but peers."""
    params = getattr(kind, "params", ())
    lists = params if params and isinstance(params[0], list | tuple) else [params] if params else []
    for method in dir(kind):
        if not method.startswith(("time_", "track_")):
            continue
        for chosen in itertools.product(*lists):
            if not PEERS & set(map(str, chosen)):
                told = f"({', '.join(map(repr, chosen))})" if chosen else ""
                yield f"{name}.{method}{told}", lambda method=method, chosen=chosen: measured(kind(), method, chosen)


def measured(benchmark: Any, method: str, chosen: tuple[Any, ...]) -> tuple[float, str]:
    """One figure, with its unit."""
    setup, run = getattr(benchmark, "setup", None), getattr(benchmark, method)
    if setup:
        setup(*chosen)
    if method.startswith("track_"):
        return float(run(*chosen)), getattr(run, "unit", getattr(benchmark, "unit", ""))
    single = getattr(benchmark, "number", 0) == 1
    calls = 1 if single else max(1, round(SHORTEST / max(seconds(run, chosen, 1), 1e-7)))
    taken = []
    for turn in range(SAMPLES):
        if single and setup and turn:
            setup(*chosen)
        taken.append(seconds(run, chosen, calls))
    return statistics.median(taken), "seconds"


def seconds(run: Callable[..., object], chosen: tuple[Any, ...], calls: int) -> float:
    """Of a call."""
    begun = time.perf_counter()
    for _ in range(calls):
        run(*chosen)
    return (time.perf_counter() - begun) / calls


# What is said of it.


def compared(taken: Sequence[dict[str, dict[str, Any]]]) -> list[Difference]:
    """Every benchmark that both commits have, the largest differences first."""
    found = []
    for name, (_, unit) in taken[0]["base"].items():
        if not all(name in one[turn] and one[turn][name][0] > 0.0 for one in taken for turn in ("base", "change", "again")):
            continue
        before, after, again = ([one[turn][name][0] for one in taken] for turn in ("base", "change", "again"))
        ratios = [a / b for a, b in zip(after, before, strict=True)]
        noise = statistics.median(abs(a / b - 1.0) for a, b in zip(again, before, strict=True))
        medians = statistics.median(before), statistics.median(after)
        found.append(Difference(name, unit, *medians, statistics.median(ratios), min(ratios), max(ratios), noise))
    return sorted(found, key=lambda one: (not one.verdict, -abs(one.ratio - 1.0)))


def print_table(differences: Sequence[Difference]) -> None:
    """A line each, and how many differ."""
    print(f"{'before':>10}{'after':>10}{'ratio':>7}{'range':>13}{'noise':>8}  {'':7} benchmark")
    for one in differences:
        print(
            f"{quantity(one.before, one.unit):>10}{quantity(one.after, one.unit):>10}{one.ratio:7.2f}"
            f"{one.low:7.2f}-{one.high:.2f}{100 * one.noise:7.1f}%  {one.verdict:7} {one.name}"
        )
    told = [f"{sum(one.verdict == word for one in differences)} {word}" for word in ("slower", "worse", "faster", "better")]
    print(f"{len(differences)} benchmarks: {', '.join(told)}; of the others, no difference can be told from noise")


if __name__ == "__main__":
    main()
