"""What a whole optimisation script costs, from the start of its process to the answer."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "scripts"
FORMS = ("tapegrad", "tapegrad compiled", "scipy", "scipy compiled", "autograd", "jax", "torch", "casadi")
AGREEMENT = 1e-6  # of minima, relative or absolute


class Cost(NamedTuple):
    """Seconds until the process has ended, and of the processor in it."""

    elapsed: float
    processor: float


def problems() -> tuple[str, ...]:
    """Names of the scripts."""
    compiled = {path.stem for path in FOLDER.glob("*_compiled.py")}
    return tuple(sorted({path.stem for path in FOLDER.glob("*.py")} - compiled - {"run"}))


def forms(problem: str) -> tuple[str, ...]:
    """The forms in which a script is written, whether or not their libraries are installed."""
    there = []
    for form in FORMS:
        library, _, compiled = form.partition(" ")
        path = FOLDER / (f"{problem}_compiled.py" if compiled else f"{problem}.py")
        if path.exists() and f"\ndef {library}()" in path.read_text():
            there.append(form)
    return tuple(there)


def minimum(problem: str) -> float:
    """What every form of a script should find."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    known: float = importlib.import_module(problem).MINIMUM
    return known


def measure(problem: str, form: str) -> Cost:
    """Start a process that runs the script in one form.

    Raises
    ------
    NotImplementedError
        If the script has no such form, or its library is not installed, which tells asv to skip.
    RuntimeError
        If the process failed, or found another minimum than is known.
    """
    library, _, compiled = form.partition(" ")
    if form not in forms(problem):
        raise NotImplementedError(f"{problem} is not written for {form}")
    for needed in (library, "scipy"):
        if importlib.util.find_spec(needed) is None:
            raise NotImplementedError(f"{needed} is not installed")
    command = [sys.executable, str(FOLDER / (f"{problem}_compiled.py" if compiled else f"{problem}.py")), library]
    # Installed packages have their bytecode on disk, and so must what is measured here.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, start = _of_children(), time.perf_counter()
    child = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    cost = Cost(time.perf_counter() - start, _of_children() - before)
    if child.returncode:
        raise RuntimeError(f"{problem} failed with {form}:\n{child.stderr}")
    found, known = float(child.stdout.split()[-1]), minimum(problem)
    if not abs(found - known) <= AGREEMENT * max(1.0, abs(known)):
        raise RuntimeError(f"{problem} with {form} found {found!r}, but the minimum is {known!r}")
    return cost


def _of_children() -> float:
    """Seconds of processor time of all processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system
