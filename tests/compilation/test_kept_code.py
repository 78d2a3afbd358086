"""Compiled code that is kept on disk and is damaged, or was made elsewhere: it is compiled anew, which is said once."""

import importlib.util
import io
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numba
import pytest

from tapegrad.compilation import jit

TEXT = """
from tapegrad.compilation.jit import entry, kernel

@entry("int64(int64,int64)")
def total(first, second):
    return first + second

@kernel("int64(int64)")
def twice(n):
    return 2 * n
"""


class Place:
    """A module of compiled functions, and its folder of compiled code."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "kept_functions.py"
        self.file.write_text(TEXT)

    def loaded(self) -> ModuleType:
        """The module as a new process has it, with its functions compiled or read."""
        spec = importlib.util.spec_from_file_location("kept_functions", self.file)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules["kept_functions"] = importlib.util.module_from_spec(spec)  # as that of the engine is
        spec.loader.exec_module(module)
        assert module.total.get()(2, 3) == 5
        assert module.twice.get() > 2**12
        return module

    def files(self, kind: str) -> list[Path]:
        found = sorted(self.folder.rglob(f"*.{kind}"))
        assert len(found) == 2
        return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A folder that two functions were compiled into."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(jit, "_damaged", set())
    monkeypatch.setitem(sys.modules, "kept_functions", None)  # and away afterwards
    found = Place(tmp_path)
    found.loaded()
    return found


def in_silence(place: Place) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        place.loaded()


DAMAGE = {
    "empty": lambda content: b"",
    "cut short": lambda content: content[:100],
    "changed": lambda content: content.replace(b"numba", b"numbb"),
}


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_compiled_code_is_compiled_anew(place: Place, kind: str, how: str) -> None:
    before = {path: path.read_bytes() for path in place.files(kind)}
    damaged = {path: DAMAGE[how](content) for path, content in before.items() if DAMAGE[how](content) != content}
    assert damaged  # not every index names Numba
    for path, content in damaged.items():
        path.write_bytes(content)
    with pytest.warns(RuntimeWarning, match="is damaged") as said:
        place.loaded()
    assert len(said) == 1
    assert all(path.read_bytes() != damaged[path] for path in damaged)
    in_silence(place)


def another_version(content: bytes) -> bytes:
    stream = io.BytesIO(content)
    pickle.load(stream)
    return pickle.dumps("0.1.0", protocol=-1) + stream.read()


def another_cpu(content: bytes) -> bytes:
    stream = io.BytesIO(content)
    version, (stamp, files) = pickle.load(stream), pickle.load(stream)
    elsewhere = {
        (signature, (target, "another-cpu", features), code): name
        for (signature, (target, _, features), code), name in files.items()
    }
    return pickle.dumps(version, protocol=-1) + pickle.dumps((stamp, elsewhere), protocol=-1)


@pytest.mark.parametrize("kept", [another_version, another_cpu])
def test_code_compiled_elsewhere_is_not_used(kept: Callable[[bytes], bytes], place: Place) -> None:
    for index in place.files("nbi"):
        index.write_bytes(kept(index.read_bytes()))
    for code in place.files("nbc"):
        code.write_bytes(b"not code")
    in_silence(place)


def test_kept_code_is_read_and_not_written_again(place: Place) -> None:
    before = {path: path.stat().st_mtime_ns for path in [*place.files("nbi"), *place.files("nbc")]}
    in_silence(place)
    assert {path: path.stat().st_mtime_ns for path in [*place.files("nbi"), *place.files("nbc")]} == before
