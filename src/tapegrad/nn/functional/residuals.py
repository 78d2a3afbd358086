"""Losses that are functions of the difference between input and target, element by element."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.nn.functional.reducing import check_reduction, reduced, reduced_values
from tapegrad.ops.residuals import HUBER, SMOOTH, SQUARE, losses_by_loop
from tapegrad.recording.apply_rule import check_broadcast
from tapegrad.recording.primal_values import choose
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["huber_loss", "l1_loss", "mse_loss", "smooth_l1_loss"]

Array = np.ndarray[Any, Any]


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Squared differences, and by default their mean.

    Parameters
    ----------
    input, target : Tensor
        Of one shape.
    reduction : {"mean", "sum", "none"}
    weight : Tensor, of the shape of `input`, optional
        Factors of the losses; the mean is then divided by their sum.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If `reduction` is none of the three, or `weight` has another shape.

    Warns
    -----
    UserWarning
        If the shapes differ and broadcast, which is seldom meant.

    Examples
    --------
    >>> tg.nn.functional.mse_loss(tg.tensor([1.0, 3.0]), tg.tensor([1.0, 1.0]))
    tensor(2.)
    """
    return _loss(_MSE, lambda r: r * r, input, target, None, reduction, weight)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Absolute differences, and by default their mean; arguments and errors as for `mse_loss`.

    Examples
    --------
    >>> tg.nn.functional.l1_loss(tg.tensor([1.0, 4.0]), tg.tensor([1.0, 1.0]))
    tensor(1.5000)
    """
    _check(input, target, weight)
    return _weighted((input - target).abs(), weight, reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Absolute differences, rounded to a parabola where they are less than `beta`, and by default their mean.

    Parameters
    ----------
    input, target : Tensor
        Of one shape.
    reduction : {"mean", "sum", "none"}
    beta : float
        Not negative; with 0 it is `l1_loss`.

    Raises
    ------
    RuntimeError
        If `beta` is negative.
    ValueError
        If `reduction` is none of the three.

    Warns
    -----
    UserWarning
        If the shapes differ and broadcast, which is seldom meant.
    """
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta, but got {beta}")
    if beta == 0.0:
        return l1_loss(input, target, reduction)

    def values(r: Array) -> Array:
        size = np.abs(r)
        return choose(size < beta, 0.5 * size * size / beta, size - 0.5 * beta)

    return _loss(_SMOOTH_L1, values, input, target, beta, reduction, None)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None) -> Tensor:
    """Half of the squared differences, continued straight where they exceed `delta`, and by default the mean.

    Parameters
    ----------
    input, target : Tensor
        Of one shape.
    reduction : {"mean", "sum", "none"}
    delta : float
        Positive.
    weight : Tensor, of the shape of `input`, optional
        Factors of the losses.

    Raises
    ------
    RuntimeError
        If `delta` is not positive.
    ValueError
        If `reduction` is none of the three, or `weight` has another shape.

    Warns
    -----
    UserWarning
        If the shapes differ and broadcast, which is seldom meant.
    """
    if delta <= 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta, but got {delta}")

    def values(r: Array) -> Array:
        size = np.abs(r)
        return choose(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))

    return _loss(_HUBER, values, input, target, delta, reduction, weight)


def _loss(
    op: Structural,
    values: Callable[[Array], Array],
    input: Tensor,
    target: Tensor,
    parameter: float | None,
    reduction: str,
    weight: Tensor | None,
) -> Tensor:
    check_reduction(reduction)
    _check(input, target, weight)
    if weight is not None:
        losses = _loss(op, values, input, target, parameter, "none", None)
        # As in PyTorch, the weights of this one loss do not enter the mean's divisor.
        return reduced(losses * weight, reduction) if op is _HUBER else _weighted(losses, weight, reduction)
    data, other = array_of(input), array_of(target)
    with quiet():
        found = losses_by_loop(data, other, _KINDS[op.name], parameter)
        if found is None:
            residuals = data - other
            found = np.asarray(values(residuals)).astype(residuals.dtype, copy=False)
        result, scale = reduced_values(found, reduction)
    return apply(op, (input, target), result, (scale, parameter))


def _check(input: Tensor, target: Tensor, weight: Tensor | None) -> None:
    own, other = array_of(input).shape, array_of(target).shape
    if own != other:
        warnings.warn(
            f"Using a target size ({other}) that is different to the input size ({own}). "
            "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=4,
        )
        check_broadcast(array_of(input), array_of(target))
    if weight is not None and array_of(weight).shape != own:
        raise ValueError(f"Weights and input must have the same size, but got {array_of(weight).shape} and {own}.")


def _weighted(losses: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    if weight is None:
        return reduced(losses, reduction)
    weighted = losses * weight
    return weighted.sum() / weight.sum() if reduction == "mean" else reduced(weighted, reduction)


def _operation(name: str, slope: Callable[[Any], tuple[float, float]], factor: float = 1.0) -> Structural:
    """A loss with the slope ``factor * (x - y) / divisor``, whose divisor and bound follow from the parameter."""

    def vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
        scale, parameter = ctx.attrs
        found: Sequence[Tensor | None] = ctx.on.limited_differences(g, *ctx.inputs, *slope(parameter), factor * scale, ctx.needs)
        return found

    return Structural(name, ((0, 1), (0, 1)), vjp, takes_stretched=True)


_MSE = _operation("MseLossBackward0", lambda _: (1.0, math.inf), 2.0)
_SMOOTH_L1 = _operation("SmoothL1LossBackward0", lambda beta: (beta, 1.0))
_HUBER = _operation("HuberLossBackward0", lambda delta: (1.0, delta))
_KINDS = {_MSE.name: SQUARE, _SMOOTH_L1.name: SMOOTH, _HUBER.name: HUBER}
