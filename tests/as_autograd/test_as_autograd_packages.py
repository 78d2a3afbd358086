"""Packages that are built on autograd, unmodified: their fits are what they are on autograd."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from fresh_processes import environment

pytestmark = pytest.mark.packages

BENCHMARKS = Path(__file__).parents[2] / "asv_bench"
PROGRAM = """
import json, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[2])
from benchmarks import package_fits
fits = package_fits.operations(sys.argv[1])
json.dump({fit.name: package_fits.build(sys.argv[1], fit, 0, 0)[1] for fit in fits}, sys.stdout)
"""


def found(library: str) -> dict[str, list[float]]:
    command = [sys.executable, "-c", PROGRAM, library, str(BENCHMARKS)]
    answer = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    numbers: dict[str, list[float]] = json.loads(answer.stdout)
    return numbers


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("lifelines", "pymanopt")),
    reason="lifelines and pymanopt are not installed",
)
def test_fits_are_those_of_autograd() -> None:
    own, theirs = found("tapegrad"), found("autograd")
    assert own.keys() == theirs.keys()
    for name, numbers in own.items():
        assert numbers == pytest.approx(theirs[name], rel=1e-6, abs=1e-6), name
