"""What becomes of the losses of all elements: their mean, their sum, or nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.exponential_shares import total_of_few
from tapegrad.ops.reductions import add_reduce
from tapegrad.tensors.tensor import Tensor

__all__ = ["check_reduction", "reduced", "reduced_values"]


def check_reduction(reduction: str) -> None:
    """Refuse a name that is none of the three."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction; use 'mean', 'sum' or 'none'")


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """The mean or sum of all losses, or the losses."""
    check_reduction(reduction)
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()


def reduced_values(losses: np.ndarray[Any, Any], reduction: str) -> tuple[Any, float]:
    """`reduced` of an array, and the derivative of the result with respect to each loss."""
    check_reduction(reduction)
    if reduction == "none":
        return losses, 1.0
    total: Any
    total = total_of_few(losses)
    if total is not None:
        return (total, 1.0) if reduction == "sum" else (total / losses.size, 1.0 / losses.size)
    total = add_reduce(losses, None)
    if reduction == "sum":
        return total, 1.0
    return total / losses.dtype.type(losses.size), 1.0 / losses.size if losses.size else float("nan")
