"""Losses that compare distributions: the Kullback-Leibler divergence, Poisson and Gaussian likelihoods."""

from __future__ import annotations

import math
import warnings

import numpy as np

from tapegrad.nn.functional.reducing import check_reduction, reduced
from tapegrad.ops import elementwise
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["gaussian_nll_loss", "kl_div", "poisson_nll_loss"]


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence ``target * (log(target) - input)``.

    Parameters
    ----------
    input : Tensor
        Log probabilities.
    target : Tensor
        Probabilities, or their logarithms.
    reduction : {"batchmean", "mean", "sum", "none"}
        ``"batchmean"`` divides the sum by the batch size, as the definition wants it; ``"mean"`` by the number of elements.
    log_target : bool
        Whether `target` holds logarithms.

    Raises
    ------
    ValueError
        If `reduction` is none of the four.

    Warns
    -----
    UserWarning
        If `reduction` is ``"mean"``.

    Examples
    --------
    >>> p = tg.tensor([[0.5, 0.5]])
    >>> tg.nn.functional.kl_div(p.log(), p, reduction="batchmean")
    tensor(0.)
    """
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides only by "
            "the batch size, and aligns with the KL div math definition.",
            stacklevel=2,
        )
    elif reduction != "batchmean":
        check_reduction(reduction)
    if log_target:
        losses = elementwise.exp(target) * (target - input)
    else:
        losses = elementwise.xlogy(target, target) - target * input
    if reduction == "batchmean":
        total = losses.sum()
        return total / array_of(input).shape[0] if array_of(input).ndim else total
    return reduced(losses, reduction)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood of counts under Poisson distributions.

    Parameters
    ----------
    input : Tensor
        Expected counts, or their logarithms.
    target : Tensor
        Counts.
    log_input : bool
        Whether `input` holds logarithms.
    full : bool
        Whether Stirling's approximation of the constant term is added where the count exceeds 1.
    eps : float
        Added to expected counts before the logarithm.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If `reduction` is none of the three.
    """
    check_reduction(reduction)
    losses = elementwise.exp(input) - target * input if log_input else input - target * elementwise.log(input + eps)
    if full:
        stirling = target * elementwise.log(target) - target + 0.5 * elementwise.log(2.0 * math.pi * target)
        losses = losses + stirling.masked_fill(wrap(array_of(target) <= 1), 0.0)
    return reduced(losses, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood of numbers under normal distributions.

    Parameters
    ----------
    input : Tensor
        Means.
    target : Tensor
    var : Tensor or float
        Variances, not negative; of the shape of `input`, or without its last dimension, or with size one in it.
    full : bool
        Whether the constant term is added.
    eps : float
        Variances below it count as this large; the derivative is that of the variance also there.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If a variance is negative, the shape of `var` does not fit, or `reduction` is none of the three.
    """
    spread = var if isinstance(var, Tensor) else wrap(np.full_like(array_of(input), var))
    variances, shape = array_of(spread), array_of(input).shape
    if (variances < 0).any():
        raise ValueError("var has negative entry/entries")
    if variances.shape != shape:
        if shape[:-1] == variances.shape:
            spread = spread.unsqueeze(-1)
        elif variances.ndim != len(shape) or sum(n for n, m in zip(shape, variances.shape, strict=True) if n != m) == 0:
            raise ValueError(f"var is of incorrect size: {list(variances.shape)} for input of size {list(shape)}")
    check_reduction(reduction)
    spread = spread + (eps - spread.detach()).clamp(min=0.0)
    losses = 0.5 * (elementwise.log(spread) + (input - target).square() / spread)
    if full:
        losses = losses + 0.5 * math.log(2.0 * math.pi)
    return reduced(losses, reduction)
