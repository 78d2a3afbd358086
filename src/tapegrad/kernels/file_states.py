"""Whether files are what they were when they were looked at: by what the system knows of them, in place of reading them again.

A list of states lies where Python keeps bytecode: sizes, times of the last change of content and of anything, and numbers of the
files. Who writes into a file, or puts another one in its place, changes one of these, whatever times are set afterwards. Only what
was changed within one tick of a clock could look the same, so files are listed when they have been as they are for a while.
The list is a note, and never needed: where it is not there, differs or cannot be written, files are read as ever.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from typing import Any

from tapegrad.archived_modules import SETTLED, replace_file

__all__ = ["are_known", "beside", "keep", "states_of"]


def beside(spec: Any, name: str) -> str:
    """Where the list of a module lies; empty where Python keeps no bytecode of it."""
    cached = getattr(spec, "cached", None)
    return os.path.join(os.path.dirname(cached), f"{name}.{sys.implementation.cache_tag}.states") if cached else ""


def states_of(files: Iterable[str]) -> str:
    """A line for each file; empty if one cannot be looked at, or was changed just now."""
    lines, now = [], time.time_ns()
    try:
        for path in files:
            found = os.stat(path)
            if not 0 <= max(found.st_mtime_ns, found.st_ctime_ns) <= now - SETTLED:
                return ""
            lines.append(f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino} {found.st_dev} {path}\n")
    except OSError:
        return ""
    return "".join(lines)


def are_known(listed: str, files: Iterable[str]) -> bool:
    """Whether these very files are listed, each with the state that it has now."""
    try:
        with open(listed, "rb", buffering=0) as file:
            known = file.read()
    except OSError:
        return False
    return bool(known) and known == os.fsencode(states_of(files))


def keep(listed: str, states: str) -> None:
    """List files whose states were taken before they were looked at: what was changed meanwhile will differ."""
    if states and listed and not sys.dont_write_bytecode:
        replace_file(listed, os.fsencode(states))
