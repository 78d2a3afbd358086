"""Nonlinearities made of straight lines (and one of a parabola) between kinks.

Rules of the table, with the arguments that PyTorch gives them. At a kink the derivative is the one of the side that the value is
taken from.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.dtypes import get_default_dtype, type_name
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.ops import elementwise
from tapegrad.ops.arithmetic import plain_number
from tapegrad.ops.shaping import reshape
from tapegrad.recording.casting import cast
from tapegrad.tensors.random import rand_like
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = [
    "angle", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "prelu", "relu6", "rrelu", "softshrink", "threshold",
]  # fmt: skip

Array = np.ndarray[Any, Any]


def floating(x: Tensor, name: str) -> Array:
    """The data of an operand that must be of a floating point dtype."""
    if type(x) is Tensor and type(x._data) is np.ndarray and x._data.dtype is dtypes.float64:
        return x._data
    data = array_of(x)
    if data.dtype.kind != "f":
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(data.dtype)}'; convert the tensor to a float dtype")
    return data


def number_of(data: Array, value: float) -> int | float:
    """A number as one of an array's dtype: it is compared with elements, and rounded as they are."""
    if data.dtype is dtypes.float64 and type(value) in (float, int):
        return float(value)
    with quiet():
        number: int | float = data.dtype.type(value).item()
    return number


def angle(input: Tensor) -> Tensor:
    """The angle of a number in the complex plane, in radians: pi where it is negative, else 0; the derivative is 0.

    Examples
    --------
    >>> tg.angle(tg.tensor([-3.0, 0.0, 2.0]))
    tensor([3.1416, 0.0000, 0.0000])
    """
    floats = input if array_of(input).dtype.kind == "f" else cast(input, get_default_dtype())
    return elementwise._angle(floats)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """The identity between two bounds, constant outside; the derivative at the bounds is 0.

    Parameters
    ----------
    input : Tensor
    min_val, max_val : number
        The bounds.
    inplace : bool
        Write the result into `input`.

    Raises
    ------
    ValueError
        If the bounds cross.

    Examples
    --------
    >>> tg.nn.functional.hardtanh(tg.tensor([-3.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val, got {min_val} and {max_val}")
    data = array_of(input)
    bounds = number_of(data, min_val), number_of(data, max_val)
    return input._hardtanh_(*bounds) if inplace else elementwise._hardtanh(input, *bounds)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``x`` limited to the interval from 0 to 6; the derivative at its ends is 0.

    Examples
    --------
    >>> tg.nn.functional.relu6(tg.tensor([-3.0, 0.5, 8.0]))
    tensor([0.0000, 0.5000, 6.0000])
    """
    return hardtanh(input, 0, 6, inplace)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``x`` where it exceeds a threshold, else `value`.

    Examples
    --------
    >>> tg.threshold(tg.tensor([0.5, 2.0]), 1.0, -1.0)
    tensor([-1.,  2.])
    """
    limit, value = plain_number("threshold", "threshold", threshold), plain_number("threshold", "value", value)
    data = array_of(input)
    numbers = number_of(data, limit), number_of(data, value)
    return input._threshold_(*numbers) if inplace else elementwise._threshold(input, *numbers)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``x`` where it is further than `lambd` from 0, else 0.

    Raises
    ------
    NotImplementedError
        If the dtype is not a floating point one.

    Examples
    --------
    >>> tg.hardshrink(tg.tensor([-2.0, 0.3, 1.0]))
    tensor([-2.,  0.,  1.])
    """
    lambd = plain_number("hardshrink", "lambd", lambd)
    data = floating(input, "hardshrink_cpu")
    return elementwise._hardshrink(input, number_of(data, lambd))


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``x`` moved towards 0 by `lambd`, and 0 where it is no further away than that.

    Raises
    ------
    RuntimeError
        If `lambd` is negative.
    NotImplementedError
        If the dtype is not a floating point one.

    Examples
    --------
    >>> tg.nn.functional.softshrink(tg.tensor([-2.0, 0.3, 1.0]))
    tensor([-1.5000,  0.0000,  0.5000])
    """
    data = floating(input, "softshrink_check")
    if not lambd >= 0:
        raise RuntimeError(f"lambda must be in range [0, {np.finfo(data.dtype).max:g}], but found {lambd}")
    return elementwise._softshrink(input, number_of(data, lambd))


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """A straight line from 0 at -3 to 1 at 3, constant outside; the derivative at the ends is 0.

    Examples
    --------
    >>> tg.nn.functional.hardsigmoid(tg.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """
    floating(input, "hardsigmoid_cpu")
    return input._hardsigmoid_() if inplace else elementwise._hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * hardsigmoid(x)``; the derivative is 0 at -3 and 1 at 3.

    Examples
    --------
    >>> tg.nn.functional.hardswish(tg.tensor([1.0, 4.0]))
    tensor([0.6667, 4.0000])
    """
    floating(input, "hardswish_cpu")
    return input._hardswish_() if inplace else elementwise._hardswish(input)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``x`` where positive, else ``weight * x``; the derivative at 0 is the weight.

    Parameters
    ----------
    input : Tensor
    weight : Tensor, of one element or of shape (c,)
        One for all elements, or one for each index of dimension 1.

    Raises
    ------
    RuntimeError
        If there are neither one nor ``c`` weights, or the dtypes differ.

    Examples
    --------
    >>> tg.prelu(tg.tensor([[-1.0, -1.0]]), tg.tensor([0.5, 0.25]))
    tensor([[-0.5000, -0.2500]])
    """
    if not isinstance(weight, Tensor):
        raise TypeError(f"prelu(): argument 'weight' (position 2) must be Tensor, not {type(weight).__name__}")
    data, weights = array_of(input), array_of(weight)
    if data.dtype != weights.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {type_name(data.dtype)} and {type_name(weights.dtype)}")
    channels = data.shape[1] if data.ndim > 1 else 1
    if weights.size not in (1, channels) or weights.ndim > 1:
        raise RuntimeError(
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
            f"{weights.size} and channel size = {channels}."
        )
    if weights.ndim:
        weight = reshape(weight, () if data.ndim == 0 else (-1,) if data.ndim == 1 else (1, -1) + (1,) * (data.ndim - 2))
    return elementwise._leaky_relu(input, weight)


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``x`` times a slope: the middle of the two, or random ones between them in training.

    Parameters
    ----------
    input : Tensor
    lower, upper : number
        The least and the greatest slope.
    training : bool
        Draw a slope for every element.
    inplace : bool
        Write the result into `input`.

    Raises
    ------
    RuntimeError
        If `lower` is greater than `upper`.

    Examples
    --------
    >>> tg.rrelu(tg.tensor([-24.0, 2.0]))
    tensor([-5.5000,  2.0000])
    """
    lower, upper = plain_number("rrelu", "lower", lower), plain_number("rrelu", "upper", upper)
    if lower > upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound, got {lower} and {upper}")
    data = floating(input, "rrelu_with_noise_out_cpu" if training else "leaky_relu_cpu")
    slopes: Tensor | float
    if training:
        slopes = wrap((array_of(rand_like(input.detach())) * (upper - lower) + lower).astype(data.dtype, copy=False))
    else:
        slopes = number_of(data, 0.5 * (lower + upper))
    return input._rrelu_(slopes) if inplace else elementwise._rrelu(input, slopes)
