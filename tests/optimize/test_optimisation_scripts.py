"""The scripts that are measured find the minimum that SciPy finds with differences of its own."""

import functools
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from unoptimised_numba import numba_is_quicker  # noqa: F401 - a fixture

FOLDER = Path(__file__).parents[2] / "asv_bench" / "scripts"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "run")
# Loops that are slow in Python; there the compiled forms are compared.
LOOPS = {"heat", "hidden_markov"}


@pytest.fixture(autouse=True)
def script_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets the scripts be imported by their names, which other test programs have too."""
    monkeypatch.syspath_prepend(FOLDER)
    others = {name: sys.modules.pop(name) for name in SCRIPTS if name in sys.modules}
    yield
    for name in SCRIPTS:
        sys.modules.pop(name, None)
    sys.modules.update(others)


@functools.cache
def found(script: str) -> float:
    """The minimum, computed once for both tests: compiled forms take seconds."""
    return float(importlib.import_module(script).tapegrad())


@pytest.mark.parametrize("script", [script for script in SCRIPTS if script not in LOOPS])
def test_script_finds_the_minimum_that_differences_find(script: str) -> None:
    assert found(script) == pytest.approx(float(importlib.import_module(script).scipy()), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("script", [script for script in SCRIPTS if not script.endswith("_compiled")])
def test_script_knows_its_minimum(script: str) -> None:
    compiled = f"{script}_compiled"
    known = importlib.import_module(script).MINIMUM
    assert found(compiled if compiled in SCRIPTS else script) == pytest.approx(known, rel=1e-6, abs=1e-6)
