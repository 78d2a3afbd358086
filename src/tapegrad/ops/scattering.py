"""Copies with elements replaced, or added to, at places that index tensors and masks name.

Where a place is named several times, the last value stays and it alone receives a gradient; what is added is summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.sizes import stretches_to
from tapegrad.errors import ShapeError
from tapegrad.ops import elementwise
from tapegrad.ops.flat_places import Places, accumulating, along, increased_at, put_at, putting
from tapegrad.ops.in_place_copies import put_into, write_result
from tapegrad.ops.index_keys import parse
from tapegrad.ops.indexing import getitem, located, place
from tapegrad.ops.selecting import common_shape, flat_places, places_along, stretched
from tapegrad.ops.shaping import expand, reshape
from tapegrad.recording.axes import axis
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, as_operand, wrap

__all__ = [
    "index_put",
    "masked_scatter",
    "put",
    "scatter",
    "scatter_add",
]

Array = np.ndarray[Any, Any]

_SCATTER = putting("ScatterBackward0")
_SCATTER_NUMBER = putting("ScatterBackward1")
_SCATTER_ADD = accumulating("ScatterAddBackward0")
_INDEX_PUT_ADD = accumulating("IndexPutBackward0")
_MASKED_SCATTER = putting("MaskedScatterBackward0")
_PUT = putting("PutBackward0")
_PUT_ADD = accumulating("PutBackward0")


def scatter(x: Tensor, dim: int, index: Tensor, src: Tensor | float, *, reduce: str | None = None) -> Tensor:
    """A copy of `x` with elements replaced: ``result[index[i][j]][j] = src[i][j]`` for ``dim=0``.

    Parameters
    ----------
    x : Tensor
    dim : int
    index : Tensor of int32 or int64
        Of the rank of `x`; not larger than `src`, nor than `x` in the other dimensions.
    src : Tensor or number
        The values.
    reduce : {None, "add", "multiply"}
        Add to what is there, or multiply it; products have no derivative.

    Returns
    -------
    Tensor, of the shape and dtype of `x`
        Where an index is repeated, the last value stays, and it alone receives a gradient.

    Raises
    ------
    RuntimeError
        If an index is out of range or negative, or shapes or dtypes do not fit together.

    Examples
    --------
    >>> tg.scatter(tg.zeros(3), 0, tg.tensor([2, 0]), tg.tensor([5.0, 7.0]))
    tensor([7., 0., 5.])
    """
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError(f"reduce argument must be either add or multiply, got {reduce!r}")
    if reduce == "add" or isinstance(src, Tensor):
        values = src if isinstance(src, Tensor) else wrap(np.full(array_of(index).shape, src, array_of(x).dtype))
        op: Any = _SCATTER_ADD if reduce == "add" else _SCATTER
    else:
        values, op = as_operand(float(src) if array_of(x).dtype.kind == "f" else src), _SCATTER_NUMBER
    if reduce == "multiply":
        op = _SCATTER_PRODUCT
    return _scattered(op, x, dim, index, values, isinstance(src, Tensor) or reduce == "add")


def scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """A copy of `x` with elements added: ``result[index[i][j]][j] += src[i][j]`` for ``dim=0``; the transpose of `gather`.

    Parameters, result and errors are those of `scatter`; of repeated indices all values are added.

    Examples
    --------
    >>> tg.scatter_add(tg.zeros(2), 0, tg.tensor([1, 1, 0]), tg.tensor([1.0, 2.0, 4.0]))
    tensor([4., 3.])
    """
    if not isinstance(src, Tensor):
        raise TypeError(f"scatter_add(): argument 'src' (position 3) must be Tensor, not {type(src).__name__}")
    return _scattered(_SCATTER_ADD, x, dim, index, src, True)


def _scattered(op: Structural, x: Tensor, dim: int, index: Tensor, src: Tensor, by_element: bool) -> Tensor:
    places = places_along(index, "scatter()")
    data, values = array_of(x), array_of(src)
    shape = data.shape
    position = axis(dim, len(shape))
    is_usual = places.size and places.ndim == data.ndim == values.ndim and by_element and data.dtype is values.dtype
    return (_put_along if is_usual and shape else _scattered_of_any)(op, x, position, places, src, by_element)


def _scattered_of_any(op: Structural, x: Tensor, position: int, places: Array, src: Tensor, by_element: bool) -> Tensor:
    """The same of operands whose ranks or dtypes may differ."""
    shape = array_of(x).shape
    if by_element and array_of(src).dtype != array_of(x).dtype:
        raise RuntimeError(
            f"scatter(): Expected self.dtype to be equal to src.dtype, got {type_name(array_of(x).dtype)} and "
            f"{type_name(array_of(src).dtype)}"
        )
    if not places.size:
        rank = max(len(shape), 1)
        places, src = places.reshape((0,) * rank), nothing_of(src, rank) if by_element else src
    if max(places.ndim, 1) != max(len(shape), 1):
        raise ShapeError(f"Index tensor must have the same number of dimensions as self tensor, got {places.ndim} and {len(shape)}")
    if by_element and max(array_of(src).ndim, 1) != max(len(shape), 1):
        raise ShapeError(
            f"Index tensor must have the same number of dimensions as src tensor, got {places.ndim} and {array_of(src).ndim}"
        )
    if not shape or (not places.ndim) or (by_element and not array_of(src).ndim):
        # a 0-d tensor counts as one of size one
        row = reshape(src, (-1,)) if by_element else src
        return reshape(_scattered(op, reshape(x, (-1,)), 0, wrap(places.reshape(-1)), row, by_element), shape)
    return _put_along(op, x, position, places, src, by_element)


def _put_along(op: Structural, x: Tensor, position: int, places: Array, src: Tensor, by_element: bool) -> Tensor:
    """The same of operands of one rank."""
    shape = array_of(x).shape
    limits = array_of(src).shape if by_element else places.shape
    if not places.shape == limits == shape and any(
        n > m or (n > extent and k != position) for k, (n, m, extent) in enumerate(zip(places.shape, limits, shape, strict=True))
    ):
        also = f" and to be no larger size than src {list(limits)}" if by_element else ""
        raise ShapeError(
            f"Expected index {list(places.shape)} to be no larger than self {list(shape)} apart from dimension {position}{also}"
        )
    found, wrong = along(places, position, shape)
    if wrong >= 0:
        raise RuntimeError(f"index {places.flat[wrong]} is out of bounds for dimension {position} with size {shape[position]}")
    if by_element and limits != places.shape:
        src = getitem(src, tuple(slice(0, n) for n in places.shape))
    if op is _SCATTER_ADD:
        return increased_at(x, found, src, op)
    if op is _SCATTER_PRODUCT:
        result = np.array(array_of(x), order="C")
        np.multiply.at(result.reshape(-1), found.at, array_of(src).reshape(-1))
        return apply(op, (x, src), result)
    return put_at(x, found, src, op)


def nothing_of(x: Tensor, rank: int) -> Tensor:
    """No element of a tensor, in so many dimensions: an index without elements fits to values of any shape."""
    return reshape(getitem(reshape(x, (-1,)), slice(0, 0)), (0,) * rank)


def _no_product_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    raise NotImplementedError("the derivative for 'scatter' with reduce='multiply' is not implemented")


_SCATTER_PRODUCT = Structural("ScatterBackward2", ((),), _no_product_vjp)


def index_put(x: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of `x` with the elements ``x[indices]`` replaced by `values`, or with the values added to them.

    Parameters
    ----------
    x : Tensor
    indices : sequence of Tensor
        Index tensors and masks, as in ``x[indices]``.
    values : Tensor
        Broadcasts to the shape of ``x[indices]``.
    accumulate : bool
        Add; of repeated places all values are added. Else the last stays.

    Returns
    -------
    Tensor, of the shape and dtype of `x`

    Raises
    ------
    TypeError
        If `indices` is not a sequence of tensors.
    IndexError, RuntimeError
        As for ``x[indices] = values``.

    Examples
    --------
    >>> tg.index_put(tg.zeros(2), (tg.tensor([1, 1]),), tg.tensor([1.0, 2.0]), accumulate=True)
    tensor([0., 3.])
    """
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"index_put(): argument 'indices' (position 1) must be tuple of Tensors, not {type(indices).__name__}")
    for k, part in enumerate(indices):
        if not isinstance(part, Tensor):
            raise TypeError(f"expected Tensor as element {k} in argument 0, but got {type(part).__name__}")
    if not isinstance(values, Tensor):
        raise TypeError(f"index_put(): argument 'values' (position 2) must be Tensor, not {type(values).__name__}")
    data = array_of(x)
    if array_of(values).dtype != data.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {type_name(data.dtype)} for the destination and "
            f"{type_name(array_of(values).dtype)} for the source."
        )
    key = parse(tuple(indices), data.shape)
    if not accumulate:
        return place(x, key, values)
    if key.advanced is None:  # numbers, which name no place twice
        part = getitem(x, tuple(indices))
        _check_values(values, array_of(part).shape)
        return place(x, key, elementwise.add(part, values))
    found = located(key.advanced, data.shape if key.basic is None else data[key.basic].shape)
    _check_values(values, found.shape)
    return increased_at(x, found, values, _INDEX_PUT_ADD)


