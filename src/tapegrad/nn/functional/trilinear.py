"""The three products of a convolution.

A convolution is linear in its input ``x``, its weight ``w`` and its cotangent ``y``: the sum over all windows of ``x`` times ``w``
times ``y`` is one number, and its derivatives with respect to the three are the convolution, its transpose and the
correlation that gives the weight's gradient. Each one's derivatives are the two others, to any order.

Shapes: ``x`` (n, c, *extents), ``w`` (m, c / groups, *kernel), ``y`` (n, m, *places).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.nn.functional.sliding import Windows, columns, computed, fold, parts
from tapegrad.ops.namespaces import PLAIN
from tapegrad.recording.structural import Context, InBlocks, Structural, apply, one_by_one
from tapegrad.tensors.tensor import Tensor, array_of, make

__all__ = ["Geometry", "convolve", "correlate", "spread"]

Array = np.ndarray[Any, Any]


class Geometry(NamedTuple):
    """Where the windows lie, and in how many groups the channels are that do not see each other."""

    windows: Windows
    groups: int


def convolve(x: Tensor, w: Tensor, bias: Tensor | None, geometry: Geometry) -> Tensor:
    """``y``: every window of `x` times `w`, plus a number for each channel."""
    inputs = (x, w) if bias is None else (x, w, bias)
    with quiet():
        result = _convolved(array_of(x), array_of(w), geometry)
        if bias is not None:
            result += _of_channels(array_of(bias), result.ndim)
    return apply(_CONVOLVE, inputs, result, geometry)


def spread(y: Tensor, w: Tensor, bias: Tensor | None, geometry: Geometry) -> Tensor:
    """``x``: what the windows were made from, every element of `y` spread over its window by `w`."""
    inputs = (y, w) if bias is None else (y, w, bias)
    with quiet():
        result = _spread(array_of(y), array_of(w), geometry)
        if bias is not None:
            result += _of_channels(array_of(bias), result.ndim)
    return apply(_SPREAD, inputs, result, geometry)


def correlate(x: Tensor, y: Tensor, geometry: Geometry) -> Tensor:
    """``w``: the sum over all windows of `x` times the elements of `y`."""
    with quiet():
        result = _correlated(array_of(x), array_of(y), geometry)
    return apply(_CORRELATE, (x, y), result, geometry)


def _convolve_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    x, w = ctx.inputs[:2]
    if ctx.on is PLAIN:
        x_bar, w_bar = _in_plain_pass(_spread, (g, w), _correlated, (x, g), ctx)
    else:
        x_bar = spread(g, w, None, ctx.attrs) if ctx.needs[0] else None
        w_bar = correlate(x, g, ctx.attrs) if ctx.needs[1] else None
    return x_bar, w_bar, *_bias_bar(g, ctx)


def _in_plain_pass(to_first: Any, first: Any, to_weight: Any, second: Any, ctx: Context) -> tuple[Tensor | None, Tensor | None]:
    """Both cotangents where nothing is recorded."""
    found: list[Tensor | None] = []
    with quiet():
        for need, form, operands in ((ctx.needs[0], to_first, first), (ctx.needs[1], to_weight, second)):
            found.append(make(form(array_of(operands[0]), array_of(operands[1]), ctx.attrs), 0) if need else None)
    return found[0], found[1]


def _spread_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    y, w = ctx.inputs[:2]
    if ctx.on is PLAIN:
        y_bar, w_bar = _in_plain_pass(_convolved, (g, w), _correlated, (g, y), ctx)
    else:
        y_bar = convolve(g, w, None, ctx.attrs) if ctx.needs[0] else None
        w_bar = correlate(g, y, ctx.attrs) if ctx.needs[1] else None
    return y_bar, w_bar, *_bias_bar(g, ctx)


def _correlate_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    x, y = ctx.inputs
    x_bar = spread(y, g, None, ctx.attrs) if ctx.needs[0] else None
    y_bar = convolve(x, g, None, ctx.attrs) if ctx.needs[1] else None
    return x_bar, y_bar


def _bias_bar(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    if len(ctx.needs) == 2:
        return ()
    return (ctx.on.sum(g, (0, *range(2, array_of(g).ndim))) if ctx.needs[2] else None,)


def _linear(form: Any) -> tuple[InBlocks, ...]:
    """Each of the two factors with the other one as it is, and a bias."""

    def of_first(x: Tensor, ctx: Context) -> Tensor:
        return form(x, ctx.inputs[1], ctx.attrs)

    def of_second(w: Tensor, ctx: Context) -> Tensor:
        return form(ctx.inputs[0], w, ctx.attrs)

    return one_by_one(of_first), one_by_one(of_second), _bias_of_many


def _bias_of_many(b_dot: Array, ctx: Context, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(b_dot.reshape(-1, *(1,) * (len(shape) - 2), b_dot.shape[-1]), (*shape, b_dot.shape[-1]))


_CONVOLVE = Structural(
    "ConvolutionBackward0", ((1,), (0,), ()), _convolve_vjp, linear=_linear(lambda x, w, at: convolve(x, w, None, at))
)
_SPREAD = Structural("ConvolutionBackward0", ((1,), (0,), ()), _spread_vjp, linear=_linear(lambda y, w, at: spread(y, w, None, at)))
_CORRELATE = Structural("ConvolutionBackward0", ((1,), (0,)), _correlate_vjp, linear=_linear(correlate))


# Each value is one matrix product a group and element of the batch: channels and taps of the window along one side of the columns,
# places along the other.


def _of_channels(bias: Array, ndim: int) -> Array:
    return bias.reshape((-1,) + (1,) * (ndim - 2))


def _convolved(x: Array, w: Array, geometry: Geometry) -> Array:
    windows, groups = geometry
    shape, dtype = (x.shape[0], w.shape[0], *windows.places), x.dtype
    x, w = computed(x, w)
    rows, inside = w.shape[0] // groups, w.shape[1] * windows.taps
    matrices = w.reshape(rows, inside) if groups == 1 else w.reshape(groups, rows, inside)
    result = np.empty((shape[0], w.shape[0], windows.total), x.dtype)
    for part in parts(x.shape[0], windows, x.shape[1]):
        piece = columns(x[part], windows)
        if groups > 1:
            piece = piece.reshape(len(piece), groups, inside, windows.total)
        np.matmul(matrices, piece, result[part].reshape(*piece.shape[:-2], rows, windows.total))
    result = result.reshape(shape)
    return result if result.dtype is dtype else result.astype(dtype, copy=False)


def _spread(y: Array, w: Array, geometry: Geometry) -> Array:
    windows, groups = geometry
    channels, dtype = w.shape[1] * groups, y.dtype
    y, w = computed(y, w)
    outside, inside = w.shape[0] // groups, w.shape[1] * windows.taps
    transposed = w.reshape(outside, inside).T if groups == 1 else w.reshape(groups, outside, inside).swapaxes(1, 2)
    pieces = []
    for part in parts(y.shape[0], windows, channels):
        count = part.stop - part.start
        shape = (count, outside, windows.total) if groups == 1 else (count, groups, outside, windows.total)
        piece = np.matmul(transposed, y[part].reshape(shape))
        pieces.append(fold(piece.reshape(count, channels * windows.taps, windows.total), windows))
    if len(pieces) == 1:
        result = pieces[0]
    else:
        result = np.concatenate(pieces) if pieces else np.zeros((0, channels, *windows.extents), y.dtype)
    return result if result.dtype is dtype else result.astype(dtype, copy=False)


def _correlated(x: Array, y: Array, geometry: Geometry) -> Array:
    windows, groups = geometry
    shape, dtype = (y.shape[1], x.shape[1] // groups, *windows.kernel), x.dtype
    x, y = computed(x, y)
    inside, total = shape[1] * windows.taps, None
    for part in parts(x.shape[0], windows, x.shape[1]):
        count = part.stop - part.start
        piece = columns(x[part], windows, joined=True)
        if groups > 1:
            piece = piece.reshape(groups, inside, count * windows.total)
        product = np.matmul(_by_group(y[part], groups), piece.swapaxes(-1, -2))
        total = product if total is None else total + product
    result = (np.zeros(shape, x.dtype) if total is None else total).reshape(shape)
    return result if result.dtype is dtype else result.astype(dtype, copy=False)


def _by_group(y: Array, groups: int) -> Array:
    """Channels of each group along one side of a matrix, batch and places along the other."""
    shape = y.shape[1] // groups, y.shape[0] * math.prod(y.shape[2:])
    return y.swapaxes(0, 1).reshape(shape if groups == 1 else (groups, *shape))
