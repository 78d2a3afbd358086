"""Copies with whole slices along a dimension replaced, or added to: index_add, index_copy, index_fill.

Where a slice is named several times, the last one stays and it alone receives a gradient; what is added is summed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.errors import ShapeError
from tapegrad.ops.elementwise import FUNCTIONS
from tapegrad.ops.flat_places import Places, accumulating, blocks, increased_at, put_at, putting
from tapegrad.ops.in_place_copies import put_into
from tapegrad.recording.axes import axis
from tapegrad.recording.structural import Structural
from tapegrad.tensors.tensor import Tensor, array_of, as_operand

__all__ = ["index_add", "index_copy", "index_fill"]

Array = np.ndarray[Any, Any]

_INDEX_ADD = accumulating("IndexAddBackward0")
_INDEX_COPY = putting("IndexCopyBackward0")
_INDEX_FILL = putting("IndexFillBackward0")
_INDEX_FILL_TENSOR = putting("IndexFillBackward1")


def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """A copy of `x` with slices added: slice ``k`` of ``alpha * source`` to slice ``index[k]`` along a dimension.

    Parameters
    ----------
    x : Tensor
    dim : int
    index : Tensor of int32 or int64, shape (n,) or ()
        Not negative; of repeated indices all slices are added.
    source : Tensor
        Of the shape of `x` with ``n`` in dimension `dim`.
    alpha : number

    Returns
    -------
    Tensor, of the shape of `x`

    Raises
    ------
    RuntimeError, IndexError
        If an index is out of range, or shapes or dtypes do not fit together.

    Examples
    --------
    >>> tg.index_add(tg.zeros(2), 0, tg.tensor([1, 1, 0]), tg.tensor([1.0, 2.0, 4.0]))
    tensor([4., 3.])
    """
    places, position = _vector(index, "index_add_()", array_of(x).ndim, dim)
    data, terms = array_of(x), array_of(source)
    if terms.dtype != data.dtype:
        raise RuntimeError(
            f"index_add_(): self ({type_name(data.dtype)}) and source ({type_name(terms.dtype)}) must have the same scalar type"
        )
    count = terms.shape[position] if terms.ndim > position else 1
    if count != places.size:
        raise ShapeError(
            f"index_add_(): Number of indices ({places.size}) should be equal to source.size(dim): ({count}), for dim: {position}"
        )
    if data.ndim != terms.ndim or _others(data.shape, position) != _others(terms.shape, position):
        raise ShapeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(data.shape)} source.shape = {list(terms.shape)}"
        )
    found = _slices(data.shape, position, places, RuntimeError)
    scaled = source if alpha == 1 else FUNCTIONS["mul"](source, alpha)
    return increased_at(x, found if data.ndim else found._replace(shape=()), scaled, _INDEX_ADD)


def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy of `x` with slices replaced: slice ``index[k]`` along a dimension by slice ``k`` of `source`.

    Parameters, result and errors are those of `index_add`; of repeated indices the last slice stays.

    Examples
    --------
    >>> tg.index_copy(tg.zeros(3), 0, tg.tensor([2, 0]), tg.tensor([5.0, 7.0]))
    tensor([7., 0., 5.])
    """
    return put_at(x, *_copied(x, dim, index, source))


