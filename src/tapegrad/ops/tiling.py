"""Copies with elements repeated: repeat, tile, repeat_interleave."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.sizes import sizes
from tapegrad.errors import ShapeError
from tapegrad.ops.selecting import index_select
from tapegrad.ops.shaping import reshape
from tapegrad.recording.axes import axis
from tapegrad.recording.mapped_copies import KEPT_MAPS, CopyMap, copied
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["repeat", "repeat_interleave", "tile"]

Array = np.ndarray[Any, Any]


def repeat(x: Tensor, *times: int | Sequence[int], repeats: Sequence[int] | None = None) -> Tensor:
    """A copy of the whole of `x`, over and over along each dimension.

    Parameters
    ----------
    x : Tensor
    *times : int or sequence of int
        How often along each dimension; numbers in excess stand for new dimensions in front.
    repeats : sequence of int, optional
        The same, by its name.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If there are fewer numbers than dimensions, or one is negative.

    Examples
    --------
    >>> tg.tensor([1.0, 2.0]).repeat(2, 2)
    tensor([[1., 2., 1., 2.],
            [1., 2., 1., 2.]])
    """
    counts = sizes(times, "repeat", repeats)
    return copied(x, _repeating(array_of(x).shape, counts))


@lru_cache(KEPT_MAPS)
def _repeating(shape: tuple[int, ...], counts: tuple[int, ...]) -> CopyMap:
    if len(counts) < len(shape):
        raise ShapeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: got "
            f"{len(counts)} and {len(shape)}"
        )
    filled = (1,) * (len(counts) - len(shape)) + shape
    target = tuple(n * count for n, count in zip(filled, counts, strict=True))
    if any(count < 0 for count in counts):
        raise ShapeError(f"Trying to create tensor with negative dimension {min(target)}: {list(target)}; repeats are not negative")
    spread = tuple(extent for n in filled for extent in (1, n))
    wide = tuple(extent for n, count in zip(filled, counts, strict=True) for extent in (count, n))
    return CopyMap("RepeatBackward0", shape, lambda array: np.broadcast_to(array.reshape(spread), wide), target)


def tile(x: Tensor, *times: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
    """`repeat` that takes fewer numbers than `x` has dimensions: they stand for the last ones.

    Examples
    --------
    >>> tg.tile(tg.tensor([[1.0], [2.0]]), (2,))
    tensor([[1., 1.],
            [2., 2.]])
    """
    counts = sizes(times, "tile", dims)
    return repeat(x, (1,) * (array_of(x).ndim - len(counts)) + counts)


def repeat_interleave(
    x: Tensor, repeats: int | Tensor | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """A copy with every element repeated in its place.

    Parameters
    ----------
    x : Tensor
        If nothing else is given, how often to repeat each of the indices 0, 1, ...; these are returned.
    repeats : int or Tensor of int32 or int64
        How often; one number, or one for each index along `dim`.
    dim : int, optional
        Along which dimension; by default `x` is flattened.
    output_size : int, optional
        What the size along `dim` will be, which is checked.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If a number is negative or not an integer, there is not one for each index, or `output_size` is wrong.

    Examples
    --------
    >>> tg.repeat_interleave(tg.tensor([1.0, 2.0]), 2)
    tensor([1., 1., 2., 2.])
    >>> tg.repeat_interleave(tg.tensor([[1.0], [2.0]]), tg.tensor([2, 1]), dim=0)
    tensor([[1.],
            [1.],
            [2.]])
    """
    if repeats is None:
        return wrap(_repeated(array_of(x), array_of(x).size, output_size))
    if dim is None:
        x, dim = reshape(x, (-1,)), 0
    elif not array_of(x).ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    shape = array_of(x).shape
    position = axis(dim, len(shape))
    if isinstance(repeats, Tensor):
        return index_select(x, position, wrap(_repeated(array_of(repeats), shape[position], output_size)))
    if repeats < 0:
        raise ShapeError(f"Repeats must be non-negative, got {repeats}")
    by = (_interleaving if type(repeats) is int else _interleaving.__wrapped__)(shape, position, repeats)
    _check_size(by.shape[position], output_size)
    return copied(x, by)


@lru_cache(KEPT_MAPS)
def _interleaving(shape: tuple[int, ...], position: int, repeats: int) -> CopyMap:
    target = (*shape[:position], shape[position] * repeats, *shape[position + 1 :])
    wide = (*shape[: position + 1], repeats, *shape[position + 1 :])
    return CopyMap(
        "RepeatInterleaveBackward0", shape, lambda array: np.broadcast_to(np.expand_dims(array, position + 1), wide), target
    )


def _repeated(counts: Array, extent: int, output_size: int | None) -> Array:
    """The indices below `extent`, each as often as the counts say."""
    if counts.dtype not in (np.int32, np.int64):
        raise RuntimeError(f"repeats has to be Long or Int tensor, got {type_name(counts.dtype)}")
    if counts.ndim > 1:
        raise ShapeError(f"repeats must be 0-dim or 1-dim tensor, got {counts.ndim} dimensions")
    if counts.size != 1 and counts.size != extent:
        raise ShapeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {counts.size} and "
            f"input.size(0) = {extent}"
        )
    if counts.size and counts.min() < 0:
        raise ShapeError(f"repeats can not be negative, got {counts.tolist()}")
    result = np.repeat(np.arange(extent), counts.reshape(-1))
    _check_size(result.size, output_size)
    return result


def _check_size(size: int, output_size: int | None) -> None:
    if output_size is not None and output_size != size:
        raise ShapeError(f"allocated size does not match required size: output_size is {output_size}, and {size} are needed")
