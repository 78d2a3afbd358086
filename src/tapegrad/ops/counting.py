"""Distinct elements, and how often there are which: unique, bincount, histc, one_hot."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.errors import ShapeError
from tapegrad.ops.flat_places import Places, add_at
from tapegrad.recording.axes import axis
from tapegrad.recording.casting import cast
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["bincount", "histc", "one_hot", "unique", "unique_consecutive"]

Array = np.ndarray[Any, Any]


def _no_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    raise NotImplementedError(f"the derivative for '{ctx.attrs}' is not implemented; index with what it returns instead")


_UNIQUE = Structural("Unique2Backward0", ((),), _no_vjp)
_UNIQUE_ALONG = Structural("UniqueDimBackward0", ((),), _no_vjp)
_UNIQUE_CONSECUTIVE = Structural("UniqueConsecutiveBackward0", ((),), _no_vjp)


def unique(
    x: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | tuple[Tensor, ...]:
    """The distinct elements, or the distinct slices along a dimension, in ascending order.

    Parameters
    ----------
    x : Tensor
    sorted : bool
        Whether they are to come in order; they always do.
    return_inverse : bool
        Return also which of the results each element (or slice) is.
    return_counts : bool
        Return also how often each of the results occurs.
    dim : int, optional
        Compare slices along this dimension.

    Returns
    -------
    Tensor or tuple of Tensor
        The distinct ones, and the inverse and the counts if asked for. Nothing of it has a derivative.

    Raises
    ------
    RuntimeError
        If slices are empty.

    Examples
    --------
    >>> tg.unique(tg.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    data = array_of(x)
    position = None if dim is None else _slices(data, dim)
    values, inverse, counts = np.unique(data, return_inverse=True, return_counts=True, axis=position, equal_nan=False)
    op = _UNIQUE if dim is None else _UNIQUE_ALONG
    shape = data.shape if position is None else (data.shape[position],)
    return _found(op, "unique", x, values, (return_inverse, inverse.reshape(shape)), (return_counts, counts))


def unique_consecutive(
    x: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | tuple[Tensor, ...]:
    """The elements, or the slices along a dimension, without those that equal the one before.

    Parameters
    ----------
    x : Tensor
        Flattened, unless a dimension is given.
    return_inverse : bool
        Return also which of the results each element (or slice) is.
    return_counts : bool
        Return also how many equal ones stood there.
    dim : int, optional
        Compare slices along this dimension.

    Returns
    -------
    Tensor or tuple of Tensor
        The remaining ones, and the inverse and the counts if asked for. Nothing of it has a derivative.

    Examples
    --------
    >>> tg.unique_consecutive(tg.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    data = array_of(x)
    position = None if dim is None else _slices(data, dim)
    along = data.reshape(-1) if position is None else np.moveaxis(data, position, 0)
    starts = np.ones(len(along), bool)
    if len(along):
        starts[1:] = (along[1:] != along[:-1]).any(tuple(range(1, along.ndim)))
    places = np.flatnonzero(starts)
    values = along[places]
    if position is not None:
        values = np.moveaxis(values, 0, position)
    shape = data.shape if position is None else (len(along),)
    inverse, counts = np.cumsum(starts) - 1, np.diff(places, append=len(along))
    wanted = (return_inverse, inverse.reshape(shape)), (return_counts, counts)
    return _found(_UNIQUE_CONSECUTIVE, "unique_consecutive", x, np.ascontiguousarray(values), *wanted)


def _slices(data: Array, dim: int) -> int:
    position = axis(dim, data.ndim)
    if not data.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if 0 in data.shape[:position] + data.shape[position + 1 :]:
        raise ShapeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return position


def _found(op: Structural, name: str, x: Tensor, values: Array, *wanted: tuple[bool, Array]) -> Tensor | tuple[Tensor, ...]:
    result = apply(op, (x,), values, name)
    others = [wrap(array.astype(np.int64, copy=False)) for asked, array in wanted if asked]
    return (result, *others) if others else result


def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each of the numbers 0, 1, ... occurs, or the sums of the weights of its occurrences.

    Parameters
    ----------
    x : Tensor of integers, shape (n,)
        Not negative.
    weights : Tensor, shape (n,), optional
        Are differentiated.
    minlength : int
        The least size of the result.

    Returns
    -------
    Tensor of shape (max(largest + 1, minlength),)
        Of int64, or of the dtype of the weights (float64 for integers).

    Raises
    ------
    RuntimeError
        If `x` is not a vector of numbers that count, `weights` is not of its shape, or `minlength` is negative.

    Examples
    --------
    >>> tg.bincount(tg.tensor([1, 1, 3]))
    tensor([0, 2, 0, 1])
    >>> tg.bincount(tg.tensor([1, 1, 0]), tg.tensor([0.5, 1.0, 2.0]))
    tensor([2.0000, 1.5000])
    """
    data = array_of(x)
    if data.dtype.kind not in "iu":
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{type_name(data.dtype)}'; it counts integers")
    if minlength < 0:
        raise RuntimeError(f"minlength should be >= 0, got {minlength}")
    if data.ndim != 1 or (data.size and data.min() < 0):
        raise RuntimeError(
            f"bincount only supports 1-d non-negative integral inputs. Got {data.ndim}-d, least {data.min(initial=0)}"
        )
    if weights is None:
        return wrap(np.bincount(data.astype(np.int64), minlength=minlength).astype(np.int64))
    if array_of(weights).shape != data.shape:
        raise ShapeError(
            f"weights should be 1-d and have the same length as input: got shapes {list(array_of(weights).shape)} and "
            f"{list(data.shape)}"
        )
    terms = weights if array_of(weights).dtype.kind == "f" else cast(weights, np.float64)
    size = max(int(data.max(initial=-1)) + 1, minlength)
    return add_at(terms, Places(data.astype(np.int64), 1, data.shape), (size,))


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Rows of zeros with a one at the place that each number names.

    Parameters
    ----------
    tensor : Tensor of int64
        Not negative.
    num_classes : int
        Length of the rows; by default one more than the largest number.

    Returns
    -------
    Tensor of int64, with one dimension more

    Raises
    ------
    RuntimeError
        If a number is negative or not smaller than `num_classes`, or there is none to infer it from.

    Examples
    --------
    >>> tg.nn.functional.one_hot(tg.tensor([2, 0]))
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    places = array_of(tensor)
    if places.dtype != np.int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor. Got {type_name(places.dtype)}")
    if not places.size and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if places.size and places.min() < 0:
        raise RuntimeError(f"Class values must be non-negative, got {places.min()}.")
    classes = int(places.max()) + 1 if num_classes == -1 else num_classes
    if places.size and places.max() >= classes:
        raise RuntimeError(f"Class values must be smaller than num_classes. Got {places.max()} and {classes}")
    return wrap((places[..., None] == np.arange(classes)).astype(np.int64))


def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements are in each of equal bins; it has no derivative.

    Parameters
    ----------
    x : Tensor of floats
    bins : int
        How many.
    min, max : number
        Bounds of the bins; what is beyond them is not counted. Where they are equal, those of the elements are taken.

    Returns
    -------
    Tensor, shape (bins,)
        Of the dtype of `x`.

    Raises
    ------
    RuntimeError
        If there is no bin, or the bounds are not finite or exchanged.
    NotImplementedError
        If the dtype is not a floating point one.

    Examples
    --------
    >>> tg.histc(tg.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    data = array_of(x)
    if data.dtype.kind != "f":
        raise NotImplementedError(f"\"histc\" not implemented for '{type_name(data.dtype)}'; convert the tensor to a float dtype")
    bins = operator.index(bins)
    if bins < 1:
        raise RuntimeError(f"torch.histc: bins must be > 0, but got {bins}")
    low, high = float(min), float(max)
    if low == high and data.size:
        low, high = float(data.min()), float(data.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"histc: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"histc: max must be larger than min, but got min={low} and max={high}")
    if low == high:
        low, high = low - 1.0, high + 1.0
    if untracked_values.decisions_in_use:
        untracked_values.compared(x)
    inside = data[(data >= low) & (data <= high)]
    places = np.minimum(((inside - low) * bins / (high - low)).astype(np.int64), bins - 1)
    return wrap(np.bincount(places, minlength=bins).astype(data.dtype))
