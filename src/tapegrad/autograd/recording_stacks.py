"""Where rows were recorded: the stacks of Python that anomaly detection shows."""

from __future__ import annotations

import threading
from types import CodeType, FrameType
from typing import Any

from tapegrad.autograd.decoded_rows import name_of
from tapegrad.engine.layout import TRACED
from tapegrad.frames import calling_frame
from tapegrad.tape.row_objects import RowObjects
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.operator_dispatch import RECORDING, surround

__all__ = ["Trace", "described", "keep_traces", "running", "trace_at"]

_traces: RowObjects[Trace] = RowObjects(TRACED)


class Trace:
    """The stack on which a row was recorded, and the row whose derivative recorded it, if any."""

    __slots__ = ("parent", "stack")

    def __init__(self, stack: list[tuple[CodeType, int]], parent: tuple[str, Trace | None] | None) -> None:
        self.stack = stack
        self.parent = parent

    def __str__(self) -> str:
        import traceback

        frames = [traceback.FrameSummary(code.co_filename, line, code.co_name) for code, line in self.stack]
        return "".join(traceback.StackSummary.from_list(frames).format())


class _Thread(threading.local):
    def __init__(self) -> None:
        self.rows: list[tuple[str, Trace | None]] = []


_thread = _Thread()


def running() -> list[tuple[str, Trace | None]]:
    """Names and traces of the rows whose derivatives this thread is computing; the innermost is the last."""
    return _thread.rows


def _present() -> Trace:
    frame: FrameType | None = calling_frame()
    stack = []
    while frame is not None:
        stack.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return Trace(stack[::-1], _thread.rows[-1] if _thread.rows else None)


def _noting(entry: Any) -> Any:
    """An entry that records, with the place noted."""

    def call(*arguments: Any) -> Any:
        handle = entry(*arguments)
        if handle > 0:
            trace = _present()
            with TAPE.claim():
                slot = TAPE.slot(handle)
                _traces.set(slot, trace)
        return handle

    return call


def keep_traces(wanted: bool) -> None:
    """Note for each row where it is recorded, or stop it; rows keep what is noted."""
    surround("anomalies", dict.fromkeys(RECORDING, _noting) if wanted else None)


def trace_at(slot: int) -> Trace | None:
    """Where a row was recorded, None if nobody noted it."""
    return _traces.get(slot)


def described(slot: int) -> tuple[str, Trace | None]:
    """Name and trace of a row."""
    return name_of(slot), trace_at(slot)
