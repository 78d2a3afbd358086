"""Reductions of elements that go to the same place: `scatter_reduce` and `index_reduce`.

One compiled loop reduces the elements in their order, that of `x` first. Ties share; products with zeros have exact derivatives,
in every order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.arrays.dtypes import float32, type_name
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.errors import ShapeError
from tapegrad.ops import elementwise
from tapegrad.ops.flat_places import Places, accumulating, along, blocks, sums_at, take_at
from tapegrad.ops.indexing import getitem
from tapegrad.ops.joining import cat
from tapegrad.ops.reductions import is_normal
from tapegrad.ops.scans import exclusive_product
from tapegrad.ops.scattering import nothing_of
from tapegrad.ops.shaping import reshape
from tapegrad.recording.axes import axis
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, as_operand, wrap

__all__ = ["index_reduce", "scatter_reduce"]

Array = np.ndarray[Any, Any]
_NEUTRAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -np.inf, "amin": np.inf}
_NUMBERS = {"sum": 0, "mean": 0, "prod": 1, "amax": 2, "amin": 3}  # of the compiled loop


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
    _check(x, places, src, reduce, "scatter_reduce")
    is_usual = places.size and places.shape == a.shape == b.shape and a.ndim
    if not is_usual and places.size and {max(t.ndim, 1) for t in (places, b)} != {max(a.ndim, 1)}:
        raise ShapeError("Index tensor must have the same number of dimensions as self tensor, and as src tensor")
    if not a.ndim:
        row = scatter_reduce(reshape(x, (1,)), 0, reshape(index, (-1,)), reshape(src, (-1,)), reduce, include_self=include_self)
        return reshape(row, ())
    if not places.size:
        places, src = places.reshape((0,) * a.ndim), nothing_of(src, a.ndim)
        b = array_of(src)
    fits = is_usual or all(n <= m for n, m in zip(places.shape, b.shape, strict=True))
    if not fits or any(n > m for k, (n, m) in enumerate(zip(places.shape, a.shape, strict=True)) if k != position):
        raise ShapeError(
            f"Expected index {list(places.shape)} to be smaller than self {list(a.shape)} apart from dimension {dim} and to be "
            f"smaller size than src {list(b.shape)}"
        )
    found, wrong = along(places, position, a.shape)
    _check_found(places, wrong, a.shape[position])
    if b.shape != places.shape:
        src = getitem(src, tuple(slice(0, n) for n in places.shape))
    return _reduced(_SCATTER, x, found, src, reduce, include_self)


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
    _check(x, places, source, reduce, "index_reduce")
    if not a.ndim and not b.ndim:
        row = index_reduce(reshape(x, (1,)), 0, index, reshape(source, (1,)), reduce, include_self=include_self)
        return reshape(row, ())
    expected = (*a.shape[:position], places.size, *a.shape[position + 1 :])
    if places.ndim > 1 or b.shape != expected:
        raise ShapeError(
            f"index_reduce(): source of shape {list(b.shape)} and index of shape {list(places.shape)} do not fit into "
            f"{list(a.shape)} along dimension {dim}"
        )
    found, wrong = blocks(places.reshape(-1), a.shape, position, from_the_end=False)
    _check_found(places, wrong, a.shape[position])
    return _reduced(_INDEX, x, found, source, reduce, include_self)


def _check(x: Tensor, places: Array, src: Tensor, reduce: str, name: str) -> None:
    if reduce not in _NUMBERS:
        raise RuntimeError(f"{name}: reduce argument must be one of sum, prod, mean, amax, amin, got {reduce}")
    if places.dtype.kind != "i":
        raise RuntimeError(f"{name}(): Expected dtype int64 for index, got {places.dtype}")
    if array_of(x).dtype != array_of(src).dtype:
        raise RuntimeError(
            f"{name}(): Expected self.dtype to be equal to src.dtype, got {type_name(array_of(x).dtype)} and "
            f"{type_name(array_of(src).dtype)}"
        )


def _check_found(places: Array, wrong: int, length: int) -> None:
    if wrong >= 0:
        raise RuntimeError(f"index {places.reshape(-1)[wrong]} is out of bounds for a dimension of size {length}")


class _Groups(NamedTuple):
    """Which elements are reduced together.

    Attributes
    ----------
    places : Places
        Of the elements of the source in the result.
    own : ndarray, or None
        Ones where the element of `x` counts and zeros elsewhere; None if all do.
    counts : ndarray, or None
        How many elements go into each result, of a mean.
    """

    places: Places
    own: Array | None
    counts: Array | None


def _reduced(ops: dict[str, Structural], x: Tensor, places: Places, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    dtype = array_of(x).dtype
    if reduce == "mean" and dtype.kind == "b":
        raise NotImplementedError("means of bools are not implemented; convert the tensors to a number's dtype")
    a = array_of(x)
    wide = float32 if dtype.kind == "f" and dtype.itemsize == 2 else dtype
    result, own, counts = np.array(a, wide, order="C"), None, None
    if not include_self:
        _put_one(result, places, _neutral(reduce, wide))
        own = np.ones(a.shape, dtype)
        _put_one(own, places, 0)
    if reduce == "mean":
        touched = np.bincount(places.at, minlength=a.size // max(places.inner, 1))
        counts = _over_blocks(np.maximum(touched + 1 if include_self else touched, 1), places.inner, a.shape).astype(dtype)
    with quiet():
        values = array_of(src)
        _reduce_into(result, values if values.dtype is wide else values.astype(wide, copy=False), places, reduce)
        if counts is not None:
            if dtype.kind == "f":
                result /= counts
            else:
                result //= counts
    if wide is not dtype:
        result = result.astype(dtype, copy=False)
    if reduce == "sum" and own is None:
        return apply(ops["sum of all"], (x, src), result, places[1:], (wrap(places.at),))
    return apply(ops[reduce], (x, src), result, _Groups(places, own, counts))


def _put_one(array: Array, places: Places, number: Any) -> None:
    """Write one number to places of an array in C order."""
    given = np.array(number, array.dtype)
    ARRAY_KERNELS.put_elements(id(array), id(given), id(places.at), places.inner, 0)


def _neutral(reduce: str, dtype: np.dtype[Any]) -> Any:
    if reduce in ("amax", "amin") and dtype.kind == "b":
        return reduce == "amin"
    if reduce in ("amax", "amin") and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min if reduce == "amax" else limits.max
    return _NEUTRAL[reduce]


def _over_blocks(values: Array, inner: int, shape: tuple[int, ...]) -> Array:
    """Values of blocks, for each element."""
    return np.repeat(values, inner).reshape(shape) if inner != 1 else values.reshape(shape)


def _reduce_into(result: Array, values: Array, places: Places, reduce: str) -> None:
    """Reduce values, of the dtype of `result`, into it, one after the other."""
    at, inner, _ = places
    if result.dtype.kind == "f":
        values = np.ascontiguousarray(values)
        ARRAY_KERNELS.reduce_elements(id(result), id(values), id(at), inner, _NUMBERS[reduce])
    elif values.size:
        ufuncs: Any = (np.add, np.multiply, np.maximum, np.minimum)
        ufuncs[_NUMBERS[reduce]].at(result.reshape(-1, inner), at, values.reshape(at.size, inner))


def _sum_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    groups: _Groups = ctx.attrs
    if groups.counts is not None:
        g = g / wrap(groups.counts)
    return _of_own(g, groups), ctx.on.take_at(g, groups.places) if ctx.needs[1] else None


def _of_own(g: Tensor, groups: _Groups) -> Tensor:
    """What comes to the elements of `x` themselves."""
    return g if groups.own is None else elementwise._mul0(g, wrap(groups.own))


def _extreme_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    """All elements that equal the one that was chosen get the same share."""
    groups: _Groups = ctx.attrs
    x, src, z = array_of(ctx.inputs[0]), array_of(ctx.inputs[1]), array_of(ctx.result)
    share, share_of_source = map(wrap, _shares(x, src, z, groups))
    x_bar = elementwise._mul0(g, share) if ctx.needs[0] else None
    return x_bar, elementwise._mul0(ctx.on.take_at(g, groups.places), share_of_source) if ctx.needs[1] else None


def _shares(x: Array, src: Array, z: Array, groups: _Groups) -> tuple[Array, Array]:
    """What part of a result each element of `x` and of the source has, of an extreme one."""
    places, own = groups.places, groups.own
    if x.dtype.kind == "f" and x.dtype.itemsize >= 4:
        x, src, z = (np.ascontiguousarray(t) for t in (x, src, z))
        mine, theirs, counts = np.empty_like(x), np.empty_like(src), np.empty(x.shape)
        own = np.empty(0, x.dtype) if own is None else own
        ARRAY_KERNELS.share_extremes(id(x), id(src), id(z), id(places.at), places.inner, id(own), id(counts), id(mine), id(theirs))
        return mine, theirs
    at_source = array_of(take_at(wrap(z), places))
    mine, theirs = _is_chosen(x, z), _is_chosen(src, at_source)
    if own is not None:
        mine &= own != 0.0
    count = mine + sums_at(theirs.astype(np.float64), places, x.shape)
    count_at_source = array_of(take_at(wrap(count), places))
    return (mine / count).astype(x.dtype, copy=False), (theirs / count_at_source).astype(x.dtype, copy=False)


def _is_chosen(values: Array, chosen: Array) -> Array:
    equal = values == chosen
    unordered = chosen != chosen
    if unordered.any():
        equal |= (values != values) & unordered  # nan ties with nan
    return equal


def _prod_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    groups: _Groups = ctx.attrs
    x, src, z = ctx.inputs[0], ctx.inputs[1], ctx.result
    places = groups.places
    if groups.own is not None:
        x = elementwise._mul0(x, wrap(groups.own)) + wrap(1.0 - groups.own)
    if is_normal(z._data):
        others, others_of_source = z / x, ctx.on.take_at(z, places) / src
    else:
        others, others_of_source = _products_of_others(x, src, places)
    x_bar = elementwise._mul0(_of_own(g, groups), others)
    return x_bar, elementwise._mul0(ctx.on.take_at(g, places), others_of_source) if ctx.needs[1] else None


def _products_of_others(x: Tensor, src: Tensor, places: Places) -> tuple[Tensor, Tensor]:
    """Of each element of `x` and of the source, the product of those that it is multiplied with; zeros do no harm.

    The elements of each place become a row of a matrix, that of `x` first, with ones in the places that are left.
    """
    size, shape = array_of(x).size, array_of(x).shape
    targets = (places.at[:, None] * places.inner + np.arange(places.inner)).reshape(-1)
    counts = np.bincount(targets, minlength=size)
    width = int(counts.max(initial=0)) + 1
    order = np.argsort(targets, kind="stable")
    rank = np.empty(targets.size, np.int64)
    rank[order] = 1 + np.arange(targets.size) - (np.cumsum(counts) - counts)[targets[order]]
    rows = np.full((size, width), size + targets.size)
    rows[:, 0], rows[targets, rank] = np.arange(size), size + np.arange(targets.size)
    one = wrap(np.ones(1, array_of(x).dtype))
    table = getitem(cat([reshape(x, (-1,)), reshape(src, (-1,)), one], 0), as_operand(rows))
    others = elementwise._mul0(exclusive_product(table, 1, False), exclusive_product(table, 1, True))
    of_source = take_at(others, Places(targets * width + rank, 1, array_of(src).shape))
    return reshape(getitem(others, (slice(None), 0)), shape), of_source


def _rows_for(name: str) -> dict[str, Structural]:
    every: Any = ((0, 1, "z"), (0, 1, "z"))
    nothing: Any = ((), ())
    return {
        "sum": Structural(name, nothing, _sum_vjp),
        "sum of all": accumulating(name),
        "mean": Structural(name, nothing, _sum_vjp),
        "prod": Structural(name, every, _prod_vjp),
        "amax": Structural(name, every, _extreme_vjp),
        "amin": Structural(name, every, _extreme_vjp),
    }


_SCATTER, _INDEX = _rows_for("ScatterReduceBackward0"), _rows_for("IndexReduceBackward0")
