"""What all of pytest's runs share: names for the examples in docstrings, and the long form of the stress suite."""

from collections.abc import Callable
from typing import Any

import one_blas_thread  # noqa: F401 - before NumPy

# isort: split
import numpy as np
import pytest

import tapegrad as tg

# Parts of one generated file, compiled together; by themselves they cannot be imported.
collect_ignore = ["src/tapegrad/engine"]
# Of these there are several, and doctest would import them all by one name.
collect_ignore_glob = ["tests/conftest.py", "tests/*/conftest.py"]

TABLE = pytest.StashKey[list[tuple[str, str, str, str]]]()


@pytest.fixture(autouse=True)
def _names_of_doctests(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace.update(np=np, tg=tg)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the stress suite at its full sizes and print its table")
    parser.addoption("--case", default="", help="of tests that go through many cases, only those with these words in their names")
    parser.addoption("--each", action="store_true", help="make an item of every case of such tests")
    parser.addoption("--fuzz-seconds", default="120", help="how long the long form of the stress suite makes random programs")


@pytest.fixture
def long(request: pytest.FixtureRequest) -> bool:
    """Whether the stress suite runs at its full sizes."""
    return bool(request.config.getoption("--long"))


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str, int, float, float], None]:
    """Report a line of the stress suite's table (scenario, iterations, figure, limit) and assert that the limit holds."""
    table = request.config.stash.setdefault(TABLE, [])

    def report(scenario: str, iterations: int, value: float, limit: float) -> None:
        table.append((scenario, f"{iterations:,}", f"{value:,.4g}", f"{limit:,.4g}"))
        assert value <= limit, f"{scenario}: {value:,.4g} exceeds {limit:,.4g}"

    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash.get(TABLE, [])
    if not rows or not config.getoption("--long"):
        return
    rows = [("scenario", "iterations", "figure", "limit"), *rows]
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    terminalreporter.write_line("")
    for row in rows:
        terminalreporter.write_line(row[0].ljust(widths[0]) + "".join(f"  {row[k]:>{widths[k]}}" for k in (1, 2, 3)))
