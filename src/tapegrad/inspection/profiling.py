"""`profile`: where time and memory of recording and of backward passes go, by line and by operation."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter
from types import FrameType
from typing import Any

from tapegrad.engine import layout as at
from tapegrad.inspection.fallbacks import reason
from tapegrad.inspection.measured_passes import MeasuredPasses
from tapegrad.inspection.profile_tables import LineProfile, OperationProfile, lines_table, operations_table, passes_table
from tapegrad.inspection.recorded_rows import Intervals, kind_of
from tapegrad.inspection.source_lines import SourceLine, is_users_code, line_of
from tapegrad.inspection.trace_events import TraceEvents
from tapegrad.interrupts import undone
from tapegrad.tape.tape import TAPE, words_of
from tapegrad.tensors.operator_dispatch import RECORDING, surround

__all__ = ["profile"]

_header = words_of(TAPE.header)
_running = threading.Lock()


class profile:  # noqa: N801 - used like a function
    """Context that measures where time and memory go: by line of the user's code, and by operation.

    Parameters
    ----------
    events : int
        How many events the trace file may have at most; the table counts all.

    Attributes
    ----------
    lines : list of LineProfile
        For each line that recorded, or took time: times in seconds, rows, bytes, and why it takes a slow way, if it does.
    operations : list of OperationProfile
    seconds : float
        From the beginning to the end.
    peak_bytes : int
        Most that recorded rows and the adjoints of a pass held at a time.

    Raises
    ------
    RuntimeError
        On entering, if another profile is running.

    Notes
    -----
    What runs is what runs without it: compiled operators and compiled passes. A line's time is from its beginning to that of the
    next one, without lines of functions that it calls; functions of libraries count for the line that calls them. A stretch of a
    pass that compiled code walks is measured as a whole and divided among its rows by their numbers of elements, and so is the time
    of a line among the operations that it recorded. Calls of a derivative in Python (host rows) are measured one by one. Rows of a
    pass that nobody saw recorded count for the line that asks for the pass; so do passes with ``create_graph`` and sweeps of
    linear tapes (Hessians, Jacobians).

    Only the thread that enters is measured. Python's trace function is taken meanwhile, so debuggers and coverage do not see the
    block. Nothing of this costs outside.

    Examples
    --------
    >>> x = tg.tensor(np.ones(1000), requires_grad=True)
    >>> with tg.profile() as p:
    ...     y = np.exp(x * x).sum()
    ...     y.backward()
    >>> sorted(operation.name for operation in p.operations)
    ['Exp', 'Mul', 'Sum', 'leaf']

    ``print(p)`` shows tables, and ``p.save("trace.json")`` writes a file for chrome://tracing and ui.perfetto.dev.
    """

    def __init__(self, events: int = 200_000) -> None:
        self.lines: list[LineProfile] = []
        self.operations: list[OperationProfile] = []
        self.seconds, self.peak_bytes = 0.0, 0
        self.passes: list[Any] = []
        self._events = TraceEvents(events)
        self._by_line: dict[tuple[str, int], LineProfile] = {}
        self._by_name: dict[str, OperationProfile] = {}

    # What happens between two events belongs to the line that began with the first.

    def __enter__(self) -> profile:
        if not _running.acquire(blocking=False):
            raise RuntimeError("another profile is running: there is one at a time")
        undone(self._leave, self._begin_in, sys._getframe(1))
        return self

    def _begin_in(self, frame: FrameType) -> None:
        TAPE.load()
        self._thread = threading.get_ident()
        self._before = sys.gettrace()
        self._intervals: Intervals[LineProfile] = Intervals()
        self._stack: list[LineProfile | None] = []
        self._rows, self._moves, self._bytes = _header[at.ROWS], _header[at.MOVES], _header[at.SAVED_BYTES]
        self._reset: list[Callable[[], None]] = []
        self._measured = MeasuredPasses(self)
        self._reset.append(self._measured.begin())
        surround("profiles", {name: partial(self._layer, name) for name in RECORDING})
        self._reset.append(lambda: surround("profiles", None))
        self._follow(frame)
        self.excluded = 0.0
        self._begin = self._since = perf_counter()
        self._events.begin(self._begin)
        first = line_of(frame)
        self._line = self._profile_of(frame) if first is not None and is_users_code(frame.f_code) else None
        sys.settrace(self._called)

    def __exit__(self, *exception: object) -> None:
        sys.settrace(self._before)
        try:
            self._flush()
            self.seconds = perf_counter() - self._begin
            self._finish()
        finally:
            self._leave()

    def _follow(self, frame: FrameType | None) -> None:
        """Let lines of functions that are running tell when they begin."""
        while frame is not None:
            if is_users_code(frame.f_code):
                self._reset.append(partial(setattr, frame, "f_trace", frame.f_trace))
                frame.f_trace = self._happened
            frame = frame.f_back

    def _leave(self) -> None:
        sys.settrace(self._before)
        for undo in reversed(self._reset):
            undo()
        self._reset = []
        self._intervals.close()
        _running.release()

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not is_users_code(frame.f_code):
            return None
        self._flush()
        self._stack.append(self._line)  # and goes on being the line until the first one of the function begins
        self._events.enter(frame.f_code, self._since)
        return self._happened

    def _happened(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self._flush()
            self._line = self._profile_of(frame)
            self._line.visits += 1
        elif event == "return":
            self._flush()
            self._events.leave(self._since)
            self._line = self._stack.pop() if self._stack else None
        return self._happened

    def _profile_of(self, frame: FrameType) -> LineProfile:
        key = frame.f_code.co_filename, frame.f_lineno
        found = self._by_line.get(key)
        if found is None:
            line = SourceLine(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
            found = self._by_line[key] = LineProfile(line)
        return found

    @property
    def since(self) -> float:
        """When the last event was."""
        return self._since

    @property
    def present(self) -> LineProfile | None:
        """The line that is running."""
        return self._line

    def _flush(self) -> None:
        """Give the line that was running what happened since the last event."""
        now = perf_counter()
        line = self._line
        if line is not None:
            spent = max(now - self._since - self.excluded, 0.0)
            line.forward += spent
            self._note_rows(line, spent)
            self._events.line(line.line, self._since, now)
        self.excluded = 0.0
        self._since = perf_counter()

    def _note_rows(self, line: LineProfile, spent: float) -> None:
        rows, moves, held = _header[at.ROWS], _header[at.MOVES], _header[at.SAVED_BYTES]
        if held != self._bytes:
            line.saved_bytes += max(held - self._bytes, 0)
            self._bytes = held
            self._note_memory(0)
        if rows > self._rows and moves == self._moves:
            with TAPE.claim():
                self._intervals.add(self._rows, rows, line)
                kinds = [kind_of(slot) for slot in range(self._rows, rows) if TAPE.has_row(slot)]
            total = sum(kind.weight for kind in kinds)
            for kind in kinds:
                line.rows += 1
                line.operations[kind.operation] = line.operations.get(kind.operation, 0) + 1
                operation = self.operation(kind.operation)
                operation.rows += 1
                operation.elements += kind.elements
                if kind.is_host:
                    operation.is_host = True
                    why = f"the derivative of {kind.operation} is Python (a host row)"
                    line.reasons[why] = line.reasons.get(why, 0) + 1
                operation.forward += spent * kind.weight / total
        self._rows, self._moves = rows, moves

    def operation(self, name: str) -> OperationProfile:
        """What is known of an operation."""
        return self._by_name.setdefault(name, OperationProfile(name))

    def owners(self, slots: Any) -> list[LineProfile | None]:
        """The lines that recorded rows."""
        return self._intervals.owners(slots)

    def _note_memory(self, adjoints: int) -> None:
        held = self._bytes + at_least_bytes(_header[at.ROWS]) + adjoints
        self.peak_bytes = max(self.peak_bytes, held)
        self._events.memory(held, perf_counter())

    def note_pass(self, entry: Any, adjoints: int) -> None:
        """A pass ended."""
        self.passes.append(entry)
        self._note_memory(adjoints)

    @property
    def events(self) -> TraceEvents:
        """What the trace file will have."""
        return self._events

    def _layer(self, name: str, entry: Any) -> Any:
        def call(*arguments: Any) -> Any:
            handle = entry(*arguments)
            if handle > 0 and self._line is not None and threading.get_ident() == self._thread:
                start = perf_counter()
                why = reason(name, arguments)
                if why:
                    self._line.reasons[why] = self._line.reasons.get(why, 0) + 1
                self.excluded += perf_counter() - start
            return handle

        return call

    def is_here(self) -> bool:
        """Whether this is the thread that is measured."""
        return threading.get_ident() == self._thread

    def _finish(self) -> None:
        self.lines = sorted(self._by_line.values(), key=lambda line: -line.total)
        self.lines = [line for line in self.lines if line.rows or line.total > 0.0]
        self.operations = sorted(self._by_name.values(), key=lambda operation: -operation.total)

    def table(self, lines: int = 20) -> str:
        """The tables, as `print` shows them.

        Parameters
        ----------
        lines : int
            How many lines and operations to show.
        """
        parts = [lines_table(self.lines, lines, self.seconds), operations_table(self.operations, lines)]
        parts.append(passes_table(self.passes, self.peak_bytes))
        return "\n\n".join(part for part in parts if part)

    def save(self, file: Any) -> None:
        """Write a trace in Chrome's format, for chrome://tracing and Perfetto's viewer.

        Parameters
        ----------
        file : str or path-like
        """
        self._events.save(file)

    __str__ = table

    def __repr__(self) -> str:
        return self.table() if self.lines else "profile()"


def at_least_bytes(rows: int) -> int:
    """What the columns of so many rows take."""
    return 22 * rows
