"""``python -m tapegrad``."""

import sys
from pathlib import Path

import pytest

import tapegrad as tg
from tapegrad import __main__ as command_line
from tapegrad.kernels import kernel_files, library


def test_info_names_versions_engine_caches_and_dtype(capsys: pytest.CaptureFixture[str]) -> None:
    command_line.main(["info"])
    lines = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["tapegrad"].split()[0] == tg.__version__
    assert {"Python", "packages", "engine", "processor", "threads"} <= lines.keys()
    assert lines["default dtype"].strip() == "float64"


def test_info_says_why_the_engine_is_compiled(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(library, "why_compiled", lambda: "of some reason")
    command_line.main(["info"])
    assert "compiled on this machine: of some reason" in capsys.readouterr().out


def test_warmup_calls_the_functions_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model_to_warm.py").write_text("called = []\ndef once():\n    called.append(1)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(library, "why_compiled", lambda: "")
    command_line.main(["warmup", "model_to_warm:once"])
    assert sys.modules["model_to_warm"].called == [1]
    assert capsys.readouterr().out == "model_to_warm:once was called\n"


def test_warmup_compiles_an_engine_that_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(library, "why_compiled", lambda: "it was not built")
    monkeypatch.setattr(kernel_files, "compile_all", lambda: done.append("all"))
    command_line.main(["warmup"])
    assert done == ["all"]


@pytest.mark.parametrize("name", ["no_such_module:f", "math:no_such_function", "math", ":f"])
def test_warmup_of_what_is_not_there_says_what_to_write(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "why_compiled", lambda: "")
    with pytest.raises(SystemExit, match="Give it as module:function"):
        command_line.main(["warmup", name])


def test_a_command_is_required() -> None:
    with pytest.raises(SystemExit):
        command_line.main([])