def _check_values(values: Tensor, wanted: tuple[int, ...]) -> None:
    """Refuse values that do not broadcast to the shape of what they are added to."""
    if array_of(values).shape != wanted and not stretches_to(array_of(values).shape, wanted):
        raise ShapeError(
            f"shape mismatch: value tensor of shape {list(array_of(values).shape)} cannot be broadcast to indexing result of "
            f"shape {list(wanted)}"
        )


def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy of `x` in which the elements where `mask` holds are those of `source`, one after the other; `x` and `mask` broadcast.

    Parameters
    ----------
    x : Tensor
    mask : Tensor of bool
    source : Tensor
        Of at least as many elements as `mask` has true ones.

    Returns
    -------
    Tensor, of the dtype of `x`

    Raises
    ------
    RuntimeError
        If `mask` is not of bools, `source` is too small, dtypes differ or shapes do not broadcast.

    Examples
    --------
    >>> tg.masked_scatter(tg.zeros(3), tg.tensor([True, False, True]), tg.tensor([5.0, 7.0]))
    tensor([5., 0., 7.])
    """
    _check_scattered(x, mask, source)
    common = common_shape(array_of(x).shape, array_of(mask).shape)
    return put_at(x if common == array_of(x).shape else expand(x, common), *_scattered_where(common, mask, source))


def scatter_into(t: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`masked_scatter` in place."""
    _check_scattered(t, mask, source)
    shape = array_of(t).shape
    if common_shape(shape, array_of(mask).shape) != shape:
        return write_result(t, masked_scatter(t, mask, source))  # which says what is wrong
    return put_into(t, *_scattered_where(shape, mask, source))


