"""Random programs over everything public: only documented exceptions, no crash, no hang, right gradients, nothing left behind."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("fuzz_api.py")
FIRST, PROGRAMS = 1, 300
PATIENCE = 60.0  # seconds that one program may take at most, a cold start included


def test_random_programs_keep_what_is_promised(long: bool, figure: Callable[..., None], pytestconfig: pytest.Config) -> None:
    seconds = float(pytestconfig.getoption("--fuzz-seconds")) if long else 3600.0
    count = 10**9 if long else PROGRAMS
    command = [sys.executable, "-X", "faulthandler", str(SCRIPT), str(FIRST), str(count), str(seconds)]
    limit = (seconds if long else 0.0) + 2 * PATIENCE
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    printed = done.stdout.splitlines() or ["before the first program"]
    assert done.returncode == 0, f"seed {printed[-1]}\n{done.stderr[-4000:]}\nto run one again: python {SCRIPT} SEED"
    programs, compared, failures = map(int, printed[-1].split())
    figure("random programs: failures", programs, failures, 0)
    figure("random programs: programs for one slope that is compared", programs, programs / max(compared, 1), 10)
