"""Machine code on disk: what a text was compiled to, under a hash of the text and of all else that code depends on."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from tapegrad.interrupts import whole_file

__all__ = ["code_of", "keep"]

ENDING = ".tapegrad-code"
MOST = 256  # files in a folder; of more the oldest quarter goes, so that not all are looked at each time


def folders() -> Iterator[Path]:
    """Where code may lie: in the folder that the user chose for Numba's, beside the package, in the user's cache."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield Path(chosen) / "tapegrad"
    yield Path(__file__).parents[2] / "__pycache__"
    with contextlib.suppress(RuntimeError):  # no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tapegrad"


@functools.cache
def _folder() -> Path | None:
    """The first of them that can be written into."""
    for folder in folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return None


def _file_of(key: str) -> Path | None:
    folder = _folder()
    return None if folder is None else folder / f"{key[:40]}{ENDING}"


def code_of(key: str) -> bytes | None:
    """The code of a text; None if it was not kept, or is damaged.

    Parameters
    ----------
    key : str
        Hash of everything that it depends on.
    """
    path = _file_of(key)
    if path is None:
        return None
    try:
        content = path.read_bytes()
    except OSError:
        return None
    code = content[32:]
    return code if content[:32] == _sealed(key, code) else None


def keep(key: str, code: bytes) -> None:
    """Keep code, whole or not at all, and of too many files the younger ones."""
    path = _file_of(key)
    if path is None:
        return
    with contextlib.suppress(OSError):
        with whole_file(path) as file:
            file.write(_sealed(key, code) + code)
        with os.scandir(path.parent) as entries:  # another process may remove some of them meanwhile
            found = [entry.path for entry in entries if entry.name.endswith(ENDING)]
        if len(found) > MOST:
            for old in sorted(found, key=_changed)[: len(found) - 3 * MOST // 4]:
                Path(old).unlink(missing_ok=True)


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _sealed(key: str, code: bytes) -> bytes:
    return hashlib.sha256(key.encode() + code).digest()
