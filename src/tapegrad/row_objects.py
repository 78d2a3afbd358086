"""Python objects that belong to rows: hooks, watchers, nodes. They are known by slot, and rows move."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from tapegrad.engine import layout as at
from tapegrad.tape import TAPE, words_of

__all__ = ["RowObjects"]

T = TypeVar("T")
_keys = itertools.count()
_header = words_of(TAPE.header)


class RowObjects(Generic[T]):
    """At most one object for each row.

    An anchor of the tape follows each row, in the step that moves the rows, so nothing needs to be told when they have moved:
    the index from slots to anchors is made anew when it is next asked for. Use it under a claim.

    Rows do not live for their objects here, and an object stays until it is replaced, popped, or found to be useless.

    Parameters
    ----------
    useless
        Tells for a slot (negative if the row is gone) and its object whether the entry can go; asked so often that at most half
        of the entries are such, and a few.
    """

    __slots__ = ("_entries", "_index", "_most", "_useless")

    def __init__(self, useless: Callable[[int, T], bool]) -> None:
        self._useless = useless
        self._entries: dict[int, tuple[int, T]] = {}  # by keys that are never used again: anchor and object
        self._index: tuple[int, dict[int, int]] = 0, {}  # number of moves for which it holds; keys by slot
        self._most = 8

    def get(self, slot: int) -> T | None:
        """The object of a row, None if it has none."""
        key = self._key(slot)
        return None if key < 0 else self._entries.get(key, (0, None))[1]

    def set(self, slot: int, obj: T) -> None:
        """Make this the object of a row."""
        if len(self._entries) > self._most:
            self._forget_useless()
        before = self._key(slot)
        key = next(_keys)
        # In this order: whoever makes an index anew at the same time looks for entries again when it can be seen.
        self._entries[key] = TAPE.anchor(slot), obj
        self._present_index()[slot] = key
        if before >= 0:
            self._forget(before)

    def pop(self, slot: int) -> T | None:
        """Take the object of a row away."""
        return self._forget(self._key(slot))

    def discard(self, slot: int, obj: T) -> None:
        """Take the object of a row away if it is this one."""
        key = self._key(slot)
        if key >= 0 and self._entries.get(key, (0, None))[1] is obj:
            self._forget(key)

    def items(self) -> list[tuple[int, T]]:
        """Slots, negative for rows that are gone, and objects."""
        return [(slot, obj) for slot, _, obj in self._located()]

    def _key(self, slot: int) -> int:
        """Key of the entry of a row, -1 if it has none."""
        key = self._present_index().get(slot, -1)
        if key < 0:
            return -1
        entry = self._entries.get(key)
        # The index outlives the entries for which it was made.
        return -1 if entry is None or TAPE.columns["anchor"][entry[0]] != slot else key

    def _present_index(self) -> dict[int, int]:
        moves, index = self._index
        while moves != _header[at.MOVES]:
            moves, index = _header[at.MOVES], {}
            self._enter_all(index)
            self._index = moves, index
            self._enter_all(index)  # what others have entered meanwhile is in the index before
        return index

    def _enter_all(self, index: dict[int, int]) -> None:
        index.update((slot, key) for slot, key, _ in self._located())  # the newest wins

    def _located(self) -> Iterable[tuple[int, int, T]]:
        """Slots, keys and objects."""
        entries = list(self._entries.copy().items())  # the collector may run while pairs are made, and destructors add entries
        anchors = [anchor for _, (anchor, _) in entries]
        slots = TAPE.columns["anchor"][anchors].tolist() if anchors else []
        return [(slot, key, obj) for slot, (key, (_, obj)) in zip(slots, entries, strict=True)]

    def _forget(self, key: int) -> T | None:
        anchor, obj = self._entries.pop(key, (0, None))
        if anchor:
            TAPE.drop_anchor(TAPE.address, anchor)
        return obj

    def _forget_useless(self) -> None:
        self._most *= 2  # who comes here meanwhile does not look again
        for slot, key, obj in self._located():
            if self._useless(slot, obj):
                self._forget(key)
        self._most = 2 * len(self._entries) + 8
