"""Diagonals: taken as views or copies, and made into matrices."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.errors import ShapeError
from tapegrad.ops.flat_places import Places, putting
from tapegrad.ops.in_place_copies import put_into
from tapegrad.ops.shaping import reshape
from tapegrad.ops.views import view
from tapegrad.recording.axes import axis
from tapegrad.recording.mapped_copies import KEPT_MAPS, CopyMap, copied, placed
from tapegrad.tensors.tensor import Tensor, array_of, as_operand

__all__ = ["diag", "diag_embed", "diagflat", "diagonal", "diagonal_of_matrices"]

Array = np.ndarray[Any, Any]


class _Diagonal:
    """The map of a view that is a diagonal of two dimensions; it comes last."""

    __slots__ = ("first", "offset", "second")

    def __init__(self, offset: int, first: int, second: int) -> None:
        self.offset, self.first, self.second = offset, first, second

    def __call__(self, array: Array) -> Array:
        result = np.diagonal(array, self.offset, self.first, self.second)
        # NumPy makes diagonals read-only for its own history's sake.
        result.flags.writeable = array.flags.writeable
        return result


def _plane(dim1: int, dim2: int, ndim: int) -> tuple[int, int]:
    first, second = axis(dim1, ndim), axis(dim2, ndim)
    if first == second:
        raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A view of a diagonal of two dimensions, which becomes the last dimension.

    Parameters
    ----------
    x : Tensor
    offset : int
        How far above the main diagonal; negative is below.
    dim1, dim2 : int
        The dimensions of the matrices.

    Returns
    -------
    Tensor
        On the memory of `x`; empty where `offset` leads out of the matrix.

    Raises
    ------
    IndexError
        If a dimension is out of range.
    ShapeError
        If the dimensions are the same.

    Examples
    --------
    >>> x = tg.zeros(2, 2)
    >>> x.diagonal().fill_(1.0)
    tensor([1., 1.])
    >>> x
    tensor([[1., 0.],
            [0., 1.]])
    """
    return view(x, "DiagonalBackward0", diagonal_map(offset, dim1, dim2, array_of(x).ndim))


def diagonal_map(offset: int, dim1: int, dim2: int, ndim: int) -> _Diagonal:
    """What takes the view of an array that `diagonal` is."""
    return _Diagonal(offset, *_plane(dim1, dim2, ndim))


def diagonal_of_matrices(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """`diagonal` of the last two dimensions, if no others are given.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
    offset : int
        How far above the main diagonal; negative is below.
    dim1, dim2 : int
        The dimensions of the matrices.

    Returns
    -------
    Tensor
        On the memory of `A`.

    Examples
    --------
    >>> tg.linalg.diagonal(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 4.])
    """
    return diagonal(A, offset, dim1, dim2)


def fill_diagonal_(x: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Set the elements whose indices are all the same to a number, in place; returns the tensor.

    Parameters
    ----------
    x : Tensor, with at least two dimensions, of one length if there are more
    fill_value : number or 0-d Tensor
    wrap : bool
        Whether the diagonal of a matrix with more rows than columns begins again below a free row.

    Raises
    ------
    ShapeError
        If `x` has other dimensions.

    Examples
    --------
    >>> tg.zeros(2, 2).fill_diagonal_(3.0)
    tensor([[3., 0.],
            [0., 3.]])
    """
    shape = array_of(x).shape
    if len(shape) < 2:
        raise ShapeError(f"dimensions must larger than 1: fill_diagonal_() got a tensor of shape {list(shape)}")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ShapeError(f"all dimensions of input must be of equal length, got {list(shape)}")
    number = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    size, wrap = array_of(x).size, wrap and len(shape) == 2
    step = 0  # from one place to the next
    for extent in shape:
        step = step * extent + 1
    # A diagonal that begins again goes on to the end of a tall matrix: the next place is that below a free row.
    at = np.arange(0, size if wrap else min(step * min(shape), size), step)
    return put_into(x, Places(at, 1, at.shape), as_operand(number, x), _FILL_DIAGONAL)


_FILL_DIAGONAL = putting("CopySlices")


def diag(x: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, as a copy; or the matrix that has a vector on its diagonal.

    Parameters
    ----------
    x : Tensor, of one or two dimensions
    diagonal : int
        Which one: how far above the main diagonal.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If `x` has another number of dimensions.

    Examples
    --------
    >>> tg.diag(tg.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    >>> tg.diag(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1)
    tensor([2.])
    """
    data = array_of(x)
    if data.ndim == 1:
        return diag_embed(x, diagonal)
    if data.ndim != 2:
        raise ShapeError(f"diag(): Supports 1D or 2D tensors. Got {data.ndim}D")
    return copied(x, (_taking if type(diagonal) is int else _taking.__wrapped__)(data.shape, diagonal))


@lru_cache(KEPT_MAPS)
def _taking(shape: tuple[int, ...], offset: int) -> CopyMap:
    take = _Diagonal(offset, 0, 1)
    return CopyMap("DiagonalBackward0", shape, take, take(np.empty(shape, np.int8)).shape)


def diag_embed(x: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Zeros with the last dimension of `x` on a diagonal of two dimensions: the transpose of `diagonal`.

    Parameters
    ----------
    x : Tensor, of at least one dimension
    offset : int
        How far above the main diagonal; negative is below.
    dim1, dim2 : int
        The dimensions, of the result, of the matrices.

    Returns
    -------
    Tensor
        With one dimension more than `x`.

    Raises
    ------
    IndexError
        If a dimension is out of range.
    ShapeError
        If the dimensions are the same.

    Examples
    --------
    >>> tg.diag_embed(tg.tensor([[1.0, 2.0], [3.0, 4.0]])).shape
    tapegrad.Size([2, 2, 2])
    """
    data = array_of(x)
    plane = _plane(dim1, dim2, data.ndim + 1)
    by = (_embedding if type(offset) is int else _embedding.__wrapped__)(data.shape, offset, plane)
    return placed(x, by, np.zeros(by.shape, data.dtype))


@lru_cache(KEPT_MAPS)
def _embedding(shape: tuple[int, ...], offset: int, plane: tuple[int, int]) -> CopyMap:
    extents = list(shape[:-1])
    for k in sorted(plane):
        extents.insert(k, shape[-1] + abs(offset))
    return CopyMap("DiagEmbedBackward0", tuple(extents), _Diagonal(offset, *plane), tuple(extents))


def diagflat(x: Tensor, offset: int = 0) -> Tensor:
    """The matrix that has all elements of `x` on a diagonal.

    Examples
    --------
    >>> tg.diagflat(tg.tensor([[1.0], [2.0]]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    return diag_embed(reshape(x, (-1,)), offset)
