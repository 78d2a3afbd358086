"""The library is recognised by the states of files, and any change of one of them brings the hashes back."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fresh_processes import environment, run

from tapegrad.kernels import file_states, library


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the list of the library's files is; files count as settled at once."""
    path = tmp_path / "cache" / "library.states"
    monkeypatch.setattr(library, "KNOWN", str(path))
    monkeypatch.setattr(file_states, "SETTLED", 0)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return path


@pytest.fixture
def copied(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the sources and of the library that the test may edit."""
    package = tmp_path / "tapegrad"
    shutil.copytree(library.PACKAGE, package, ignore=shutil.ignore_patterns("compiled", "__pycache__"))
    shutil.copytree(built, package / "compiled")
    monkeypatch.setattr(library, "PACKAGE", str(package))
    return package


def no_hashes(content: bytes) -> str:
    raise AssertionError("a file was read again")


def find(package: Path) -> Any:
    return library.find(str(package / "compiled"))


def test_files_that_did_not_change_are_hashed_once(listed: Path, copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find(copied) is not None
    assert listed.exists()
    monkeypatch.setattr(library, "digest", no_hashes)
    assert find(copied) is not None


def with_former_times(path: Path, change: Callable[[Path], object]) -> None:
    """Change a file as somebody does who sets its times as they were."""
    was = path.stat()
    change(path)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (was.st_size, was.st_mtime_ns)


def rewritten(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def replaced(path: Path) -> None:
    other = path.with_suffix(".other")
    shutil.copy2(path, other)
    rewritten(other)
    os.replace(other, path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell when a file was changed but for a time that can be set")
@pytest.mark.parametrize("change", [rewritten, replaced])
def test_an_edit_of_the_same_size_and_time_is_noticed(listed: Path, copied: Path, change: Callable[[Path], object]) -> None:
    assert find(copied) is not None
    with_former_times(copied / "engine" / "sweep.py", change)
    assert find(copied) is None


@pytest.mark.skipif(sys.platform == "win32", reason="as above")
def test_another_library_of_the_same_size_and_time_is_noticed(listed: Path, copied: Path) -> None:
    assert find(copied) is not None
    (path,) = (path for path in (copied / "compiled").iterdir() if path.name != library.RECORD)
    with_former_times(path, replaced)  # not written into: it is loaded
    with pytest.warns(RuntimeWarning, match="is damaged"):
        assert find(copied) is None


def test_a_new_source_is_noticed(listed: Path, copied: Path) -> None:
    assert find(copied) is not None
    (copied / "engine" / "one_more.py").write_text("")
    assert find(copied) is None


def test_a_source_that_is_gone_is_noticed(listed: Path, copied: Path) -> None:
    assert find(copied) is not None
    (copied / "engine" / "sweep.py").unlink()
    assert find(copied) is None


def test_sources_that_are_again_what_they_were_are_taken(listed: Path, copied: Path) -> None:
    assert find(copied) is not None
    path = copied / "engine" / "sweep.py"
    content = path.read_bytes()
    path.write_bytes(content + b"\n# edited\n")
    assert find(copied) is None
    path.write_bytes(content)
    assert find(copied) is not None


def test_a_list_that_is_damaged_is_written_anew(listed: Path, copied: Path) -> None:
    assert find(copied) is not None
    whole = listed.read_bytes()
    for wrong in (b"", whole[:-5], whole.replace(b"0", b"1"), b"\xff\x00"):
        listed.write_bytes(wrong)
        assert find(copied) is not None
        assert listed.read_bytes() == whole


def test_a_library_that_does_not_fit_is_not_listed(listed: Path, copied: Path) -> None:
    (copied / "engine" / "sweep.py").write_text("# something else\n")
    assert find(copied) is None
    assert not listed.exists()


def test_files_that_were_changed_just_now_are_not_listed(listed: Path, copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_states, "SETTLED", 10_000_000_000)
    (copied / "engine" / "sweep.py").touch()
    assert find(copied) is not None
    assert not listed.exists()


def test_files_of_the_future_are_not_listed(listed: Path, copied: Path) -> None:
    os.utime(copied / "engine" / "sweep.py", (4e9, 4e9))
    assert find(copied) is not None
    assert not listed.exists()


def test_nothing_is_written_where_python_writes_no_bytecode(listed: Path, copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert find(copied) is not None
    assert not listed.parent.exists()


def test_a_place_that_cannot_be_written_to_is_no_harm(copied: Path, listed: Path) -> None:
    listed.parent.write_text("a file where the folder would be")
    assert find(copied) is not None


def test_the_list_lies_with_the_bytecode(tmp_path: Path) -> None:
    code = "from tapegrad.kernels import library; print(library.KNOWN)"
    given = environment() | {"PYTHONPYCACHEPREFIX": str(tmp_path)}
    path = Path(run(code, given).stdout.strip())
    assert path.is_relative_to(tmp_path)
    assert path.name == f"library.{sys.implementation.cache_tag}.states"
