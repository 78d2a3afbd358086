"""Compiling while the program goes on: one thread makes machine code of paths that have run often.

A process is not forked while code is made: LLVM's locks, and those of modules that are being imported, would stay locked in
the child.

Each call of LLVM, and each look at a file while its modules are imported, lets go of the interpreter, and a thread that calls the
program again and again gives it back after a switch interval only: of 5 milliseconds, Python's own one, a thousand are seconds. One
that lets go of it itself, and takes it again at once, is never asked to. So callers that wait for code give way now and then.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

__all__ = ["compile_later", "compiling", "give_way"]

compiling = threading.Lock()
MOMENT, BETWEEN = 5e-5, 2e-4  # seconds: how long a caller gives way, and how long he does not

_Task = Callable[[], None]
_tasks: SimpleQueue[_Task | None] = SimpleQueue()
_thread: threading.Thread | None = None
_unfinished = 0  # tasks
_gave_way = 0.0


def compile_later(task: _Task) -> None:
    """Let the thread do something, after what it was given before."""
    global _thread, _unfinished
    if _thread is None:
        _thread = threading.Thread(target=_work, name="tapegrad-compiler", daemon=True)
        _thread.start()
    _unfinished += 1
    _tasks.put(task)


def give_way() -> None:
    """Let the thread go on for a moment, if it has something to do."""
    global _gave_way
    if _unfinished and time.perf_counter() - _gave_way > BETWEEN:
        time.sleep(MOMENT)
        _gave_way = time.perf_counter()


def _work() -> None:
    global _unfinished
    while (task := _tasks.get()) is not None:
        task()
        _unfinished = _tasks.qsize()


def _stop() -> None:
    """At exit: what is being compiled is finished, since LLVM must not be taken down under it, and nothing else is begun."""
    global _thread, _unfinished
    while not _tasks.empty():
        _tasks.get()
    if _thread is not None:
        _tasks.put(None)
        _thread.join()
        _thread = None
    _unfinished = 0


def _forget() -> None:
    """In a forked process there is no such thread."""
    global _tasks, _thread, _unfinished
    _tasks, _thread, _unfinished = SimpleQueue(), None, 0
    compiling.release()


atexit.register(_stop)
os.register_at_fork(before=compiling.acquire, after_in_parent=compiling.release, after_in_child=_forget)
