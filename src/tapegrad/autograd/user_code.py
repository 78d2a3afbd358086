"""User code that runs inside a pass, and may start another one inside that, and so on.

Python limits the depth of calls a thread, and a level of nesting takes about ten of them. So every so many levels go on in a fresh
thread, while this one waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tapegrad.interrupts import carried_through
from tapegrad.tensors.grad_mode import inference_mode, set_grad_enabled
from tapegrad.tensors.modes import is_grad_enabled, is_inference_mode_enabled
from tapegrad.tensors.saved_value_packing import current_packer, enter, leave

__all__ = ["call_nested"]

DEEPEST = 32  # levels in one thread


class _Level(threading.local):
    depth = 0


_level = _Level()


def call_nested(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the user's from within a pass."""
    if _level.depth >= DEEPEST:
        return _call_in_thread(function, arguments)
    _level.depth += 1
    try:
        return function(*arguments)
    finally:
        _level.depth -= 1


def _call_in_thread(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    enabled, inference, packer = is_grad_enabled(), is_inference_mode_enabled(), current_packer()
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            with inference_mode(inference), set_grad_enabled(enabled):
                if packer is not None:
                    enter(packer)
                try:
                    results.append(function(*arguments))
                finally:
                    if packer is not None:
                        leave()
        except BaseException as error:  # it belongs to the thread that waits
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    carried_through(thread.join, lambda: not thread.is_alive())  # what it is doing must end before the pass is given up
    if errors:
        raise errors[0]
    return results[0]
