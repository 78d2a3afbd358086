"""Views of a part of the elements: narrow, select, unfold, as_strided; and copies with such a part replaced."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.addresses import address_of
from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.sizes import sizes
from tapegrad.errors import ShapeError
from tapegrad.ops.index_keys import FULL, Key
from tapegrad.ops.indexing import place, placing
from tapegrad.ops.transposing import permute
from tapegrad.ops.views import view
from tapegrad.recording.axes import axis
from tapegrad.recording.strided_maps import reshape_copy
from tapegrad.tensors.tensor import Tensor, array_of, promote

__all__ = [
    "as_strided",
    "narrow",
    "narrow_copy",
    "select",
    "select_scatter",
    "slice_scatter",
    "storage_offset",
    "unfold",
]

Array = np.ndarray[Any, Any]


def between(x: Tensor, position: int, start: int, stop: int, step: int = 1) -> Tensor:
    """The view ``x[start:stop:step]`` along a dimension."""
    return view(x, "SliceBackward0", operator.itemgetter((FULL,) * position + (slice(start, stop, step), Ellipsis)))


def narrow(x: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """A view of `length` consecutive indices along a dimension.

    Parameters
    ----------
    x : Tensor
    dim : int
    start : int or 0-d Tensor of integers
        The first index; negative counts from the end.
    length : int

    Returns
    -------
    Tensor, on the memory of `x`

    Raises
    ------
    ShapeError
        If `x` has no dimensions, or the part reaches beyond the end.
    IndexError
        If `dim` or `start` is out of range.

    Examples
    --------
    >>> tg.narrow(tg.tensor([1.0, 2.0, 3.0]), 0, 1, 2)
    tensor([2., 3.])
    """
    shape = array_of(x).shape
    if not shape:
        raise ShapeError("narrow() cannot be applied to a 0-dim tensor.")
    position = axis(dim, len(shape))
    if isinstance(start, Tensor) and array_of(start).ndim:
        raise ShapeError(f"narrow(): start must be an 0-dim integral Tensor, got one of shape {list(array_of(start).shape)}")
    extent, first = shape[position], operator.index(start)
    if length < 0:
        raise ShapeError(f"narrow(): length must be non-negative, got {length}")
    if not -extent <= first <= extent:
        raise IndexError(f"start out of range (expected to be in range of [{-extent}, {extent}], but got {first})")
    first += extent if first < 0 else 0
    if first + length > extent:
        raise ShapeError(f"start ({first}) + length ({length}) exceeds dimension size ({extent}).")
    return between(x, position, first, first + length)


def narrow_copy(x: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """`narrow` that copies."""
    part = narrow(x, dim, start, length)
    return reshape_copy(part, "CloneBackward0", array_of(part).copy())


def select(x: Tensor, dim: int, index: int) -> Tensor:
    """A view of one index of a dimension, without that dimension.

    Parameters
    ----------
    x : Tensor
    dim, index : int
        Negative ones count from the end.

    Returns
    -------
    Tensor, on the memory of `x`

    Raises
    ------
    IndexError
        If `dim` or `index` is out of range, or `x` has no dimensions.

    Examples
    --------
    >>> tg.select(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, 0)
    tensor([1., 3.])
    """
    return view(x, "SelectBackward0", operator.itemgetter(_one_of(x, dim, index)))


def _one_of(x: Tensor, dim: int, index: int) -> tuple[Any, ...]:
    shape = array_of(x).shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    position, place = axis(dim, len(shape)), operator.index(index)
    if not -shape[position] <= place < shape[position]:
        raise IndexError(f"select(): index {place} out of range for tensor of size {list(shape)} at dimension {position}")
    return (FULL,) * position + (place, Ellipsis)


class _Windows:
    """The map of a view of all windows along a dimension; it works on any layout."""

    __slots__ = ("count", "position", "size", "step")

    def __init__(self, position: int, size: int, step: int, count: int) -> None:
        self.position, self.size, self.step, self.count = position, size, step, count

    def __call__(self, array: Array) -> Array:
        shape, strides = list(array.shape), list(array.strides)
        inner = strides[self.position] if strides else array.itemsize
        if strides:
            shape[self.position], strides[self.position] = self.count, inner * self.step
        return _strided_view(array, (*shape, self.size), (*strides, inner))


def _strided_view(array: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """A view by strides in bytes, which has the array's own memory for its base.

    What NumPy's `as_strided` gives stands on an object of its own instead: writes through it would be noticed by nobody who has
    saved the memory.

    Raises
    ------
    RuntimeError
        If the memory is not NumPy's, and what is shown of it has gaps.
    """
    whole = array
    while type(whole.base) is np.ndarray:
        whole = whole.base
    if not whole.flags.c_contiguous:
        whole = whole.transpose(np.argsort([-step for step in whole.strides], kind="stable"))
    if not whole.flags.c_contiguous:
        raise RuntimeError(
            "the tensor's memory is another library's and has gaps, so that writes into it would not be noticed; clone() it"
        )
    view = np.ndarray(shape, array.dtype, whole, address_of(array) - address_of(whole), strides)
    if not array.flags.writeable:
        view.flags.writeable = False
    return view


def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """A view of all windows of `size` indices along a dimension, `step` apart; the window comes last.

    Parameters
    ----------
    x : Tensor
    dimension : int
    size, step : int

    Returns
    -------
    Tensor, on the memory of `x`
        Where windows overlap, elements share memory, and writing into them is refused.

    Raises
    ------
    RuntimeError
        If the dimension is shorter than `size`, `size` is negative or `step` not positive; if elements of memory that another
        library made lie apart.

    Examples
    --------
    >>> tg.tensor([1.0, 2.0, 3.0, 4.0]).unfold(0, 2, 1)
    tensor([[1., 2.],
            [2., 3.],
            [3., 4.]])
    """
    shape = array_of(x).shape
    position = axis(dimension, len(shape))
    extent = shape[position] if shape else 1
    size, step = operator.index(size), operator.index(step)
    if size < 0:
        raise ShapeError(f"size is {size} but must be >= 0")
    if size > extent:
        raise ShapeError(f"maximum size for tensor at dimension {position} is {extent} but size is {size}")
    if step <= 0:
        raise ShapeError(f"step is {step} but must be > 0")
    return view(x, "UnfoldBackward0", _Windows(position, size, step, (extent - size) // step + 1))


class _Strided:
    """The map of a view given by strides in elements; arrays in another order than C's are copied first."""

    __slots__ = ("offset", "shape", "strides")

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> None:
        self.shape, self.strides, self.offset = shape, strides, offset

    def __call__(self, array: Array) -> Array:
        flat = np.ascontiguousarray(array).reshape(-1)[self.offset :]
        return _strided_view(flat, self.shape, [n * flat.itemsize for n in self.strides])


