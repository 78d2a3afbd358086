"""Random parametrised problems for solvers: derivatives of solutions are those of differences, or refused, and never wrong."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("fuzz_implicit.py")
FIRST, PROBLEMS = 1, 16
PATIENCE = 240.0  # seconds for the last problem, a cold start included


def test_derivatives_of_solutions_are_right_or_refused(
    long: bool, figure: Callable[..., None], pytestconfig: pytest.Config
) -> None:
    seconds = float(pytestconfig.getoption("--fuzz-seconds")) if long else 3600.0
    command = [sys.executable, str(SCRIPT), str(FIRST), str(10**9 if long else PROBLEMS), str(seconds), "long" if long else "short"]
    limit = (seconds if long else 0.0) + PATIENCE
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    printed = done.stdout.splitlines() or ["before the first problem"]
    assert done.returncode == 0, f"seed {printed[-1]}\n{done.stderr[-4000:]}\nto run one again: python {SCRIPT} SEED"
    problems, right, untold, smooth, refused, wrong = map(int, printed[-1].split())
    figure("derivatives of solutions: wrong", problems, wrong, 0)
    figure("derivatives of solutions: problems for one that is compared", problems, problems / max(right, 1), 4)
    figure("derivatives of solutions: differences that do not tell", problems, untold / problems, 0.2)
    figure("derivatives of solutions: smooth ones that are refused", smooth, refused / max(smooth, 1), 0.03)
