"""What a compiler written in Python wants of the interpreter: room for deep recursion, and few collections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.collector import without_collections

__all__ = ["with_few_collections", "with_room"]

# Frames of Python functions stand one behind the other in pieces of memory of 16 kB, and a piece is given back as soon as its
# first frame is left. Numba's recursion goes to and fro over the end of a piece: in the first gradient of a scalar, where the
# engine was not built, the system was asked for memory 86,000 times. A frame that might need half a megabyte gets a piece of
# a megabyte, and all that is called from it stands there. What is not touched of that takes no memory.
SLOTS = (1 << 16) + 64


def with_room(function: Callable[..., Any], *args: Any, **kws: Any) -> Any:
    """Call a function that recurses deeply."""
    return function(*args, **kws)


with_room.__code__ = with_room.__code__.replace(co_stacksize=SLOTS)


def with_few_collections(function: Callable[..., Any], *args: Any, **kws: Any) -> Any:
    """Call a function that makes many objects which live until it returns; looking through them took a seventh of the time."""
    return without_collections(with_room, function, *args, **kws)
