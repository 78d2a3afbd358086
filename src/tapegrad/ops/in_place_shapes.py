"""In-place forms of views: the tensor itself gets another shape on the same memory.

The tensor's row becomes that of the view. Tensors that are views of it stay what they are: how they are taken from it begins
with the way back to its former shape.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.engine.layout import CLOCK
from tapegrad.errors import ShapeError
from tapegrad.ops.overwriting import check_graph, replace
from tapegrad.ops.shaping import dropping, inserting
from tapegrad.ops.transposing import Reordering, swapped
from tapegrad.ops.view_rows import refresh
from tapegrad.ops.views import Replay, record_view, version_of
from tapegrad.recording.axes import axis
from tapegrad.tape.tape import TAPE, owner_of
from tapegrad.tensors.retained_gradients import move_watch
from tapegrad.tensors.tensor import Tensor, is_leaf, is_recording, leave_row, promote

__all__ = ["squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_"]

Take = Callable[[Any], Any]
_ADDRESS = TAPE.address


def transpose_(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """In-place form of `tapegrad.transpose`: exchanges two dimensions of the tensor itself and returns it.

    Raises
    ------
    RuntimeError
        While recording, for leaves that require grad, views of them, and views that may not be written; while not recording, for
        results of recorded operations.

    Examples
    --------
    >>> x = tg.zeros(2, 3)
    >>> x.transpose_(0, 1).shape, x.shape
    (tapegrad.Size([3, 2]), tapegrad.Size([3, 2]))
    """
    ndim = promote(x).ndim
    take = Reordering(swapped(ndim, axis(dim0, ndim), axis(dim1, ndim)))
    return _turn(x, "TransposeBackward1", take, take)


def swapaxes_(x: Tensor, axis0: int, axis1: int) -> Tensor:
    """The same as `Tensor.transpose_`."""
    return transpose_(x, axis0, axis1)


def swapdims_(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """The same as `Tensor.transpose_`."""
    return transpose_(x, dim0, dim1)


def t_(x: Tensor) -> Tensor:
    """In-place form of `tapegrad.t`; errors are those of `Tensor.transpose_`.

    Raises
    ------
    ShapeError
        If the tensor has more than two dimensions.
    """
    ndim = promote(x).ndim
    if ndim > 2:
        raise ShapeError(f"t_() expects a tensor with <= 2 dimensions, but self is {ndim}D; use transpose_")
    take = Reordering(tuple(reversed(range(ndim))))
    return _turn(x, "TBackward1", take, take)


def squeeze_(x: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """In-place form of `tapegrad.squeeze`; errors are those of `Tensor.transpose_`.

    Examples
    --------
    >>> x = tg.zeros(2, 1)
    >>> x.squeeze_().shape
    tapegrad.Size([2])
    """
    shape = promote(x).shape
    name = "SqueezeBackward3" if dim is None else "SqueezeBackward4" if isinstance(dim, int) else "SqueezeBackward5"
    return _turn(x, name, dropping(shape, dim), operator.methodcaller("reshape", shape))


def unsqueeze_(x: Tensor, dim: int) -> Tensor:
    """In-place form of `tapegrad.unsqueeze`; errors are those of `Tensor.transpose_`.

    Examples
    --------
    >>> x = tg.zeros(2)
    >>> x.unsqueeze_(-1).shape
    tapegrad.Size([2, 1])
    """
    position = axis(dim, promote(x).ndim + 1)
    return _turn(x, "UnsqueezeBackward1", inserting(position), operator.methodcaller("squeeze", position))


def _turn(t: Tensor, name: str, take: Take, back: Take) -> Tensor:
    """Let `t` be its own view, `back` being the way back to its former shape."""
    recording = is_recording()
    tracked = recording and t._row != 0
    check_graph(t, tracked)
    if t._row and not recording and not is_leaf(t):
        raise RuntimeError(
            "the shape of a result of a recorded operation cannot be changed in place while nothing is recorded: its gradient has "
            "the shape that was recorded. Do it with grad mode enabled, or on a detach()."
        )
    data = promote(t)
    z = take(data)
    row = record_view(t, name, take, z) if tracked else 0
    _count_write(t, data)
    t._data = z
    meta = t._meta
    if meta is not None and meta.base is not None:
        meta.replay = Replay(meta.replay, take)
        if row:
            t._row, before = row, t._row
            if meta.retained:
                move_watch(t, before)
            TAPE.drop(_ADDRESS, before)
        return t
    for link in (meta.views if meta is not None else None) or ():
        view = link()
        if view is not None and view._meta is not None and view._meta.base is t:
            view._meta.replay = Replay(back, view._meta.replay)
    if row:
        replace(t, row)
        return t
    if t._row and (z.shape != data.shape or z.strides != data.strides):
        _leave_row(t)
    refresh(t, recorded=False)
    return t


def _count_write(t: Tensor, data: np.ndarray) -> None:
    """As after any write, what was saved of the tensor before is stale."""
    counter = version_of(t)
    counter.note(int(TAPE.header[CLOCK]))
    TAPE.note_written(data)
    TAPE.versions[owner_of(data)] = counter


def _leave_row(t: Tensor) -> None:
    """Let a leaf be registered anew when it is used again, for its row has the former shape."""
    assert t._meta is not None
    TAPE.note_reshaped()
    if t._meta.leaf is not None:
        t._meta.leaf.turned = True
    leave_row(t, -1)
