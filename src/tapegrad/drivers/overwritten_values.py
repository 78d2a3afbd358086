"""Functions that overwrite what a derivative needs: they are called once more, with copies of what operations save.

In NumPy `y[1] = y[0] ** 2` is an ordinary line, but the square has saved the memory of `y`. Whether that matters is known when the
function has returned. The second call must have the same value to the last bit, else the error of the pass stands. Functions that
were found to need copies get them at once the next time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.copied_rows import COPYING
from tapegrad.autograd.sweep import check_saved
from tapegrad.drivers.calling import note_needing_copies
from tapegrad.drivers.containers import flatten
from tapegrad.errors import OverwrittenError
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import saved_value_packing, untracked_values
from tapegrad.tensors.saved_value_packing import enter, leave
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["called_with_copies", "copies", "kept_apart"]

Called = tuple[Any, untracked_values.Places]


@contextlib.contextmanager
def copies() -> Iterator[None]:
    """Context in which every saved value is copied."""
    enter(COPYING)
    try:
        yield
    finally:
        leave()


def called_with_copies(record: Callable[..., Any], arguments: Sequence[Any], kwargs: dict[str, Any]) -> Called:
    """Call a function while every saved value is copied."""
    with copies():
        return untracked_values.watched(record, arguments, kwargs)


def kept_apart(function: Any, record: Callable[..., Any], arguments: Sequence[Any], kwargs: dict[str, Any], made: Called) -> Called:
    """What a call that wrote into memory gave, or that of a second call if the first one overwrote what its derivative needs."""
    first = _leaves(made[0])
    slots = [TAPE.slot(t._row) for t in first if isinstance(t, Tensor) and t._row > 0]
    if not slots or saved_value_packing.current_packer() is not None:
        return made
    try:
        check_saved(slots)
    except OverwrittenError:
        pass
    else:
        return made
    try:
        again = called_with_copies(record, arguments, kwargs)
    except Exception:  # of a function that does something else each time; the pass says what is wrong
        return made
    second = _leaves(again[0])
    if len(first) != len(second) or any(_bits(a) != _bits(b) for a, b in zip(first, second, strict=True)):
        return made
    with contextlib.suppress(TypeError):  # without weak references, or a hash
        note_needing_copies(function)
    return again


def _leaves(output: Any) -> list[Any]:
    found: list[Any] = []
    flatten(output, found)
    return found


def _bits(value: Any) -> Any:
    if isinstance(value, Tensor):
        value = array_of(value)
    return value.tobytes() if issubclass(type(value), (np.ndarray, np.generic)) else repr(value)
