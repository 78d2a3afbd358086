"""What a profile knows of lines, operations and passes, and tables of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tapegrad.inspection.source_lines import SourceLine
from tapegrad.inspection.values_as_text import size_in_words

__all__ = ["LineProfile", "OperationProfile", "PassProfile", "lines_table", "operations_table", "passes_table"]

LONGEST = 60
LEAST = 0.001  # of the time, for lines without rows
OFTEN = 0.02  # of a line's rows, for what is worth a note


class LineProfile:
    """What one line of the user's code took.

    Attributes
    ----------
    line : SourceLine
    visits : int
        How often it began.
    forward : float
        Seconds that it ran, apart from passes.
    backward : float
        Seconds of passes that went through rows which it recorded.
    host : float
        Of these, seconds in derivatives that are Python.
    rows, saved_bytes : int
        What it recorded that was there when it ended.
    operations : dict
        Rows by name.
    reasons : dict
        Why rows were recorded through Python, and how many.
    """

    __slots__ = ("backward", "forward", "host", "line", "operations", "reasons", "rows", "saved_bytes", "visits")

    def __init__(self, line: SourceLine) -> None:
        self.line = line
        self.visits = self.rows = self.saved_bytes = 0
        self.forward = self.backward = self.host = 0.0
        self.operations: dict[str, int] = {}
        self.reasons: dict[str, int] = {}

    @property
    def total(self) -> float:
        """Seconds of both."""
        return self.forward + self.backward

    def __repr__(self) -> str:
        return f"<{self.line.place}: forward {self.forward:.3g} s, backward {self.backward:.3g} s, {self.rows} rows>"


class OperationProfile:
    """What one kind of operation took; see `LineProfile`. Seconds of compiled code are its part of what was measured for many."""

    __slots__ = ("backward", "elements", "forward", "is_host", "name", "rows")

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows = self.elements = 0
        self.forward = self.backward = 0.0
        self.is_host = False

    @property
    def total(self) -> float:
        """Seconds of both."""
        return self.forward + self.backward

    def __repr__(self) -> str:
        return f"<{self.name}: forward {self.forward:.3g} s, backward {self.backward:.3g} s, {self.rows} rows>"


class PassProfile(NamedTuple):
    """A pass: seconds in compiled code and in derivatives that are Python, rows, and bytes of adjoints."""

    compiled: float
    host: float
    rows: int
    host_rows: int
    adjoint_bytes: int


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3f}" if seconds else "-"


def _aligned(rows: Sequence[Sequence[str]], left: frozenset[int]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.ljust(n) if k in left else cell.rjust(n) for k, (cell, n) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def lines_table(lines: Sequence[LineProfile], most: int, seconds: float) -> str:
    """Times in ms by line, and below it why lines take a slow way."""
    table = [("line", "visits", "forward ms", "backward ms", "of it Python", "rows", "saved", "source")]
    shown = [one for one in lines if one.rows or one.total >= LEAST * seconds][:most]
    table += [
        (
            one.line.place, str(one.visits), _milliseconds(one.forward), _milliseconds(one.backward), _milliseconds(one.host),
            str(one.rows), size_in_words(one.saved_bytes), _shortened(one.line.text),
        )
        for one in shown
    ]  # fmt: skip
    text = f"{1e3 * seconds:.3f} ms in {len(lines)} lines\n" + _aligned(table, frozenset((0, 7)))
    notes = [
        f"{one.line.place} takes the slow way ({count} of {one.rows} rows): {why}"
        for one in lines  # also those that are too quick to be shown
        for why, count in one.reasons.items()
        if count >= OFTEN * one.rows
    ]
    return "\n".join([text, *notes[:most]])


def operations_table(operations: Sequence[OperationProfile], most: int) -> str:
    """Times in ms by operation."""
    if not operations:
        return ""
    table = [("operation", "rows", "elements", "forward ms", "backward ms", "derivative")]
    table += [
        (
            one.name, str(one.rows), str(one.elements), _milliseconds(one.forward), _milliseconds(one.backward),
            "Python" if one.is_host else "compiled",
        )
        for one in operations[:most]
    ]  # fmt: skip
    return _aligned(table, frozenset((0, 5)))


def passes_table(passes: Sequence[PassProfile], peak: int) -> str:
    """One line on all passes, one on memory."""
    memory = f"at most {size_in_words(peak)} held by rows, what they saved, and adjoints"
    if not passes:
        return memory
    compiled, host = (sum(getattr(one, name) for one in passes) for name in ("compiled", "host"))
    rows, hosts = sum(one.rows for one in passes), sum(one.host_rows for one in passes)
    return (
        f"{len(passes)} backward passes through {rows} rows: {1e3 * compiled:.3f} ms in compiled code, {1e3 * host:.3f} ms in "
        f"{hosts} derivatives that are Python\n{memory}"
    )
