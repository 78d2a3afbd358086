"""Lines of the user's code: those that neither this package nor the libraries below it are made of."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache
from types import CodeType, FrameType
from typing import NamedTuple

import numpy as np

from tapegrad.frames import PACKAGE

__all__ = ["SourceLine", "is_users_code", "is_users_file", "line_of", "present_line"]

_PATHS = sysconfig.get_paths()
_STANDARD = tuple({os.path.join(_PATHS[name], "") for name in ("stdlib", "platstdlib")})
_INSTALLED = tuple({os.path.join(_PATHS[name], "") for name in ("purelib", "platlib")})
_NUMPY = os.path.join(os.path.dirname(np.__file__), "")
_BESIDE_NUMPY = tuple(
    os.path.join(os.path.dirname(_NUMPY[:-1]), name, "") for name in ("scipy", "numba", "llvmlite", "_distutils_hack")
)


class SourceLine(NamedTuple):
    """A line of a function."""

    file: str
    number: int
    function: str

    @property
    def text(self) -> str:
        """The line as it is written, where it can be read."""
        import linecache

        return linecache.getline(self.file, self.number).strip()

    @property
    def place(self) -> str:
        """File without folders, and number."""
        return f"{os.path.basename(self.file)}:{self.number}"

    def __str__(self) -> str:
        text = self.text
        return self.place + (f" in {self.function}" if self.function else "") + (f": {text}" if text else "")


def is_users_code(code: CodeType) -> bool:
    """Whether code is the user's: not this package's, NumPy's, SciPy's, Numba's or Python's own, and not made by any of these."""
    return is_users_file(code.co_filename) and (code.co_filename != "<string>" or not code.co_name.startswith(_GENERATED))


_GENERATED = ("__", "<lambda>")  # methods of data classes and of named tuples


@cache
def is_users_file(file: str) -> bool:
    """The same for the file that code is in."""
    if file.startswith((PACKAGE, _NUMPY, *_BESIDE_NUMPY, "<frozen ", "<__array_function__", "<tapegrad")):
        return False
    return file.startswith(_INSTALLED) or not file.startswith(_STANDARD)


def line_of(frame: FrameType | None) -> SourceLine | None:
    """The innermost line of the user's code on the stack of a frame."""
    while frame is not None and not is_users_code(frame.f_code):
        frame = frame.f_back
    return None if frame is None else SourceLine(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def present_line() -> SourceLine | None:
    """The line of the user's code that is being run."""
    return line_of(sys._getframe(1))
