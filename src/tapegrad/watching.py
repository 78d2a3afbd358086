"""Retained gradients: rows at which the sweep stops and shows the adjoint, and the tensors that want it."""

from __future__ import annotations

import weakref

from tapegrad.engine.layout import WATCHED
from tapegrad.tape import TAPE
from tapegrad.tensor import Tensor, meta_of

__all__ = ["move_watch", "unwatch", "watch"]


def watch(t: Tensor) -> None:
    """Retain the gradient of a tensor's present row for it."""
    meta_of(t).retained = True
    with TAPE.claim():
        slot = TAPE.slot(t._row)
        # Entries outlive the rows they were made for, so they count only while the row says so.
        known = TAPE.watchers.get(slot, ()) if TAPE.columns["flags"][slot] & WATCHED else ()
        TAPE.columns["flags"][slot] |= WATCHED
        TAPE.watchers[slot] = [*(link for link in known if link() is not None), weakref.ref(t)]
    if len(TAPE.watchers) > 1024 and len(TAPE.watchers) & 1023 == 0:
        TAPE.watchers = {s: w for s, w in TAPE.watchers.items() if any(link() is not None for link in w)}


def unwatch(t: Tensor) -> None:
    """Stop retaining the gradient of a tensor's present row for it."""
    if t._meta is not None and t._meta.retained:
        t._meta.retained = None
        _unwatch(t, TAPE.slot(t._row))


def _unwatch(t: Tensor, slot: int) -> None:
    others = [link for link in TAPE.watchers.pop(slot, ()) if link() is not None and link() is not t]
    if others:
        TAPE.watchers[slot] = others
    else:
        TAPE.columns["flags"][slot] &= ~WATCHED & 255


def move_watch(t: Tensor, before: int) -> None:
    """A retained gradient is that of the newest value."""
    _unwatch(t, TAPE.slot(before))
    watch(t)
