"""Losses of a choice among classes: the negative log likelihood and the cross entropy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.nn.functional.class_targets import Operands, along_classes, chosen_by, operands_of
from tapegrad.nn.functional.reducing import check_reduction
from tapegrad.nn.functional.smoothed_targets import smoothed
from tapegrad.ops import elementwise
from tapegrad.ops.exponential_shares import SUM_START, numpys_loops
from tapegrad.ops.flat_places import Places
from tapegrad.ops.namespaces import PLAIN
from tapegrad.ops.normalisation import log_softmax
from tapegrad.ops.reductions import add_reduce
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, make

__all__ = ["cross_entropy", "nll_loss"]

_FLOAT64 = np.dtype(np.float64)
_STARTS = np.array([SUM_START, SUM_START])


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """The negative of the log probability of each target class, and by default the mean.

    Parameters
    ----------
    input : Tensor, shape (n, c, ...) or (c,)
        Log probabilities, for example from `log_softmax` along dimension 1.
    target : Tensor of int64, shape (n, ...) or ()
        Numbers of the classes.
    weight : Tensor, shape (c,), optional
        Factors of the classes; the mean is then divided by the sum of the factors used.
    ignore_index : int
        Targets that count for nothing.
    reduction : {"mean", "sum", "none"}

    Returns
    -------
    Tensor
        The mean is nan if there is no target.

    Raises
    ------
    IndexError
        If a target is not a class.
    ValueError
        If the batch sizes differ, or `reduction` is none of the three.
    RuntimeError
        If the other sizes differ, or the dtype of `target` is wrong.

    Examples
    --------
    >>> tg.nn.functional.nll_loss(tg.tensor([[-1.0, -2.0], [-3.0, -4.0]]), tg.tensor([1, 0]))
    tensor(2.5000)
    """
    check_reduction(reduction)
    chosen = operands_of(input, target, weight)
    loops = numpys_loops() if reduction != "none" and chosen.wide.dtype is _FLOAT64 and 0 < chosen.numbers.size <= SMALL else 0
    if loops:
        return _summed(input, chosen, ignore_index, reduction == "mean", loops)
    found = chosen_by(chosen, ignore_index)
    losses, factors = found.losses, found.factors
    result: Any = losses
    token = enter(IGNORING)
    try:
        if reduction == "mean":
            total = add_reduce(factors, None)
            result, factors = add_reduce(losses, None) / total, factors / -total
        elif reduction == "sum":
            result = add_reduce(losses, None)
        elif chosen.single:
            result = losses[0]
    finally:
        leave(token)
    data = array_of(input)
    if reduction != "mean":
        np.negative(factors, factors)
    kept = make(found.at, 0), make(factors, 0)
    value = float(result) if type(result) is np.float64 and data.itemsize == 8 else np.asarray(result, data.dtype)
    return apply(_NLL if data.ndim <= 2 else _NLL_2D, (input,), value, None, kept)


def _summed(input: Tensor, chosen: Operands, ignored: int, is_mean: bool, loops: int) -> Tensor:
    """The sum or the mean in one call."""
    shape, wide = chosen.numbers.shape, chosen.wide
    result, losses, factors, at = _STARTS.copy(), np.empty(shape), np.empty(shape), np.empty(chosen.numbers.size, np.int64)
    made = id(result), id(losses), id(factors), id(at)
    wrong = ARRAY_KERNELS.sum_of_classes(*made, *chosen.words(), ignored, loops, 1 if is_mean else 0)
    if wrong >= 0:
        raise IndexError(f"Target {chosen.numbers.flat[wrong]} is out of bounds.")
    value = result[0].item()
    return apply(_NLL if wide.ndim == 2 else _NLL_2D, (input,), value, None, (make(at, 0), make(factors, 0)))


def _nll_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    places, factors = ctx.extra
    if ctx.on is PLAIN and type(g._data) is float:
        values, at = array_of(factors), array_of(places)
        if values.dtype is _FLOAT64 and values.flags.c_contiguous and values.size == at.size:
            result = large_empty(ctx.shapes[0], _FLOAT64)
            ARRAY_KERNELS.spread_to_classes(id(result), id(values), id(at), g._data)
            return (make(result, 0),)
    if type(g._data) is float and array_of(factors).ndim:
        # Stretching is compiled, a number and an array are not: 3 µs for 20.
        g = ctx.on.reshape_copy(g, "ViewBackward0", np.full((1,) * array_of(factors).ndim, g._data))
    shares = elementwise._mul0(g, factors)
    return (ctx.on.add_at(shares, Places(places._data, 1, array_of(shares).shape), ctx.shapes[0]),)


_NLL = Structural("NllLossBackward0", ((),), _nll_vjp)
_NLL_2D = Structural("NllLoss2DBackward0", ((),), _nll_vjp)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The negative log of the softmax probability of each target class, and by default the mean.

    Parameters
    ----------
    input : Tensor, shape (n, c, ...) or (c,)
        One number for each class, unnormalised.
    target : Tensor
        Numbers of the classes, of int64 and shape (n, ...) or (); or their probabilities, of the shape of `input`.
    weight : Tensor, shape (c,), optional
        Factors of the classes; the mean over numbered classes is then divided by the sum of the factors used.
    ignore_index : int
        Numbers that count for nothing.
    reduction : {"mean", "sum", "none"}
    label_smoothing : float
        How much of the target, from 0 to 1, is replaced by the same probability for all classes.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If a target is not a class.
    ValueError
        If the batch sizes differ, or `reduction` is none of the three.
    RuntimeError
        If the other sizes differ, a dtype is wrong, or `label_smoothing` is not between 0 and 1.

    Examples
    --------
    >>> tg.nn.functional.cross_entropy(tg.tensor([[0.0, 0.0]]), tg.tensor([1]))
    tensor(0.6931)
    """
    check_reduction(reduction)
    if not isinstance(target, Tensor):
        raise TypeError(f"cross_entropy_loss(): argument 'target' (position 2) must be Tensor, not {type(target).__name__}")
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    shape = array_of(input).shape
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    along = 0 if len(shape) == 1 else 1
    if shape == array_of(target).shape:
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _with_probabilities(input, target, weight, reduction, label_smoothing, along)
    logs = log_softmax(input, along)
    if label_smoothing == 0.0:
        return nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    return smoothed(logs, target, weight, ignore_index, reduction, label_smoothing, along)


def _with_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float, along: int
) -> Tensor:
    if array_of(target).dtype.kind != "f":
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {type_name(array_of(target).dtype)}"
        )
    shape = array_of(input).shape
    if smoothing > 0.0:
        target = target * (1.0 - smoothing) + smoothing / shape[along]
    losses = log_softmax(input, along) * target
    if weight is not None:
        losses = losses * along_classes(weight, shape, along)
    if reduction == "mean":
        return -losses.sum() / (array_of(input).size / max(shape[along], 1))
    return -losses.sum() if reduction == "sum" else -losses.sum(along)
