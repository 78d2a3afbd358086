"""The tests of autograd's behaviour, run on PyTorch: they pass there, but for the differences that are on purpose."""

import os
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="compares with PyTorch, which is not installed; make oracle installs it")

pytestmark = pytest.mark.oracle

HERE = Path(__file__).parent
TESTS = HERE.parent
FILES = [
    "test_leaves_and_flags", "test_backward", "test_autograd_grad", "test_graph_views", "test_freed_graphs", "test_higher_order",
    "test_in_place", "test_views", "test_saved_values", "test_hooks", "test_custom_functions", "test_saved_tensors_hooks",
    "test_grad_modes", "test_errors", "test_printing", "test_autograd_functional", "test_gradcheck", "test_computation_graph_notes",
    "test_threads", "test_gradient_edges", "test_optim_updates", "test_lr_schedulers", "test_rules_at_edges",
]  # fmt: skip
# What looks into tapegrad's tape, or goes over the whole rule table, which the oracle of operations does.
OWN = (
    "reclaimed_while_others_record or forked_process or writing_an_array or writing_a_scalar or test_edge or float32_edges or "
    "edges_leave_no_rows or output_that_does_not_exist or names_the_line_of_the_caller"
)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of every test, how it ended with PyTorch in the place of tapegrad."""
    report = tmp_path_factory.mktemp("oracle") / "report.xml"
    files = [str(next(TESTS.rglob(f"{name}.py"))) for name in FILES]
    options = ["-k", f"not ({OWN})", "-q", "-W", "ignore", "--each", "-p", "no:cacheprovider", "--tb=no", f"--junit-xml={report}"]
    # The shim asks this variable whether a test runs.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE / "pytorch_as_tapegrad"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", *files, *options]
    run = subprocess.run(command, env=environment, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found[f"{case.attrib['classname'].split('.')[-1]}.py::{case.attrib['name']}"] = outcome
    return found


def differences() -> list[str]:
    """The tests that the table of differences names, of the files that run here."""
    table = tomllib.loads((TESTS.parent / "docs" / "pytorch-points.toml").read_text(encoding="utf-8"))
    return [test for difference in table["difference"] for test in difference["tests"] if test.split(".py")[0] in FILES]


def covers(entry: str, test: str) -> bool:
    """Whether an entry names a test: with its parameters, or with all of them."""
    return test == entry or ("[" not in entry and test.startswith(f"{entry}["))


@pytest.mark.parametrize("name", FILES)
def test_pytorch_passes_what_is_not_named_as_a_difference(outcomes: dict[str, str], name: str) -> None:
    mine = {test: outcome for test, outcome in outcomes.items() if test.startswith(f"{name}.py")}
    assert "passed" in mine.values()
    failed = [test for test, outcome in mine.items() if outcome == "failed"]
    assert [test for test in failed if not any(covers(entry, test) for entry in differences())] == []


def test_pytorch_fails_what_is_named_as_a_difference(outcomes: dict[str, str]) -> None:
    failed = [test for test, outcome in outcomes.items() if outcome == "failed"]
    assert [entry for entry in differences() if not any(covers(entry, test) for test in failed)] == []
