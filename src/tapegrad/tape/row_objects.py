"""Python objects that belong to rows: hooks, watchers, nodes. They are known by slot, and rows move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from tapegrad.engine import layout as at
from tapegrad.tape.tape import TAPE, words_of

__all__ = ["RowObjects"]

T = TypeVar("T")
_header = words_of(TAPE.header)


class _Entry(Generic[T]):
    """An object, in a place that stays the same when another one takes it."""

    __slots__ = ("obj", "settled")

    def __init__(self, obj: T) -> None:
        self.obj = obj
        self.settled = False  # whether the flag of the row was set


class RowObjects(Generic[T]):
    """At most one object for each row.

    An anchor of the tape follows each row, in the step that moves the rows, so nothing needs to be told when they have moved:
    the index from slots to entries is made anew when it is next asked for. Use it under a claim.

    Rows do not live for their objects here. An object stays until it is replaced or popped, or a collection finds its row dead.

    Other threads, and destructors that the collector runs anywhere, may call at any moment, and they cannot wait for a lock. So
    an entry is never exchanged for another one of its row, and what the index does not tell is looked for among all entries.

    Parameters
    ----------
    flag : int
        Flag that a row with an object has; 0 for objects whose loss does no harm, which need none.
    useless : callable, optional
        Tells for an object that needs no flag whether it can go.
    """

    __slots__ = ("__weakref__", "_entries", "_flag", "_index", "_most", "_useless")

    def __init__(self, flag: int = 0, useless: Callable[[T], bool] | None = None) -> None:
        self._flag = flag
        self._useless = useless
        self._entries: dict[_Entry[T], int] = {}  # their anchors, in the order in which they were made
        self._index: tuple[int, dict[int, _Entry[T]]] = 0, {}  # number of moves for which it holds; entries by slot
        self._most = 8
        TAPE.tables.add(self)

    def get(self, slot: int) -> T | None:
        """The object of a row, None if it has none."""
        if self._flag and not TAPE.flags(slot) & self._flag:
            return None
        entry = self._entry(slot)
        return None if entry is None else entry.obj

    def set(self, slot: int, obj: T) -> None:
        """Make this the object of a row."""
        if len(self._entries) > self._most:
            self._forget_useless()
        if not self._flag or TAPE.flags(slot) & self._flag:
            entry = self._entry(slot)
            if entry is not None:
                entry.obj = obj
                return
        elif (stale := self._present_index().get(slot)) is not None and stale.settled:
            self._forget(slot, stale)  # of a row that stood here before
        entry = _Entry(obj)
        self._entries[entry] = TAPE.anchor(slot)
        self._present_index()[slot] = entry
        if self._flag:
            TAPE.flag(slot, self._flag)
        entry.settled = True

    def pop(self, slot: int) -> T | None:
        """Take the object of a row away."""
        entry = self._entry(slot)
        if self._flag:
            TAPE.flag(slot, clear=self._flag)
        return None if entry is None else self._forget(slot, entry)

    def discard(self, slot: int, obj: T) -> None:
        """Take the object of a row that is gone away, if it is this one."""
        entry = self._present_index().get(slot)
        if entry is not None and entry.obj is obj:
            self._forget(slot, entry)

    def items(self) -> list[tuple[int, T]]:
        """Slots of rows that live, and objects."""
        return [(slot, entry.obj) for slot, entry in self._located() if TAPE.has_row(slot)]

    def forget_gone(self) -> None:
        """Drop the objects of rows that are gone, after rows were collected."""
        for slot, entry in self._located():
            if slot < 0:
                self._forget(slot, entry)
        self._present_index()  # the one before holds them by the slots that they had

    def _entry(self, slot: int) -> _Entry[T] | None:
        entry = self._present_index().get(slot)
        if entry is not None and (anchor := self._entries.get(entry, 0)) and TAPE.columns["anchor"][anchor] == slot:
            return entry
        if self._flag and TAPE.flags(slot) & self._flag:
            # It was made while the index was made anew.
            for place, other in reversed(self._located()):
                if place == slot:
                    self._present_index()[slot] = other
                    return other
        return None

    def _present_index(self) -> dict[int, _Entry[T]]:
        moves, index = self._index
        while moves != _header[at.MOVES]:
            moves = _header[at.MOVES]
            index = dict(self._located())  # the newest wins
            self._index = moves, index
        return index

    def _located(self) -> list[tuple[int, _Entry[T]]]:
        """Slots and entries."""
        entries = self._entries.copy()  # the collector may run while this is made, and destructors add entries
        anchors = list(entries.values())
        slots = TAPE.columns["anchor"][anchors].tolist() if anchors else []
        return list(zip(slots, entries, strict=True))

    def _forget(self, slot: int, entry: _Entry[T]) -> T | None:
        index = self._index[1]
        if index.get(slot) is entry:
            index.pop(slot, None)
        anchor = self._entries.pop(entry, 0)
        if not anchor:  # another thread was first
            return None
        TAPE.drop_anchor(TAPE.address, anchor)
        return entry.obj

    def _forget_useless(self) -> None:
        self._most *= 2  # who comes here meanwhile does not look again
        for slot, entry in self._located():
            if slot < 0 or (entry.settled and self._is_useless(slot, entry)):
                self._forget(slot, entry)
        self._most = 2 * len(self._entries) + 8

    def _is_useless(self, slot: int, entry: _Entry[T]) -> bool:
        if self._flag:  # entries outlive rows that were taken off the end
            return not TAPE.flags(slot) & self._flag
        return self._useless is not None and self._useless(entry.obj)
