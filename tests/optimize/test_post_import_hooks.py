"""Calls that wait for a module to be imported."""

import importlib
import importlib.util
import pkgutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tapegrad.optimize.post_import_hooks import when_imported

PACKAGE = """
import os
if os.path.exists(__file__ + ".flag"):
    raise ImportError("not yet")
from awaited_package import inner
value = 1
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The name of a package that nobody has imported, with a module in it; one that fails as long as its flag is there."""
    for name in ("awaited_package", "awaited_package.inner"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    folder = tmp_path / "awaited_package"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    (folder / "inner.py").write_text("value = 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield folder
    for name in ("awaited_package", "awaited_package.inner"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("package")
def test_the_call_comes_when_the_module_is_done() -> None:
    seen: list[Any] = []
    before = list(sys.meta_path)
    when_imported("awaited_package", lambda module: seen.append(module.value))
    assert seen == []
    importlib.import_module("awaited_package.inner")
    assert seen == [1]
    assert sys.meta_path == before


@pytest.mark.usefixtures("package")
def test_the_call_comes_at_once_for_a_module_that_is_there() -> None:
    seen: list[Any] = []
    made = importlib.import_module("awaited_package")
    when_imported("awaited_package", seen.append)
    assert seen == [made]


@pytest.mark.usefixtures("package")
def test_the_module_is_as_it_is_without_a_hook() -> None:
    without = importlib.util.find_spec("awaited_package")
    assert without is not None
    when_imported("awaited_package", lambda module: None)
    made: Any = importlib.import_module("awaited_package")
    assert type(made.__loader__) is type(made.__spec__.loader) is type(without.loader)
    assert made.__spec__.origin == without.origin
    assert made.inner.value == 2


@pytest.mark.usefixtures("package")
def test_the_file_of_a_module_can_be_asked_for_while_it_is_waited_for() -> None:
    when_imported("awaited_package", lambda module: None)
    spec = importlib.util.find_spec("awaited_package")
    assert spec is not None
    loader: Any = spec.loader
    assert loader.is_package("awaited_package")
    assert loader.get_source("awaited_package") == PACKAGE
    assert pkgutil.get_data("awaited_package", "inner.py") == b"value = 2\n"


def test_a_module_that_fails_is_waited_for_again(package: Path) -> None:
    seen: list[Any] = []
    flag = package / "__init__.py.flag"
    flag.touch()
    when_imported("awaited_package", lambda module: seen.append(module.value))
    with pytest.raises(ImportError, match="not yet"):
        importlib.import_module("awaited_package")
    assert seen == []
    flag.unlink()
    importlib.import_module("awaited_package")
    assert seen == [1]


@pytest.mark.usefixtures("package")
def test_several_calls_wait_for_one_module() -> None:
    seen: list[int] = []
    when_imported("awaited_package", lambda module: seen.append(1))
    when_imported("awaited_package", lambda module: seen.append(2))
    importlib.import_module("awaited_package")
    assert sorted(seen) == [1, 2]


def test_a_module_that_nobody_has_is_not_found() -> None:
    before = list(sys.meta_path)
    try:
        when_imported("a_module_that_nobody_has", lambda module: None)
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("a_module_that_nobody_has")
    finally:
        sys.meta_path[:] = before
