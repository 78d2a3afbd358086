"""Which row made a derivative dense: the function is called once more, and the line of each row is noted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np

from tapegrad.autograd.decoded_rows import name_of
from tapegrad.engine import linear_layout as lin
from tapegrad.frames import calling_frame
from tapegrad.linear.linear_tape import LinearTape
from tapegrad.sparse.evaluation import structured
from tapegrad.sparse.patterns import sets_of
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.operator_dispatch import RECORDING, count, surround

__all__ = ["described_row"]

AT_ONCE = 256  # rows whose sets are looked at in one round
_NUMPY = os.path.join(os.path.dirname(np.__file__), "")


def described_row(record: Callable[[], Any], second: bool) -> str:
    """The row of a call that made its derivative dense, in words; empty if that cannot be told.

    Parameters
    ----------
    record : callable
        Calls the function and gives its derivative.
    second : bool
        Whether it is the Hessian that is dense.
    """
    if TAPE.observers:
        return ""
    with _noted() as lines:
        try:
            tape = structured(record(), second)
        except Exception:  # what was to be said is more important
            return ""
        if not isinstance(tape, LinearTape) or tape.slots is None:
            return ""
        sets = sets_of(tape)
        place = _curved_place(tape, sets) if second and tape.second else -1
        slot = _slot_at(tape, place) if place >= 0 else _first_dense(tape, sets)
    return lines.get(slot, "")


@contextmanager
def _noted() -> Iterator[dict[int, str]]:
    """Note name and line of each row that is recorded; rows stay where they are."""
    lines: dict[int, str] = {}

    def noting(entry: Any) -> Any:
        def call(*arguments: Any) -> Any:
            handle = entry(*arguments)
            if handle > 0:
                slot = TAPE.slot(handle)
                lines[slot] = name_of(slot).partition("Backward")[0] + _line()
            return handle

        return call

    TAPE.load()
    with TAPE.claim():
        surround("observers", dict.fromkeys(RECORDING, noting))
        count("observers", 1)
        try:
            yield lines
        finally:
            count("observers", -1)
            surround("observers", None)


def _line() -> str:
    """The line of the user's code that is being run."""
    frame: FrameType | None = calling_frame()
    while frame is not None and frame.f_code.co_filename.startswith((_NUMPY, "<__array_function__")):
        frame = frame.f_back
    if frame is None:
        return ""
    import linecache

    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    place = f" at {os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno} in {frame.f_code.co_name}"
    return place + (f": {text}" if text else "")


def _slot_at(tape: LinearTape, place: int) -> int:
    """The row of a place: the first that stands there, as others may be pieces of it."""
    assert tape.slots is not None
    assert tape.slot_places is not None
    before = np.flatnonzero(tape.slot_places <= place)
    own = before[np.argmax(tape.slot_places[before])]
    return int(tape.slots[own])


def _curved_place(tape: LinearTape, sets: Any) -> int:
    """Place of the row whose second partials go over most pairs of inputs; -1 if there is none."""
    entries, programs = tape.entries, tape.programs
    kinds = entries[:, 0] & 0xFFFFFFFF
    places, firsts, seconds = [], [], []
    plain = np.flatnonzero(kinds == lin.CURVED_PLAIN)
    if len(plain):
        halves = entries[plain].view(np.int32)
        places.append(halves[:, 1].astype(np.int64))
        firsts.append(halves[:, 2].astype(np.int64))
        seconds.append(halves[:, 3].astype(np.int64))
    for word in entries[kinds == lin.CURVED_MAP, 1].tolist():
        places.append(programs[word + lin.MAP_ROW : word + lin.MAP_ROW + 1])
        firsts.append(programs[word + lin.MAP_X : word + lin.MAP_X + 1])
        seconds.append(programs[word + lin.MAP_Z : word + lin.MAP_Z + 1])
    if not places:
        return -1
    found, one, two = np.concatenate(places), np.concatenate(firsts), np.concatenate(seconds)
    order = (
        np.linspace(0, len(found) - 1, min(len(found), AT_ONCE)).astype(np.int64)
        if len(found) > AT_ONCE**2
        else np.arange(len(found))
    )
    lengths = np.maximum(_lengths(sets, one[order]), _lengths(sets, two[order]))
    return int(found[order[np.argmax(lengths)]])


def _lengths(sets: Any, places: Any) -> Any:
    """How many inputs places depend on; none for place -1."""
    numbers = np.where(places >= 0, sets.places[places], 0)
    used, back = np.unique(numbers, return_inverse=True)
    return np.diff(sets.collected(used)[0])[back]


def _first_dense(tape: LinearTape, sets: Any) -> int:
    """The first row that depends on half as many inputs as any row does."""
    assert tape.slots is not None
    assert tape.slot_places is not None
    rows = np.arange(len(tape.slots))
    goal = 0
    while True:
        chosen = rows if len(rows) <= AT_ONCE else rows[np.linspace(0, len(rows) - 1, AT_ONCE).astype(np.int64)]
        lengths = _lengths(sets, tape.slot_places[chosen])
        goal = max(goal, int(lengths.max()))
        first = int(np.argmax(2 * lengths >= goal))
        if len(chosen) == len(rows):
            return int(tape.slots[rows[first]])
        low = chosen[first - 1] + 1 if first else chosen[0]
        rows = np.arange(low, chosen[first] + 1)
