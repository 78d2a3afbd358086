"""How `import autograd` comes to mean tapegrad, and when it does not. In processes of their own: it is for a whole process."""

import subprocess
import sys
from pathlib import Path

import pytest
from fresh_processes import environment, run

STAND_IN = """
import sys, types, warnings
sys.modules["autograd"] = theirs = types.ModuleType("autograd")
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import tapegrad.as_autograd
import autograd
print(autograd is theirs, [w.category.__name__ for w in told], "stays what it is" in str(told[0].message))
"""

LAZY = """
import sys
import tapegrad.as_autograd
before = set(sys.modules)
import autograd, autograd.numpy, autograd.extend, autograd.scipy.stats.norm
from autograd import numpy, grad
heavy = [name for name in ("numba", "scipy", "scipy.special") if name in sys.modules]
import autograd.misc.flatten
from autograd.misc import flatten
print(heavy, callable(flatten))
try:
    import autograd.nonsense
except ModuleNotFoundError as error:
    print("no module 'autograd.nonsense'" in str(error))
"""

SCRIPT = """
import sys
import autograd.numpy as np
from autograd import grad
print(__name__, sys.argv[1:], grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0])))
"""


def test_an_autograd_that_was_imported_before_stays_and_a_warning_says_so() -> None:
    assert run(STAND_IN, environment()).stdout == "True ['RuntimeWarning'] True\n"


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    assert run(LAZY, environment()).stdout == "[] True\nTrue\n"


def test_a_script_is_run_with_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "tapegrad.as_autograd", str(script), "a", "--b"]
    found = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    assert found.stdout == "__main__ ['a', '--b'] [2. 4.]\n"


def test_pytest_takes_it_as_a_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import autograd\n\ndef test_it():\n    assert 'tapegrad' in repr(autograd)\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tapegrad.as_autograd", "-p", "no:cacheprovider", str(tmp_path)]
    found = subprocess.run(command, env=environment(), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in found.stdout, found.stdout


@pytest.mark.parametrize("arguments", [[], ["-m"]])
def test_a_command_without_a_script_says_what_it_takes(arguments: list[str]) -> None:
    from tapegrad.as_autograd.__main__ import main

    with pytest.raises(SystemExit, match="usage: python -m tapegrad.as_autograd"):
        main(arguments)
