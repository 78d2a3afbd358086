"""Losses of a choice among classes: the negative log likelihood and the cross entropy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave, quiet
from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.errors import ShapeError
from tapegrad.nn.functional.reducing import check_reduction
from tapegrad.ops import elementwise
from tapegrad.ops.exponential_shares import SUM_START, numpys_loops
from tapegrad.ops.flat_places import Places
from tapegrad.ops.namespaces import PLAIN
from tapegrad.ops.normalisation import log_softmax
from tapegrad.ops.reductions import add_reduce
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, is_recording, make, wrap

__all__ = ["check_untracked", "cross_entropy", "nll_loss"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
contiguous: Any = np.ascontiguousarray

_FLOAT64, _INT64 = np.dtype(np.float64), np.dtype(np.int64)
_STARTS = np.array([SUM_START, SUM_START])
_CLASSES = (np.dtype(np.int64), np.dtype(np.uint8))  # dtypes of targets


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
    chosen = _operands(input, target, weight)
    loops = numpys_loops() if reduction != "none" and chosen.wide.dtype is _FLOAT64 and 0 < chosen.numbers.size <= SMALL else 0
    if loops:
        return _summed(input, chosen, ignore_index, reduction == "mean", loops)
    found = _chosen(chosen, ignore_index)
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


def _summed(input: Tensor, chosen: _Operands, ignored: int, is_mean: bool, loops: int) -> Tensor:
    """The sum or the mean in one call."""
    shape, wide = chosen.numbers.shape, chosen.wide
    result, losses, factors, at = _STARTS.copy(), np.empty(shape), np.empty(shape), np.empty(chosen.numbers.size, np.int64)
    made = id(result), id(losses), id(factors), id(at)
    wrong = ARRAY_KERNELS.sum_of_classes(*made, *chosen.words(), ignored, loops, 1 if is_mean else 0)
    if wrong >= 0:
        raise IndexError(f"Target {chosen.numbers.flat[wrong]} is out of bounds.")
    value = result[0].item()
    return apply(_NLL if wide.ndim == 2 else _NLL_2D, (input,), value, None, (make(at, 0), make(factors, 0)))


class _Operands(NamedTuple):
    """Values as compiled loops take them, with a batch; targets, factors of the classes, and whether there was no batch."""

    wide: Array
    numbers: Array
    scale: Array | None
    single: bool

    def words(self) -> tuple[int, int, int, int, int]:
        """What the loops are given."""
        shape = self.wide.shape
        inner = 1 if len(shape) == 2 else math.prod(shape[2:])
        return id(self.wide), id(self.numbers), 0 if self.scale is None else id(self.scale), shape[1], inner


class _Chosen(NamedTuple):
    """What the targets choose: negative values times factors, the factors, and the places of the values; -1 of what is ignored."""

    losses: Array
    factors: Array
    at: Array


def _operands(input: Tensor, target: Tensor, weight: Tensor | None) -> _Operands:
    for what, tensor in (("input", input), ("target", target)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"nll_loss(): argument '{what}' must be Tensor, not {type(tensor).__name__}")
    data, classes = array_of(input), array_of(target)
    if data.ndim == 0:
        raise ValueError(f"Expected 1 or more dimensions (got {data.ndim})")
    single = data.ndim == 1
    if single:
        data, classes = data[None], classes.reshape(1, -1)[0]
    _check_sizes(data.shape, classes.shape, single)
    _check_target(data, classes, weight, "nll_loss_forward")
    wide = (
        data
        if data.itemsize > 2 and data.flags.c_contiguous
        else contiguous(data, np.float32 if data.itemsize == 2 else data.dtype)
    )
    numbers = classes if classes.dtype is _INT64 and classes.flags.c_contiguous else contiguous(classes, np.int64)
    return _Operands(wide, numbers, None if weight is None else contiguous(array_of(weight), wide.dtype), single)


def _chosen(chosen: _Operands, ignored: int) -> _Chosen:
    shape, dtype = chosen.numbers.shape, chosen.wide.dtype
    losses, factors, at = np.empty(shape, dtype), np.empty(shape, dtype), np.empty(chosen.numbers.size, np.int64)
    wrong = ARRAY_KERNELS.choose_classes(id(losses), id(factors), id(at), *chosen.words(), ignored)
    if wrong >= 0:
        raise IndexError(f"Target {chosen.numbers.flat[wrong]} is out of bounds.")
    return _Chosen(losses, factors, at)


def _nll_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    places, factors = ctx.extra
    if ctx.on is PLAIN and type(g._data) is float:
        values, at = array_of(factors), array_of(places)
        if values.dtype is _FLOAT64 and values.flags.c_contiguous and values.size == at.size:
            result = np.empty(ctx.shapes[0])
            ARRAY_KERNELS.spread_to_classes(id(result), id(values), id(at), g._data)
            return (make(result, 0),)
    if type(g._data) is float and array_of(factors).ndim:
        # Stretching is compiled, a number and an array are not: 3 µs for 20.
        g = ctx.on.reshape_copy(g, "ViewBackward0", np.full((1,) * array_of(factors).ndim, g._data))
    shares = elementwise._mul0(g, factors)
    return (ctx.on.add_at(shares, Places(places._data, 1, array_of(shares).shape), ctx.shapes[0]),)


_NLL = Structural("NllLossBackward0", ((),), _nll_vjp)
_NLL_2D = Structural("NllLoss2DBackward0", ((),), _nll_vjp)


def _check_sizes(shape: Shape, target: Shape, single: bool) -> None:
    if target[:1] != shape[:1]:
        if not target or single:
            raise ShapeError(f"size mismatch (got input: {list(shape)}, target: {list(target)})")
        raise ValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({target[0]}).")
    wanted = (shape[0], *shape[2:])
    if target == wanted:
        return
    if len(shape) == 2:
        raise ShapeError(f"0D or 1D target tensor expected, multi-target not supported: got {list(target)}")
    if len(shape) == 4 and len(target) != 3:
        raise ShapeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {len(target)}, for input "
            f"{list(shape)}"
        )
    if len(shape) == 4:
        raise ShapeError(f"size mismatch (got input: {list(shape)} , target: {list(target)}")
    raise ShapeError(f"Expected target size {list(wanted)}, got {list(target)}")


def _check_target(data: Array, classes: Array, weight: Tensor | None, name: str) -> None:
    if classes.dtype not in _CLASSES:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {type_name(classes.dtype)}")
    if data.dtype.kind != "f":
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(data.dtype)}'; convert to a floating point dtype")
    if weight is None:
        return
    check_untracked(name, "weight", weight)
    if array_of(weight).shape != data.shape[1:2]:
        raise ShapeError(
            f"weight tensor should be defined either for all {data.shape[1]} classes or no classes but got weight tensor of "
            f"shape: {list(array_of(weight).shape)}"
        )
    if array_of(weight).dtype != data.dtype:
        raise RuntimeError(f"expected scalar type {type_name(data.dtype)} but found {type_name(array_of(weight).dtype)}")


def check_untracked(name: str, what: str, tensor: Tensor) -> None:
    """Refuse to record an operation that has no derivative for one of its tracked operands."""
    if tensor.requires_grad and is_recording():
        raise RuntimeError(
            f"The function '{name}' is not differentiable with respect to argument '{what}'. This input cannot have requires_grad "
            "True; detach() it."
        )


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
    return _smoothed(logs, target, weight, ignore_index, reduction, label_smoothing, along)


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
        losses = losses * _along(weight, shape, along)
    if reduction == "mean":
        return -losses.sum() / (array_of(input).size / max(shape[along], 1))
    return -losses.sum() if reduction == "sum" else -losses.sum(along)


def _smoothed(
    logs: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, smoothing: float, along: int
) -> Tensor:
    """The loss against the target classes, and in part against equal probabilities of all classes: a weighted sum of `logs`."""
    found = _chosen(_operands(logs, target, weight), ignore_index)
    data = array_of(logs)
    dtype, kept = found.losses.dtype, found.at >= 0
    counts = kept.reshape((*data.shape[:along], 1, *data.shape[along + 1 :]))
    every: Any = -smoothing / data.shape[along]
    if weight is not None:
        every = every * array_of(_along(weight, data.shape, along))
    is_large = data.size > SMALL and weight is None and dtype == data.dtype == np.float64
    empty: Any = large_empty if is_large else np.empty
    factors = empty(data.shape, dtype)
    over = (along,) if reduction == "none" else tuple(range(data.ndim))
    with quiet():
        total = add_reduce(found.factors, None) if reduction == "mean" else 1.0
        own = (1.0 - smoothing) * found.factors.reshape(-1)[kept]
        if is_large and 0.0 < total < np.inf:  # there are few different factors
            factors[...] = np.where(counts, every, 0.0) / total
            factors.reshape(-1)[found.at[kept]] = (every - own) / total
        else:
            factors[...] = np.where(counts, every, 0.0)
            factors.reshape(-1)[found.at[kept]] -= own
            if reduction == "mean":
                factors /= total
        products = np.multiply(data, factors, out=empty(data.shape, dtype)) if is_large else data * factors
        result = add_reduce(products, over).astype(data.dtype)
    if not (is_large and kept.all()):
        np.copyto(factors, 0.0, where=~counts)  # which the mean of nothing has made nan
    return apply(_SMOOTHED, (logs,), result, over, (wrap(factors.astype(data.dtype, copy=False)),))


def _smoothed_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    (factors,) = ctx.extra
    return (elementwise._mul0(ctx.on.restore(g, ctx.attrs, False, ctx.shapes[0]), factors),)


_SMOOTHED = Structural("AddBackward0", ((),), _smoothed_vjp)


def _along(weight: Tensor, shape: Shape, along: int) -> Tensor:
    if array_of(weight).shape != (shape[along],):
        raise ShapeError(
            f"cross_entropy: weight tensor should be defined either for all {shape[along]} classes or no classes but got weight "
            f"tensor of shape: {list(array_of(weight).shape)}"
        )
    return weight.reshape((-1,) + (1,) * (len(shape) - 1 - along))
