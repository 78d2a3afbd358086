"""The graph as PyTorch shows it: node objects made on demand from (tape, row)."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from tapegrad.autograd.rows import arguments_of, name_of, object_at, opcode_of, origin, record_of
from tapegrad.engine import layout as at
from tapegrad.tape import TAPE
from tapegrad.tensor import LeafLink, Tensor, make, meta_of

__all__ = ["Node", "node_at", "node_of"]

_classes: dict[str, type[Node]] = {}
_nodes: dict[int, weakref.ref[Node]] = {}  # by slot


class Node:
    """View of one recorded operation.

    A node holds its row, so the operation and what it depends on stay recorded while somebody holds the node.
    """

    __slots__ = ("__weakref__", "_row", "variable")
    _row: int
    variable: Tensor  # AccumulateGrad only

    def __del__(self) -> None:
        if self._row > 0:
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
            If there is not exactly one gradient.
        """
        if len(gradients) != 1:
            raise TypeError(f"expected 1 arguments, got {len(gradients)} instead")
        from tapegrad.autograd.recorded import apply_node

        with TAPE.claim():
            return apply_node(TAPE.slot(self._row), gradients[0])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {hex(id(self))}>"


def output_number(slot: int) -> int:
    """Which output of its node a row is."""
    opcode, wide = opcode_of(origin(slot))
    number = int(TAPE.columns["second"][origin(slot)]) if wide and opcode in (at.GATHER, at.HOST) else 0
    return max(number, 0)


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
    record = record_of(slot)
    if opcode == at.HOST:
        operation = object_at(record.payload).op
        return _shared(record.arguments[-1].slot) if operation.joins else slot
    before = record.arguments[0].slot
    if before < 0 or not opcode_of(before)[1] or record_of(before).name != record.name:
        return slot
    if opcode_of(before)[0] == at.HOST:
        return before if object_at(record_of(before).payload).op.packs else slot
    shared = record.name in ("SplitBackward0", "SplitWithSizesBackward0", "UnbindBackward0")
    return before if shared and opcode_of(before)[0] == at.GATHER else slot


def node_at(slot: int) -> Node:
    """The node of a row; the same object while somebody holds one."""
    slot = _shared(slot)
    link = _nodes.get(slot)
    node = link() if link is not None else None
    if node is not None and TAPE.slot(node._row) == slot:
        return node
    name = name_of(slot)
    node = object.__new__(_class(name))
    node._row = 0
    node._row = TAPE.new_handle(slot)
    if name == "AccumulateGrad":
        node.variable = _leaf(slot)
    _nodes[slot] = weakref.ref(node)
    if len(_nodes) > 64 and len(_nodes) & (len(_nodes) - 1) == 0:
        for key in [key for key, held in _nodes.items() if held() is None]:
            del _nodes[key]
    return node


def _leaf(slot: int) -> Tensor:
    """The leaf of a row; if it was dropped, another tensor on its memory and its row."""
    link: LeafLink = object_at(record_of(slot).payload)
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
        return node_at(TAPE.slot(t._row))


def _follow(new_slot: np.ndarray) -> None:
    """Rows moved: nodes are known by their new slots."""
    living = {}
    for link in _nodes.values():
        node = link()
        if node is not None and node._row > 0:
            living[TAPE.slot(node._row)] = link
    _nodes.clear()
    _nodes.update(living)


TAPE.moved.append(_follow)
