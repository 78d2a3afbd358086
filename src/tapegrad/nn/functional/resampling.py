"""Signals, images and volumes at another size: each element of the result is a weighted mean of a few of the array.

The weights along each dimension are those of PyTorch, which are found once for each size. A resampling is linear, so its
derivative is the transposed one, and that has the resampling for its derivative.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.ops.flat_places import blocks, sums_at
from tapegrad.recording.structural import Context, Structural, apply, in_front
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["Taps", "cubic_taps", "linear_taps", "nearest_taps", "resample"]

Array = np.ndarray[Any, Any]


class Taps(NamedTuple):
    """What an element of the result is made of, along one dimension.

    Attributes
    ----------
    places : ndarray of int64, shape (n, k)
        Of the array's elements; one can stand there twice.
    weights : ndarray of float64, shape (n, k), or None
        None stands for ones.
    """

    places: Array
    weights: Array | None


def _positions(extent: int, count: int, align_corners: bool, factor: float | None) -> Array:
    """Where the places of the result are in the array: corners on corners, or the halves of edge elements outside."""
    if align_corners:
        return np.arange(count) * ((extent - 1) / (count - 1) if count > 1 else 0.0)
    return (np.arange(count) + 0.5) * _step(extent, count, factor) - 0.5


def _step(extent: int, count: int, factor: float | None) -> float:
    return 1.0 / factor if factor is not None and factor > 0 else extent / count


@functools.lru_cache(maxsize=256)
def nearest_taps(extent: int, count: int, factor: float | None, exact: bool) -> Taps:
    """The element before a place, or the nearest one."""
    step = _step(extent, count, factor)
    at = np.maximum((np.arange(count) + 0.5) * step - 0.5, 0.0) + 0.5 if exact else np.arange(count) * step
    # Rounded to single precision, which decides where a place is nearly a whole number.
    places = np.minimum(np.floor(at.astype(np.float32)).astype(np.int64), extent - 1)
    return Taps(places[:, None], None)


@functools.lru_cache(maxsize=256)
def linear_taps(extent: int, count: int, align_corners: bool, factor: float | None) -> Taps:
    """Both neighbours, by distance."""
    if count == extent:
        return Taps(np.arange(count)[:, None], None)
    positions = np.maximum(_positions(extent, count, align_corners, factor), 0.0)
    before = np.minimum(positions.astype(np.int64), extent - 1)
    share = np.clip(positions - before, 0.0, 1.0)
    return Taps(np.stack([before, np.minimum(before + 1, extent - 1)], 1), np.stack([1.0 - share, share], 1))


KEYS = -0.75


def _near(x: Array) -> Array:
    """Weight of an element at a distance of at most 1."""
    return ((KEYS + 2.0) * x - (KEYS + 3.0)) * x * x + 1.0


def _far(x: Array) -> Array:
    """Weight at a distance from 1 to 2."""
    return ((KEYS * x - 5.0 * KEYS) * x + 8.0 * KEYS) * x - 4.0 * KEYS


@functools.lru_cache(maxsize=256)
def cubic_taps(extent: int, count: int, align_corners: bool, factor: float | None) -> Taps:
    """Four neighbours, by Keys' kernel with the parameter -0.75; the edge elements stand for what is outside."""
    positions = _positions(extent, count, align_corners, factor)
    before = np.minimum(np.floor(positions).astype(np.int64), extent - 1)
    t = np.clip(positions - before, 0.0, 1.0)
    places = np.clip(before[:, None] + np.arange(-1, 3), 0, extent - 1)
    return Taps(places, np.stack([_far(t + 1.0), _near(t), _near(1.0 - t), _far(2.0 - t)], 1))


def resample(name: str, x: Tensor, taps: Sequence[Taps]) -> Tensor:
    """Resample the last dimensions of a tensor.

    Parameters
    ----------
    name : str
        PyTorch's name of the node.
    taps : sequence of Taps
        One for each of the last dimensions.
    """
    return apply(_operation(name), (x,), _resampled(array_of(x), tuple(taps)), tuple(taps))


