"""Distances between rows as one row of the tape: of the orders one and two, of float64.

Neither the value nor the derivative makes the differences of all pairs. The derivative is weights of the pairs, and what these do
to differences; that is a composition where it is recorded, so that it can be differentiated again.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.ops import elementwise
from tapegrad.ops.flat_places import Places
from tapegrad.ops.norms import are_exact, without_zeros
from tapegrad.ops.reductions import sum as sum_over
from tapegrad.ops.shaping import unsqueeze
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, make

__all__ = ["between_rows", "between_rows_of_one", "has_row", "weighted_differences", "weighted_values"]

Array = np.ndarray[Any, Any]
FLOAT64 = np.dtype(np.float64)
LANES, BLOCK = 8, 128  # as NumPy's sums and the kernel have them
VECTOR, WEIGHTS, COORDINATES = 8, 256, 4  # the kernels' rows side by side, rows of weights and coordinates that go together
SQUARES, SCALED_SQUARES = 2, 3


def has_row(order: float, *arrays: Array) -> bool:
    """Whether distances of this order between rows of these arrays are one row of the tape."""
    return order in (1.0, 2.0) and all(a.dtype is FLOAT64 and a.size > 0 for a in arrays)


def between_rows(x: Tensor, y: Tensor, order: float) -> Tensor:
    """Distances of the rows of `x`, shape (..., n, d), from those of `y`, shape (..., m, d)."""
    return apply(_BETWEEN_TWO, (x, y), _values_of_two((array_of(x), array_of(y)), order), order)


def between_rows_of_one(x: Tensor, order: float) -> Tensor:
    """Distances of all pairs of different rows of a matrix."""
    return apply(_BETWEEN_ONE, (x,), _values_of_one((array_of(x),), order), order)


def _values_of_two(arrays: Sequence[Array], order: float) -> Array:
    a, b = arrays
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    n, m = a.shape[-2], b.shape[-2]
    if m < min(n, VECTOR):  # which stand side by side
        return np.ascontiguousarray(_values_of_two((b, a), order).swapaxes(-1, -2))
    z = np.empty((*batch, n, m))
    with quiet():
        if not batch:
            _distances(z, a, b, order, False)
        else:
            a, b = np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:])
            for place in np.ndindex(batch):
                _distances(z[place], a[place], b[place], order, False)
    return z


def _values_of_one(arrays: Sequence[Array], order: float) -> Array:
    n = len(arrays[0])
    z = np.empty(n * (n - 1) // 2)
    _distances(z, arrays[0], arrays[0], order, True)
    return z


def _distances(z: Array, a: Array, b: Array, order: float, triangle: bool) -> None:
    x, y, plan = np.ascontiguousarray(a), np.ascontiguousarray(b), _plan(a.shape[-1])
    scratch = np.empty((a.shape[-1] + len(plan) + 4) * VECTOR)
    places = id(z), id(x), id(y), id(plan), id(scratch)
    fine = ARRAY_KERNELS.distances_of_pairs(*places, int(order), int(triangle))
    if order == SQUARES and not fine:  # as the norm of an array is computed, so that its bits are the same
        ARRAY_KERNELS.distances_of_pairs(*places, SCALED_SQUARES, int(triangle))


@functools.lru_cache(maxsize=64)
def _plan(d: int) -> Array:
    """Lengths of blocks of a sum as NumPy makes it, and how many pairs are added behind each."""

    def halved(count: int) -> list[list[int]]:
        if count <= BLOCK:
            return [[count, 0]]
        half = count // 2 - count // 2 % LANES
        first, second = halved(half), halved(count - half)
        second[-1][1] += 1
        return first + second

    return np.array(halved(d), np.int64).reshape(-1)


FEW = 64  # rows up to which the places of all pairs are kept


def _two_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on, (x, y), order = ctx.on, ctx.inputs, ctx.attrs
    weights, lengths = _weights(g, ctx.result, order)

    def cotangent(weights: Tensor, lengths: Tensor | None, others: Tensor, own: Tensor, shape: tuple[int, ...]) -> Tensor:
        if lengths is None:
            return on.sum_to(on.weighted_differences(weights, others, own, order), shape)
        return on.sum_to(_weighted_units(weights, others, own, lengths), shape)

    turned = None if lengths is None else on.mT(lengths)
    return (
        cotangent(on.mT(weights), turned, y, x, ctx.shapes[0]) if ctx.needs[0] else None,
        cotangent(weights, lengths, x, y, ctx.shapes[1]) if ctx.needs[1] else None,
    )


def _one_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on, x, order = ctx.on, ctx.inputs[0], ctx.attrs
    n, _ = ctx.shapes[0]
    places = _small_places(n) if n <= FEW else _above_the_diagonal(n)

    def of_both_triangles(values: Tensor) -> Tensor:
        above = on.put_at(make(np.zeros((n, n)), 0), places, values)
        return above + on.mT(above)

    weights, lengths = _weights(g, ctx.result, order)
    if lengths is None:
        return (on.weighted_differences(of_both_triangles(weights), x, x, order),)
    return (_weighted_units(of_both_triangles(weights), x, x, of_both_triangles(lengths) + make(np.eye(n), 0)),)


def _weights(g: Tensor, z: Tensor | None, order: float) -> tuple[Tensor, Tensor | None]:
    """What differences are multiplied by in the cotangent of their norm, or the signs of their elements.

    Where cotangents divided by lengths would leave the range of numbers, the lengths to divide differences by as well.
    """
    if order == 1.0:
        return g, None
    assert z is not None
    g, z = without_zeros(g, z)
    weights = g / z
    return (weights, None) if are_exact(weights, g, z) else (g, z)


def _above_the_diagonal(n: int) -> Places:
    number = np.arange(n)
    at = np.flatnonzero(number[:, None] < number)
    return Places(at, 1, (at.size,))


_small_places = functools.lru_cache(maxsize=FEW)(_above_the_diagonal)


def weighted_differences(weights: Tensor, x: Tensor, y: Tensor, order: float) -> Tensor:
    """``sum(weights[i, j] * (y[j] - x[i]) for i)``, with signs for order one; zero times anything is zero."""
    away = unsqueeze(y, -3) - unsqueeze(x, -2)
    return sum_over(elementwise._mul0(unsqueeze(weights, -1), elementwise.sign(away) if order == 1.0 else away), -3)


def _weighted_units(weights: Tensor, x: Tensor, y: Tensor, lengths: Tensor) -> Tensor:
    """``sum(weights[i, j] * ((y[j] - x[i]) / lengths[i, j]) for i)``, which is a number where the lengths are tiny or huge."""
    units = (unsqueeze(y, -3) - unsqueeze(x, -2)) / unsqueeze(lengths, -1)
    return sum_over(elementwise._mul0(unsqueeze(weights, -1), units), -3)


def weighted_values(weights: Tensor, x: Tensor, y: Tensor, order: float) -> Tensor:
    """The same of values alone."""
    w, a, b = array_of(weights), array_of(x), array_of(y)
    if not (w.dtype == a.dtype == b.dtype == FLOAT64):
        return weighted_differences(weights, x, y, order)
    batch = w.shape[:-2]
    if not batch:
        return make(_weighed(w, a, b, order), 0)
    a, b = np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:])
    z = np.empty(b.shape)
    for place in np.ndindex(batch):
        z[place] = _weighed(w[place], a[place], b[place], order)
    return make(z, 0)


def _weighed(w: Array, a: Array, b: Array, order: float) -> Array:
    x, y, z = np.ascontiguousarray(a), np.ascontiguousarray(b), np.empty(b.shape)
    width = -(-a.shape[-1] // COORDINATES) * COORDINATES
    scratch = np.empty((2 * width + WEIGHTS + 1) * VECTOR + len(x) * width)
    ARRAY_KERNELS.weigh_differences(id(z), id(w), id(y), id(x), id(scratch), int(order == 1.0))
    return z


_BETWEEN_TWO = Structural("CdistBackward0", ((0, 1, "z"),), _two_vjp, forward=_values_of_two)
_BETWEEN_ONE = Structural("PdistBackward0", ((0, "z"),), _one_vjp, forward=_values_of_one)