def _check_scattered(x: Tensor, mask: Tensor, source: Tensor) -> None:
    if array_of(mask).dtype != np.bool_:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {type_name(array_of(mask).dtype)}"
        )
    if array_of(x).dtype != array_of(source).dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {type_name(array_of(x).dtype)} and "
            f"{type_name(array_of(source).dtype)}"
        )


def _scattered_where(shape: tuple[int, ...], mask: Tensor, source: Tensor) -> tuple[Places, Tensor, Structural]:
    """What `masked_scatter` writes into a tensor of this shape, and where."""
    at = np.flatnonzero(stretched(array_of(mask), shape))
    count = at.size
    if count > array_of(source).size:
        raise RuntimeError(f"Number of elements of source < number of ones in mask: {array_of(source).size} < {count}")
    values = _flat(source)
    if count < array_of(values).size:
        values = getitem(values, slice(0, count))
    return Places(at, 1, (count,)), values, _MASKED_SCATTER


def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of `x` with elements replaced, or added to, that `index` counts in the flattened tensor.

    Parameters
    ----------
    x : Tensor
    index : Tensor of int64
        Negative ones count from the end.
    source : Tensor
        Of as many elements as `index`.
    accumulate : bool
        Add; of repeated indices all values are added. Else the last stays.

    Returns
    -------
    Tensor, of the shape and dtype of `x`

    Raises
    ------
    RuntimeError, IndexError
        If an index is out of range, or sizes or dtypes differ.

    Examples
    --------
    >>> tg.tensor([[1.0, 2.0], [3.0, 4.0]]).put(tg.tensor([-1]), tg.tensor([9.0]))
    tensor([[1., 2.],
            [3., 9.]])
    """
    data, values = array_of(x), array_of(source)
    if array_of(index).dtype != np.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {type_name(array_of(index).dtype)}")
    if values.dtype != data.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{type_name(data.dtype)} and source.dtype = {type_name(values.dtype)}"
        )
    if values.size != array_of(index).size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{values.size}, index.numel() = {array_of(index).size}"
        )
    places = flat_places(index, data.size)._replace(shape=(values.size,))
    row = _flat(source)
    return increased_at(x, places, row, _PUT_ADD) if accumulate else put_at(x, places, row, _PUT)


def _flat(t: Tensor) -> Tensor:
    return t if array_of(t).ndim == 1 else reshape(t, (-1,))
