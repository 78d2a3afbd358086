"""Code on disk under bad conditions: damaged and exchanged files, folders that cannot be written, many processes at once, forks.

What is kept is an optimisation: a derivative is right whatever became of it, and nothing is said where nothing is wrong.
"""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forked_processes import Forked, start
from fresh_processes import environment

Figure = Callable[[str, int, float, float], None]

MODULE = """
import numba
import numpy as np

@numba.njit(cache=True)
def helper(x):
    return 2.0 * x

@numba.njit(cache=True)
def f(x):
    return helper(x[0]) * np.exp(x[1]) + x.sum()

@numba.njit(cache=True)
def g(x):
    return helper(x[0]) * x[1] ** 3
"""
START = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
import tapegrad as tg
from stored_model import f, g
X = np.array([1.5, 0.5])

def right(gradient_of_f, gradient_of_g):
    expected = [2.0 * np.exp(0.5) + 1.0, 3.0 * np.exp(0.5) + 1.0], [0.25, 2.25]
    return np.allclose(gradient_of_f, expected[0]) and np.allclose(gradient_of_g, expected[1])

"""
DERIVE = "print(right(tg.grad(f)(X), tg.grad(g)(X)))\n"
# The engine too: tensors in the children of a process that has loaded everything, and of one that has loaded nothing.
FORK = """
import os

def child():
    x = tg.tensor(X, requires_grad=True)
    (x.exp() * x).sum().backward()
    return right(tg.grad(f)(X), tg.grad(g)(X)) and np.allclose(x.grad, np.exp(X) * (1.0 + X))

def forked():
    number = os.fork()
    if number == 0:
        os._exit(0 if child() else 1)
    return os.waitpid(number, 0)[1] == 0

print(all([forked() for _ in range({count})]), child(), all([forked() for _ in range({count})]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the user's module."""
    (tmp_path / "stored_model.py").write_text(MODULE)
    return tmp_path


@pytest.fixture(scope="module")
def derived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, where a process has kept its derivatives."""
    folder = tmp_path_factory.mktemp("derived")
    (folder / "stored_model.py").write_text(MODULE)
    assert outcome(begun(folder)) == ("True\n", "")
    return folder


@pytest.fixture
def kept_in(derived: Path) -> Iterator[Path]:
    """For tests that damage what is kept: afterwards it is as it was. Code is found by its place, so it cannot be a copy."""
    before = {path: path.read_bytes() for path in (derived / "__pycache__").iterdir()}
    yield derived
    for path in (derived / "__pycache__").iterdir():
        path.unlink()
    for path, content in before.items():
        path.write_bytes(content)


def begun(folder: Path, code: str = DERIVE, **settings: str) -> Forked:
    """A process that computes derivatives of the module's functions."""
    return start(START.format(folder=str(folder)) + code, environment() | settings)


def outcome(process: Forked) -> tuple[str, str]:
    """What it printed, and what it complained of."""
    return process.communicate()


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "__pycache__").glob("*.tapegrad-*"))


def flip(path: Path, place: float) -> None:
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(bytes(content))


def test_kept_derivatives_with_flipped_bits(kept_in: Path, long: bool, figure: Figure) -> None:
    rounds, wrong = 40 if long else 1, 0
    random.seed(0)
    for _ in range(rounds):
        for path in kept(kept_in):
            flip(path, random.random())
        wrong += outcome(begun(kept_in)) != ("True\n", "")
    figure("kept derivatives with flipped bits: processes that failed", rounds, wrong, 0)


def test_kept_derivatives_of_each_other(kept_in: Path) -> None:
    one, other = (path.read_bytes() for path in kept(kept_in))
    for path, content in zip(kept(kept_in), (other, one), strict=True):
        path.write_bytes(content)
    assert outcome(begun(kept_in)) == ("True\n", "")


def test_many_processes_keep_the_same_derivative(folder: Path, long: bool, figure: Figure) -> None:
    count = 24 if long else 2
    wrong = sum(outcome(process) != ("True\n", "") for process in [begun(folder) for _ in range(count)])
    figure("processes that keep the same derivative at once and failed", count, wrong, 0)
    assert (len(kept(folder)), list(folder.rglob("*.tmp"))) == (2, [])
    assert outcome(begun(folder)) == ("True\n", "")


def test_folders_that_cannot_be_written(folder: Path) -> None:
    """Neither the module's own nor the user's: a file stands where each should be, which stops every user."""
    (folder / "__pycache__").write_text("no folder")
    (folder / "home").write_text("no folder")
    nowhere = {"HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "home")}
    (folder / "stored_model.py").write_text(MODULE.replace("(cache=True)", ""))  # Numba itself refuses to cache there
    for _ in range(2):
        assert outcome(begun(folder, **nowhere)) == ("True\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forks_after_code_was_loaded(kept_in: Path, long: bool) -> None:
    assert outcome(begun(kept_in, FORK.format(count=50 if long else 2))) == ("True True True\n", "")
