"""Copies of a tensor in which what a view of it would show is replaced: diagonals, and views by strides."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.arrays.addresses import address_of
from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.arrays.sizes import sizes
from tapegrad.errors import ShapeError
from tapegrad.ops.diagonals import diagonal_map
from tapegrad.ops.flat_places import Places, put_at, putting
from tapegrad.ops.subviews import as_strided
from tapegrad.recording.strided_maps import places_taken
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
    data = array_of(x)
    take = diagonal_map(offset, dim1, dim2, data.ndim)
    return _replaced(_DIAGONAL_SCATTER, x, src, places_taken(data.shape, take))


def as_strided_scatter(
    x: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of `x` with the elements replaced that `as_strided` would show of it.

    Parameters
    ----------
    x : Tensor
        If its own elements share memory, a contiguous copy is taken for it.
    src : Tensor, of shape `size`
        Where elements share memory, the last of them counts; those that are no elements of `x` have no effect.
    size, stride : sequence of int
        Shape, and steps in elements of the memory.
    storage_offset : int, optional
        Where the part begins, in elements from the beginning of the tensor that `x` is a view of; by default where `x` begins.

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
    data = x._data
    if type(data) is not float and data.flags.c_contiguous and (x._meta is None or x._meta.base is None) and data.size <= SMALL:
        steps = sizes((stride,), "as_strided")
        start = 0 if storage_offset is None else operator.index(storage_offset)
        return _replaced(_AS_STRIDED_SCATTER, x, src, _numbers_taken(data.size, sizes((size,), "as_strided"), steps, start))
    memory, begin = _numbers_in_memory(x)
    start = begin if storage_offset is None else storage_offset
    return _replaced(_AS_STRIDED_SCATTER, x, src, array_of(as_strided(wrap(memory), size, stride, start)))


@lru_cache(256)
def _numbers_taken(count: int, size: tuple[int, ...], stride: tuple[int, ...], start: int) -> Array:
    """Which of so many numbers, one after the other, `as_strided` shows."""
    return array_of(as_strided(wrap(np.arange(count)), size, stride, start)).copy()


def _numbers_in_memory(x: Tensor) -> tuple[Array, int]:
    """For each element of the memory behind `x` its number in `x`, or -1; and where `x` begins."""
    data, own = promote(x), array_of(_numbered(array_of(x).shape))
    whole = data if x._meta is None or x._meta.base is None else promote(x._meta.base)
    reach = [(n - 1) * step // data.itemsize for n, step in zip(whole.shape, whole.strides, strict=True)]
    if data.size and min(reach, default=0) >= 0:
        memory, begin = np.full(1 + sum(reach), -1), (address_of(data) - address_of(whole)) // data.itemsize
        there = np.ndarray(data.shape, np.int64, memory, 8 * begin, [step // data.itemsize * 8 for step in data.strides])
        there[...] = own
        if np.array_equal(there, own):
            return memory, begin
    return own.reshape(-1), 0


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
