"""Elements moved and scaled to mean zero and variance one, the computation behind all normalising layers.

Four maps whose derivatives are made of each other: the standardised elements times a weight plus a bias, the cotangents of the
elements and of the weights, and the affine map by moments that were found before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.errors import ShapeError
from tapegrad.ops import elementwise
from tapegrad.ops.namespaces import PLAIN
from tapegrad.recording.structural import Context, Structural, apply, one_by_one
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, make

__all__ = ["Layout", "Moments", "layout_of", "moments", "operation", "scaled", "standardised"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
_FLOAT64 = np.dtype(np.float64)
contiguous: Any = np.ascontiguousarray


class Layout(NamedTuple):
    """How the elements are grouped.

    Attributes
    ----------
    inner : tuple of int
        The elements in five dimensions; one mean and one variance is along the first and the last two.
    scales : tuple of int
        Shape in which weight and bias broadcast against it.
    eps : float
        Added to the variance.
    words : ndarray of int64
        The same for the compiled loops (`engine/standardising.py`).
    """

    inner: Shape
    scales: Shape
    eps: float
    words: Array

    @property
    def groups(self) -> int:
        """How many means there are."""
        return self.inner[1] * self.inner[2]

    def size(self) -> int:
        """Elements in a group."""
        return self.inner[0] * self.inner[3] * self.inner[4]


OVER = (0, 3, 4)


@lru_cache(maxsize=256)
def layout_of(outer: int, repeats: int, periods: int, each: int, run: int, eps: float) -> Layout:
    """Elements of shape (outer, repeats, periods, each, run), with weights of shape (periods, each)."""
    words = np.array([outer, repeats * periods, each * run, periods, each, run], np.int64)
    return Layout((outer, repeats, periods, each, run), (periods, each, 1), eps, words)


class Moments(NamedTuple):
    """The mean of each group and what it is scaled by, and its uncorrected variance, of float64."""

    means: Array
    factors: Array
    variances: Array


def moments(x: Tensor, layout: Layout) -> Moments:
    """Mean and variance of each group."""
    data = _wide(array_of(x))
    means, variances = np.empty(layout.groups), np.empty(layout.groups)
    ARRAY_KERNELS.moments_of_groups(id(means), id(variances), id(data), id(layout.words))
    return fixed_moments(means, variances, layout)


def fixed_moments(means: Array, variances: Array, layout: Layout) -> Moments:
    """The same of a mean and a variance that are given for each group."""
    with quiet():
        return Moments(means, 1.0 / np.sqrt(variances + layout.eps), variances)


def _wide(data: Array) -> Array:
    """As the compiled loops take it."""
    if data.dtype is _FLOAT64 and data.flags.c_contiguous:
        return data
    return contiguous(data, np.float32 if data.dtype.itemsize == 2 else data.dtype)


def _operand(t: Tensor, dtype: Any, size: int) -> Array:
    """A saved value as the compiled loops take it; it may come back in another dtype or shape from a hook."""
    array = array_of(t)
    if array.dtype is not dtype or not array.flags.c_contiguous:
        array = contiguous(array, dtype)
    if array.size != size:
        raise ShapeError(f"a saved tensor of {size} elements was given back with {array.size}, of shape {list(array.shape)}")
    return array


def _affine(data: Array, weight: Tensor | None, bias: Tensor | None, found: Moments, layout: Layout) -> Array:
    wide = _wide(data)
    count = layout.scales[0] * layout.scales[1]
    w = None if weight is None else _operand(weight, wide.dtype, count)
    b = None if bias is None else _operand(bias, wide.dtype, count)
    result = np.empty(data.shape, wide.dtype)
    at = 0 if w is None else id(w), 0 if b is None else id(b)
    ARRAY_KERNELS.scale_groups(id(result), id(wide), *at, id(found.means), id(found.factors), id(layout.words))
    return result.astype(data.dtype, copy=False)


def standardised(
    op: Structural, x: Tensor, weight: Tensor | None, bias: Tensor | None, layout: Layout, found: Moments | None = None
) -> Tensor:
    """Each group brought to mean zero and variance one, then times `weight` plus `bias`.

    Parameters
    ----------
    found : Moments, optional
        Those of `x`, where they are known.
    """
    found = found or moments(x, layout)
    inputs = tuple([t for t in (x, weight, bias) if t is not None])
    attrs = (layout, weight is not None, bias is not None)
    return apply(op, inputs, _affine(array_of(x), weight, bias, found, layout), attrs, _kept(found))


def _kept(found: Moments) -> tuple[Tensor, Tensor]:
    return make(found.means, 0), make(found.factors, 0)


def _found(ctx: Context) -> Moments:
    means, factors = ctx.extra
    return Moments(means._data, factors._data, factors._data)


def _standardised_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return _affine_vjp(g, ctx, lambda x, w, found: _projected(g, x, w, ctx.attrs[0], found, ctx.on is PLAIN))


def _affine_vjp(g: Tensor, ctx: Context, to_x: Any, fixed: bool = False) -> Sequence[Tensor | None]:
    """Cotangents of x, weight and bias, given how that of x comes about."""
    on, found = ctx.on, _found(ctx)
    layout, weighted, biased = ctx.attrs
    cotangents: list[Tensor | None] = [None] * len(ctx.needs)
    if ctx.needs[0]:
        cotangents[0] = to_x(ctx.inputs[0], ctx.inputs[1] if weighted else None, found)
    if weighted and ctx.needs[1]:
        x = ctx.inputs[0]
        assert x is not None
        cotangents[1] = on.reshape(_slopes(g, x, layout, found, fixed, on is PLAIN), ctx.shapes[1])
    if biased and ctx.needs[-1]:
        cotangents[-1] = on.reshape(on.sum_to(on.reshape(g, layout.inner), layout.scales), ctx.shapes[-1])
    return tuple(cotangents)


def _projected(g: Tensor, x: Tensor, w: Tensor | None, layout: Layout, found: Moments, is_plain: bool = False) -> Tensor:
    """The cotangent of the elements: `g` times the weight, less its mean and its part along the standardised elements, scaled."""
    given = array_of(g)
    given = given if given.flags.c_contiguous else contiguous(given)
    data = _operand(x, given.dtype, given.size)
    weight = None if w is None else _operand(w, given.dtype, layout.scales[0] * layout.scales[1])
    result, sums = np.empty(array_of(x).shape, data.dtype), np.empty(2 * layout.groups)
    at = 0 if weight is None else id(weight)
    words = id(found.means), id(found.factors), id(sums), id(layout.words)
    ARRAY_KERNELS.project_groups(id(result), id(given), id(data), at, *words)
    if is_plain:
        return make(result, 0)
    return apply(_PROJECT, (g, x) if w is None else (g, x, w), result, layout, _kept(found))


def _project_vjp(c: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    # With the standardised elements u, the factor s = (variance + eps) ** -1/2 and P h = h - mean(h) - u * mean(u * h), the result
    # is r = s * P h for h = g * w. P is symmetric, and moving x by dx moves u by s * P dx and s by -s * s * mean(u * dx).
    on, layout = ctx.on, ctx.attrs
    g, x = ctx.inputs[:2]
    w = ctx.inputs[2] if len(ctx.needs) > 2 else None
    assert x is not None
    q = _projected(c, x, None, layout, _found(ctx))
    wide = on.reshape(q, layout.inner)
    factor = None if w is None else on.reshape(w, layout.scales)
    cotangents: list[Tensor | None] = [None] * len(ctx.needs)
    if ctx.needs[0]:
        cotangents[0] = q if factor is None else on.reshape(wide * factor, ctx.shapes[0])
    if g is not None and (ctx.needs[1] or ctx.needs[-1]):
        h = on.reshape(g, layout.inner)
        if w is not None and ctx.needs[2]:
            cotangents[2] = on.reshape(on.sum_to(h * wide, layout.scales), ctx.shapes[2])
        if ctx.needs[1]:
            cotangents[1] = on.reshape(_bent(c, x, h if factor is None else h * factor, wide, ctx), ctx.shapes[1])
    return tuple(cotangents)


def _bent(c: Tensor, x: Tensor, h: Tensor, q: Tensor, ctx: Context) -> Tensor:
    """The cotangent of x, through which u and s depend on it."""
    on, layout = ctx.on, ctx.attrs
    assert ctx.result is not None
    r, c = on.reshape(ctx.result, layout.inner), on.reshape(c, layout.inner)
    u = on.reshape(standardised(_UNITS, x, None, None, layout, _found(ctx)), layout.inner)
    elements = on.reshape(x, layout.inner)
    centred = elements - on.mean(elements, OVER, True)
    s = elementwise.rsqrt(on.mean(centred * centred, OVER, True) + layout.eps)
    return -s * (u * on.mean(c * r, OVER, True) + on.mean(u * h, OVER, True) * q + on.mean(u * c, OVER, True) * r)


def _slopes(g: Tensor, x: Tensor, layout: Layout, found: Moments, fixed: bool, is_plain: bool = False) -> Tensor:
    """The cotangents of the weights, flattened."""
    given = array_of(g)
    given = given if given.flags.c_contiguous else contiguous(given)
    data = _operand(x, given.dtype, given.size)
    result = np.empty(layout.scales[0] * layout.scales[1])
    words = id(found.means), id(found.factors), id(layout.words)
    ARRAY_KERNELS.slopes_of_weights(id(result), id(given), id(data), *words)
    if is_plain and data.dtype is _FLOAT64:
        return make(result, 0)
    with quiet():
        return apply(_SLOPES, (g, x), result.astype(data.dtype, copy=False), (layout, fixed), _kept(found))


def _slopes_vjp(c: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    layout, fixed = ctx.attrs
    found, (g, x) = _found(ctx), ctx.inputs
    g_bar = x_bar = None
    if ctx.needs[0]:
        g_bar = scaled(_FIXED, x, found, c, None, layout) if fixed else standardised(_UNITS, x, c, None, layout, found)
    if ctx.needs[1]:
        x_bar = _scaled_again(g, found, c, layout) if fixed else _projected(g, x, c, layout, found)
    return g_bar, x_bar


def scaled(op: Structural, x: Tensor, found: Moments, weight: Tensor | None, bias: Tensor | None, layout: Layout) -> Tensor:
    """`standardised` with moments that were found before; they get no gradient."""
    inputs = tuple([t for t in (x, weight, bias) if t is not None])
    attrs = (layout, weight is not None, bias is not None)
    return apply(op, inputs, _affine(array_of(x), weight, bias, found, layout), attrs, _kept(found))


def _scaled_again(g: Tensor, found: Moments, w: Tensor | None, layout: Layout, is_plain: bool = False) -> Tensor:
    """`g` times the factors and the weight."""
    around_zero = found._replace(means=np.zeros(layout.groups))
    if is_plain:
        return make(_affine(array_of(g), w, None, around_zero, layout), 0)
    return scaled(_FIXED, g, around_zero, w, None, layout)


def _scaled_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return _affine_vjp(g, ctx, lambda _, w, found: _scaled_again(g, found, w, ctx.attrs[0], ctx.on is PLAIN), fixed=True)


def operation(name: str) -> tuple[Structural, Structural]:
    """`standardised` and `scaled` under PyTorch's name."""
    return (
        Structural(name, ((0, 1), (0,), ()), _standardised_vjp, linear=(None, one_by_one(_of_weights))),
        Structural(name, ((1,), (0,), ()), _scaled_vjp, linear=(one_by_one(_of_scaled), one_by_one(_of_weights))),
    )


