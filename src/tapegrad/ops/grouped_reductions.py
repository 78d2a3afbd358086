"""Reductions of elements that go to the same place: `scatter_reduce` and `index_reduce`.

The elements of each place become a row of one matrix, with a neutral element in the places that are left, and the rows are reduced
as any others: ties share, products with zeros have exact derivatives, in every order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.errors import ShapeError
from tapegrad.ops.extremes import amax, amin
from tapegrad.ops.indexing import getitem
from tapegrad.ops.joining import cat
from tapegrad.ops.reductions import prod, sum
from tapegrad.ops.shaping import reshape
from tapegrad.recording.axes import axis
from tapegrad.tensors.tensor import Tensor, array_of, as_operand

__all__ = ["index_reduce", "scatter_reduce"]

_NEUTRAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -np.inf, "amin": np.inf}


def scatter_reduce(x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """A copy in which elements of `src` are reduced into the places that `index` names along a dimension.

    Parameters
    ----------
    x : Tensor
    dim : int
    index : Tensor of int64
        Of the rank of `x`, nowhere larger than `src`, and than `x` but along `dim`.
    src : Tensor
    reduce : {"sum", "prod", "mean", "amax", "amin"}
    include_self : bool
        Whether the elements of `x` count where something is reduced into their place.

    Raises
    ------
    RuntimeError
        If the shapes do not fit together, an index is out of bounds, or there is no such reduction.

    Examples
    --------
    >>> tg.scatter_reduce(tg.zeros(2), 0, tg.tensor([0, 1, 0]), tg.tensor([1.0, 2.0, 5.0]), "amax")
    tensor([5., 2.])
    """
    a, places, b = array_of(x), array_of(index), array_of(src)
    position = axis(dim, a.ndim)
    if places.ndim != a.ndim or b.ndim != a.ndim:
        raise ShapeError("Index tensor must have the same number of dimensions as self tensor, and as src tensor")
    fits = all(n <= m for n, m in zip(places.shape, b.shape, strict=True))
    if not fits or any(n > m for k, (n, m) in enumerate(zip(places.shape, a.shape, strict=True)) if k != position):
        raise ShapeError(
            f"Expected index {list(places.shape)} to be smaller than self {list(a.shape)} apart from dimension {dim} and to be "
            f"smaller size than src {list(b.shape)}"
        )
    _check(places, a.shape[position] if a.ndim else 1, reduce, "scatter_reduce")
    coordinates: list[Any] = list(np.indices(places.shape)) if places.ndim else []
    sources = np.ravel_multi_index(tuple(c.ravel() for c in coordinates), b.shape) if places.ndim else np.zeros(1, np.int64)
    if places.ndim:
        coordinates[position] = places
        targets = np.ravel_multi_index(tuple(c.ravel() for c in coordinates), a.shape)
    else:
        targets = np.zeros(1, np.int64)
    return _reduced(x, targets, getitem(reshape(src, (-1,)), as_operand(sources)), reduce, include_self)


def index_reduce(x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """A copy in which slices of `source` are reduced into the slices of `x` that `index` names along a dimension.

    Parameters
    ----------
    x : Tensor
    dim : int
    index : Tensor of int64, of one dimension
        As long as `source` along the dimension.
    source : Tensor
        Of the shape of `x` but along the dimension.
    reduce : {"prod", "mean", "amax", "amin"}
    include_self : bool
        Whether the elements of `x` count where something is reduced into their place.

    Raises
    ------
    RuntimeError
        If the shapes do not fit together, an index is out of bounds, or there is no such reduction.

    Examples
    --------
    >>> tg.index_reduce(tg.ones(2), 0, tg.tensor([0, 0]), tg.tensor([3.0, 5.0]), "prod")
    tensor([15.,  1.])
    """
    a, places, b = array_of(x), array_of(index), array_of(source)
    position = axis(dim, a.ndim)
    if reduce == "sum":
        raise RuntimeError("index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got sum; use index_add")
    _check(places, a.shape[position], reduce, "index_reduce")
    expected = (*a.shape[:position], places.size, *a.shape[position + 1 :])
    if places.ndim > 1 or b.shape != expected:
        raise ShapeError(
            f"index_reduce(): source of shape {list(b.shape)} and index of shape {list(places.shape)} do not fit into "
            f"{list(a.shape)} along dimension {dim}"
        )
    numbers = np.arange(a.size).reshape(a.shape)
    targets = np.take(numbers, places.ravel(), position).ravel()
    return _reduced(x, targets, reshape(source, (-1,)), reduce, include_self)


def _check(places: np.ndarray, length: int, reduce: str, name: str) -> None:
    if reduce not in _NEUTRAL:
        raise RuntimeError(f"{name}: reduce argument must be one of sum, prod, mean, amax, amin, got {reduce}")
    if places.dtype.kind != "i":
        raise RuntimeError(f"{name}(): Expected dtype int64 for index, got {places.dtype}")
    if places.size and not (places.min() >= 0 and places.max() < length):
        wrong = places[(places < 0) | (places >= length)].ravel()[0]
        raise RuntimeError(f"index {wrong} is out of bounds for a dimension of size {length}")


def _reduced(x: Tensor, targets: np.ndarray, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    """`targets` are the places of the elements of `src` in the flattened `x`."""
    a = array_of(x)
    counts = np.bincount(targets, minlength=a.size)
    own = (counts == 0) | include_self
    width = int(counts.max(initial=0)) + 1
    # In each row the element of `x` first, then those of `src` in their order.
    rows = np.full((a.size, width), a.size + targets.size)
    rows[own, 0] = np.flatnonzero(own)
    order = np.argsort(targets, kind="stable")
    first = np.cumsum(counts) - counts
    rows[targets[order], 1 + np.arange(targets.size) - first[targets[order]]] = a.size + order
    neutral = np.full(1, _NEUTRAL[reduce] if a.dtype.kind == "f" else 0).astype(a.dtype)
    table = getitem(cat([reshape(x, (-1,)), src, as_operand(neutral)], 0), as_operand(rows))
    reductions: dict[str, Any] = {"sum": sum, "mean": sum, "prod": prod, "amax": amax, "amin": amin}
    found = reductions[reduce](table, -1)
    if reduce == "mean":
        found = found / as_operand(np.maximum(counts + own, 1).astype(a.dtype))
    return reshape(found, a.shape)
