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


RESONATOR = """
import sys, warnings
warnings.simplefilter("ignore")
import tapegrad.as_autograd
import autograd, autograd.numpy as npa, numpy as np, ceviche
source, block = np.zeros((30, 25)), np.zeros((30, 25))
source[5, 12], block[12:17, 10:15] = 1.0, 1.0
for fields in (ceviche.fdfd_ez, ceviche.fdfd_hz):
    simulation = fields(2 * np.pi * 200e12, 50e-9, np.ones((30, 25)), [8, 8])

    def power(density):
        simulation.eps_r = 1.0 + density * block
        return npa.sum(npa.abs(simulation.solve(source)[2][22:24]) ** 2)

    slope, by_differences = autograd.grad(power)(0.3), (power(0.3 + 1e-5) - power(0.3 - 1e-5)) / 2e-5
    assert slope != 0.0 and abs(slope - by_differences) < 1e-6 * abs(by_differences), (slope, by_differences)
"""


@pytest.mark.skipif(importlib.util.find_spec("ceviche") is None, reason="ceviche is not installed")
def test_sparse_complex_systems_of_ceviche_have_the_slope_of_differences() -> None:
    subprocess.run([sys.executable, "-c", RESONATOR], env=environment(), check=True)