def _gathered(g: Tensor, taps: tuple[Taps, ...], shape: tuple[int, ...]) -> Tensor:
    """The transposed map, to the array's shape."""
    return apply(_GATHERED, (g,), _transposed(array_of(g), taps, shape), taps)


@functools.cache
def _operation(name: str) -> Structural:
    def vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
        return (_gathered(g, ctx.attrs, ctx.shapes[0]),)

    return Structural(name, ((),), vjp, linear=(in_front(_resampled_again),))


def _resampled_again(x: Tensor, ctx: Context) -> Tensor:
    return resample("UpsampleBackwardBackward0", x, ctx.attrs)


def _gathered_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (_resampled_again(g, ctx),)


def _gathered_from_many(g_dot: Array, ctx: Context, shape: tuple[int, ...]) -> Array:
    many = np.ascontiguousarray(np.moveaxis(g_dot, -1, 0))
    return np.moveaxis(_transposed(many, ctx.attrs, (len(many), *shape)), 0, -1)


_GATHERED = Structural("UpsampleBackwardBackward0", ((),), _gathered_vjp, linear=(_gathered_from_many,))


def _weights(taps: Taps, dtype: Any, behind: int) -> Array:
    """Of shape (n, k, 1, ...)."""
    assert taps.weights is not None
    return taps.weights.astype(dtype, copy=False).reshape(*taps.weights.shape, *(1,) * behind)


def _resampled(x: Array, taps: tuple[Taps, ...]) -> Array:
    for n, along in enumerate(taps):
        axis = x.ndim - len(taps) + n
        if along.weights is None:
            x = x.take(along.places[:, 0], axis)
            continue
        if x.dtype == np.float64:
            x = _by_loop(x, along, axis, len(along.places), False)
            continue
        behind = x.ndim - 1 - axis
        with quiet():
            products = x.take(along.places, axis)
            products *= _weights(along, x.dtype, behind)
            columns: list[Any] = [(..., k, *(slice(None),) * behind) for k in range(along.places.shape[1])]
            x = products[columns[0]].copy()
            for column in columns[1:]:
                x += products[column]
    return x


def _by_loop(x: Array, along: Taps, axis: int, extent: int, transposed: bool) -> Array:
    """The weighted sums along one dimension, or the transposed map, of the same bits as below."""
    weights = _ones(len(along.places)) if along.weights is None else along.weights
    shape = (*x.shape[:axis], extent, *x.shape[axis + 1 :])
    result = (np.zeros if transposed else np.empty)(shape)
    if result.size:
        lines = math.prod(shape[:axis]), -1, math.prod(shape[axis + 1 :])
        z, x = result.reshape(lines), np.ascontiguousarray(x).reshape(lines)
        ARRAY_KERNELS.apply_taps(id(z), id(x), id(along.places), id(weights), int(transposed))
    return result


@functools.lru_cache(maxsize=256)
def _ones(count: int) -> Array:
    return np.ones((count, 1))


def _transposed(g: Array, taps: tuple[Taps, ...], shape: tuple[int, ...]) -> Array:
    for n in range(len(taps) - 1, -1, -1):
        along, axis = taps[n], g.ndim - len(taps) + n
        if g.dtype == np.float64 and (along.weights is not None or g.size <= SMALL):
            g = _by_loop(g, along, axis, shape[axis], True)
            continue
        behind = g.ndim - 1 - axis
        g = g[(..., None, *(slice(None),) * behind)]
        with quiet():
            if along.weights is not None:
                g = g * _weights(along, g.dtype, behind)
            whole = (*g.shape[:axis], shape[axis], *g.shape[axis + 2 :])
            places, _ = blocks(along.places, whole, axis)
            g = sums_at(g, places, whole)
    return g
