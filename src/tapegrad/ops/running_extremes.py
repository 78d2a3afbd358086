"""Running maxima and minima, and where they were reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.ops.extremes import ValuesIndices
from tapegrad.recording.axes import around, axis
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, make, wrap

__all__ = ["cummax", "cummin"]

Array = np.ndarray[Any, Any]


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
    values, where = _found(choose, data, position)
    # The caller may write into the indices; the saved ones must not change.
    saved = wrap(where.copy() if x.requires_grad else where)
    return ValuesIndices(apply(op, (x,), values, position, (saved,)), wrap(where))


def _found(choose: Any, data: Array, position: int) -> tuple[Array, Array]:
    """The running extremes, and where they were reached."""
    if data.size > SMALL and data.dtype == np.float64 and data.flags.c_contiguous:
        values, where = large_empty(data.shape, data.dtype), large_empty(data.shape, np.dtype(np.int64))
        ARRAY_KERNELS.running_extremes(id(values), id(where), id(data), *around(data.shape, position), int(choose is np.minimum))
        return values, where
    values = choose.accumulate(data, position)
    reached = (data == values) | (data != data)
    shape = (1,) * position + (-1,) + (1,) * (data.ndim - position - 1)
    return values, np.maximum.accumulate(np.where(reached, np.arange(data.shape[position]).reshape(shape), 0), position)


def _running_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    position = ctx.attrs
    if position is None:
        return (g,)
    return (ctx.on.put_along(g, position, ctx.extra[0], ctx.shapes[0]),)


def large_put_along(g: Tensor, position: int, places: Tensor, shape: tuple[int, ...]) -> Tensor | None:
    """`put_along` of a large array with a place for each element; None if that is to do it."""
    adjoint, at = np.asarray(g._data), places._data
    if adjoint.size <= SMALL or adjoint.shape != shape or at.shape != shape or adjoint.dtype != np.float64:
        return None
    is_number = not any(adjoint.strides)
    if not at.flags.c_contiguous or not (is_number or adjoint.flags.c_contiguous):
        return None
    out = large_empty(shape, adjoint.dtype)
    ARRAY_KERNELS.add_at_places(id(out), id(adjoint), id(at), *around(shape, position), int(not is_number))
    return make(out, 0)


_CUMMAX = Structural("CummaxBackward0", ((),), _running_vjp, takes_stretched=True)
_CUMMIN = Structural("CumminBackward0", ((),), _running_vjp, takes_stretched=True)
