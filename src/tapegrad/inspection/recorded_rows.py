"""Rows of the tape by the lines that recorded them, for as long as they live and wherever they move."""

from __future__ import annotations

import math
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from tapegrad.autograd.decoded_rows import name_of, opcode_of, shape_of
from tapegrad.engine import layout as at
from tapegrad.tape.tape import TAPE

__all__ = ["Intervals", "Kind", "kind_of"]

T = TypeVar("T")
A_ROW, AN_ELEMENT = 15.0, 1.0  # nanoseconds that a row and an element of one take, about: only how a measured time is divided


class Kind(NamedTuple):
    """What a row is."""

    operation: str
    elements: int
    is_host: bool

    @property
    def weight(self) -> float:
        """Its part of a time that was measured for many rows."""
        return A_ROW + AN_ELEMENT * self.elements


def kind_of(slot: int) -> Kind:
    """What the row at a slot is."""
    opcode, wide = opcode_of(slot)
    elements = math.prod(shape_of(slot)) if wide else 1
    name = "leaf" if opcode == at.LEAF else name_of(slot).partition("Backward")[0]
    return Kind(name, elements, wide and opcode == at.HOST)


class Intervals(Generic[T]):
    """Which object belongs to a row: each to rows that were recorded one after the other."""

    def __init__(self) -> None:
        self._anchors: list[int] = []
        self._counts: list[int] = []
        self._owners: list[T] = []
        self._most = 4096

    def add(self, start: int, stop: int, owner: T) -> None:
        """Rows from `start` to `stop` belong to `owner`."""
        if len(self._anchors) >= self._most:
            self._forget_gone()
        standing = TAPE.columns["anchor"]
        while self._anchors and not 0 <= standing.item(self._anchors[-1]) < start:  # rows at the end were given back meanwhile
            TAPE.drop_anchor(TAPE.address, self._anchors.pop())
            del self._counts[-1], self._owners[-1]
        self._anchors.append(TAPE.anchor(start))
        self._counts.append(stop - start)
        self._owners.append(owner)

    def owners(self, slots: np.ndarray) -> list[T | None]:
        """The owner of each row, None where it is not known."""
        if not self._anchors:
            return [None] * len(slots)
        starts = TAPE.columns["anchor"][self._anchors]
        order = np.argsort(starts, kind="stable")
        places = np.searchsorted(starts[order], slots, side="right") - 1
        found: list[T | None] = []
        for slot, place in zip(slots.tolist(), places.tolist(), strict=True):
            number = int(order[place]) if place >= 0 else -1
            known = number >= 0 and 0 <= slot - int(starts[number]) < self._counts[number]
            found.append(self._owners[number] if known else None)
        return found

    def close(self) -> None:
        """Give the anchors back."""
        while self._anchors:
            TAPE.drop_anchor(TAPE.address, self._anchors.pop())
        self._counts, self._owners = [], []

    def _forget_gone(self) -> None:
        alive = [bool(slot >= 0) for slot in TAPE.columns["anchor"][self._anchors]]
        for anchor, lives in zip(self._anchors, alive, strict=True):
            if not lives:
                TAPE.drop_anchor(TAPE.address, anchor)
        kept = [k for k, lives in enumerate(alive) if lives]
        for name in ("_anchors", "_counts", "_owners"):
            values = getattr(self, name)
            setattr(self, name, [values[k] for k in kept])
        self._most = 2 * len(kept) + 4096
