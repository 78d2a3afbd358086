"""Copies with whole slices along a dimension replaced, or added to: index_add, index_copy, index_fill.

Where a slice is named several times, the last one stays and it alone receives a gradient; what is added is summed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.errors import ShapeError
from tapegrad.ops.elementwise import FUNCTIONS
from tapegrad.ops.index_keys import FULL, Key
from tapegrad.ops.indexing import accumulate, adding, place, placing
from tapegrad.ops.scattering import check_bounds
from tapegrad.ops.shaping import reshape
from tapegrad.recording.structural import axis
from tapegrad.tensors.tensor import Tensor, array_of, as_operand

__all__ = ["index_add", "index_copy", "index_fill"]

Array = np.ndarray[Any, Any]

_INDEX_ADD = adding("IndexAddBackward0")
_INDEX_COPY = placing("IndexCopyBackward0")
_INDEX_FILL = placing("IndexFillBackward0")
_INDEX_FILL_TENSOR = placing("IndexFillBackward1")


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
    check_bounds(places, position, data.shape[position] if data.ndim else 1, RuntimeError)
    scaled = source if alpha == 1 else FUNCTIONS["mul"](source, alpha)
    return _along(lambda a, key, b: accumulate(a, key, b, _INDEX_ADD), x, position, places, scaled)


def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy of `x` with slices replaced: slice ``index[k]`` along a dimension by slice ``k`` of `source`.

    Parameters, result and errors are those of `index_add`; of repeated indices the last slice stays.

    Examples
    --------
    >>> tg.index_copy(tg.zeros(3), 0, tg.tensor([2, 0]), tg.tensor([5.0, 7.0]))
    tensor([7., 0., 5.])
    """
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
    check_bounds(places, position, data.shape[position] if data.ndim else 1, IndexError, "index_copy_(): ")
    if data.ndim and not values.ndim:
        source = reshape(source, (1,))
    return _along(lambda a, key, b: place(a, Key(None, "", key), b, _INDEX_COPY), x, position, places, source)


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
    extent, places = data.shape[position] if data.ndim else 1, array_of(index).reshape(-1)
    check_bounds(places, position, extent, IndexError, negative=True)
    op = _INDEX_FILL_TENSOR if isinstance(value, Tensor) else _INDEX_FILL
    return _along(lambda a, key, b: place(a, Key(None, "", key), b, op), x, position, places, number)


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


def _along(write: Callable[..., Tensor], x: Tensor, position: int, places: Array, source: Tensor) -> Tensor:
    """Write slices at places along a dimension; a 0-d tensor counts as one of size one."""
    if array_of(x).ndim:
        return write(x, (*(FULL,) * position, places), source)
    row = reshape(source, (1,)) if places.size == array_of(source).size else source
    return reshape(write(reshape(x, (1,)), (places,), row), ())
