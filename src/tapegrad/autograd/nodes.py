"""The graph as PyTorch shows it: node objects made on demand from (tape, row)."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from tapegrad.autograd.decoded_rows import arguments_of, name_of, object_at, opcode_of, origin, payload_at, record_of
from tapegrad.autograd.saved_hooks import saved_tensors_hooks
from tapegrad.engine import layout as at
from tapegrad.recording.structural import Payload
from tapegrad.tape.row_objects import RowObjects
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.hooks import RemovableHandle, RowHooks, hooks_at, hooks_of, new_hooks, running
from tapegrad.tensors.tensor import LeafLink, Tensor, make, meta_of

__all__ = [
    "Node",
    "leaf_at",
    "node_at",
    "node_of",
    "output_number",
    "outputs_of",
    "register_hook",
    "register_multi_grad_hook",
    "register_post_accumulate_grad_hook",
    "saved_tensors_hooks",
]

_nodes: RowObjects[weakref.ref[Node]] = RowObjects(useless=lambda link: link() is None)


class Node:
    """View of one recorded operation.

    A node holds its row, so the operation and what it depends on stay recorded while somebody holds the node.
    """

    __slots__ = ("__weakref__", "_owner", "_row")
    _row: int
    _owner: weakref.ref[Tensor] | None  # a tensor that the operation made: it keeps the hooks

    def __del__(self) -> None:
        if getattr(self, "_row", 0) > 0:  # an exception may have come before it had one
            TAPE.drop(TAPE.address, self._row)

    def name(self) -> str:
        """PyTorch's name of the operation, for example ``"MulBackward0"``."""
        shown = type(self).__name__
        return f"torch::autograd::{shown}" if shown in ("AccumulateGrad", "CopySlices", "CopyBackwards") else shown

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that made the operands, each with the number of its output; ``(None, 0)`` for untracked operands."""
        with TAPE.claim():
            slot = TAPE.slot(self._row)
            if opcode_of(slot)[0] == at.LEAF:
                return ()
            found: list[tuple[Node | None, int]] = []
            for argument in arguments_of(slot):
                if argument.slot < 0:
                    found.append((None, 0))
                else:
                    found.append((node_at(argument.slot), output_number(argument.slot)))
            return tuple(found)

    def __call__(self, *gradients: Any) -> Any:
        """Apply the derivative of the operation to a gradient of its result.

        Raises
        ------
        TypeError
            If there is not one gradient for each output.
        """
        expected = self._count_outputs()
        if len(gradients) != expected:
            raise TypeError(f"expected {expected} arguments, got {len(gradients)} instead")
        from tapegrad.autograd.recorded_sweep import apply_node

        with TAPE.claim():
            return apply_node(TAPE.slot(self._row), gradients)

    def _count_outputs(self) -> int:
        return 1

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` whenever a pass has run this node; what it returns replaces `grad_inputs`.

        Parameters
        ----------
        hook : callable
            Is given two tuples, with None where there is no gradient, and returns None or a tuple like the first. It belongs to
            the operation and lives as long.

        Returns
        -------
        RemovableHandle
        """
        return self._hooks().add("after", hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` whenever a pass is about to run this node; what it returns replaces `grad_outputs`."""
        return self._hooks().add("before", hook)

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's own notes on this operation."""
        return self._hooks().metadata

    def _hooks(self) -> RowHooks:
        with TAPE.claim():
            slot = TAPE.slot(self._row)
            owner = None if self._owner is None else self._owner()
            if owner is not None and (owner._row <= 0 or _shared(TAPE.slot(owner._row)) != slot):
                owner = None  # it was written in place
            hooks = hooks_at(slot) or new_hooks(slot, owner)
            for piece in _pieces(slot):
                (hooks_at(piece) or new_hooks(piece, None)).reports = True
            return hooks

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {hex(id(self))}>"


class AccumulateGrad(Node):
    """View of what adds to the gradient of a leaf."""

    __slots__ = ("variable",)
    variable: Tensor


def output_number(slot: int) -> int:
    """Which output of its node a row is."""
    opcode, wide = opcode_of(origin(slot))
    number = int(TAPE.columns["second"][origin(slot)]) if wide and opcode in (at.GATHER, at.HOST) else 0
    return max(number, 0)


_classes: dict[str, type[Node]] = {"AccumulateGrad": AccumulateGrad}


def _class(name: str) -> type[Node]:
    found = _classes.get(name)
    if found is None:
        found = _classes[name] = type(name, (Node,), {"__slots__": (), "__doc__": f"View of a recorded {name}."})
    return found


def _shared(slot: int) -> int:
    """The row that stands for the node: outputs of one operation share the row behind them."""
    slot = origin(slot)
    opcode, wide = opcode_of(slot)
    if not wide or opcode not in (at.GATHER, at.HOST):
        return slot
    if opcode == at.HOST:
        return _shared(record_of(slot).arguments[-1].slot) if payload_at(slot).op.joins else slot
    record = record_of(slot)
    before = record.arguments[0].slot
    if before < 0 or not opcode_of(before)[1] or record_of(before).name != record.name:
        return slot
    if opcode_of(before)[0] == at.HOST:
        return before if object_at(record_of(before).payload).op.packs else slot
    return before if record.name in _PIECES and opcode_of(before)[0] == at.GATHER else slot


_PIECES = ("SplitBackward0", "SplitWithSizesBackward0", "UnbindBackward0")  # operations whose outputs are parts of one row


def outputs_of(slot: int) -> list[int]:
    """Rows of the outputs of the node that a row stands for, as far as they are recorded."""
    own = _shared(slot)
    code = TAPE.columns["opcode"][own : TAPE.rows]
    candidates = np.flatnonzero((code == at.GATHER | at.WIDE) | (code == at.HOST | at.WIDE)) + own
    found = [other for other in candidates.tolist() if TAPE.has_row(other) and _shared(other) == own]
    return [other for other in found if other != own] or [own]


def _pieces(slot: int) -> list[int]:
    """Rows of the outputs of a node that has a row for all of them."""
    if opcode_of(slot)[0] != at.GATHER or name_of(slot) not in _PIECES:
        return []
    places = np.flatnonzero(TAPE.columns["opcode"][slot + 1 : TAPE.rows] == at.GATHER | at.WIDE) + slot + 1
    above = [piece for piece in places.tolist() if TAPE.has_row(piece)]
    return [piece for piece in above if arguments_of(piece)[0].slot == slot and name_of(piece) in _PIECES]


def node_at(slot: int) -> Node:
    """The node of a row; the same object while somebody holds one."""
    slot = _shared(slot)
    if opcode_of(slot)[0] == at.HOST:
        payload: Payload = payload_at(slot)
        own: Node | None = payload.node_at(slot)
        if own is not None:
            return own
    link = _nodes.get(slot)
    node = link() if link is not None else None
    if node is not None and TAPE.slot(node._row) == slot:  # it may have been made for a row that is gone
        return node
    node = object.__new__(_class(name_of(slot)))
    node._row, node._owner = 0, None
    node._row = TAPE.new_handle(slot)
    _nodes.set(slot, weakref.ref(node))
    if isinstance(node, AccumulateGrad):
        node.variable = leaf_at(slot)
        node._owner = weakref.ref(node.variable)
    return node


def leaf_at(slot: int) -> Tensor:
    """The leaf of a row; if it was dropped, another tensor on its memory and its row."""
    link: LeafLink = payload_at(slot)
    t = link()
    if t is None:
        t = make(link.data, TAPE.new_handle(slot))
        meta_of(t).leaf = link
    return t


def node_of(t: Tensor) -> Node | None:
    """``t.grad_fn``."""
    if t._row <= 0 or (t._meta is not None and t._meta.leaf is not None):
        return None
    with TAPE.claim():
        node = node_at(TAPE.slot(t._row))
    if node._owner is None or node._owner() is None:
        node._owner = weakref.ref(t)
    return node


def register_hook(t: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call ``hook(gradient)`` whenever a backward pass has computed the gradient with respect to this tensor.

    Parameters
    ----------
    hook : callable
        Is given the complete gradient and returns another one in its place, or None. Hooks run in the order of registration.
        They belong to the tensor's present value: after an in-place operation they still see the gradient of the old one.

    Returns
    -------
    RemovableHandle
        Its ``remove()`` takes the hook away.

    Raises
    ------
    RuntimeError
        If the tensor is not tracked.

    Examples
    --------
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> handle = x.register_hook(lambda g: g * 2)
    >>> x.sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """
    hooks = hooks_of(t)
    with TAPE.claim():
        slot = TAPE.slot(t._row)
        shared = _shared(slot)
        if shared != slot:  # the node must know, to call the hook also if there is no gradient for this output
            node = hooks_at(shared) or new_hooks(shared, None)
            node.outputs[output_number(slot)] = weakref.ref(hooks)
    return hooks.add("tensor", hook)


def register_post_accumulate_grad_hook(t: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Call ``hook(leaf)`` whenever a backward pass has added to the gradient of this leaf.

    All gradients of the pass are in place by then. The hook may use and reset ``leaf.grad``.

    Parameters
    ----------
    hook : callable
        Is given the leaf and returns None.

    Returns
    -------
    RemovableHandle

    Raises
    ------
    RuntimeError
        If the tensor is not tracked or not a leaf.

    Examples
    --------
    >>> w = tg.tensor(1.0, requires_grad=True)
    >>> def step(leaf):
    ...     with tg.no_grad():
    ...         leaf -= 0.1 * leaf.grad
    ...     leaf.grad = None
    >>> handle = w.register_post_accumulate_grad_hook(step)
    >>> (3 * w).backward()
    >>> w
    tensor(0.7000, requires_grad=True)
    """
    if t._row > 0 and (t._meta is None or t._meta.leaf is None):
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return hooks_of(t).add("accumulated", hook)


class _Handles:
    """Takes the hooks on several tensors away."""

    __slots__ = ("_handles",)

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: Literal["all", "any"] = "all"
) -> _Handles:
    """Call a function once a pass with the gradients of several tensors.

    Parameters
    ----------
    tensors : sequence of Tensor
    fn : callable
        With mode "all": is given a list of the gradients when the last of those that the pass computes is there, with None for the
        others. With mode "any": is given the first gradient that is there.
    mode : {"all", "any"}

    Returns
    -------
    object
        Its ``remove()`` takes the hook away.

    Raises
    ------
    ValueError
        For another mode.
    RuntimeError
        If a tensor is not tracked (mode "all").

    Examples
    --------
    >>> x = tg.tensor(1.0, requires_grad=True)
    >>> y, z = 2 * x, 3 * x
    >>> handle = tg.autograd.graph.register_multi_grad_hook([y, z], print)
    >>> (y * z).backward()
    [tensor(3.), tensor(2.)]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    key = object()
    rows: list[weakref.ref[RowHooks]] = []

    def note(k: int, g: Tensor | None) -> None:
        seen = running()[-1]
        if mode == "any":
            if seen.notes.setdefault(key, True) is True:
                seen.notes[key] = False
                fn(g)
            return
        if key not in seen.notes:
            slots = [hooks.slot() for link in rows if (hooks := link()) is not None]
            seen.notes[key] = [None] * len(rows), sum(seen.reaches(slot) for slot in slots)
        gradients, left = seen.notes[key]
        gradients[k] = g
        seen.notes[key] = gradients, left - 1
        if left == 1:
            fn(gradients)

    if mode == "any":
        tensors = [t for t in tensors if t.requires_grad]
    handles = [register_hook(t, partial(note, k)) for k, t in enumerate(tensors)]
    rows.extend(weakref.ref(hooks_of(t)) for t in tensors)
    return _Handles(handles)
