"""Several tensors put together, and one taken apart."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.casting import cast, common_dtype
from tapegrad.errors import ShapeError
from tapegrad.shaping import reshape
from tapegrad.structural import axis, join
from tapegrad.tensor import Tensor, array_of
from tapegrad.views import split_views

__all__ = ["cat", "chunk", "concat", "concatenate", "hstack", "split", "stack", "unbind", "vstack"]

Array = np.ndarray[Any, Any]
EMPTY = (0,)


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors joined along an existing dimension.

    Parameters
    ----------
    tensors : sequence of Tensor
        All of one shape, apart from dimension `dim`. Tensors of shape ``(0,)`` fit to any other.
    dim : int
        Where they are joined.

    Returns
    -------
    Tensor
        Integers do not widen floats: ``float32`` with ``int64`` gives ``float32``.

    Raises
    ------
    ValueError
        If there is nothing to join.
    ShapeError
        If the shapes differ elsewhere than in `dim`.

    Examples
    --------
    >>> tg.cat([tg.tensor([1.0, 2.0]), tg.tensor([3.0])])
    tensor([1., 2., 3.])
    """
    inputs = _tensors(tensors, "cat")
    if not inputs:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    arrays = [array_of(x) for x in inputs]
    # Shape (0,) is the empty list that a loop starts with: it fits to every shape.
    shape = next((array.shape for array in arrays if array.shape != EMPTY), EMPTY)
    position = axis(dim, len(shape))
    for k, array in enumerate(arrays):
        if array.ndim == 0:
            raise ShapeError(f"zero-dimensional tensor (at position {k}) cannot be concatenated; use stack")
        if array.shape == shape or array.shape == EMPTY:
            continue
        if array.ndim != len(shape):
            raise ShapeError(f"Tensors must have same number of dimensions: got {len(shape)} and {array.ndim}")
        _check_sizes(shape, array.shape, position, k)
    inputs, arrays = _same_dtype(inputs, arrays)
    joined = [array for array in arrays if array.ndim == len(shape)]
    return join("CatBackward0", inputs, position, np.concatenate(joined, position))


