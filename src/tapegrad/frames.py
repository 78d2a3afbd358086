"""Where the package was called from: the frames of Python's stack that are not its own."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import Any

__all__ = ["calling_frame", "frames_of_package", "is_inside_driver", "line_of", "module_that_asks", "variables_of"]

PACKAGE = os.path.dirname(__file__) + os.sep
DRIVERS = PACKAGE + "drivers" + os.sep, PACKAGE + "optimize" + os.sep


def frames_of_package() -> int:
    """How many of the innermost frames of the stack belong to this package."""
    frame: FrameType | None = sys._getframe(1)
    count = 0
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, count = frame.f_back, count + 1
    return count


def calling_frame() -> FrameType:
    """The innermost frame that does not belong to this package; the outermost one if all do."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame


def line_of(code: CodeType, instruction: int) -> str:
    """File and line of an instruction, by its offset."""
    line = next((line for start, end, line in code.co_lines() if start <= instruction < end), None)
    return f"{code.co_filename}, line {line}"


def variables_of(frame: FrameType) -> dict[str, Any]:
    """The variables of a frame by their names, as a dict: from Python 3.13 on those of functions are another mapping."""
    known = frame.f_locals
    return known if type(known) is dict else dict(known)


def module_that_asks() -> str:
    """Name of the module that called the package, by NumPy or by itself."""
    frame: FrameType | None = calling_frame()
    while frame is not None and (name := frame.f_globals.get("__name__", "")).startswith("numpy."):
        frame = frame.f_back
    return "" if frame is None else name


def is_inside_driver() -> bool:
    """Whether a driver is running: who called it need not know tensors, so messages are about arrays and functions then."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(DRIVERS):
            return True
        frame = frame.f_back
    return False
