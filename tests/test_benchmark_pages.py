"""Pages, comparisons and tables that are made of measurements; no figure is asserted."""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from inspection_browser import Browser, is_wanted

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "asv_bench"
COMMIT = "0123456789abcdef"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a script of the benchmarks."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def results(folder: Path) -> Path:
    """A folder as asv leaves it: a benchmark with peers, one with values of its own, one without parameters, one that failed."""
    known = {
        "eager.Gradient.time_gradient": {"param_names": ["workload", "library"], "unit": "seconds"},
        "sparse.Plan.time_plan": {"param_names": ["problem"], "unit": "seconds"},
        "control.Control.time_numpy_exp": {"param_names": [], "unit": "seconds"},
        "control.Control.track_failed": {"param_names": [], "unit": "x"},
    }
    columns = ["result", "params", "version", "started_at", "duration", "stats_q_25", "stats_q_75"]
    rows = {
        "eager.Gradient.time_gradient": [
            [4e-6, 4e-5, math.nan, 1e-3, None, math.nan], [["'W1'", "'W<3>'"], ["'tapegrad'", "'torch'", "'jax'"]], "", 1, 1,
            [3e-6, 4e-5, None, 1e-3, None, None], [5e-6, 4e-5, None, 1e-3, None, None],
        ],
        "sparse.Plan.time_plan": [[2e-9, 1e-9], [["'band'", "'arrow'"]], "", 1, 1],
        "control.Control.time_numpy_exp": [[8e-3], [], "", 1, 1],
        "control.Control.track_failed": [None, [], "", 1, 1],
    }  # fmt: skip
    content = {"commit_hash": COMMIT, "result_columns": columns, "results": rows}
    (folder / "results" / "machine").mkdir(parents=True)
    (folder / "results" / "benchmarks.json").write_text(json.dumps(known | {"version": 2}))
    (folder / "results" / "machine" / "machine.json").write_text("{}")
    (folder / "results" / "machine" / "other.json").write_text(json.dumps(content | {"commit_hash": "fedc", "results": {}}))
    (folder / "results" / "machine" / "this.json").write_text(json.dumps(content))
    return folder


