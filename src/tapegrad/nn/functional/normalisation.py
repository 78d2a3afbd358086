"""Normalising layers: which elements share a mean and a variance, and where running values are kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.errors import ShapeError
from tapegrad.nn.functional.fixed_pooling import avg_pool1d
from tapegrad.nn.functional.standardising import Layout, Moments, fixed_moments, layout_of, moments, operation, scaled, standardised
from tapegrad.ops.joining import cat
from tapegrad.ops.reductions import mean
from tapegrad.ops.transposing import transpose
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.grad_mode import no_grad
from tapegrad.tensors.tensor import Tensor, array_of, make, wrap

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]

Array = np.ndarray[Any, Any]

_LAYER, _ = operation("NativeLayerNormBackward0")
_BATCH, _BATCH_FIXED = operation("NativeBatchNormBackward0")
_GROUP, _ = operation("NativeGroupNormBackward0")
_INSTANCE, _INSTANCE_FIXED = operation("ViewBackward0")


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Mean zero and variance one over the last dimensions, then times `weight` plus `bias`.

    Parameters
    ----------
    input : Tensor, shape ``(..., *normalized_shape)``
    normalized_shape : sequence of int
        Sizes of the dimensions over which the mean and the (uncorrected) variance are taken.
    weight, bias : Tensor, shape normalized_shape, optional
    eps : float
        Added to the variance.

    Returns
    -------
    Tensor, of the shape of `input`

    Raises
    ------
    RuntimeError
        If the shapes do not fit together or the dtypes differ.

    Examples
    --------
    >>> tg.nn.functional.layer_norm(tg.tensor([[1.0, 3.0], [5.0, 5.0]]), (2,), eps=0.0)
    tensor([[-1.,  1.],
            [nan, nan]])
    """
    inner = _normalized_shape("layer_norm", normalized_shape)
    shape = array_of(input).shape
    _check_normalized(input, inner)
    for what, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and array_of(tensor).shape != inner:
            raise ShapeError(
                f"Expected {what} to be of same shape as normalized_shape, but got {what} of shape "
                f"{list(array_of(tensor).shape)} and normalized_shape = {list(inner)}"
            )
    _check_dtypes("layer_norm", input, weight, bias)
    layout = layout_of(1, math.prod(shape[: len(shape) - len(inner)]), 1, math.prod(inner), 1, eps)
    return standardised(_LAYER, input, weight, bias, layout)


