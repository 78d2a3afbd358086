"""Losses of a choice between two classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.errors import ShapeError
from tapegrad.nn.functional.class_targets import check_untracked
from tapegrad.nn.functional.reducing import check_reduction, reduced_values
from tapegrad.ops import elementwise
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits"]

Array = np.ndarray[Any, Any]
minimum_reduce: Any = np.minimum.reduce  # NumPy's stubs know keepdims only as a literal
maximum_reduce: Any = np.maximum.reduce


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """The cross entropy of probabilities, and by default the mean.

    Parameters
    ----------
    input, target : Tensor
        Probabilities, of one shape and dtype.
    weight : Tensor, optional
        Factors of the losses; broadcasts to their shape.
    reduction : {"mean", "sum", "none"}

    Returns
    -------
    Tensor
        Logarithms are not less than -100, so that every loss is finite.

    Raises
    ------
    ValueError
        If the shapes differ, or `reduction` is none of the three.
    RuntimeError
        If there are elements outside of [0, 1], or the dtypes differ.

    Examples
    --------
    >>> tg.nn.functional.binary_cross_entropy(tg.tensor([0.5, 0.5]), tg.tensor([0.0, 1.0]))
    tensor(0.6931)
    """
    check_reduction(reduction)
    x, y = array_of(input), array_of(target)
    if x.shape != y.shape:
        raise ValueError(
            f"Using a target size ({y.shape}) that is different to the input size ({x.shape}) is deprecated. Please ensure they "
            "have the same size."
        )
    if x.dtype != y.dtype or x.dtype.kind != "f":
        raise RuntimeError(f"Found dtype {type_name(y.dtype)} but expected {type_name(x.dtype)}; both must be floating point")
    for what, values in (("input", x), ("target", y)):
        if not (
            minimum_reduce(values, None, None, None, False, 1) >= 0 and maximum_reduce(values, None, None, None, False, 0) <= 1
        ):
            raise RuntimeError(f"all elements of {what} should be between 0 and 1")
    factors = _factors("binary_cross_entropy", "weight", weight, x.shape)
    with quiet():
        losses = -(y * np.maximum(np.log(x), -100.0) + (1 - y) * np.maximum(np.log1p(-x), -100.0))
        if factors is not None:
            losses = losses * factors
        result, scale = reduced_values(np.asarray(losses.astype(x.dtype, copy=False)), reduction)
    return apply(_BCE, (input, target), result, scale, () if factors is None else (wrap(factors),))


def _bce_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    x, y = ctx.inputs
    g = _times(g * ctx.attrs, ctx.extra)
    x_bar = y_bar = None
    if ctx.needs[0]:
        x_bar = g * ((x - y) / (x * (1.0 - x)).clamp(min=1e-12))
    if ctx.needs[1]:
        y_bar = g * (elementwise.log1p(-x) - elementwise.log(x))
    return x_bar, y_bar


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of the sigmoid of `input`, accurate where that is near 0 or 1.

    Parameters
    ----------
    input, target : Tensor
        Any numbers, and probabilities; of one shape and dtype.
    weight : Tensor, optional
        Factors of the losses; broadcasts to their shape.
    reduction : {"mean", "sum", "none"}
    pos_weight : Tensor, optional
        Factors of the part of the losses where the target is 1; broadcasts to their shape.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If the shapes differ, or `reduction` is none of the three.
    RuntimeError
        If the dtypes differ, or a factor does not broadcast or is tracked.

    Examples
    --------
    >>> tg.nn.functional.binary_cross_entropy_with_logits(tg.tensor([0.0, 1000.0]), tg.tensor([0.0, 1.0]))
    tensor(0.3466)
    """
    check_reduction(reduction)
    x, y = array_of(input), array_of(target)
    if x.shape != y.shape:
        raise ValueError(f"Target size ({y.shape}) must be the same as input size ({x.shape})")
    if x.dtype != y.dtype or x.dtype.kind != "f":
        raise RuntimeError(
            f"result type {type_name(x.dtype)} can't be cast to the desired output type {type_name(y.dtype)}; give input and "
            "target one floating point dtype"
        )
    name = "binary_cross_entropy_with_logits"
    factors = _factors(name, "weight", weight, x.shape)
    positive = _factors(name, "pos_weight", pos_weight, x.shape)
    extra = tuple(wrap(part) for part in (factors, positive) if part is not None)
    with quiet():
        below = np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0)  # softplus(-x)
        losses = (1 - y) * x + (below if positive is None else (1 + (positive - 1) * y) * below)
        if factors is not None:
            losses = losses * factors
        result, scale = reduced_values(np.asarray(losses.astype(x.dtype, copy=False)), reduction)
    return apply(_LOGITS, (input, target), result, (scale, factors is not None, positive is not None), extra)


def _logits_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    x, y = ctx.inputs
    scale, weighted, has_positive = ctx.attrs
    g = _times(g * scale, ctx.extra[:1] if weighted else ())
    more = ctx.extra[-1] - 1.0 if has_positive else None
    x_bar = y_bar = None
    if ctx.needs[0]:
        if more is None:
            x_bar = g * (elementwise.sigmoid(x) - y)
        else:
            x_bar = g * ((1.0 - y) - (more * y + 1.0) * elementwise.sigmoid(-x))
    if ctx.needs[1]:
        y_bar = g * -x if more is None else g * (-x - more * elementwise.logsigmoid(x))
    return x_bar, y_bar


def _times(g: Tensor, factors: Sequence[Tensor]) -> Tensor:
    return g * factors[0] if factors else g


def _factors(name: str, what: str, factors: Tensor | None, shape: tuple[int, ...]) -> Array | None:
    if factors is None:
        return None
    check_untracked(name, what, factors)
    values = array_of(factors)
    try:
        fits = np.broadcast_shapes(values.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"{name}: {what} of size {list(values.shape)} does not broadcast to the input's size {list(shape)}")
    return values.copy()  # the caller may write into theirs


_BCE = Structural("BinaryCrossEntropyBackward0", ((0, 1), (0,)), _bce_vjp)
_LOGITS = Structural("BinaryCrossEntropyWithLogitsBackward0", ((0, 1), (0,)), _logits_vjp)
