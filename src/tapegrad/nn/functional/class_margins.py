"""Margins between classes that are given by a list, and between distances of any kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import get_default_dtype, type_name
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.errors import ShapeError
from tapegrad.nn.functional.reducing import check_reduction, reduced, reduced_values
from tapegrad.nn.functional.similarity import pairwise_distance
from tapegrad.ops import elementwise
from tapegrad.ops.reductions import add_reduce
from tapegrad.ops.shaping import reshape
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, make

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
    count, data, classes = scores.shape[-1], np.ascontiguousarray(scores), np.ascontiguousarray(wanted)
    if data.dtype.kind != "f":
        data = data.astype(get_default_dtype())
    wide = np.ascontiguousarray(data, np.float32 if data.dtype.itemsize == 2 else data.dtype)
    samples = wide.size // count
    terms, slopes = np.empty((*wide.shape, count), wide.dtype), np.empty((samples, count), wide.dtype)
    is_wanted = np.empty(count, np.uint8)
    unit = 1.0 / count / (max(samples, 1) if reduction == "mean" else 1)
    operands = id(terms), id(slopes), id(wide), id(classes), id(is_wanted)
    if ARRAY_KERNELS.margins_of_classes(*operands, count, unit):
        raise RuntimeError(f"multilabel_margin_loss: target out of range: the classes are 0 to {count - 1}, got {wanted.tolist()}")
    with quiet():
        losses = add_reduce(terms, (-2, -1)) / wide.dtype.type(count)
        result, _ = reduced_values(losses, reduction)
    return apply(_MULTILABEL_MARGIN, (input,), np.asarray(result, data.dtype), None, (make(slopes, 0),))


def _multilabel_margin_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    """A loss is a sum of differences where these are above zero: its slopes are constants."""
    (slopes,) = ctx.extra
    columns = ctx.on.reshape(g, (1, 1) if type(g._data) is float else (g._data.size, 1))
    return (ctx.on.reshape(elementwise._mul0(columns, slopes), ctx.shapes[0]),)


_MULTILABEL_MARGIN = Structural("MultilabelMarginLossBackward0", ((),), _multilabel_margin_vjp)


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
