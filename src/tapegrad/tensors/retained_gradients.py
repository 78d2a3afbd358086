"""Retained gradients: rows at which the sweep stops and shows the adjoint, and the tensors that want it."""

from __future__ import annotations

import weakref

from tapegrad.engine.layout import WATCHED
from tapegrad.tape.locks import watching as _changing
from tapegrad.tape.row_objects import RowObjects
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, meta_of

__all__ = ["move_watch", "unwatch", "watch", "watchers_of"]

_watchers: RowObjects[list[weakref.ref[Tensor]]] = RowObjects(WATCHED)


def watch(t: Tensor) -> None:
    """Retain the gradient of a tensor's present row for it."""
    meta_of(t).retained = True
    with _changing, TAPE.claim():
        slot = TAPE.slot(t._row)
        _watchers.set(slot, [weakref.ref(one) for one in (*watchers_of(slot), t)])


def watchers_of(slot: int) -> list[Tensor]:
    """The tensors for which the gradient of a row is retained."""
    return [t for link in _watchers.get(slot) or () if (t := link()) is not None]


def unwatch(t: Tensor) -> None:
    """Stop retaining the gradient of a tensor's present row for it."""
    if t._meta is not None and t._meta.retained:
        t._meta.retained = None
        _unwatch(t, t._row)


def _unwatch(t: Tensor, handle: int) -> None:
    with _changing, TAPE.claim():
        slot = TAPE.slot(handle)
        others = [weakref.ref(one) for one in watchers_of(slot) if one is not t]
        if others:
            _watchers.set(slot, others)
        else:
            _watchers.pop(slot)


def move_watch(t: Tensor, before: int) -> None:
    """A retained gradient is that of the newest value."""
    _unwatch(t, before)
    watch(t)