def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The same as `cat`."""
    return cat(tensors, dim)


def concatenate(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The same as `cat`."""
    return cat(tensors, dim)


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape joined along a new dimension.

    Parameters
    ----------
    tensors : sequence of Tensor
    dim : int
        Position of the new dimension in the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If there is nothing to join, or the shapes differ.

    Examples
    --------
    >>> tg.stack([tg.tensor(1.0), tg.tensor(2.0)])
    tensor([1., 2.])
    """
    inputs = _tensors(tensors, "stack")
    if not inputs:
        raise ShapeError("stack expects a non-empty TensorList")
    arrays = [array_of(x) for x in inputs]
    shape = arrays[0].shape
    position = axis(dim, len(shape) + 1)
    for k, array in enumerate(arrays):
        if array.shape != shape:
            raise ShapeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and {list(array.shape)} at entry {k}"
            )
    inputs, arrays = _same_dtype(inputs, arrays)
    result = np.array(arrays) if position == 0 else np.stack(arrays, position)
    return join("StackBackward0", inputs, position, result)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors side by side: `cat` along dimension 1, or 0 for vectors and numbers."""
    inputs = [x if array_of(x).ndim else reshape(x, (1,)) for x in _tensors(tensors, "hstack")]
    if not inputs:
        raise ShapeError("hstack expects a non-empty TensorList")
    return cat(inputs, 0 if array_of(inputs[0]).ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors one above the other: `cat` along dimension 0, vectors counting as rows."""
    inputs = [x if array_of(x).ndim > 1 else reshape(x, (1, array_of(x).size)) for x in _tensors(tensors, "vstack")]
    if not inputs:
        raise ShapeError("vstack expects a non-empty TensorList")
    return cat(inputs, 0)


def split(x: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Consecutive pieces of `x` along a dimension, as views.

    Parameters
    ----------
    x : Tensor
    split_size : int or sequence of int
        The size of every piece (the last one may be smaller), or the size of each.
    dim : int
        The dimension that is cut.

    Returns
    -------
    tuple of Tensor

    Raises
    ------
    ShapeError
        If the sizes are negative or do not sum to the size of the dimension.

    Examples
    --------
    >>> [tuple(piece.shape) for piece in tg.split(tg.zeros(5, 2), 2)]
    [(2, 2), (2, 2), (1, 2)]
    """
    shape = array_of(x).shape
    if not shape:
        raise ShapeError("split expects at least a 1-dimensional tensor")
    position = axis(dim, len(shape))
    extent = shape[position]
    if isinstance(split_size, (tuple, list)):
        sections = [operator.index(size) for size in split_size]
        if any(size < 0 for size in sections):
            raise ShapeError(f"split_with_sizes expects split_sizes have only non-negative entries, but got {sections}")
        if sum(sections) != extent:
            raise ShapeError(
                f"split_with_sizes expects split_sizes to sum exactly to {extent} (input tensor's size at dimension "
                f"{position}), but got split_sizes={sections}"
            )
        return _pieces(x, "SplitWithSizesBackward0", position, sections)
    try:
        size = operator.index(split_size)  # type: ignore[arg-type]
    except TypeError:
        kind = type(split_size).__name__
        raise TypeError(f"split(): argument 'split_size' must be int or tuple of ints, not {kind}") from None
    if size < 0:
        raise ShapeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0 and extent:
        raise ShapeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {extent}")
    count = max(-(-extent // size), 1) if size else 1
    return _pieces(x, "SplitBackward0", position, [min(size, extent - k * size) for k in range(count)])


def chunk(x: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`x` cut along a dimension into `chunks` pieces of one size, as views; the last may be smaller, or some missing.

    Raises
    ------
    ShapeError
        If `chunks` is not positive.
    """
    shape = array_of(x).shape
    if not shape:
        raise ShapeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise ShapeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    position = axis(dim, len(shape))
    extent = shape[position]
    if extent == 0:
        return _pieces(x, "SplitBackward0", position, [0] * chunks)
    return split(x, -(-extent // chunks), position)


def unbind(x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices of `x` along a dimension, as views without that dimension.

    Examples
    --------
    >>> tg.unbind(tg.tensor([1.0, 2.0]))[1].item()
    2.0
    """
    shape = array_of(x).shape
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    position = axis(dim, len(shape))
    ahead = (slice(None),) * position
    takes = [operator.itemgetter((*ahead, k, Ellipsis)) for k in range(shape[position])]
    return split_views(x, "UnbindBackward0", takes) if takes else ()


def _pieces(x: Tensor, name: str, position: int, sections: Sequence[int]) -> tuple[Tensor, ...]:
    ahead = (slice(None),) * position
    takes: list[Callable[[Array], Array]] = []
    start = 0
    for size in sections:
        takes.append(operator.itemgetter((*ahead, slice(start, start + size))))
        start += size
    return split_views(x, name, takes) if takes else ()


def _tensors(tensors: Sequence[Tensor], name: str) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    inputs = list(tensors)
    for k, x in enumerate(inputs):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}(): expected Tensor as element {k} in argument 0, but got {type(x).__name__}")
    return inputs


def _check_sizes(first: tuple[int, ...], other: tuple[int, ...], position: int, number: int) -> None:
    for k, (wanted, size) in enumerate(zip(first, other, strict=True)):
        if wanted != size and k != position:
            raise ShapeError(
                f"Sizes of tensors must match except in dimension {position}. Expected size {wanted} but got size "
                f"{size} for tensor number {number} in the list."
            )


def _same_dtype(inputs: list[Tensor], arrays: list[Array]) -> tuple[list[Tensor], list[Array]]:
    dtype = arrays[0].dtype
    if all(array.dtype == dtype for array in arrays):
        return inputs, arrays
    dtype = common_dtype(arrays)
    inputs = [cast(x, dtype) for x in inputs]
    return inputs, [array_of(x) for x in inputs]
