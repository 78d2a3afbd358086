"""Losses that ask scores or distances to differ by a margin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.errors import ShapeError
from tapegrad.nn.functional.reducing import check_reduction, reduced
from tapegrad.nn.functional.similarity import cosine_similarity, pairwise_distance
from tapegrad.ops import elementwise
from tapegrad.ops.exponential_shares import SUM_START, numpys_loops
from tapegrad.ops.flat_places import Places, accumulating, along, increased_at, take_at
from tapegrad.ops.reductions import add_reduce
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, is_recording, make, wrap

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
]


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """``1 - cos`` where the target is 1, and what ``cos`` exceeds `margin` by where it is -1.

    Parameters
    ----------
    input1, input2 : Tensor, shape (n, d) or (d,)
    target : Tensor, shape (n,) or ()
        1 and -1.
    margin : float
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    RuntimeError
        If the ranks do not fit together.
    ValueError
        If `reduction` is none of the three.
    """
    ranks = array_of(input1).ndim, array_of(input2).ndim, array_of(target).ndim
    if ranks[0] != ranks[1] or ranks[0] not in (1, 2) or ranks[2] != ranks[0] - 1:
        raise RuntimeError(
            f"{ranks[2]}D target tensor expects {ranks[2] + 1}D input tensors, but found inputs with sizes "
            f"{list(array_of(input1).shape)} and {list(array_of(input2).shape)}."
        )
    cosine = cosine_similarity(input1, input2, -1)
    apart = (cosine - margin).relu()
    return reduced(_choose(target, 1 - cosine, apart), reduction)


def _choose(target: Tensor, same: Tensor, apart: Tensor) -> Tensor:
    """`same` where the target is 1, `apart` where it is -1, zero elsewhere."""
    signs = array_of(target)
    zero = _zero_of(same)
    return elementwise.where(wrap(signs == 1), same, zero) + elementwise.where(wrap(signs == -1), apart, zero)


def _zero_of(x: Tensor) -> Tensor:
    """Zero in the dtype of a tensor."""
    return wrap(0.0 if array_of(x).dtype == _FLOAT64 else np.zeros((), array_of(x).dtype))


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """A distance where the target is 1, and what it falls short of `margin` by where it is -1.

    Parameters
    ----------
    input : Tensor
    target : Tensor
        1 and -1.
    margin : float
    reduction : {"mean", "sum", "none"}
    """
    signs = array_of(target)
    zero = _zero_of(input)
    losses = elementwise.where(wrap(signs == 1), zero, (margin - input).relu()) + elementwise.where(wrap(signs == -1), zero, input)
    return reduced(losses, reduction)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """What ``target * (input1 - input2)`` falls short of `margin` by; 1 asks `input1` to be the larger, -1 `input2`.

    Raises
    ------
    RuntimeError
        If the ranks differ.
    """
    shapes = [array_of(t).shape for t in (input1, input2, target)]
    if len({len(shape) for shape in shapes}) > 1:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {list(shapes[0])}, input2: {list(shapes[1])}, target: {list(shapes[2])}"
        )
    return reduced((-target * (input1 - input2) + margin).clamp_min(0.0), reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """What the distance to `negative` falls short of the distance to `positive` plus `margin` by.

    Parameters
    ----------
    anchor, positive, negative : Tensor, shape (n, d) or (d,)
    margin : float
        Positive.
    p, eps : float
        Those of `pairwise_distance`.
    swap : bool
        Whether the distance from `positive` to `negative` counts if it is the smaller one.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If `margin` is not positive, or `reduction` is none of the three.
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = elementwise.minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced((margin + near - far).clamp_min(0.0), reduction)


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """``log(1 + exp(-target * input))``, and by default the mean; targets are 1 and -1."""
    return reduced(-elementwise.logsigmoid(target * input), reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What the score of the target class falls short of the others' plus `margin` by, averaged over the classes.

    Parameters
    ----------
    input : Tensor, shape (n, c) or (c,)
    target : Tensor of int64, shape (n,); of a single sample also ()
    p : {1, 2}
        Power of each shortfall.
    margin : float
    weight : Tensor, shape (c,), optional
        Factors of the target classes.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If `p` is neither 1 nor 2, or `reduction` is none of the three.
    RuntimeError
        If the shapes do not fit together, or a target is no class.

    Notes
    -----
    Where a score meets the margin exactly, it has no gradient.
    """
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported, but got {p}")
    shape, wanted = array_of(input).shape, array_of(target).shape
    if len(shape) > 2 or not shape or not shape[-1]:
        raise ShapeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(shape)}")
    scores = np.ascontiguousarray(array_of(input)).reshape(-1, shape[-1])
    samples, count = scores.shape
    if wanted != (samples,) and (wanted or samples != 1):
        raise ShapeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
            f"Expected target size [{samples}], but got {list(wanted)}. Input has shape {list(shape)}."
        )
    if weight is not None and array_of(weight).shape != (count,):
        raise ShapeError(f"inconsistent weight size, expected {count} but got {list(array_of(weight).shape)}")
    classes = array_of(target).reshape(-1, 1)
    if classes.dtype != np.int64:
        raise RuntimeError(f"multi_margin_loss: expected targets of type Long but found {type_name(classes.dtype)}")
    chosen, wrong = along(classes, 1, (samples, count))
    if wrong >= 0:
        raise RuntimeError(
            f"multi_margin_loss: target out of range: the classes are 0 to {count - 1}, got {classes[:, 0].tolist()}"
        )
    check_reduction(reduction)
    loops = numpys_loops() if scores.dtype is _FLOAT64 and 0 < scores.size <= SMALL else 0
    if loops and (weight is None or array_of(weight).dtype is _FLOAT64):
        losses, slopes, parts, result = np.empty(samples), np.empty((samples, count)), np.empty((samples, count)), np.empty(())
        shares = slopes if p == 1 else np.empty((samples, count))
        numbers = np.array([margin, 1.0 / (count * (samples if reduction == "mean" else 1)), SUM_START])
        factors = None if weight is None else np.ascontiguousarray(array_of(weight))
        targets = np.ascontiguousarray(classes)
        words = id(targets), 0 if factors is None else id(factors), id(numbers), loops, p
        ARRAY_KERNELS.margins_of_targets(id(result), id(losses), id(slopes), id(shares), id(parts), id(scores), *words)
        value = result.item() if reduction != "none" else losses if wanted else losses[0].item()
        kept = (make(slopes, 0),) if p == 1 else (make(slopes, 0), make(shares, 0), make(chosen.at, 0))
        return apply(_MULTI_MARGIN[p - 1], (input,), value, (margin, scores.shape), kept)
    token = enter(IGNORING)
    try:
        nothing, share = _NOTHING[scores.dtype], 1.0 / (count * (max(samples, 1) if reduction == "mean" else 1))
        differences = scores + (margin - scores.take(classes if samples == 1 else chosen.at.reshape(classes.shape)))
        _put(differences, chosen.at, nothing)
        short = np.maximum(differences, nothing)
        shares = (differences > nothing) * scores.dtype.type(share)
        if weight is not None:
            shares *= array_of(weight).take(classes)
        slopes = shares if p == 1 else short * shares
        parts = short * slopes
        losses = add_reduce(parts, 1)
        total = add_reduce(losses)
        if p == 2:
            if total != total:
                slopes = np.where(shares == 0.0, 0.0, slopes)  # zero times nan is zero
            slopes += slopes
        _put(slopes, chosen.at, np.negative(add_reduce(slopes, 1)))
        result = total if reduction != "none" else losses if wanted else losses[0]
    finally:
        leave(token)
    kept = (make(slopes, 0),) if p == 1 else (make(slopes, 0), make(shares, 0), make(chosen.at, 0))
    return apply(_MULTI_MARGIN[p - 1], (input,), result, (margin, scores.shape), kept)


_FLOAT64 = np.dtype(np.float64)
_NOTHING: dict[Any, Any] = {np.dtype(dtype): np.zeros(1, dtype) for dtype in (np.float32, np.float64)}


def _put(array: np.ndarray[Any, Any], at: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> None:
    """Write one value to places of an array, or one to each; NumPy takes five times as long for a few."""
    ARRAY_KERNELS.put_elements(id(array), id(values), id(at), 1, int(values.size != 1))


def _multi_margin_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    """Every score above the margin is pulled down, and the target's up by as much."""
    on = ctx.on
    margin, shape = ctx.attrs
    columns = on.reshape(g, (1, 1) if type(g._data) is float else (g._data.size, 1))
    if ctx.inputs[0] is None or not (ctx.inputs[0]._row and is_recording()):  # slopes are constants
        pulls = elementwise._mul0(columns, ctx.extra[0])
        return (pulls if ctx.shapes[0] == shape else on.reshape(pulls, ctx.shapes[0]),)
    chosen = Places(ctx.extra[2]._data, 1, shape[:1])
    x = on.reshape(ctx.inputs[0], shape)
    differences = x + (margin - on.reshape(take_at(x, chosen), (shape[0], 1)))
    pulls = elementwise._mul0(elementwise._mul0(columns, ctx.extra[1]), 2.0 * differences)
    return (on.reshape(increased_at(pulls, chosen, -on.sum(pulls, (1,)), _PULLED_UP), ctx.shapes[0]),)


_MULTI_MARGIN = [Structural("MultiMarginLossBackward0", (uses,), _multi_margin_vjp) for uses in ((), (0,))]
_PULLED_UP = accumulating("ScatterAddBackward0")


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """The binary cross entropy of every class, averaged over the classes; targets are 0 and 1.

    Parameters
    ----------
    input, target : Tensor, shape (n, c) or (c,)
    weight : Tensor, shape (c,), optional
    reduction : {"mean", "sum", "none"}
    """
    losses = -(target * elementwise.logsigmoid(input) + (1 - target) * elementwise.logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    return reduced(losses.sum(-1) / array_of(input).shape[-1], reduction)
