"""Rows of views after what they are views of was written: they are taken anew from their base."""

from __future__ import annotations

import numpy as np

from tapegrad.ops.indexing import select_again
from tapegrad.ops.views import Take, is_strided, record_view
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.grad_mode import inference_mode
from tapegrad.tensors.retained_gradients import move_watch, watch
from tapegrad.tensors.tensor import SPOILED, Tensor, leave_row, promote

__all__ = ["refresh"]

_ADDRESS = TAPE.address


def _record_again(base: Tensor, replay: Take, z: np.ndarray) -> int:
    """Row of the view `z`, taken anew from its base."""
    a = promote(base)
    if a.flags.c_contiguous or is_strided(replay, a.shape):
        return record_view(base, "AsStridedBackward0", replay, z)
    with inference_mode(False):
        again = select_again(base, replay, z)
    row, again._row = again._row, 0
    return row


def refresh(base: Tensor, recorded: bool = True) -> None:
    """Give the living views of `base` rows that start from its present row.

    Parameters
    ----------
    recorded : bool
        Whether the write that made this necessary was recorded. Else views without a row stay without.
    """
    meta = base._meta
    if meta is None or meta.views is None:
        return
    for link in meta.views:
        t = link()
        if t is None or t._meta is None or t._meta.base is not base:
            continue
        if not recorded and t._row == 0:
            continue
        is_leaf = t._row == -1 or t._meta.leaf is not None
        if is_leaf and not base._row:
            continue  # tracked by itself: it has the new values and stays the leaf that it is
        row = 0
        if base._row and t._meta.one_of_many:
            row = SPOILED  # its node's other outputs cannot follow; using it raises
        elif base._row:
            row = _record_again(base, t._meta.replay, t._data)
        if is_leaf:
            leave_row(t, row)
            continue
        t._row, before = row, t._row
        if before > 0:
            if t._meta.retained and row > 0:
                if recorded:
                    move_watch(t, before)
                else:
                    watch(t)  # uses before the write count too
            TAPE.drop(_ADDRESS, before)
