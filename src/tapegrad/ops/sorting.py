"""Elements in order, and the first ones of an order: sort, topk, kthvalue.

nan counts as larger than everything. Each value carries its gradient back to the place that the index beside it names.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from tapegrad.arrays.addresses import address_of
from tapegrad.ops.extremes import ValuesIndices, choosing, pick_along, pick_only
from tapegrad.recording.axes import axis
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["argsort", "kthvalue", "msort", "sort", "topk"]

Array = np.ndarray[Any, Any]


def sort(x: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> ValuesIndices:
    """The elements in order along a dimension.

    Parameters
    ----------
    x : Tensor
    dim : int
    descending : bool
        Begin with the largest.
    stable : bool, optional
        Whether equal elements keep their order; they always do.

    Returns
    -------
    values, indices : Tensor
        ``(values, indices)``; the indices are untracked.

    Raises
    ------
    IndexError
        If `dim` is out of range.

    Examples
    --------
    >>> tg.sort(tg.tensor([3.0, 1.0, 2.0])).values
    tensor([1., 2., 3.])
    >>> tg.sort(tg.tensor([3.0, 1.0, 2.0]), descending=True).indices
    tensor([0, 2, 1])
    """
    position = axis(dim, array_of(x).ndim)
    op = _SORT if stable is None else _STABLE_SORT
    return pick_along(op, x, position, partial(_order, position=position, descending=descending), True)


def argsort(x: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """The indices that put the elements in order along a dimension: ``sort(x, dim, descending).indices``.

    Examples
    --------
    >>> tg.argsort(tg.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """
    if untracked_values.decisions_in_use:
        untracked_values.compared(x)
    return wrap(_order(array_of(x), axis(dim, array_of(x).ndim), descending))


def msort(x: Tensor) -> Tensor:
    """The elements in order along the first dimension: ``sort(x, 0).values``."""
    return sort(x, 0).values


def topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> ValuesIndices:
    """The `k` largest or smallest elements along a dimension.

    Parameters
    ----------
    x : Tensor
    k : int
    dim : int
    largest : bool
        Whether the largest are wanted.
    sorted : bool
        Whether they are to come in order, largest (or smallest) first; they always do.

    Returns
    -------
    values, indices : Tensor
        ``(values, indices)``; the indices are untracked. Which ones of several equal elements are chosen is not specified.

    Raises
    ------
    RuntimeError
        If `k` is negative or larger than the dimension.

    Examples
    --------
    >>> tg.topk(tg.tensor([3.0, 1.0, 2.0]), 2).values
    tensor([3., 2.])
    """
    data = array_of(x)
    position = axis(dim, data.ndim)
    if not 0 <= k <= (data.shape[position] if data.ndim else 1):
        raise RuntimeError(f"selected index k out of range: k is {k} and dimension {position} of {list(data.shape)} is shorter")
    return pick_along(_TOPK, x, position, partial(_first, position=position, k=k, largest=largest), True)


def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """The `k`-th smallest element along a dimension, counted from one.

    Parameters
    ----------
    x : Tensor
    k : int
    dim : int
    keepdim : bool
        Keep the dimension, with size one.

    Returns
    -------
    values, indices : Tensor
        ``(values, indices)``; the indices are untracked.

    Raises
    ------
    RuntimeError
        If `k` is not positive or larger than the dimension.
    IndexError
        If the dimension is empty.

    Examples
    --------
    >>> tg.kthvalue(tg.tensor([3.0, 1.0, 2.0]), 2).values
    tensor(2.)
    """
    data = array_of(x)
    position = axis(dim, data.ndim)
    extent = data.shape[position] if data.ndim else 1
    if not extent:
        raise IndexError(f"kthvalue(): Expected reduction dim {position} to have non-zero size.")
    if not 1 <= k <= extent:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {position}: {k} of {extent}")
    if not data.ndim:
        return pick_only(_KTHVALUE, x)
    return pick_along(_KTHVALUE, x, position, partial(_place_of_rank, position=position, k=k), keepdim)


def _place_of_rank(data: Array, position: int, k: int) -> Array:
    """The index of the `k`-th smallest element along a dimension, which is kept; of equal elements in their order."""
    ahead, extent = (slice(None),) * position, data.shape[position]
    if k <= FEW:
        return np.ascontiguousarray(_first(data, position, k, False)[(*ahead, slice(k - 1, k))])
    rank = extent - k
    if rank < FEW:  # from the other end, where equal elements come in the other order
        return extent - 1 - _first(data[(*ahead, slice(None, None, -1))], position, rank + 1, True)[(*ahead, slice(rank, rank + 1))]
    return _order(data, position, False)[(*ahead, slice(k - 1, k))].copy()


def _order(data: Array, position: int, descending: bool) -> Array:
    """The indices that sort an array along a dimension, equal elements keeping their order."""
    if not data.ndim:
        return np.zeros((), np.int64)
    if not descending:
        return data.argsort(position, "stable").astype(np.int64, copy=False)
    # Sorted backwards twice, so that equal elements stay in order.
    turned = (*(slice(None),) * position, slice(None, None, -1))
    backwards = data[turned].argsort(position, "stable")[turned]
    return data.shape[position] - 1 - backwards.astype(np.int64, copy=False)


def _first(data: Array, position: int, k: int, largest: bool) -> Array:
    """The first `k` indices of an order."""
    if not data.ndim:
        return np.zeros((), np.int64)
    extent = data.shape[position]
    if k <= FEW or not data.size:
        shape = (*data.shape[:position], k, *data.shape[position + 1 :])
        order, wide = np.empty(shape, np.int64), np.ascontiguousarray(data, _COMPARED.get(data.dtype.char, np.int64))
        outer, inner = math.prod(shape[:position]), math.prod(shape[position + 1 :])
        if order.size:
            room = np.empty(inner) if inner > 1 else None
            place = 0 if room is None else address_of(room)
            ARRAY_KERNELS.first_in_order(id(order), id(wide), place, outer, extent, inner, k, int(largest))
        return order
    if 8 * k > extent:
        return _order(data, position, largest)[(*(slice(None),) * position, slice(k))].copy()
    split = np.argpartition(data, extent - k if largest else k - 1, position)
    chosen = np.sort(np.take(split, range(extent - k, extent) if largest else range(k), position), position)
    among = _order(np.take_along_axis(data, chosen, position), position, largest)
    return np.take_along_axis(chosen, among, position).astype(np.int64, copy=False)


FEW = 16  # elements that a list kept in order finds sooner than sorting or splitting all of them
_COMPARED = {"d": np.float64, "f": np.float32, "e": np.float32}  # what is compared; integers in int64


_SORT = choosing("SortBackward0")
_STABLE_SORT = choosing("SortBackward1")
_TOPK = choosing("TopkBackward0")
_KTHVALUE = choosing("KthvalueBackward0")
