"""Compiling while the program goes on: one thread makes machine code of paths that have run often.

A process is not forked while code is made: LLVM's locks, and those of modules that are being imported, would stay locked in
the child.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

__all__ = ["compile_later", "compiling"]

compiling = threading.Lock()

_Task = Callable[[], None]
_tasks: SimpleQueue[_Task | None] = SimpleQueue()
_thread: threading.Thread | None = None


def compile_later(task: _Task) -> None:
    """Let the thread do something, after what it was given before."""
    global _thread
    if _thread is None:
        _thread = threading.Thread(target=_work, name="tapegrad-compiler", daemon=True)
        _thread.start()
    _tasks.put(task)


def _work() -> None:
    while (task := _tasks.get()) is not None:
        task()


def _stop() -> None:
    """At exit: what is being compiled is finished, since LLVM must not be taken down under it, and nothing else is begun."""
    global _thread
    while not _tasks.empty():
        _tasks.get()
    if _thread is not None:
        _tasks.put(None)
        _thread.join()
        _thread = None


def _forget() -> None:
    """In a forked process there is no such thread."""
    global _tasks, _thread
    _tasks, _thread = SimpleQueue(), None
    compiling.release()


atexit.register(_stop)
os.register_at_fork(before=compiling.acquire, after_in_parent=compiling.release, after_in_child=_forget)
