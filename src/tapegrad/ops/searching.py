"""Where elements are: nonzero, searchsorted, isin. The results are untracked."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.errors import ShapeError
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import Tensor, array_of, as_operand, wrap
from tapegrad.tensors.tracers import looks_at_values

__all__ = ["argwhere", "bucketize", "isin", "nonzero", "searchsorted", "unravel_index"]

Array = np.ndarray[Any, Any]


def nonzero(x: Tensor, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The indices of the elements that are not zero, in C order.

    Parameters
    ----------
    x : Tensor
    as_tuple : bool
        One vector for each dimension, fit for indexing, in place of a matrix with a row for each element.

    Returns
    -------
    Tensor of int64, shape (n, x.ndim); or tuple of Tensor of shape (n,)

    Examples
    --------
    >>> tg.nonzero(tg.tensor([0.0, 2.0, 3.0]))
    tensor([[1],
            [2]])
    """
    data = array_of(x)
    if untracked_values.decisions_in_use:
        untracked_values.compared(x)
    if as_tuple:
        return tuple(wrap(places.astype(np.int64, copy=False)) for places in np.nonzero(data if data.ndim else data.reshape(1)))
    return wrap(np.ascontiguousarray(np.argwhere(data).astype(np.int64, copy=False)))


def argwhere(x: Tensor) -> Tensor:
    """The indices of the elements that are not zero, a row for each: ``nonzero(x)``."""
    return wrap(array_of(nonzero(x)))  # type: ignore[arg-type]


