"""A piece of a graph: from results down to what was tracked before they were computed, and no further.

A row whose derivative is found by running a function again, or from equations that its value solves, stands for such a piece. The
function says by itself what it depends on, whether that came as an argument or from around it: it is recorded, and where its rows
refer to older ones there is the boundary. The pass that goes on from there calls the hooks of the tensors at the boundary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.decoded_rows import arguments_of, object_at, opcode_of, record_of
from tapegrad.autograd.sweep import reached_rows, sweep
from tapegrad.engine import layout as at
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, is_recording, make, register_leaf

__all__ = ["Mark", "pull"]


class Mark:
    """A moment: rows are older or newer."""

    __slots__ = ("_row",)

    def __init__(self) -> None:
        self._row = make(0.0, -1)
        register_leaf(self._row)

    def is_newer(self, t: Tensor) -> bool:
        """Whether a tensor is the result of an operation that was recorded since."""
        if t._row <= 0:
            return False
        with TAPE.claim():
            slot = TAPE.slot(t._row)
            return slot > TAPE.slot(self._row._row) and opcode_of(slot)[0] != at.LEAF

    def is_of_a_call(self, t: Tensor) -> bool:
        """Whether a tensor is a leaf that a driver made since, of a constant: nobody can ask for its gradient."""
        with TAPE.claim():
            slot = TAPE.slot(t._row)
            if slot <= TAPE.slot(self._row._row) or opcode_of(slot)[0] != at.LEAF:
                return False
            return hasattr(object_at(record_of(slot).payload), "of_call")

    def boundary(self, results: Iterable[Tensor], apart_from: Iterable[Tensor] = ()) -> list[int]:
        """Older rows and leaves that newer results depend on, for the time of a claim.

        Parameters
        ----------
        results : iterable of Tensor
        apart_from : iterable of Tensor
            Leaves and results that do not count.
        """
        start = TAPE.slot(self._row._row) + 1
        tops = [TAPE.slot(t._row) for t in results if self.is_newer(t)]
        if not tops:
            return []
        others = {TAPE.slot(t._row) for t in apart_from if t._row > 0}
        found = sorted(_older(start, max(tops)) | others)
        reached = reached_rows(tops, found, ends=True) if found else set()
        return sorted(reached - others)


def _older(start: int, top: int) -> set[int]:
    """Rows before `start`, and leaves, that the rows from there to `top` refer to, and maybe more.

    Leaves that drivers made since, of constants, do not count: nobody can ask for their gradients, and they are others each time.
    """
    columns = TAPE.columns
    opcodes = columns["opcode"][start : top + 1]
    wide = opcodes & at.WIDE != 0
    references = np.concatenate([columns[name][start : top + 1][~wide] for name in ("first", "second")])
    found = set(references[(references >= 0) & (references < start)].tolist())
    there = columns["held"][start : top + 1] != at.VACANT  # of rows that are gone only the places stand there
    if start == 1:  # before these is the mark's own row, and nothing that they could refer to but leaves
        there &= opcodes == at.LEAF | at.WIDE
    for slot in (np.flatnonzero(wide & there) + start).tolist():
        if opcode_of(slot)[0] == at.LEAF:
            if not hasattr(object_at(record_of(slot).payload), "of_call"):
                found.add(slot)
        else:
            found.update(argument.slot for argument in arguments_of(slot) if 0 <= argument.slot < start)
    return found


def tensors_at(slots: Sequence[int], known: Iterable[Tensor] = ()) -> list[Tensor]:
    """Tensors on rows: known ones, leaves themselves, and for other arrays stand-ins without their values."""
    by_slot = {TAPE.slot(t._row): t for t in known if t._row > 0}
    return [by_slot[slot] if slot in by_slot else _tensor_at(slot) for slot in slots]


def _tensor_at(slot: int) -> Tensor:
    opcode, wide = opcode_of(slot)
    if opcode == at.LEAF:
        from tapegrad.autograd.nodes import leaf_at

        return leaf_at(slot)
    data: Any = float(TAPE.columns["value"][slot])  # a scalar of another value would get another row
    if wide:
        record = record_of(slot)
        if record.shape or record.dtype.itemsize != 8:
            data = np.broadcast_to(np.zeros((), record.dtype), record.shape)
    return make(data, TAPE.new_handle(slot))


def holds_value(t: Tensor) -> bool:
    """Whether a tensor from `tensors_at` has its value."""
    if t._row < 0:
        return True
    return t._meta is not None and t._meta.leaf is not None


def pull(results: Sequence[Tensor], seeds: Sequence[Tensor], slots: Sequence[int]) -> list[Tensor | None]:
    """Gradients of the results, weighted by seeds, by the rows of a boundary; recorded, if this thread records.

    What the results saved is kept.
    """
    if not slots or not results:
        return [None] * len(slots)
    TAPE.load()
    found: dict[int, Any]
    with TAPE.claim():
        tops = [TAPE.slot(t._row) for t in results]
        if is_recording() or TAPE.anomalies:
            from tapegrad.autograd.recorded_sweep import recorded_sweep

            found = recorded_sweep(tops, seeds, slots, accumulates=False, records=is_recording(), ends=True)[0]
        else:
            found = sweep(tops, [seed._data for seed in seeds], slots, True, ends=True) or {}
    return [None if slot not in found else _as_tensor(found[slot]) for slot in slots]


def _as_tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    return make(value.item() if value.ndim == 0 and value.dtype == np.float64 else value, 0)
