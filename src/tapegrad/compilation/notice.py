"""A line on stderr when compiling takes long, so that nobody waits without knowing for what."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

__all__ = ["Notice", "notice"]

PATIENCE = 1.0  # seconds of compiling, in all of a process, after which it is said


class Notice:
    """Counts the time that a process compiles the engine, and says once what is happening.

    Used around each compilation, with the place where its result is kept.
    """

    def __init__(self) -> None:
        self.reason = ""  # why the engine is compiled here
        self._spent, self._said = 0.0, False
        self._begin = self._last = 0.0
        self._timer: threading.Timer | None = None
        self._kept = ""

    def around(self, kept: str | None) -> Notice:
        """For a ``with`` block; `kept` is the folder of the compiled code, None if it is not kept."""
        self._kept = f"it happens once, and is kept in {kept}" if kept else "it cannot be kept: see the warning"
        return self

    def __enter__(self) -> None:
        self._begin = time.monotonic()
        if not self._said:
            self._timer = threading.Timer(max(PATIENCE - self._spent, 0.0), self._say)
            self._timer.daemon = True
            self._timer.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._last = time.monotonic() - self._begin
        self._spent += self._last

    def was_read(self) -> None:
        """The last block read code from disk and compiled nothing."""
        self._spent -= self._last

    def _say(self) -> None:
        self._said = True
        why = f" ({self.reason})" if self.reason else ""
        print(f"tapegrad: compiling the engine for this machine{why}; {self._kept}", file=sys.stderr, flush=True)


notice = Notice()
