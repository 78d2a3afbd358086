"""Running maxima and minima, and where they were reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.ops.extremes import ValuesIndices
from tapegrad.ops.selecting import put_along
from tapegrad.recording.axes import axis
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["cummax", "cummin"]


def cummax(x: Tensor, dim: int) -> ValuesIndices:
    """The largest element so far along a dimension, and its index: the last one where several are the largest.

    Parameters
    ----------
    x : Tensor
    dim : int

    Returns
    -------
    ValuesIndices
        Of the shape of `x`. nan counts as larger than everything. The gradient goes to the elements at the indices.

    Raises
    ------
    IndexError
        If the dimension is out of range.

    Examples
    --------
    >>> tg.cummax(tg.tensor([1.0, 3.0, 2.0]), 0)
    ValuesIndices(values=tensor([1., 3., 3.]), indices=tensor([0, 1, 1]))
    """
    return _running(_CUMMAX, np.maximum, x, dim)


def cummin(x: Tensor, dim: int) -> ValuesIndices:
    """The smallest element so far along a dimension, and its index; otherwise like `cummax`.

    Examples
    --------
    >>> tg.cummin(tg.tensor([2.0, 3.0, 1.0]), 0)
    ValuesIndices(values=tensor([2., 2., 1.]), indices=tensor([0, 0, 2]))
    """
    return _running(_CUMMIN, np.minimum, x, dim)


def _running(op: Structural, choose: Any, x: Tensor, dim: int) -> ValuesIndices:
    data = array_of(x)
    position = axis(dim, data.ndim)
    if not data.ndim:
        return ValuesIndices(apply(op, (x,), data.copy(), None), wrap(np.zeros((), np.int64)))
    values = choose.accumulate(data, position)
    reached = (data == values) | (data != data)
    shape = (1,) * position + (-1,) + (1,) * (data.ndim - position - 1)
    where = np.maximum.accumulate(np.where(reached, np.arange(data.shape[position]).reshape(shape), 0), position)
    # The caller may write into the indices; the saved ones must not change.
    saved = wrap(where.copy() if x.requires_grad else where)
    return ValuesIndices(apply(op, (x,), values, position, (saved,)), wrap(where))


def _running_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    position = ctx.attrs
    if position is None:
        return (g,)
    return (put_along(g, position, ctx.extra[0], ctx.shapes[0]),)


_CUMMAX = Structural("CummaxBackward0", ((),), _running_vjp)
_CUMMIN = Structural("CumminBackward0", ((),), _running_vjp)