def copy_into(t: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`index_copy` in place."""
    return put_into(t, *_copied(t, dim, index, source))


def _copied(x: Tensor, dim: int, index: Tensor, source: Tensor) -> tuple[Places, Tensor, Structural]:
    """What `index_copy` writes, and where."""
    places, position = _vector(index, "index_copy_()", array_of(x).ndim, dim, "Expected a long tensor for index, but got {}")
    data, values = array_of(x), array_of(source)
    if values.dtype != data.dtype:
        raise RuntimeError(
            f"index_copy_(): self and source expected to have the same dtype, but got (self) {type_name(data.dtype)} and (source) "
            f"{type_name(values.dtype)}"
        )
    if not values.ndim and places.size != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {places.size})")
    if data.ndim and values.ndim and data.ndim != values.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. "
            f"Source dimensionality ({values.ndim}), destination dimensionality ({data.ndim})"
        )
    own, given = _others(data.shape, position), _others(values.shape, position)
    if own != given:
        raise ShapeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. "
            f"Destination slice shape: {list(own)} at dimension {position} and source slice shape: {list(given)}"
        )
    count = values.shape[position] if values.ndim else 1
    if count != places.size:
        raise IndexError(f"index_copy_(): Number of indices ({places.size}) should be equal to source.size(dim) ({count})")
    return _slices(data.shape, position, places, IndexError, "index_copy_(): "), source, _INDEX_COPY


def index_fill(x: Tensor, dim: int, index: Tensor, value: Tensor | float) -> Tensor:
    """A copy of `x` with one value in all slices along a dimension that `index` lists.

    Parameters
    ----------
    x : Tensor
    dim : int
    index : Tensor of int64, shape (n,) or ()
        Negative ones count from the end.
    value : number or 0-d Tensor

    Returns
    -------
    Tensor, of the shape and dtype of `x`

    Raises
    ------
    IndexError, RuntimeError
        If an index is out of range, or `value` has dimensions.

    Examples
    --------
    >>> tg.index_fill(tg.zeros(3), 0, tg.tensor([0, -1]), 2.0)
    tensor([2., 0., 2.])
    """
    return put_at(x, *_filled(x, dim, index, value))


def fill_into(t: Tensor, dim: int, index: Tensor, value: Tensor | float) -> Tensor:
    """`index_fill` in place."""
    return put_into(t, *_filled(t, dim, index, value))


def _filled(x: Tensor, dim: int, index: Tensor, value: Tensor | float) -> tuple[Places, Tensor, Structural]:
    """What `index_fill` writes, and where."""
    if array_of(index).dtype != np.int64:
        raise IndexError(f"index_fill_(): Expected dtype int64 for index, got {type_name(array_of(index).dtype)}")
    if array_of(index).ndim > 1:
        raise ShapeError(f"Index has to be a vector/scalar, got {array_of(index).ndim} dimensions")
    data, position = array_of(x), axis(dim, array_of(x).ndim)
    number = as_operand(value, x)
    if array_of(number).ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {array_of(number).ndim} dimension(s)."
        )
    found = _slices(data.shape, position, array_of(index).reshape(-1), IndexError, negative=True)
    return found, number, _INDEX_FILL_TENSOR if isinstance(value, Tensor) else _INDEX_FILL


def _vector(index: Tensor, name: str, ndim: int, dim: int, dtypes: str = "") -> tuple[Array, int]:
    """An index of slices as a vector, and the dimension it is for."""
    places = array_of(index)
    if places.dtype != np.int64 and (dtypes or places.dtype != np.int32):
        wrong = type_name(places.dtype)
        raise RuntimeError(f"{name}: " + (dtypes.format(wrong) or f"Expected dtype int32/int64 for index but got: {wrong}"))
    if places.ndim > 1:
        raise IndexError(f"{name}: Index should have dimension 1 or 0, is supposed to be a vector, but got dim: {places.ndim}")
    return places.reshape(-1).astype(np.int64, copy=False), axis(dim, ndim)


def _others(shape: tuple[int, ...], position: int) -> tuple[int, ...]:
    return shape[:position] + shape[position + 1 :]


def _slices(
    shape: tuple[int, ...], position: int, index: Array, error: type[Exception], name: str = "", negative: bool = False
) -> Places:
    """Where the slices stand; a tensor without dimensions counts as one of size one."""
    found, wrong = blocks(index, shape or (1,), position, from_the_end=negative)
    if wrong >= 0:
        extent = shape[position] if shape else 1
        raise error(f"{name}index {index[wrong]} is out of bounds for dimension {position} with size {extent}")
    return found
