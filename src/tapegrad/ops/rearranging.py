"""The same elements in another order, as copies: flip, roll, rot90."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.arrays.memory_pool import SMALL
from tapegrad.arrays.sizes import is_one_number, sizes
from tapegrad.engine.layout import LAST_TAKEN_AT
from tapegrad.errors import ShapeError
from tapegrad.ops.flat_places import Places, taken_at
from tapegrad.recording.axes import axis
from tapegrad.recording.mapped_copies import KEPT_MAPS, CopyMap, copied
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.inference_tensors import make_kept
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["flip", "fliplr", "flipud", "roll", "rot90"]

Array = np.ndarray[Any, Any]


def flip(x: Tensor, *along: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
    """A copy with the order of the elements reversed along dimensions.

    Parameters
    ----------
    x : Tensor
    *along : int or sequence of int
        Which dimensions; none of them leaves the order as it is.
    dims : sequence of int, optional
        The same, by its name.

    Returns
    -------
    Tensor, of the shape of `x`

    Raises
    ------
    IndexError
        If a dimension is out of range.
    ShapeError
        If one is given twice.

    Examples
    --------
    >>> tg.flip(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), (1,))
    tensor([[2., 1.],
            [4., 3.]])
    """
    return copied(x, _flipping(array_of(x).shape, sizes(along, "flip", dims)))


@lru_cache(KEPT_MAPS)
def _flipping(shape: tuple[int, ...], dims: tuple[int, ...]) -> CopyMap:
    chosen = [axis(dim, len(shape)) for dim in dims]
    for dim in chosen:
        if chosen.count(dim) > 1:
            raise ShapeError(f"dim {dim} appears multiple times in the list of dims")
    reverse = tuple(slice(None, None, -1) if k in chosen else slice(None) for k in range(len(shape)))
    return CopyMap("FlipBackward0", shape, lambda array: array[(*reverse, Ellipsis)], shape)


def fliplr(x: Tensor) -> Tensor:
    """`flip` of the second dimension, left to right.

    Raises
    ------
    ShapeError
        If `x` has fewer than two dimensions.
    """
    if array_of(x).ndim < 2:
        raise ShapeError(f"Input must be >= 2-d. fliplr() got {array_of(x).ndim}-d")
    return flip(x, 1)


def flipud(x: Tensor) -> Tensor:
    """`flip` of the first dimension, up to down.

    Raises
    ------
    ShapeError
        If `x` has no dimensions.
    """
    if array_of(x).ndim < 1:
        raise ShapeError("Input must be >= 1-d. flipud() got 0-d")
    return flip(x, 0)


def roll(x: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """A copy with the elements moved on along dimensions; those that fall out at the end come in at the front.

    Parameters
    ----------
    x : Tensor
    shifts : int or sequence of int
        By how many places, one number for each of `dims`.
    dims : int or sequence of int, optional
        Along which dimensions; by default the elements are taken as one row.

    Returns
    -------
    Tensor, of the shape of `x`

    Raises
    ------
    ShapeError
        If `shifts` and `dims` differ in length.
    IndexError
        If a dimension is out of range.

    Examples
    --------
    >>> tg.roll(tg.tensor([1.0, 2.0, 3.0, 4.0]), 1)
    tensor([4., 1., 2., 3.])
    """
    places = sizes((shifts,), "roll")
    along = () if dims is None else sizes((dims,), "roll")
    ndim = array_of(x).ndim
    if len(places) != len(along) and not (len(places) == 1 and not along):
        raise ShapeError(f"shifts and dimensions must align. shifts: {len(places)}, dims:{len(along)}")
    if along and not ndim:
        raise IndexError(f"Dimension specified as {along[0]} but tensor has no dimensions")
    return _rolled(x, places, tuple(axis(dim, ndim) for dim in along))


def _rolled(x: Tensor, places: tuple[int, ...], along: tuple[int, ...]) -> Tensor:
    data = x._data
    if type(data) is not float and 0 < data.size <= SMALL:
        extra = _rolling(data.shape, places, along)
        result = taken_at(data, Places(extra[0]._data, 1, data.shape))
        return apply(_ROLL, (x,), result, (1, places, along), extra)
    result = _rolled_array(array_of(x), places, along)
    return apply(_ROLL, (x,), np.ascontiguousarray(result).reshape(result.shape), (1, places, along))


def _rolled_array(array: Array, places: tuple[int, ...], along: tuple[int, ...]) -> Array:
    return np.roll(array, places, along) if along else np.roll(array, places[0])


@lru_cache(KEPT_MAPS)
def _rolling(shape: tuple[int, ...], places: tuple[int, ...], along: tuple[int, ...]) -> tuple[Tensor]:
    """Where the elements of a small tensor come from that is rolled."""
    return (make_kept(_rolled_array(np.arange(math.prod(shape)).reshape(shape), places, along).reshape(-1)),)


def _roll_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    if g._row == 0 and is_one_number(array_of(g)):
        return (g,)
    _, places, along = ctx.attrs
    return (_rolled(g, tuple(-n for n in places), along),)


def _many_rolled(x_dot: Any, ctx: Context, shape: tuple[int, ...]) -> Any:
    _, places, along = ctx.attrs
    return np.roll(x_dot, places, along) if along else np.roll(x_dot.reshape(-1, x_dot.shape[-1]), places[0], 0)


# No place is named twice, so it makes no difference whether the last of the same counts.
_ROLL = Structural("RollBackward0", ((),), _roll_vjp, linear=(_many_rolled,), takes_stretched=True, moves=(LAST_TAKEN_AT,))


def rot90(x: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """A copy turned by a quarter `k` times in the plane of two dimensions, from the first towards the second.

    Parameters
    ----------
    x : Tensor
    k : int
        Number of quarter turns.
    dims : two ints
        The plane.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If `x` has fewer than two dimensions, or `dims` are not two different ones.
    IndexError
        If a dimension is out of range.

    Examples
    --------
    >>> tg.rot90(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[2., 4.],
            [1., 3.]])
    """
    ndim = array_of(x).ndim
    if len(dims) != 2:
        raise ShapeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise ShapeError(f"expected total dims >= 2, but got total dims = {ndim}")
    plane = axis(dims[0], ndim), axis(dims[1], ndim)
    if plane[0] == plane[1]:
        raise ShapeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")

    return copied(x, _turning(array_of(x).shape, operator.index(k) % 4, plane))


@lru_cache(KEPT_MAPS)
def _turning(shape: tuple[int, ...], quarters: int, plane: tuple[int, int]) -> CopyMap:
    def turned(array: Array) -> Array:
        return np.rot90(array, quarters, plane)

    return CopyMap("Rot90Backward0", shape, turned, turned(np.empty(shape, np.int8)).shape)