def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Elements divided by the root of their mean square over the last dimensions, then times `weight`.

    Parameters
    ----------
    input : Tensor, shape ``(..., *normalized_shape)``
    normalized_shape : sequence of int
    weight : Tensor, shape normalized_shape, optional
    eps : float, optional
        Added to the mean square; the spacing of the dtype at one if not given.

    Raises
    ------
    RuntimeError
        If the shapes do not fit together.
    """
    inner = _normalized_shape("rms_norm", normalized_shape)
    _check_normalized(input, inner)
    if weight is not None and array_of(weight).shape != inner:
        raise ShapeError(
            f"Expected weight to be of same shape as normalized_shape, but got weight of shape {list(array_of(weight).shape)} "
            f"and normalized_shape = {list(inner)}"
        )
    _check_dtypes("rms_norm", input)
    data = array_of(input)
    over = tuple(range(data.ndim - len(inner), data.ndim))
    small = float(np.finfo(data.dtype).eps) if eps is None else eps
    result = input * (mean(input.square(), over, keepdim=True) + small).rsqrt()
    return result if weight is None else result * weight


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Mean zero and variance one for each channel over the batch, then times `weight` plus `bias`.

    Parameters
    ----------
    input : Tensor, shape (n, c, ...)
    running_mean, running_var : Tensor, shape (c,), or None
        In training they move towards the batch's mean and corrected variance; otherwise they take the batch's place.
    weight, bias : Tensor, shape (c,), optional
    training : bool
    momentum : float
        How far the running values move.
    eps : float
        Added to the variance.

    Returns
    -------
    Tensor, of the shape of `input`

    Raises
    ------
    ValueError
        If there is one value only for each channel in training.
    RuntimeError
        If the shapes do not fit together, or running values are missing that are needed.
    """
    shape = array_of(input).shape
    if training:
        _check_several("Expected more than 1 value per channel when training", shape, shape[:1] + shape[2:])
    channels = shape[1] if len(shape) > 1 else 0
    _check_channels(channels, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    for what, tensor in (("running_mean", running_mean), ("running_var", running_var)):
        if tensor is None and not training:
            raise RuntimeError(f"{what} must be defined in evaluation mode")
    _check_dtypes("batch_norm", input)
    layout = layout_of(shape[0], 1, channels, 1, math.prod(shape[2:]), eps)
    if running_mean is not None and running_var is not None and not training:
        return scaled(_BATCH_FIXED, input, _running(running_mean, running_var, layout), weight, bias, layout)
    found = moments(input, layout)
    result = standardised(_BATCH, input, weight, bias, layout, found)
    _move(running_mean, running_var, momentum, found, layout)
    return result


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Mean zero and variance one for each channel of each element of the batch, then times `weight` plus `bias`.

    Parameters
    ----------
    input : Tensor, shape (n, c, ...)
    running_mean, running_var : Tensor, shape (c,), or None
        Moved towards the mean over the batch; they take the input's place with ``use_input_stats=False``.
    weight, bias : Tensor, shape (c,), optional
    use_input_stats : bool
    momentum, eps : float
        As for `batch_norm`.

    Raises
    ------
    ValueError
        If there is one spatial element only.
    RuntimeError
        If the shapes do not fit together, or running values are missing that are needed.
    """
    shape = array_of(input).shape
    if use_input_stats:
        _check_several("Expected more than 1 spatial element when training", shape, shape[2:])
    elif running_mean is None or running_var is None:
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    channels = shape[1] if len(shape) > 1 else 0
    _check_channels(channels, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    _check_dtypes("instance_norm", input)
    layout = layout_of(1, shape[0], channels, 1, math.prod(shape[2:]), eps)
    if not use_input_stats and running_mean is not None and running_var is not None:
        return scaled(_INSTANCE_FIXED, input, _running(running_mean, running_var, layout), weight, bias, layout)
    found = moments(input, layout)
    result = standardised(_INSTANCE, input, weight, bias, layout, found)
    _move(running_mean, running_var, momentum, found, layout)
    return result


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Mean zero and variance one for each group of channels of each element of the batch, then times `weight` plus `bias`.

    Parameters
    ----------
    input : Tensor, shape (n, c, ...)
    num_groups : int
        It divides ``c``.
    weight, bias : Tensor, shape (c,), optional
    eps : float
        Added to the variance.

    Raises
    ------
    ValueError
        If there is one value only in each group.
    RuntimeError
        If the shapes do not fit together.
    """
    shape = array_of(input).shape
    if len(shape) < 2:
        raise ShapeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    if num_groups <= 0 or shape[1] % num_groups:
        raise ShapeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(shape)} and num_groups={num_groups}"
        )
    _check_several("Expected more than 1 value per channel when training", shape, (shape[0] * shape[1] // num_groups, *shape[2:]))
    for what, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and array_of(tensor).shape != shape[1:2]:
            raise ShapeError(
                f"Expected {what} to be a vector of size equal to the number of channels in input, but got {what} of shape "
                f"{list(array_of(tensor).shape)} and input of shape {list(shape)}"
            )
    _check_dtypes("group_norm", input, weight, bias)
    layout = layout_of(1, shape[0], num_groups, shape[1] // num_groups, math.prod(shape[2:]), eps)
    return standardised(_GROUP, input, weight, bias, layout)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Elements divided by a power of the mean square over neighbouring channels.

    Parameters
    ----------
    input : Tensor, shape (n, c, ...), at least three dimensions
    size : int
        Number of neighbouring channels.
    alpha, beta, k : float
        The divisor is ``(k + alpha * mean_square) ** beta``.

    Raises
    ------
    ValueError
        If there are fewer dimensions.
    """
    shape = array_of(input).shape
    if len(shape) < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {len(shape)} dimensions)")
    if math.prod(shape) == 0:
        return input
    along = transpose(input.square().reshape(shape[0], shape[1], -1), 1, 2)
    places = shape[0], math.prod(shape[2:])
    around = _zeros_like(along, (*places, size // 2)), _zeros_like(along, (*places, (size - 1) // 2))
    means = transpose(avg_pool1d(cat([around[0], along, around[1]], 2), size, 1), 1, 2).reshape(shape)
    return input / (means * alpha + k) ** beta


def _zeros_like(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Zeros in a tensor's dtype."""
    zeros: Tensor = x.new_zeros(*shape) if TAPE.tracers else make(np.zeros(shape, array_of(x).dtype), 0)
    return zeros


def _running(mean: Tensor, variance: Tensor, layout: Layout) -> Moments:
    """Running values of the channels as moments of all groups."""
    repeats, found = layout.inner[1], []
    for t in (mean, variance):
        values = np.array(array_of(t).reshape(-1), np.float64)
        found.append(values if repeats == 1 else np.tile(values, repeats))
    return fixed_moments(found[0], found[1], layout)


def _move(running_mean: Tensor | None, running_var: Tensor | None, momentum: float, found: Moments, layout: Layout) -> None:
    """Move running values towards those of the batch, if it has any."""
    if (running_mean is None and running_var is None) or not layout.size():
        return
    with quiet(), no_grad():
        size = layout.size()
        for running, values in ((running_mean, found.means), (running_var, found.variances * (size / max(size - 1, 1)))):
            if running is not None:
                new = values.reshape(layout.inner[1:3]).mean(0)
                running.copy_(wrap(((1.0 - momentum) * array_of(running) + momentum * new).astype(array_of(running).dtype)))


def _normalized_shape(name: str, given: Any) -> tuple[int, ...]:
    if not isinstance(given, (tuple, list)):
        raise TypeError(f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not {type(given).__name__}")
    if not given:
        raise ShapeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    return tuple(given)


def _check_normalized(input: Tensor, inner: tuple[int, ...]) -> None:
    shape = array_of(input).shape
    if shape[max(len(shape) - len(inner), 0) :] != inner:
        raise ShapeError(
            f"Given normalized_shape={list(inner)}, expected input with shape [*, {', '.join(map(str, inner))}], but got input "
            f"of size{list(shape)}"
        )


def _check_several(message: str, shape: tuple[int, ...], grouped: tuple[int, ...]) -> None:
    if math.prod(grouped) == 1:
        raise ValueError(f"{message}, got input size {list(shape)}")


def _check_channels(channels: int, **tensors: Tensor | None) -> None:
    for what, tensor in tensors.items():
        if tensor is not None and array_of(tensor).shape != (channels,):
            raise ShapeError(f"{what} should contain {channels} elements not {array_of(tensor).size}")


def _check_dtypes(name: str, input: Tensor, *others: Tensor | None) -> None:
    dtype = array_of(input).dtype
    if dtype.kind != "f":
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(dtype)}'; convert to a floating point dtype")
    for other in others:
        if other is not None and array_of(other).dtype != dtype:
            raise RuntimeError(f"{name}: mixed dtype (CPU): all inputs must share same datatype, that of input is {dtype}")
