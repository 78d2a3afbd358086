"""Hooks and who keeps them: functions that a reverse pass calls with the gradient of a row.

Hooks belong to a value, that is, to a row. Python's collector cannot see what rows hold, so hooks that refer to their own
tensor would never die if the row held them. As long as the tensor lives, it holds them (the row is found from them by a
handle), and when it dies before its row, they are handed over to the row.
"""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from _ctypes import PyObj_FromPtr
from collections.abc import Callable
from typing import Any

from tapegrad.engine import layout as at
from tapegrad.tape.locks import registering as _registering
from tapegrad.tape.row_objects import RowObjects
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, meta_of, register_leaf
from tapegrad.tensors.tracers import looks_at_values

__all__ = ["Group", "RemovableHandle", "RowHooks", "hooks_at", "hooks_of", "leave_to_rows", "new_hooks", "running"]

Group = dict[int, Callable[..., Any]]  # hooks of one kind, in order of registration
_numbers = itertools.count()


class _Running(threading.local):
    def __init__(self) -> None:
        self.passes: list[Any] = []


_running = _Running()
_hooks: RowObjects[Any] = RowObjects(at.HOOKED)  # the hooks of rows, or weak links to them


class RowHooks:
    """The hooks of one row.

    Attributes
    ----------
    tensor : dict
        Called with the row's complete gradient.
    before, after : dict
        Of the node: called with the gradients of its outputs before it runs, and with those of its inputs too when it has run.
    accumulated : dict
        Called with a leaf when its gradient is in place.
    outputs : dict
        For a node with several outputs: number of an output and a weak link to the hooks of its row.
    """

    __slots__ = ("__weakref__", "accumulated", "after", "before", "earlier", "handle", "metadata", "outputs", "reports", "tensor")

    def __init__(self, slot: int) -> None:
        self.handle = 0
        self.tensor: Group = {}
        self.before: Group = {}
        self.after: Group = {}
        self.accumulated: Group = {}
        self.outputs: dict[int, Any] = {}
        self.metadata: dict[str, Any] = {}
        self.reports = False  # whether the hooks of the node want the gradient of this row, which is one of its outputs
        self.earlier: RowHooks | None = None  # of the row that the tensor had before it was written in place
        self._stand_at(slot)

    def _stand_at(self, slot: int) -> None:
        self.handle, before = TAPE.new_handle(slot), self.handle
        _hooks.set(slot, weakref.ref(self))
        if before > 0:
            TAPE.drop(TAPE.address, before)

    def move(self, handle: int) -> None:
        """Belong to another row too: that of a leaf which was registered anew. Graphs on the row before go on calling them."""
        with TAPE.claim():
            self._stand_at(TAPE.slot(handle))

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "handle", 0) > 0 and not is_finalizing():  # an exception may have come before it had one
            self.hand_over()

    def hand_over(self, keeps: bool = False) -> None:
        """Let the row hold the hooks from now on, if there are any or `keeps`."""
        handle, self.handle = self.handle, 0
        with TAPE.claim():
            slot = TAPE.slot(handle)
            if keeps or any((self.tensor, self.before, self.after, self.accumulated, self.outputs, self.metadata, self.reports)):
                _give_to_row(slot, self)
        TAPE.drop(TAPE.address, handle)
        if not TAPE.has_row(slot):  # the row died with its tensor
            _hooks.discard(slot, self)

    def slot(self) -> int:
        """Where their row stands now; -1 if it is gone."""
        if self.handle > 0:
            return TAPE.slot(self.handle)
        return next((slot for slot, _ in _hooks.items() if hooks_at(slot) is self), -1)

    @looks_at_values  # of tensors that it finds, when passes call it
    def add(self, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
        """Register a hook of a kind (the attribute that lists it).

        Raises
        ------
        TypeError
            If it cannot be called.
        """
        if not callable(hook):
            raise TypeError(f"a hook must be callable, but got {type(hook).__name__}")
        handle = RemovableHandle(self, kind)
        getattr(self, kind)[handle.id] = hook
        return handle


class RemovableHandle:
    """Takes a hook away again: by `remove`, or at the end of a ``with`` block.

    The owner's attribute of the name `kind` lists its hooks by the numbers of their handles.

    Examples
    --------
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> with x.register_hook(lambda g: 10 * g):
    ...     (3 * x).backward()
    >>> x.grad
    tensor(30.)
    """

    __slots__ = ("_kind", "_owner", "id")

    def __init__(self, owner: Any, kind: str) -> None:
        self.id = next(_numbers)
        self._owner = weakref.ref(owner)
        self._kind = kind

    def remove(self) -> None:
        """Take the hook away; nothing happens the second time."""
        owner = self._owner()
        if owner is not None:
            getattr(owner, self._kind).pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def running() -> list[Any]:
    """What the passes of this thread that are calling hooks now remember; the innermost is the last."""
    return _running.passes


def hooks_at(slot: int) -> RowHooks | None:
    """The hooks of a row."""
    known = _hooks.get(slot)
    found: RowHooks | None = known() if type(known) is weakref.ref else known
    return found


def new_hooks(slot: int, owner: Tensor | None) -> RowHooks:
    """Hooks for a row that has none, held by a tensor or, if there is none, by the row."""
    hooks = RowHooks(slot)
    if owner is None:
        hooks.hand_over(True)
    else:
        meta = meta_of(owner)
        hooks.earlier, meta.hooks = meta.hooks, hooks
    return hooks


def hooks_of(t: Tensor) -> RowHooks:
    """The hooks of a tensor's present row.

    Raises
    ------
    RuntimeError
        If the tensor is not tracked.
    """
    if t._row == 0:
        raise RuntimeError(
            "cannot register a hook on a tensor that doesn't require gradient. Set requires_grad=True before computing it, and "
            "check that it was not computed under no_grad()."
        )
    if t._row < 0:
        register_leaf(t)
    with _registering, TAPE.claim():
        slot = TAPE.slot(t._row)
        return hooks_at(slot) or new_hooks(slot, t)


def leave_to_rows(t: Tensor) -> None:
    """Let the rows that a tensor had go on with their hooks without it."""
    if t._meta is None:
        return
    hooks, t._meta.hooks = t._meta.hooks, None
    while hooks is not None:
        earlier, hooks.earlier = hooks.earlier, None
        if hooks.handle > 0:
            hooks.hand_over()
        hooks = earlier


def _give_to_row(slot: int, hooks: RowHooks) -> None:
    """Let a row hold hooks, so that they die with it."""
    if not TAPE.columns["opcode"][slot] & at.WIDE:
        # A plain row cannot hold an object; its entry is dropped when it is found to be dead.
        _hooks.set(slot, hooks)
        return
    _hooks.set(slot, weakref.ref(hooks))
    payload = TAPE.own_payload(TAPE.address, slot, id(hooks))
    if payload:
        PyObj_FromPtr(payload).hooks = hooks
