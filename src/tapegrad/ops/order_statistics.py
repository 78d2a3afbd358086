"""Medians, modes and quantiles: elements chosen by their rank.

The gradient goes to the elements that were chosen. `median` and `nanmedian` of a whole tensor name no index; there, equal
elements share it evenly.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.ops import elementwise
from tapegrad.ops.extremes import ValuesIndices, choosing, pick_along, pick_only, require_elements, share_evenly
from tapegrad.ops.flat_places import along, take_at
from tapegrad.ops.reductions import reduced
from tapegrad.ops.selecting import _GATHER, gather
from tapegrad.ops.shaping import reshape
from tapegrad.ops.transposing import movedim
from tapegrad.recording.axes import axis
from tapegrad.recording.structural import Structural, apply
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["median", "mode", "nanmedian", "nanquantile", "quantile"]

Array = np.ndarray[Any, Any]

# Vectors of which a sample is taken, how many elements that has, and how far around the place that is looked for: four times as
# far as the place of a random sample deviates.
LARGE, SAMPLE, MARGIN = 1 << 14, 1 << 11, 96
FEW_RANKS = 2  # that are found without sorting


def median(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | ValuesIndices:
    """The middle element by size, the lower one of two; of all elements or along a dimension.

    Parameters
    ----------
    x : Tensor
    dim : int, optional
    keepdim : bool
        Keep the dimension, with size one.

    Returns
    -------
    Tensor or ValuesIndices
        ``(values, indices)`` along a dimension. nan where an element is nan, and if there are none.

    Raises
    ------
    IndexError
        If the dimension is out of range or has size zero.

    Examples
    --------
    >>> tg.median(tg.tensor([4.0, 1.0, 3.0, 2.0]))
    tensor(2.)
    >>> tg.median(tg.tensor([[5.0, 1.0, 3.0]]), 1).indices
    tensor([2])
    """
    if dim is None:
        return _middle(_MEDIAN, x, False)
    return _middle_along(_MEDIAN_ALONG, "median", x, dim, keepdim, False)


def nanmedian(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | ValuesIndices:
    """The `median` of the elements that are not nan; nan where all are.

    Examples
    --------
    >>> tg.nanmedian(tg.tensor([4.0, np.nan, 3.0, 2.0]))
    tensor(3.)
    """
    if dim is None:
        return _middle(_NANMEDIAN, x, True)
    return _middle_along(_NANMEDIAN_ALONG, "nanmedian", x, dim, keepdim, True)


def _refuse_bools(data: Array, name: str) -> None:
    if data.dtype.kind == "b":
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'; convert the tensor to an integer dtype")


def _middle_rank(ordered: Array, position: int, leaves_nan_out: bool) -> Array:
    """Where the median stands among elements in ascending order, nan last; `position` is kept, with size one."""
    size = ordered.shape[position]
    present = size - np.count_nonzero(np.isnan(ordered), position, keepdims=True)
    middle = np.maximum(present - 1, 0) // 2
    shape = tuple(1 if k == position else extent for k, extent in enumerate(ordered.shape))
    chosen = middle if leaves_nan_out else np.where(present < size, present, middle)
    return np.broadcast_to(chosen, shape)


def _middle(op: Structural, x: Tensor, leaves_nan_out: bool) -> Tensor:
    data = array_of(x)
    _refuse_bools(data, "median")
    if not data.size:
        nothing = np.nan if data.dtype.kind == "f" else np.iinfo(data.dtype).min
        return apply(op, (x,), np.asarray(nothing, data.dtype), (reduced(None, data.ndim), False))
    flat = data.reshape(-1)
    size = flat.size
    present = size - int(np.count_nonzero(flat != flat))
    rank = max(present - 1, 0) // 2 if leaves_nan_out or present == size else present
    found = element_of_rank(flat, rank) if present == size else np.partition(flat, rank)[rank]  # nan stands last
    return apply(op, (x,), found, (reduced(None, data.ndim), False))


def _middle_along(op: Structural, name: str, x: Tensor, dim: int, keepdim: bool, leaves_nan_out: bool) -> ValuesIndices:
    data = array_of(x)
    _refuse_bools(data, "median")
    position = axis(dim, data.ndim)
    if data.ndim == 0:
        return pick_only(op, x)
    require_elements(data, (position,), False, name)
    return pick_along(op, x, position, partial(_place_of_middle, position=position, leaves_nan_out=leaves_nan_out), keepdim)


def _place_of_middle(data: Array, position: int, leaves_nan_out: bool) -> Array:
    if not _has_nan(data):
        return _place_of_rank(data, position, (data.shape[position] - 1) // 2)
    order = data.argsort(position, kind="stable")
    rank = _middle_rank(np.take_along_axis(data, order, position), position, leaves_nan_out)
    return np.take_along_axis(order, rank, position)


def element_of_rank(flat: Array, rank: int) -> Any:
    """The element that a sorted vector without nan has at a place.

    Between two elements of a sample that enclose it are a few in a hundred, and only those are partitioned: a fifth of the time.
    """
    size = flat.size
    if size > LARGE:
        sample = np.sort(flat[:: size // SAMPLE])
        near, count = rank * len(sample) // size, len(sample)
        low, high = sample[max(near - MARGIN, 0)], sample[min(near + MARGIN, count - 1)]
        reached = flat <= high if near + MARGIN < count else np.ones(size, bool)
        if near - MARGIN >= 0:
            passed = flat < low
            reached, rank_there = reached & ~passed, rank - int(np.count_nonzero(passed))
        else:
            rank_there = rank
        some = flat[reached]
        if 0 <= rank_there < some.size:
            some.partition(rank_there)
            return some[rank_there]
    ordered = flat.copy()
    ordered.partition(rank)  # without the wrapper around it
    return ordered[rank]


def _place_of_rank(data: Array, position: int, rank: int) -> Array:
    """Where the element of a rank stands in a stable order."""
    if data.size <= SMALL:  # where the order of all is found as soon as one of them
        return data.argsort(position, kind="stable").take([rank], position)
    value = (
        np.atleast_1d(element_of_rank(data, rank)) if data.ndim == 1 else np.partition(data, rank, position).take([rank], position)
    )
    if (np.count_nonzero(data < value, position) == rank).all():  # it is the first of its size
        return np.asarray((data == value).argmax(position, keepdims=True))
    return data.argsort(position, kind="stable").take([rank], position)


def _has_nan(data: Array) -> bool:
    return data.dtype.kind == "f" and bool(np.isnan(data).any())


_MEDIAN = Structural("MedianBackward0", ((0, "z"),), share_evenly)
_NANMEDIAN = Structural("NanmedianBackward0", ((0, "z"),), share_evenly)
_MEDIAN_ALONG = choosing("MedianBackward1")
_NANMEDIAN_ALONG = choosing("NanmedianBackward1")


def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """The most frequent element along a dimension, the smallest of several; and the last index where it stands.

    Parameters
    ----------
    x : Tensor
    dim : int
    keepdim : bool
        Keep the dimension, with size one.

    Returns
    -------
    ValuesIndices

    Raises
    ------
    IndexError
        If the dimension is out of range or has size zero.

    Examples
    --------
    >>> tg.mode(tg.tensor([1.0, 2.0, 2.0, 1.0, 3.0]))
    ValuesIndices(values=tensor(1.), indices=tensor(3))
    """
    data = array_of(x)
    position = axis(dim, data.ndim)
    if data.ndim == 0:
        return pick_only(_MODE, x)
    require_elements(data, (position,), False, "mode")
    return pick_along(_MODE, x, position, partial(_place_of_mode, position=position), keepdim)


def _place_of_mode(data: Array, position: int) -> Array:
    rows = data.swapaxes(position, -1)
    order = rows.argsort(-1, kind="stable") if _has_nan(data) else None
    if order is None:
        ordered = np.array(rows, order="C")
        ordered.sort(-1)
    else:
        ordered = np.take_along_axis(rows, order, -1)
    places = np.arange(ordered.shape[-1])
    begins = np.ones(ordered.shape, bool)
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    run = places - np.maximum.accumulate(np.where(begins, places, 0), -1)
    longest = run.argmax(-1, keepdims=True)
    if order is not None:
        last = np.take_along_axis(order, longest, -1)
    else:  # sorting values takes a fifth of the time of finding their order
        starts = np.arange(0, ordered.size, len(places)).reshape(longest.shape)
        found = rows == ordered.reshape(-1).take(longest + starts)
        last = rows.shape[-1] - 1 - found[..., ::-1].argmax(-1, keepdims=True)
    return np.ascontiguousarray(last.swapaxes(position, -1))


_MODE = choosing("ModeBackward0")


def quantile(
    x: Tensor, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Quantiles of the elements, of all of them or along a dimension.

    Parameters
    ----------
    x : Tensor, of a floating point dtype
    q : float or Tensor, shape () or (k,)
        Between 0 and 1; a tensor is of the dtype of `x`.
    dim : int, optional
        Along which dimension; over the flattened tensor if none is given.
    keepdim : bool
        Keep the dimensions, with size one.
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}
        What to take where a quantile falls between two elements.

    Returns
    -------
    Tensor
        With a dimension of size ``k`` in front if `q` has one. nan where an element is nan.

    Raises
    ------
    RuntimeError
        If the tensor is empty or not of a floating point dtype, or `q` is out of range, of another dtype or of more than
        one dimension.

    Notes
    -----
    Differentiable with respect to `q` too where the interpolation is linear.

    Examples
    --------
    >>> tg.quantile(tg.tensor([0.0, 1.0, 4.0]), 0.75)
    tensor(2.5000)
    """
    return _quantile("quantile", x, q, dim, keepdim, interpolation, False)


