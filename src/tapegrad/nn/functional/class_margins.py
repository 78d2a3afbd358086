"""Margins between classes that are given by a list, and between distances of any kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.errors import ShapeError
from tapegrad.nn.functional.reducing import check_reduction, reduced
from tapegrad.nn.functional.similarity import pairwise_distance
from tapegrad.ops import elementwise
from tapegrad.ops.selecting import gather
from tapegrad.ops.shaping import reshape, unsqueeze
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["multilabel_margin_loss", "triplet_margin_with_distance_loss"]


def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """What the scores of target classes fall short of the others' plus 1 by, summed over the pairs and divided by the classes.

    Parameters
    ----------
    input : Tensor, shape (n, c) or (c,)
    target : Tensor of int64, of the same shape
        The classes of each sample, in front; a negative number ends them.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    RuntimeError
        If the shapes do not fit together, or a target is no class.
    ValueError
        If `reduction` is none of the three.

    Examples
    --------
    >>> scores, classes = tg.tensor([[0.1, 0.2, 0.4, 0.8]]), tg.tensor([[3, 0, -1, 1]])
    >>> tg.nn.functional.multilabel_margin_loss(scores, classes)
    tensor(0.8500)
    """
    check_reduction(reduction)
    scores, wanted = array_of(input), array_of(target)
    if not scores.ndim and not wanted.ndim:
        return multilabel_margin_loss(reshape(input, (1,)), reshape(target, (1,)), reduction)
    if scores.ndim not in (1, 2) or not scores.shape[-1]:
        raise ShapeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(scores.shape)}")
    if wanted.shape != scores.shape:
        raise ShapeError(f"inconsistent target size: {list(wanted.shape)} for input of size: {list(scores.shape)}")
    if wanted.dtype != np.int64:
        raise RuntimeError(f"multilabel_margin_loss: expected targets of type Long but found {type_name(wanted.dtype)}")
    count = scores.shape[-1]
    given: Any = np.logical_and.accumulate(wanted >= 0, -1)
    places = given.nonzero()
    taken = wanted[places]
    if taken.size and taken.max() >= count:
        raise RuntimeError(f"multilabel_margin_loss: target out of range: the classes are 0 to {count - 1}, got {wanted.tolist()}")
    classes = np.where(given, wanted, 0)
    is_target = np.zeros(scores.shape, bool)
    is_target[(*places[:-1], taken)] = True
    pairs = (given[..., None] & ~is_target[..., None, :]).astype(scores.dtype)
    short = (1.0 - unsqueeze(gather(input, -1, wrap(classes)), -1) + unsqueeze(input, -2)).relu()
    return reduced(elementwise._mul0(short, wrap(pairs)).sum((-1, -2)) / count, reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """What the distance to `negative` falls short of the distance to `positive` plus `margin` by, for any distance.

    Parameters
    ----------
    anchor, positive, negative : Tensor
        Of one number of dimensions.
    distance_function : callable, optional
        Gives the distances of two tensors; `pairwise_distance` if not given.
    margin : float
        Positive.
    swap : bool
        Whether the distance from `positive` to `negative` counts if it is the smaller one.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    RuntimeError
        If the ranks differ.
    ValueError
        If `margin` is not positive, or `reduction` is none of the three.

    Examples
    --------
    >>> x, y, z = tg.tensor([[0.0]]), tg.tensor([[1.0]]), tg.tensor([[1.5]])
    >>> tg.nn.functional.triplet_margin_with_distance_loss(x, y, z, distance_function=lambda a, b: (a - b).abs().sum(-1))
    tensor(0.5000)
    """
    check_reduction(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    ranks = [array_of(t).ndim for t in (anchor, positive, negative)]
    if len(set(ranks)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor "
            f"{ranks[0]}D, positive {ranks[1]}D, and negative {ranks[2]}D inputs"
        )
    distance: Any = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = elementwise.minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0.0), reduction)