def storage_offset(x: Tensor) -> int:
    """Where the memory of `x` begins, in elements from the beginning of the tensor it is a view of."""
    whole = x if x._meta is None or x._meta.base is None else x._meta.base
    return _distance(promote(x), promote(whole))


def _distance(part: Array, whole: Array) -> int:
    apart = address_of(part) - address_of(whole)
    return int(apart // part.itemsize)


def as_strided(x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """A view of the memory behind `x` with any shape and strides.

    Parameters
    ----------
    x : Tensor
    size, stride : sequence of int
        Shape, and steps in elements.
    storage_offset : int, optional
        Where it begins, in elements from the beginning of the tensor that `x` is a view of; by default where `x` begins.

    Returns
    -------
    Tensor, on the memory of `x`
        A view of what `x` is a view of, if it reaches beyond the elements of `x`.

    Raises
    ------
    RuntimeError
        If `size` and `stride` differ in length, a stride is negative, or the memory is left.

    Examples
    --------
    >>> tg.as_strided(tg.tensor([1.0, 2.0, 3.0]), (2, 2), (1, 1))
    tensor([[1., 2.],
            [2., 3.]])
    """
    shape, strides = sizes((size,), "as_strided"), sizes((stride,), "as_strided")
    if len(shape) != len(strides):
        raise ShapeError("mismatch in length of strides and shape")
    if any(n < 0 for n in strides):
        raise ShapeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(strides)}")
    if any(n < 0 for n in shape):
        raise ShapeError(f"as_strided: sizes must be non-negative, got {list(shape)}")
    whole = x if x._meta is None or x._meta.base is None else x._meta.base
    begin = 0 if whole is x else _distance(promote(x), promote(whole))
    start = begin if storage_offset is None else operator.index(storage_offset)
    reach = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    if 0 in shape:
        start, reach = begin, 0  # no element is looked at, wherever it would be
    for source, offset in ((x, start - begin), (whole, start)):
        data = promote(source)
        if offset < 0 or offset + reach > data.size:
            continue
        order = () if data.flags.c_contiguous else _memory_order(data)
        if order is not None:
            ordered = permute(source, *order) if order else source
            return view(ordered, "AsStridedBackward0", _Strided(shape, strides, offset))
    raise ShapeError(
        f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {start} are out of bounds for storage of "
        f"{promote(whole).size} elements"
    )


def _memory_order(array: Array) -> tuple[int, ...] | None:
    """The order of dimensions in which the elements stand one after the other in memory; None if there is none."""
    order = tuple(sorted(range(array.ndim), key=lambda k: (-array.strides[k], k)))
    return order if array.transpose(order).flags.c_contiguous else None


_SELECT_SCATTER = placing("SelectScatterBackward0")
_SLICE_SCATTER = placing("SliceScatterBackward0")


def select_scatter(x: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of `x` with one index of a dimension replaced: ``select(result, dim, index)`` equals `src`.

    Raises
    ------
    IndexError
        If `dim` or `index` is out of range.
    ShapeError
        If `src` is not of the shape of that part.

    Examples
    --------
    >>> tg.select_scatter(tg.zeros(2, 2), tg.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    return _replaced(_SELECT_SCATTER, x, src, "SelectBackward0", _one_of(x, dim, index))


def slice_scatter(x: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """A copy of `x` with a slice of a dimension replaced by `src`.

    Raises
    ------
    IndexError
        If `dim` is out of range.
    ShapeError
        If `src` is not of the shape of the slice, or `step` not positive.
    """
    if step <= 0:
        raise ShapeError(f"slice step must be positive, got {step}")
    position = axis(dim, array_of(x).ndim)
    return _replaced(_SLICE_SCATTER, x, src, "SliceBackward0", (FULL,) * position + (slice(start, end, step), Ellipsis))


def _replaced(op: Any, x: Tensor, src: Tensor, node: str, key: tuple[Any, ...]) -> Tensor:
    part = array_of(x)[key]
    if part.shape != array_of(src).shape:
        raise ShapeError(
            f"expected src to have a size equal to the slice of self. src size = {list(array_of(src).shape)}, "
            f"slice size = {list(part.shape)}"
        )
    if part.dtype != array_of(src).dtype:
        raise RuntimeError(f"expected src to have dtype {type_name(part.dtype)}, got {type_name(array_of(src).dtype)}")
    return place(x, Key(key, node, None), src, op)
