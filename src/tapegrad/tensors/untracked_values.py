"""Places where a tracked value left the graph as a Python number, noted while somebody wants to know.

A function that computes its result from ``x.item()`` has no derivative left. PyTorch gives zeros or an error that does not say
where; a driver knows that the function is to be differentiated, so it looks.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tapegrad.engine.layout import WRITES
from tapegrad.frames import calling_frame
from tapegrad.tape.locks import OfThread
from tapegrad.tape.tape import TAPE, words_of

__all__ = [
    "Places", "at_depth", "compared", "count_write", "depth", "is_stored", "leaves_around", "note", "pass_on", "watched", "writes",
]  # fmt: skip

T = TypeVar("T")

in_use = False  # whether a call ever wanted to know: `Tensor.item` looks here first
decisions_in_use = False  # the same for what is compared, which fewer calls ask for
_header = words_of(TAPE.header)
_STORE = dis.opmap["STORE_SUBSCR"]


class Places(list[str]):
    """Places in one call, of which the first is kept.

    Attributes
    ----------
    written : str
        The first place where the number went into an array of NumPy's, which must not happen unseen: the array looks like a result.
    decided : list of Tensor or None
        Tracked tensors that were compared, if they are asked for: what a function does may depend on them without a derivative.
    left : list of Tensor
        The tensors whose values left, if the same are asked for.
    leaves : sequence of Tensor
        What the call is differentiated by, where that is known.
    """

    written = ""
    decided: list[Any] | None = None
    left: list[Any]
    leaves: Sequence[Any] = ()


class _Thread(OfThread):
    def __init__(self) -> None:
        self.places: list[Places] = []


_thread = _Thread()


def writes() -> int:
    """How many writes into memory of tensors there were, of all threads: a call during which there were some looks whether it needs
    what was there.
    """
    return _header[WRITES]


def count_write() -> None:
    """Count a write."""
    _header[WRITES] += 1


def depth() -> int:
    """How many calls of this thread want to know: those that are inside of each other."""
    return len(_thread.places)


def leaves_around() -> Sequence[Any]:
    """What the innermost call of this thread is differentiated by, as far as that is known."""
    return _thread.places[-1].leaves if _thread.places else ()


# Functions that call, and no context managers: an interrupt that hits the beginning of `__exit__` would leave the depth as it is,
# and from then on drivers would take themselves to be inside of another one.


def at_depth(level: int, function: Callable[..., T], *arguments: Any) -> T:
    """Call a function as if inside of so many calls: 0 makes drivers give plain results, whoever is differentiating around them."""
    before = _thread.places
    try:
        _thread.places = [Places() for _ in range(level)]
        return function(*arguments)
    finally:
        _thread.places = before


def watched(
    function: Callable[..., T], arguments: Sequence[Any], named: dict[str, Any], decisions: bool = False, leaves: Sequence[Any] = ()
) -> tuple[T, Places]:
    """Call a function and note places of this thread meanwhile, on request also what it compared; its result, and them."""
    global in_use, decisions_in_use
    in_use = True
    places = Places()
    places.leaves = leaves
    if decisions:
        decisions_in_use = True
        places.decided, places.left = [], []
    before = _thread.places
    try:
        _thread.places = [*before, places]
        return function(*arguments, **named), places
    finally:
        _thread.places = before


def compared(*operands: Any) -> None:
    """Note tracked tensors that decide something, for each call that asks; callers look at `decisions_in_use` first."""
    for places in _thread.places:
        if places.decided is not None:
            places.decided.extend(t for t in operands if getattr(t, "_row", 0))


def pass_on(place: str) -> None:
    """Note a place for the call around, as where a value left its graph too."""
    if _thread.places and not _thread.places[-1]:
        _thread.places[-1].append(place)


def is_stored() -> bool:
    """Whether what runs in the caller's code is a write as ``array[k] = x``, which asks for a float by itself."""
    frame = calling_frame()
    return frame.f_code.co_code[frame.f_lasti] == _STORE


def note(t: Any) -> None:
    """Note the place in the caller's code, the first one of each call that watches."""
    if not _thread.places:
        return
    places = _thread.places[-1]
    if places.decided is not None:
        places.left.append(t)
    if places.written:
        return
    frame = calling_frame()
    # `array[k] = x` asks for a float by itself; in `array[k] = float(x)` a call is what runs now.
    stores = frame.f_code.co_code[frame.f_lasti] == _STORE
    if places and not stores:
        return
    place = f"{frame.f_code.co_filename}, line {frame.f_lineno}"
    places.append(place)
    if stores:
        places.written = place
