"""What a release is made of: one version everywhere, a recipe that names the dependencies, and the check of wheels."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import tapegrad as tg

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPE = (ROOT / "release" / "recipe.yaml").read_text(encoding="utf-8")


@pytest.fixture
def check_wheels() -> Any:
    spec = importlib.util.spec_from_file_location("check_wheels", ROOT / "release" / "check_wheels.py")
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def test_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    versions = {
        PROJECT["project"]["version"],
        tg.__version__,
        re.search(r"^version: (.*)$", citation, flags=re.MULTILINE)[1],  # type: ignore[index]
        re.search(r'version: "(.*)"', RECIPE)[1],  # type: ignore[index]
    }
    assert len(versions) == 1


def section(name: str) -> set[str]:
    """Requirements of the recipe, in pip's form."""
    found = re.search(rf"^  {name}:\n((?:    - .*\n)+)", RECIPE, flags=re.MULTILINE)
    assert found is not None
    return {line.strip("- ").replace(" ", "") for line in found[1].splitlines()}


def test_recipe_names_what_the_project_needs() -> None:
    assert section("run") == {f"python{PROJECT['project']['requires-python']}", *PROJECT["project"]["dependencies"]}
    assert section("host") == {"python", "pip", *PROJECT["build-system"]["requires"]}
    assert PROJECT["project"]["optional-dependencies"]["scipy"][0] in section("run_constraints")


def test_trial_of_wheels_passes_here(check_wheels: Any, capsys: pytest.CaptureFixture[str]) -> None:
    exec(check_wheels.TRIAL, {})
    assert capsys.readouterr().out.startswith(tg.__version__)


def test_failed_combinations_are_told(
    check_wheels: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def tried(wheel: Path, python: str, requirements: list[str]) -> str:
        if requirements:
            raise RuntimeError("pip: no such version")
        return "fine"

    monkeypatch.setattr(check_wheels, "tried", tried)
    monkeypatch.setattr(check_wheels, "interpreters", lambda further: {"3.11": "python3.11", "3.13": "python3.13"})
    assert check_wheels.main([str(tmp_path / "tapegrad-0.whl")]) == 1
    assert [line.split("  ", 1)[1] for line in capsys.readouterr().out.splitlines()] == [
        "Python 3.11  newest: fine",
        "Python 3.11  oldest: FAILED: pip: no such version",
        "Python 3.13  newest: fine",
    ]


def test_oldest_dependencies_are_those_of_the_project(check_wheels: Any) -> None:
    assert check_wheels.oldest() == ["numpy==2.0.*", "numba==0.61.*"]


def test_interpreters_that_do_not_run_are_left_out(check_wheels: Any, tmp_path: Path) -> None:
    broken = tmp_path / "python3.12"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    found = check_wheels.interpreters([str(broken)])
    assert found
    assert str(broken) not in found.values()


def test_interpreters_of_pyenv_are_found(check_wheels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim, kept = tmp_path / "shims" / "python3.14", tmp_path / "versions" / "3.14.0" / "bin" / "python"
    for path, text in ((shim, "exit 127"), (kept, "echo 3.14")):
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(shim.parent))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert check_wheels.interpreters()["3.14"] == str(kept)
