"""Python's collector, switched off for a while by whoever does not want collections, or destructors of others, in between.

It is one for all threads. Who switched it on again, because it was on before, would do so in the middle of what another thread
does: it stays off until the last one is done.
"""

from __future__ import annotations

import gc
import os
from _thread import get_ident
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["without_collections"]

T = TypeVar("T")

_calls: dict[object, int] = {}  # that are going on, and of which thread
_was_on = False  # before the first one of them


def without_collections(function: Callable[..., T], *args: Any, **kws: Any) -> T:
    """Call a function; there are no collections meanwhile but those that somebody asks for."""
    call = object()
    try:
        _calls[call] = get_ident()
        _switch_off()
        return function(*args, **kws)
    finally:
        _calls.pop(call, None)
        _switch_on()


def _switch_off() -> None:
    global _was_on
    if gc.isenabled():
        _was_on = True
        gc.disable()


def _switch_on() -> None:
    global _was_on
    if _was_on and not _calls:
        gc.enable()
        if _calls:  # another thread has begun one meanwhile
            _was_on = True  # one that ended at the same time may have noted that all is over
            gc.disable()
        else:
            _was_on = False


def _start_child() -> None:
    """In a forked process no other thread's call ever ends."""
    own = get_ident()
    for call, thread in list(_calls.items()):
        if thread != own:
            del _calls[call]
    _switch_on()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_child)
