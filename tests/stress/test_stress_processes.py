"""Several processes: forks at bad moments, pools of workers, and threads under Python's development mode."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import FORKS, PROGRAMS

Figure = Callable[[str, int, float, float], None]

HERE = Path(__file__).parent
POSSIBLE = [name for name in PROGRAMS if hasattr(os, "fork") or (name not in FORKS and name != "pool_by_fork")]


@pytest.mark.parametrize("name", POSSIBLE)
def test_processes_go_on_correctly(name: str, long: bool, figure: Figure) -> None:
    rounds = 200 if long else 5
    done = subprocess.run([sys.executable, str(HERE / "processes.py"), name, str(rounds)], check=False, text=True, stdout=-1)
    figure(f"{name}: processes that failed", rounds, float(done.stdout != "done\n"), 0)


def test_threads_under_the_development_mode(long: bool, figure: Figure) -> None:
    tests = HERE.parent / "tensors" / "test_threads.py"
    chosen = [] if long else ["-k", "accumulation_into_one_leaf or passes_that_stop"]
    command = [sys.executable, "-X", "dev", "-m", "pytest", "-q", str(tests), *chosen]
    done = subprocess.run(command, check=False, text=True, stdout=-1)
    assert "passed" in done.stdout
    figure("threads under python -X dev: runs that failed", 1, float(done.returncode != 0), 0)
