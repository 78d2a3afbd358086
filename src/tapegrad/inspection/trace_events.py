"""Events in the format of Chrome's viewer of traces, which Perfetto's reads as well."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import CodeType
from typing import Any

from tapegrad.inspection.source_lines import SourceLine

__all__ = ["TraceEvents"]

LINES, SWEEPS = 1, 2  # what the viewers call threads
NAMES = {LINES: "lines of Python", SWEEPS: "backward passes"}


class TraceEvents:
    """Events of a profile, at most so many.

    Parameters
    ----------
    most : int
    """

    def __init__(self, most: int) -> None:
        self.most, self.left_out = most, 0
        self._found: list[tuple[Any, ...]] = []  # name, phase, thread, begin, duration or value, category
        self._begin = 0.0
        self._functions: list[tuple[str, float]] = []

    def begin(self, now: float) -> None:
        """Times count from here."""
        self._begin = now

    def _add(self, *event: Any) -> None:
        if len(self._found) < self.most:
            self._found.append(event)
        else:
            self.left_out += 1

    def line(self, line: SourceLine, start: float, end: float) -> None:
        """A line ran."""
        self._add(line, "X", LINES, start, end - start, "line")

    def enter(self, code: CodeType, now: float) -> None:
        """A function was called."""
        self._functions.append((code.co_qualname, now))

    def leave(self, now: float) -> None:
        """The function that was called last returned."""
        if self._functions:
            name, start = self._functions.pop()
            self._add(name, "X", LINES, start, now - start, "function")

    def sweep(self, name: str, start: float, end: float) -> None:
        """A part of a pass ran."""
        self._add(name, "X", SWEEPS, start, end - start, "backward")

    def memory(self, held: int, now: float) -> None:
        """So many bytes are held."""
        self._add("bytes held", "C", LINES, now, held, "memory")

    def _described(self) -> list[dict[str, Any]]:
        process = os.getpid()
        found: list[dict[str, Any]] = [
            {"name": "process_name", "ph": "M", "pid": process, "tid": 0, "args": {"name": "tapegrad"}},
        ]
        found += [
            {"name": "thread_name", "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
            for thread, name in NAMES.items()
        ]
        for name, phase, thread, start, amount, category in self._found:
            event: dict[str, Any] = {
                "name": _title(name) if isinstance(name, SourceLine) else name, "ph": phase, "pid": process, "tid": thread,
                "ts": 1e6 * (start - self._begin), "cat": category,
            }  # fmt: skip
            if isinstance(name, SourceLine):
                event["args"] = {"source": name.text, "function": name.function, "place": name.place}
            if phase == "X":
                event["dur"] = 1e6 * amount
            else:
                event["args"] = {"bytes": amount}
            found.append(event)
        return found

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write all of them as one JSON object."""
        text = {
            "traceEvents": self._described(), "displayTimeUnit": "ms", "otherData": {"events left out": self.left_out},
        }  # fmt: skip
        Path(file).write_text(json.dumps(text), encoding="utf-8")


def _title(line: SourceLine) -> str:
    """The line as viewers show it on a bar: what it says first, which is all that a short bar has room for."""
    return f"{line.text}  ({line.place})" if line.text else line.place
