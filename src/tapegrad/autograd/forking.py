"""What a forked process takes over: locks that nobody else holds, and only the passes of the thread that forked.

The other threads do not exist in the child, so what they were in the middle of is never finished there: a lock would stay locked,
and a pass would keep rows from ever being reclaimed.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from functools import partial
from operator import methodcaller
from types import FrameType
from typing import Any

from tapegrad.autograd import sweep_memory
from tapegrad.interrupts import carried_through
from tapegrad.tape import locks, tape
from tapegrad.tensors import saved_value_packing

__all__: list[str] = []

_LOCKS: tuple[Any, ...] = locks.IN_ORDER
_held: dict[int, list[bool]] = {}  # by thread: an entry for each lock that it holds, for the time of a fork


def _take_locks() -> None:
    held = _held.setdefault(get_ident(), [])
    # No bytecode between taking a lock and noting it.
    held.extend(map(methodcaller("acquire"), _LOCKS[len(held) :]))


def _has_locks() -> bool:
    return len(_held.get(get_ident(), ())) == len(_LOCKS)


# Wait until no other thread is between two steps that belong together. The fork goes on whatever is raised here, so the locks are
# needed all the same.
_hold = partial(carried_through, _take_locks, _has_locks)


def _let_go() -> None:
    for _, lock in reversed(list(zip(_held.pop(get_ident()), _LOCKS, strict=True))):
        lock.release()


def _own_passes() -> set[int]:
    """Ids of the working memories that calls of this thread use."""
    found: set[int] = set()
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        found.update(id(value) for value in frame.f_locals.values() if isinstance(value, sweep_memory.Sweep))
        frame = frame.f_back
    return found


def _start_child() -> None:
    _let_go()
    own, thread = _own_passes(), get_ident()
    for link in list(tape.TAPE.passes):
        state = link()
        if state is not None and id(state) not in own and state.abandon():
            tape.TAPE.passes.discard(link)
    tape.TAPE.claims = {link for link in tape.TAPE.claims if (claim := link()) is not None and claim.thread == thread}
    tape.TAPE.count_pins()
    saved_value_packing.forget_other_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_start_child)
