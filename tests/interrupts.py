"""An interrupt at any place where Python may deliver one."""

import sys
from collections.abc import Callable, Set
from types import FrameType
from typing import Any

__all__ = ["Stop", "interrupt"]

# An interrupt that hits the beginning of `__exit__` leaves what that should end, as with any context manager; destructors and
# generators that are collected swallow theirs.
NOT_HIT = {"__exit__", "__del__", "<genexpr>"}


class Stop(BaseException):
    """What is raised; like KeyboardInterrupt, no handler of exceptions catches it."""


def interrupt(run: Callable[[], Any], k: int, *files: str, but: Set[str] = frozenset()) -> bool:
    """Run, raising at the k-th place in code from these files or folders; whether there are as many places.

    Signals are looked for when a Python function begins and when a C function has returned. Functions with names in `but` are
    left out.
    """
    count, left_out = 0, NOT_HIT | but

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        code = frame.f_code
        if event in ("call", "c_return") and code.co_filename.startswith(files) and code.co_name not in left_out:
            count += 1
            if count == k:
                sys.setprofile(None)
                raise Stop

    sys.setprofile(watch)
    try:
        run()
    except Stop:
        pass
    finally:
        sys.setprofile(None)
    return count >= k
