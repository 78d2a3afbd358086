"""One tensor taken apart into views."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.sizes import sizes
from tapegrad.errors import ShapeError
from tapegrad.ops.cloning import clone
from tapegrad.ops.subviews import between
from tapegrad.ops.views import split_views
from tapegrad.recording.axes import axis
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = [
    "chunk", "dsplit", "hsplit", "split", "split_with_sizes", "tensor_split", "unbind", "unsafe_chunk", "unsafe_split",
    "unsafe_split_with_sizes", "vsplit",
]  # fmt: skip

Array = np.ndarray[Any, Any]


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


def split_with_sizes(x: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """`split` into pieces of given sizes."""
    return split(x, tuple(sizes((split_sizes,), "split_with_sizes")), dim)


def tensor_split(
    x: Tensor, indices_or_sections: int | Sequence[int] | Tensor | None = None, dim: int = 0, *,
    indices: Sequence[int] | None = None, sections: int | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Pieces of `x` along a dimension, as views: as equal as can be, or cut at given places.

    Parameters
    ----------
    x : Tensor
    indices_or_sections : int or sequence of int
        How many pieces, the first ones larger by one where that is needed; or where to cut.
    dim : int
    indices, sections : optional
        The two meanings by name.

    Returns
    -------
    tuple of Tensor

    Raises
    ------
    ShapeError
        If `x` has no dimensions or the number of pieces is not positive.
    ValueError
        If the number of pieces does not fit in int64.

    Examples
    --------
    >>> [piece.tolist() for piece in tg.tensor_split(tg.tensor([1.0, 2.0, 3.0]), 2)]
    [[1.0, 2.0], [3.0]]
    >>> [piece.tolist() for piece in tg.tensor_split(tg.tensor([1.0, 2.0, 3.0]), (1,))]
    [[1.0], [2.0, 3.0]]
    """
    given = indices_or_sections if indices_or_sections is not None else indices if indices is not None else sections
    shape = array_of(x).shape
    if not shape:
        raise ShapeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    position = axis(dim, len(shape))
    places: Any = array_of(given).tolist() if isinstance(given, Tensor) else given
    if isinstance(places, (tuple, list)):
        cuts = [operator.index(place) for place in places]
    else:
        count = operator.index(places)
        if count <= 0:
            raise ShapeError(f"number of sections must be larger than 0, got {count}")
        if count >= 1 << 63:
            raise ValueError("Overflow when unpacking long long: the number of sections does not fit in int64")
        each, longer = divmod(shape[position], count)
        cuts = [k * each + min(k, longer) for k in range(1, count)]
    bounds = [0, *cuts, shape[position]]
    return tuple(between(x, position, bounds[k], bounds[k + 1]) for k in range(len(bounds) - 1))


def hsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along dimension 1 (0 for vectors), into pieces of one size where their number is given.

    Raises
    ------
    ShapeError
        If `x` has too few dimensions, or the size is no multiple of the number of pieces.
    """
    return _evenly(x, "hsplit", indices_or_sections, 1, 0 if array_of(x).ndim == 1 else 1)


def vsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` of a tensor of at least two dimensions along dimension 0; parameters and errors are those of `hsplit`."""
    return _evenly(x, "vsplit", indices_or_sections, 2, 0)


def dsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` of a tensor of at least three dimensions along dimension 2; parameters and errors are those of `hsplit`."""
    return _evenly(x, "dsplit", indices_or_sections, 3, 2)


def _evenly(x: Tensor, name: str, parts: int | Sequence[int], least: int, position: int) -> tuple[Tensor, ...]:
    shape = array_of(x).shape
    if len(shape) < least:
        raise ShapeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {len(shape)} dimensions!"
        )
    if not isinstance(parts, (tuple, list)):
        count = operator.index(parts)  # type: ignore[arg-type]
        if count <= 0 or shape[position] % count:
            raise ShapeError(
                f"torch.{name} attempted to split along dimension {position}, but the size of the dimension {shape[position]} "
                f"is not divisible by the split_size {count}!"
            )
    return tensor_split(x, parts, position)


def unsafe_split(x: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """The pieces that `split` gives, as copies, which may be written into one by one."""
    return tuple(clone(piece) for piece in split(x, split_size, dim))


def unsafe_split_with_sizes(x: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """The pieces that `split_with_sizes` gives, as copies, which may be written into one by one."""
    return tuple(clone(piece) for piece in split_with_sizes(x, split_sizes, dim))


def unsafe_chunk(x: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """The pieces that `chunk` gives, as copies, which may be written into one by one."""
    return tuple(clone(piece) for piece in chunk(x, chunks, dim))
