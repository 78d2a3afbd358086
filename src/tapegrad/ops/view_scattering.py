"""Copies of a tensor in which what a view of it would show is replaced: diagonals, and views by strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.errors import ShapeError
from tapegrad.ops.diagonals import diagonal
from tapegrad.ops.flat_places import Places, put_at, putting
from tapegrad.ops.subviews import as_strided
from tapegrad.ops.transposing import permute
from tapegrad.tensors.tensor import Tensor, array_of, promote, wrap

__all__ = ["as_strided_scatter", "diagonal_scatter"]

Array = np.ndarray[Any, Any]
_DIAGONAL_SCATTER = putting("DiagonalScatterBackward0")
_AS_STRIDED_SCATTER = putting("AsStridedScatterBackward0")


def diagonal_scatter(x: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of `x` with a diagonal of two dimensions replaced: ``diagonal(result, offset, dim1, dim2)`` equals `src`.

    Parameters
    ----------
    x : Tensor
    src : Tensor
        Of the shape of that diagonal.
    offset : int
        How far above the main diagonal; negative is below.
    dim1, dim2 : int
        The dimensions of the matrices.

    Raises
    ------
    IndexError
        If a dimension is out of range.
    ShapeError
        If the dimensions are the same, or `src` is not of the shape of the diagonal.

    Examples
    --------
    >>> tg.diagonal_scatter(tg.zeros(2, 2), tg.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _replaced(_DIAGONAL_SCATTER, x, src, array_of(diagonal(_numbered(array_of(x).shape), offset, dim1, dim2)))


def as_strided_scatter(
    x: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of `x` with the elements replaced that `as_strided` would show of it, in the order of its memory.

    Parameters
    ----------
    x : Tensor
    src : Tensor, of shape `size`
        Where elements share memory, the last of them counts.
    size, stride : sequence of int
        Shape, and steps in elements.
    storage_offset : int, optional
        Where the part begins, in elements from the beginning of `x`.

    Raises
    ------
    RuntimeError
        If `size` and `stride` differ in length, a stride is negative, the memory is left, or `src` is of another shape.

    Examples
    --------
    >>> tg.as_strided_scatter(tg.zeros(2, 2), tg.ones(2), (2,), (3,))
    tensor([[1., 0.],
            [0., 1.]])
    """
    data = promote(x)
    order = sorted(range(data.ndim), key=lambda k: (-data.strides[k], k))
    in_memory = permute(x, *order) if order != list(range(data.ndim)) else x
    found = array_of(as_strided(_numbered(array_of(in_memory).shape), size, stride, storage_offset))
    result = _replaced(_AS_STRIDED_SCATTER, in_memory, src, found)
    return result if in_memory is x else permute(result, *np.argsort(order))


def _numbered(shape: tuple[int, ...]) -> Tensor:
    """The number of each element, counted through."""
    return wrap(np.arange(int(np.prod(shape))).reshape(shape))


def _replaced(op: Any, x: Tensor, src: Tensor, at: Array) -> Tensor:
    if not isinstance(src, Tensor):
        raise TypeError(f"argument 'src' (position 2) must be Tensor, not {type(src).__name__}. Use tg.tensor(...).")
    given, data = array_of(src), array_of(x)
    if at.shape != given.shape:
        raise ShapeError(
            f"expected src to have a size equal to the slice of self. src size = {list(given.shape)}, slice size = {list(at.shape)}"
        )
    if data.dtype != given.dtype:
        raise RuntimeError(f"expected src to have dtype {type_name(data.dtype)}, got {type_name(given.dtype)}")
    return put_at(x, Places(np.ascontiguousarray(at).reshape(-1), 1, at.shape), src, op)