def nanquantile(
    x: Tensor, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """The `quantile` of the elements that are not nan; nan where all are.

    Examples
    --------
    >>> tg.nanquantile(tg.tensor([0.0, np.nan, 4.0]), 0.5)
    tensor(2.)
    """
    return _quantile("nanquantile", x, q, dim, keepdim, interpolation, True)


def _checked(name: str, data: Array, q: float | Tensor, interpolation: str) -> Tensor:
    """The wanted quantiles as a tensor."""
    if not data.size:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if data.dtype not in (np.float32, np.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype, got {type_name(data.dtype)}")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if not isinstance(q, Tensor):
        if not 0.0 <= q <= 1.0:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        return wrap(np.asarray(q, data.dtype))
    values = array_of(q)
    if values.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor, got {values.ndim} dimensions")
    if values.dtype != data.dtype:
        raise RuntimeError(
            f"{name}() q tensor must be same dtype as the input tensor, got {type_name(values.dtype)} and {type_name(data.dtype)}"
        )
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1], got {values.tolist()}")
    return q


def _quantile(
    name: str, x: Tensor, q: float | Tensor, dim: int | None, keepdim: bool, interpolation: str, leaves_nan_out: bool
) -> Tensor:
    data = array_of(x)
    wanted = _checked(name, data, q, interpolation)
    if dim is None:
        kept = (1,) * data.ndim
        rows = reshape(x, (-1,))
    else:
        position = axis(dim, data.ndim)
        kept = tuple(1 if k == position else extent for k, extent in enumerate(data.shape))
        rows = reshape(x, (1,)) if not data.ndim else x if position == data.ndim - 1 else movedim(x, position, -1)
    flat = wanted if array_of(wanted).ndim == 1 else reshape(wanted, (-1,))
    found = _interpolated(rows, flat, interpolation, leaves_nan_out)
    result = found if array_of(found).ndim == 1 else movedim(found, -1, 0)
    shape = kept if keepdim else () if dim is None else tuple(n for k, n in enumerate(data.shape) if k != position)
    return reshape(result, (*array_of(wanted).shape, *shape))


def _by_row(order: Array) -> Callable[[Array], Array]:
    """Indices of elements by their ranks, which each row has of its own."""
    return lambda ranks: np.take_along_axis(order, ranks, -1)


def _by_column(data: Array) -> Callable[[Array], Array]:
    """The same where all rows have the same ranks: a few are found one by one, without the order of all elements."""
    order = None

    def places(ranks: Array) -> Array:
        nonlocal order
        if 0 < len(ranks) <= FEW_RANKS and data.size > SMALL:
            return np.concatenate([_place_of_rank(data, -1, int(rank)) for rank in ranks], -1)
        if order is None:
            order = data.argsort(-1, kind="stable")
        return order.take(ranks, -1)

    return places


def _at(rows: Tensor, places: Array) -> Tensor:
    """Elements of rows at places that they have."""
    if TAPE.tracers or not places.size:
        return gather(rows, -1, wrap(places))
    shape = array_of(rows).shape
    found, _ = along(places, len(shape) - 1, shape)
    return take_at(rows, found, _GATHER)


def _interpolated(rows: Tensor, wanted: Tensor, interpolation: str, leaves_nan_out: bool) -> Tensor:
    """Quantiles of every row, in its place: ``(..., n)`` and ``(k,)`` give ``(..., k)``."""
    data = array_of(rows)
    size = data.shape[-1]
    if _has_nan(data):
        order = data.argsort(-1, kind="stable")
        missing = np.count_nonzero(np.isnan(data), -1, keepdims=True)
        last = np.maximum(size - missing - 1, 0) if leaves_nan_out else np.full_like(missing, size - 1)
        ranks = wanted * wrap(last.astype(data.dtype))
        exact = array_of(ranks)
        if not leaves_nan_out:
            exact = np.where(missing > 0, size - 1.0, exact)  # nan stands last
        index_of = _by_row(order)
    else:  # every row has the same ranks
        ranks = wanted * wrap(np.array([size - 1], data.dtype))
        exact = array_of(ranks)
        index_of = _by_column(data)
    if interpolation == "lower":
        exact = np.floor(exact)
    elif interpolation == "higher":
        exact = np.ceil(exact)
    elif interpolation == "nearest":
        exact = np.round(exact)
    below = np.floor(exact)
    low = _at(rows, index_of(below.astype(np.int64)))
    if interpolation not in ("linear", "midpoint"):
        return low
    high = _at(rows, index_of(np.ceil(exact).astype(np.int64)))
    if interpolation == "midpoint":
        return elementwise.lerp(low, high, 0.5)
    if wanted.requires_grad:
        return elementwise.lerp(low, high, ranks - wrap(array_of(ranks) + (below - exact).astype(data.dtype)))
    return elementwise.lerp(low, high, wrap((exact - below).astype(data.dtype)))