def searchsorted(
    sorted_sequence: Tensor, input: Tensor | float, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Where values would have to be inserted to keep a sequence in order.

    Parameters
    ----------
    sorted_sequence : Tensor of shape (n,) or (..., n)
        Ascending in the last dimension.
    input : Tensor or number
        The values: of any shape for one sequence, else of the shape of the sequences but for the last dimension.
    out_int32 : bool
        Indices as int32 in place of int64.
    right : bool
        Behind equal elements in place of before them.
    side : {"left", "right"}, optional
        The same in words.
    sorter : Tensor of int64, optional
        Indices that put `sorted_sequence` in order, if it is not.

    Returns
    -------
    Tensor of the shape of `input`

    Raises
    ------
    RuntimeError
        If the shapes do not go together, or `side` contradicts `right`.

    Examples
    --------
    >>> tg.searchsorted(tg.tensor([1.0, 3.0, 5.0]), tg.tensor([3.0, 6.0]))
    tensor([1, 3])
    """
    name = "torch.searchsorted()"
    if side not in (None, "left", "right"):
        raise RuntimeError(f"{name}: side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(f"{name}: side and right can't be set to opposites, got side of left while right was True")
    boundaries, values = array_of(sorted_sequence), array_of(as_operand(input))
    if not values.ndim and not isinstance(input, Tensor) and boundaries.ndim != 1:
        raise ShapeError(
            f"{name}: input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor "
            f"dim({boundaries.ndim})"
        )
    if not boundaries.ndim:
        raise ShapeError(f"{name}: boundaries tensor should have positive dimension, but got 0 dimension")
    if boundaries.ndim != 1 and (values.ndim != boundaries.ndim or values.shape[:-1] != boundaries.shape[:-1]):
        raise ShapeError(
            f"{name}: boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value "
            f"tensor must match, but we got boundaries tensor {list(boundaries.shape)} and input value tensor {list(values.shape)}"
        )
    if sorter is not None:
        boundaries = np.take_along_axis(boundaries, _checked_sorter(array_of(sorter), boundaries.shape, name), -1)
    if untracked_values.decisions_in_use:
        untracked_values.compared(sorted_sequence, input)
    behind = right or side == "right"
    if boundaries.ndim == 1:
        found: Any = np.searchsorted(boundaries, values, "right" if behind else "left")
    else:
        found = _search_rows(boundaries, values, behind)
    return wrap(np.asarray(found, np.int32 if out_int32 else np.int64))


def _checked_sorter(sorter: Array, shape: tuple[int, ...], name: str) -> Array:
    if sorter.shape != shape:
        raise ShapeError(
            f"{name}: boundary and sorter must have the same size, but got boundary tensor {list(shape)} and got sorter tensor "
            f"{list(sorter.shape)}"
        )
    if sorter.dtype != np.int64:
        raise RuntimeError(f"{name}: sorter must be a tensor of long dtype but got dtype {type_name(sorter.dtype)}")
    if sorter.size and (sorter.min() < 0 or sorter.max() >= shape[-1]):
        raise RuntimeError(f"{name}: sorter index out of range for {shape[-1]} boundaries")
    return sorter


def _search_rows(boundaries: Array, values: Array, behind: bool) -> Array:
    """For each value, how many boundaries of its row come before it when all are put in order together."""
    count = values.shape[-1]
    # A stable sort keeps what is given first before its equals.
    both = np.concatenate([boundaries, values] if behind else [values, boundaries], -1)
    order = np.argsort(both, -1, "stable")
    is_boundary = order < boundaries.shape[-1] if behind else order >= count
    before = np.empty(both.shape, np.int64)
    np.put_along_axis(before, order, np.cumsum(is_boundary, -1), -1)
    return np.ascontiguousarray(before[..., both.shape[-1] - count :] if behind else before[..., :count])


def bucketize(input: Tensor | float, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """In which interval between boundaries each value lies: `searchsorted` with the operands exchanged.

    Parameters
    ----------
    input : Tensor or number
    boundaries : Tensor of shape (n,)
        Ascending.
    out_int32 : bool
        Indices as int32 in place of int64.
    right : bool
        Whether a boundary belongs to the interval above it.

    Returns
    -------
    Tensor of the shape of `input`

    Raises
    ------
    RuntimeError
        If `boundaries` is not a vector.

    Examples
    --------
    >>> tg.bucketize(tg.tensor([0.5, 1.0, 9.0]), tg.tensor([1.0, 2.0]))
    tensor([0, 0, 2])
    """
    if array_of(boundaries).ndim != 1:
        raise ShapeError(f"boundaries tensor must be 1 dimension, but got dim({array_of(boundaries).ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def isin(elements: Tensor | float, test_elements: Tensor | float, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among others.

    Parameters
    ----------
    elements : Tensor or number
    test_elements : Tensor or number
        One of the two is a tensor.
    assume_unique : bool
        Accepted; nothing depends on it.
    invert : bool
        Whether it is not among them.

    Returns
    -------
    Tensor of bool, of the shape of `elements`

    Raises
    ------
    TypeError
        If neither is a tensor.

    Examples
    --------
    >>> tg.isin(tg.tensor([1, 2, 3]), tg.tensor([2, 5]))
    tensor([False,  True, False])
    """
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError("isin(): one of elements and test_elements must be a Tensor")
    if untracked_values.decisions_in_use:
        untracked_values.compared(elements, test_elements)
    return wrap(np.asarray(np.isin(array_of(as_operand(elements)), array_of(as_operand(test_elements)), invert=invert)))


@looks_at_values
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The indices along each dimension of elements that are counted through.

    Parameters
    ----------
    indices : Tensor of integers
    shape : int or sequence of int
        Of the tensor that they are elements of.

    Returns
    -------
    tuple of Tensor of int64
        One for each dimension, of the shape of `indices`.

    Raises
    ------
    TypeError
        If the indices are no integers.
    ValueError
        If a size is negative.

    Notes
    -----
    What is beyond the last element begins again with the first, as in PyTorch.

    Examples
    --------
    >>> tg.unravel_index(tg.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    data = array_of(indices)
    if data.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {type_name(data.dtype)}")
    extents = tuple(operator.index(n) for n in ((shape,) if isinstance(shape, int) else shape))
    if any(n < 0 for n in extents):
        raise ValueError(f"'shape' cannot have negative values, but got {extents}")
    if not math.prod(extents):
        raise ValueError(f"a tensor of shape {extents} has no elements")
    found = np.unravel_index(data.astype(np.int64) % math.prod(extents), extents)
    return tuple(wrap(np.asarray(index, np.int64)) for index in found)