def _of_weights(w: Tensor, ctx: Context) -> Tensor:
    """The elements standardised as they were, times other weights and without a bias."""
    x, layout = ctx.inputs[0], ctx.attrs[0]
    assert x is not None
    return make(_affine(array_of(x).astype(np.float64), w, None, _found(ctx), layout), 0)


def _of_scaled(x: Tensor, ctx: Context) -> Tensor:
    layout, weighted, _ = ctx.attrs
    return _scaled_again(x, _found(ctx), ctx.inputs[1] if weighted else None, layout)


_UNITS, _FIXED = operation("NativeLayerNormBackward0")


def _of_projected(g: Tensor, ctx: Context) -> Tensor:
    x = ctx.inputs[1]
    assert x is not None
    return _projected(g, x, ctx.inputs[2] if len(ctx.needs) > 2 else None, ctx.attrs, _found(ctx))


def _of_slopes(g: Tensor, ctx: Context) -> Tensor:
    x = ctx.inputs[1]
    assert x is not None
    return _slopes(g, x, ctx.attrs[0], _found(ctx), ctx.attrs[1])


_PROJECT = Structural(
    "NativeLayerNormBackwardBackward0", ((1, 2), (0, 1, 2, "z"), (0, 1)), _project_vjp, linear=(one_by_one(_of_projected),)
)
_SLOPES = Structural("NativeLayerNormBackwardBackward0", ((1,), (0, 1)), _slopes_vjp, linear=(one_by_one(_of_slopes),))