@pytest.fixture
def page(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = results(tmp_path / "asv")
    monkeypatch.setattr(sys, "argv", ["result_pages.py", "--commit", COMMIT, "--folder", str(folder)])
    script("result_pages").main()
    return folder / "html" / "peers.html"


def test_page_of_measurements_has_peers_beside_us(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "tapegrad: 4 µs, quartiles 3 µs to 5 µs" in text
    assert "torch: 40 µs (10x)" in text
    assert "W&lt;3&gt;" in text and "<3>" not in text
    assert "band: 2 ns" in text and "8 ms" in text
    assert "nan" not in text and "track_failed" not in text
    assert text.count("<svg") == 4


def test_commits_that_were_not_measured_have_no_page(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["result_pages.py", "--commit", "ffff", "--folder", str(results(tmp_path))])
    with pytest.raises(SystemExit, match="make bench-html measures them"):
        script("result_pages").main()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


def shows_graphs(browser: Browser, page: Path) -> int:
    """How many graphs the page shows, with bars that have a width."""
    browser.complaints.clear()
    browser.open(page)
    assert browser.complaints == []
    widths = "[...document.querySelectorAll('svg')].filter(s => [...s.querySelectorAll('rect.ours, rect.peer')].length &&"
    counted: int = browser.value(f"{widths} s.querySelector('rect.ours, rect.peer').getBoundingClientRect().width > 0.5).length")
    assert browser.value("document.documentElement.scrollWidth <= innerWidth")
    return counted


@pytest.mark.skipif(not is_wanted(), reason="needs chromium: make browser")
def test_page_of_measurements_opens_and_is_searched_in_a_browser(browser: Browser, page: Path) -> None:
    assert shows_graphs(browser, page) == 4
    browser.value("document.getElementById('search').focus()")
    browser.type("gradient torch")
    shown = "[...document.querySelectorAll('section')].filter(s => !s.hidden).map(s => s.dataset.name).join()"
    assert browser.value(shown) == "eager.Gradient.time_gradient"
    assert browser.value("document.getElementById('shown').textContent") == "1 of 3"


@pytest.mark.skipif(importlib.util.find_spec("asv") is None or not (ROOT / ".git").exists(), reason="needs asv, and a repository")
def test_what_asv_measures_becomes_a_page_with_graphs(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    settings = {
        "version": 1, "environment_type": "virtualenv", "project": "tapegrad", "repo": str(ROOT), "branches": ["HEAD"],
        "benchmark_dir": str(BENCHMARKS / "benchmarks"),
        "results_dir": str(tmp_path / "results"), "html_dir": str(tmp_path / "html"), "env_dir": str(tmp_path / "env"),
    }  # fmt: skip
    (tmp_path / "asv.conf.json").write_text(json.dumps(settings))
    environment = {**os.environ, "HOME": str(tmp_path), "ASV_PYTHONPATH": str(ROOT / "src")}
    commit = subprocess.check_output(["git", "-C", str(ROOT), "rev-parse", "HEAD"], text=True).strip()
    asv = [sys.executable, "-m", "asv", "--config", str(tmp_path / "asv.conf.json")]
    chosen = ["--quick", "--python=same", "--set-commit-hash", commit, "--bench", r"^control|^eager\.Gradient\..*W1"]
    page_of = [sys.executable, str(BENCHMARKS / "result_pages.py"), "--folder", str(tmp_path), "--commit", commit]
    for command in ([*asv, "machine", "--yes"], [*asv, "run", *chosen], [*asv, "publish"], page_of):
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert list((tmp_path / "html" / "graphs").rglob("eager.Gradient.time_gradient.json"))  # asv's own pages
    if is_wanted():
        assert shows_graphs(request.getfixturevalue("browser"), tmp_path / "html" / "peers.html") == 2


# Comparisons.


def of_rounds(before: list[float], after: list[float], again: list[float], unit: str = "seconds") -> list[dict[str, Any]]:
    turns = zip(before, after, again, strict=True)
    return [{"base": {"f": [a, unit]}, "change": {"f": [b, unit]}, "again": {"f": [c, unit]}} for a, b, c in turns]


def test_differences_are_told_from_noise(script: Any) -> None:
    compared = script("compare").compared
    base, again = [1.0, 1.1, 1.0, 2.0], [1.01, 1.1, 1.02, 2.0]
    assert compared(of_rounds(base, [2.0, 2.3, 2.1, 4.0], again))[0].verdict == "slower"
    assert compared(of_rounds(base, [0.5, 0.6, 0.5, 1.1], again))[0].verdict == "faster"
    assert compared(of_rounds(base, [2.0, 2.3, 2.1, 4.0], again, "x"))[0].verdict == "better"
    assert compared(of_rounds(base, [1.2, 1.0, 1.2, 2.4], again))[0].verdict == ""  # not in every round
    assert compared(of_rounds(base, [1.2, 1.3, 1.2, 2.4], [1.2, 1.0, 0.9, 2.2]))[0].verdict == ""  # the machine does as much
    assert compared(of_rounds(base, [1.2, 1.3, 1.2, 2.4], again))[0].noise == pytest.approx(0.005)


def test_benchmarks_of_two_sources_are_measured_in_turns(script: Any, capsys: pytest.CaptureFixture[str]) -> None:
    compare = script("compare")
    taken = compare.rounds(ROOT / "src", ROOT / "src", r"^control|^eager\.Gradient\..*W1", 1)
    names = {"control.Control.time_numpy_exp", "eager.Gradient.time_gradient('W1', 'tapegrad')"}
    assert [set(one[turn]) for one in taken for turn in ("base", "change", "again")] == [names] * 3
    compare.print_table(compare.compared(taken))
    assert "2 benchmarks: " in capsys.readouterr().out


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a repository")
def test_sources_of_a_commit_are_taken_with_an_engine(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare, asked = script("compare"), []
    monkeypatch.setattr(compare, "child", lambda source, *words: asked.append(words) or "sources differ")
    source = compare.checkout(compare.resolved("HEAD"), tmp_path)
    assert (source / "tapegrad" / "__init__.py").exists()
    assert asked[-1] == ("-m", "tapegrad.library_build")
    with pytest.raises(SystemExit, match="choose another with BASE="):
        compare.resolved("no-such-commit")


# Tables.


def test_tables_are_written_between_their_marks(script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tables = script("readme_tables")
    document = tmp_path / "page.md"
    document.write_text("one\n<!-- table: problems -->\nold\n<!-- end of problems -->\ntwo\n")
    rows = ["| problem | tapegrad |", "|---|---|", "| \\1 | 0.1 |"]
    monkeypatch.setattr(tables, "measured", lambda table, rounds, only: rows)
    for only, is_written in (("mixture", False), ("", True)):
        monkeypatch.setattr(sys, "argv", ["readme_tables.py", "problems", "--file", str(document), "--only", only])
        tables.main()
        assert ("\n".join(rows) in document.read_text()) is is_written
    text = document.read_text()
    assert text.startswith("one\n<!-- table") and text.endswith("problems -->\ntwo\n") and "old" not in text
    assert "Measured on " in text and "numpy " in text and "Python 3" in text
    with pytest.raises(ValueError, match="has no <!-- table: scripts"):
        tables.written(text, "scripts", rows, "")


def test_documents_have_the_marks_of_their_tables(script: Any) -> None:
    tables = script("readme_tables")
    for table, documents in tables.TABLES.items():
        for document in documents:
            assert "Measured here." in tables.written(document.read_text(encoding="utf-8"), table, ["| a |"], "Measured here.")


def test_rows_of_a_table_are_measured(script: Any, capfd: pytest.CaptureFixture[str]) -> None:
    rows = script("readme_tables").measured("workloads", 1, "W1")
    assert rows[0].startswith("| # | workload | tapegrad |")
    assert [row.split("|")[1].strip() for row in rows[2:]] == ["W1", "W10"]
    assert "| W1 |" in capfd.readouterr().out
