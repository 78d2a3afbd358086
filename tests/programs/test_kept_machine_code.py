"""Machine code on disk: found again by the text that it was made of, and never believed when it is damaged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.programs.fused import kept_code

X = np.linspace(-1.0, 2.0, 7)


def f(x: Any) -> Any:
    return (np.tanh(x * 0.3) * np.exp(-x * x)).sum()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kept_code, "_folder", lambda: tmp_path)
    return tmp_path


def gradient() -> Any:
    """By a new program with machine code."""
    program = tg.program(f)
    tg.grad(program)(X)
    program.compile()
    tg.grad(program)(X)
    assert program.traces[0]["machine code"].startswith("machine code")
    return tg.grad(program)(X)


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_code_is_not_made_twice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = gradient()
    assert len(files(folder)) == 1
    monkeypatch.setattr("tapegrad.programs.fused.machine_code.keep", lambda key, code: pytest.fail("it was made again"))
    assert np.array_equal(gradient(), first)


@pytest.mark.parametrize("place", [0, 40, 300, -1])
def test_damaged_files_are_made_again(folder: Path, place: int) -> None:
    first = gradient()
    (file,) = files(folder)
    whole = bytearray(file.read_bytes())
    damaged = bytearray(whole)
    damaged[place] ^= 64
    file.write_bytes(damaged)
    assert np.array_equal(gradient(), first)
    assert file.read_bytes() == whole


def test_truncated_files_and_those_of_other_texts_are_made_again(folder: Path) -> None:
    first = gradient()
    (file,) = files(folder)
    whole = file.read_bytes()
    kept_code.keep("0" * 64, b"something else")
    for content in (whole[:100], b"", (folder / f"{'0' * 40}{kept_code.ENDING}").read_bytes()):
        file.write_bytes(content)
        assert np.array_equal(gradient(), first)
        assert file.read_bytes() == whole


def test_code_is_made_where_no_folder_can_be_written_into(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_code, "_folder", lambda: None)
    assert np.array_equal(gradient(), tg.grad(f)(X))


def test_the_oldest_of_many_files_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_code, "MOST", 4)
    kept = []
    for k in range(6):
        kept_code.keep(f"{k}" * 64, b"code")
        os.utime(folder / f"{f'{k}' * 40}{kept_code.ENDING}", (k, k))
        kept.append([path.name[0] for path in files(folder)])
    assert kept[3:] == [["0", "1", "2", "3"], ["2", "3", "4"], ["2", "3", "4", "5"]]


def test_the_folder_that_was_chosen_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert next(kept_code.folders()) == tmp_path / "tapegrad"
