"""Who follows what a call computes, so that the same can be computed again without Python; a setting of each thread.

Operations cost nothing while nobody follows them: compiled operators do not look. As long as a thread is followed, they hand
their operands over to their Python forms, and the entries that write rows tell its tracer what they wrote.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from tapegrad.engine import layout as at
from tapegrad.tape.locks import packing as _lock
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.operator_dispatch import count, surround
from tapegrad.tensors.tracers import Tracer, of_thread

__all__ = ["followed", "settle"]

# Entries to which the Python forms have a longer way, that passes `tapegrad.recording.apply_rule.record`, and the others.
_SHORT = ("array1", "array2", "array3")
_TOLD = ("view_row", "map_row", "reduce_row", "join_row", "host_row")


def _longer_way(entry: Any) -> Any:
    def call(*arguments: Any) -> Any:
        return at.UNSUPPORTED if of_thread.tracer is not None else entry(*arguments)

    return call


def _telling(name: str) -> Callable[[Any], Any]:
    def layer(entry: Any) -> Any:
        def call(*arguments: Any) -> Any:
            handle = entry(*arguments)
            tracer = of_thread.tracer
            if tracer is not None and handle > 0:
                tracer.row(name, arguments, handle)
            return handle

        return call

    return layer


_LAYERS = dict.fromkeys(_SHORT, _longer_way) | {name: _telling(name) for name in _TOLD}


_active: weakref.WeakSet[Tracer] = weakref.WeakSet()


def settle() -> None:
    """Let entries and operators be as many tracers as there are want them: an interrupt may have come between two steps."""
    with _lock:
        wanted = len(_active)
        if wanted and not TAPE.tracers:
            surround("tracers", _LAYERS)
        count("tracers", wanted - TAPE.tracers)
        if not wanted:
            surround("tracers", None)


def followed(tracer: Tracer, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function while this thread is followed; its result."""
    TAPE.load()
    before = of_thread.tracer
    try:
        _active.add(tracer)
        settle()
        of_thread.tracer = tracer
        return function(*arguments)
    finally:
        of_thread.tracer = before
        _active.discard(tracer)
        settle()
