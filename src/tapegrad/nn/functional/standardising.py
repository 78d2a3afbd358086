"""Elements moved and scaled to mean zero and variance one, the computation behind all normalising layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.ops.reductions import add_reduce, count
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["Layout", "mean_and_variance", "operation", "scaled", "standardised"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


class Layout(NamedTuple):
    """How the elements are grouped.

    Attributes
    ----------
    inner : tuple of int
        Shape in which the elements are grouped.
    over : tuple of int
        Dimensions of that shape along which there is one mean and one variance.
    scales : tuple of int
        Shape in which weight and bias broadcast against it.
    eps : float
        Added to the variance.
    """

    inner: Shape
    over: Shape
    scales: Shape
    eps: float


def mean_and_variance(data: Array, layout: Layout) -> tuple[Array, Array]:
    """Mean and uncorrected variance of each group, with the dimensions kept."""
    inner = data.reshape(layout.inner)
    size = np.asarray(count(layout.inner, layout.over), data.dtype)
    mean = add_reduce(inner, layout.over, None, None, True) / size
    centred = inner - mean
    return mean, add_reduce(centred * centred, layout.over, None, None, True) / size


def standardised(op: Structural, x: Tensor, weight: Tensor | None, bias: Tensor | None, layout: Layout) -> Tensor:
    """Each group brought to mean zero and variance one, then times `weight` plus `bias`."""
    data = array_of(x)
    with quiet():
        mean, variance = mean_and_variance(data, layout)
        result = (data.reshape(layout.inner) - mean) / np.sqrt(variance + np.asarray(layout.eps, data.dtype))
        return _affine(op, x, weight, bias, result, layout)


def _affine(
    op: Structural, x: Tensor, weight: Tensor | None, bias: Tensor | None, result: Array, layout: Layout, *extra: Tensor
) -> Tensor:
    if weight is not None:
        result = result * array_of(weight).reshape(layout.scales)
    if bias is not None:
        result = result + array_of(bias).reshape(layout.scales)
    inputs = [t for t in (x, weight, bias) if t is not None]
    attrs = (layout, weight is not None, bias is not None)
    return apply(op, inputs, result.reshape(array_of(x).shape), attrs, extra)


def _standardised_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    if ctx.inputs[0] is None:  # the bias alone is tracked
        return _affine_vjp(g, ctx, g, None)
    layout = ctx.attrs[0]
    x = ctx.inputs[0].reshape(layout.inner)
    centred = x - x.mean(layout.over, keepdim=True)
    inverse = (centred.square().mean(layout.over, keepdim=True) + layout.eps).rsqrt()
    units = centred * inverse

    def to_x(g: Tensor) -> Tensor:
        slope = (g * units).mean(layout.over, keepdim=True)
        return inverse * (g - g.mean(layout.over, keepdim=True) - units * slope)

    return _affine_vjp(g, ctx, units, to_x)


def _affine_vjp(g: Tensor, ctx: Context, units: Tensor, to_x: Any) -> Sequence[Tensor | None]:
    """Cotangents of x, weight and bias, given the standardised elements and how their cotangent goes on."""
    layout, weighted, biased = ctx.attrs
    g = g.reshape(layout.inner)
    cotangents: list[Tensor | None] = [None] * len(ctx.needs)
    if ctx.needs[0]:
        inner = g * ctx.inputs[1].reshape(layout.scales) if weighted else g
        cotangents[0] = to_x(inner).reshape(ctx.shapes[0])
    if weighted and ctx.needs[1]:
        cotangents[1] = ctx.on.reshape(ctx.on.sum_to(g * units, layout.scales), ctx.shapes[1])
    if biased and ctx.needs[-1]:
        cotangents[-1] = ctx.on.reshape(ctx.on.sum_to(g, layout.scales), ctx.shapes[-1])
    return cotangents


def scaled(
    op: Structural, x: Tensor, mean: Array, variance: Array, weight: Tensor | None, bias: Tensor | None, layout: Layout
) -> Tensor:
    """`standardised` with a mean and a variance that were found before; they get no gradient."""
    data = array_of(x)
    with quiet():
        inverse = 1.0 / np.sqrt(variance + layout.eps)
        inverse, middle = inverse.astype(data.dtype), mean.astype(data.dtype)
        result = (data.reshape(layout.inner) - middle) * inverse
        return _affine(op, x, weight, bias, result, layout, wrap(middle), wrap(inverse))


def _scaled_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    middle, inverse = ctx.extra
    needs_units = len(ctx.needs) > 1 and ctx.needs[1]
    units = (ctx.inputs[0].reshape(ctx.attrs[0].inner) - middle) * inverse if needs_units else g
    return _affine_vjp(g, ctx, units, lambda g: g * inverse)


def operation(name: str) -> tuple[Structural, Structural]:
    """`standardised` and `scaled` under PyTorch's name."""
    return (
        Structural(name, ((0, 1), (0,), ()), _standardised_vjp),
        Structural(name, ((1,), (0,), ()), _scaled_vjp),
    )
