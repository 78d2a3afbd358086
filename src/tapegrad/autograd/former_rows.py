"""Rows that leaves had before their flag was cleared or their shape changed: graphs recorded until then end in them."""

from __future__ import annotations

from collections.abc import Sequence

from tapegrad.autograd.decoded_rows import opcode_of, payload_at, record_of
from tapegrad.autograd.gradient_delivery import check_leaf
from tapegrad.autograd.sweep import reached_rows
from tapegrad.engine.layout import LEAF
from tapegrad.tensors.tensor import ROWS_LEFT, Tensor

__all__ = ["rows_of_inputs"]


def rows_of_inputs(chosen: Sequence[Tensor], present: Sequence[int], roots: Sequence[int]) -> list[list[int]]:
    """All rows, of those that a pass from the roots reaches, in which the graph ends for each tensor.

    For a tensor that had no other row it is the present one, reached or not.

    Raises
    ------
    RuntimeError
        If a pass would come to a row that was recorded with another shape or dtype than its leaf has now.
    """
    for t in chosen:
        if t._meta is not None and t._meta.left:
            break
    else:
        return [[slot] for slot in present]
    former = [_former_rows(t) for t in chosen]
    if not any(former) or not roots:
        return [[slot] for slot in present]
    reached = reached_rows(roots, [*present, *(slot for slots in former for slot in slots)])
    for t, slots in zip(chosen, former, strict=True):
        for slot in slots:
            if slot in reached:
                check_leaf(t, record_of(slot), None)
    return [
        [one for one in (slot, *slots) if one in reached] if slots else [slot] for slot, slots in zip(present, former, strict=True)
    ]


def _former_rows(t: Tensor) -> list[int]:
    if t._meta is None or not t._meta.left:
        return []
    return [slot for slot, link in ROWS_LEFT.items() if _is_row_of(t, slot, link)]


def _is_row_of(t: Tensor, slot: int, link: int) -> bool:
    if opcode_of(slot)[0] != LEAF:
        return False
    payload = payload_at(slot)
    return id(payload) == link and payload() is t
