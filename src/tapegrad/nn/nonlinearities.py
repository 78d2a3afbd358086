"""Nonlinearities as functions of a network: the rules among them, with the keywords that they have here."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.ops import arithmetic, elementwise, normalisation
from tapegrad.ops.activations import LEAST_RUN, celu, elu, gelu, mish, selu, softsign, tanhshrink
from tapegrad.ops.in_place_nonlinearities import celu_, elu_, hardtanh_, in_place_form, rrelu_, selu_, threshold_
from tapegrad.ops.piecewise import hardshrink, hardsigmoid, hardswish, hardtanh, prelu, relu6, rrelu, softshrink, threshold
from tapegrad.recording.axes import axis
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, is_recording, wrap

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]


def _rule(name: str, input: Tensor, inplace: bool) -> Tensor:
    result: Tensor = getattr(input, f"{name}_")() if inplace else elementwise.FUNCTIONS[name](input)
    return result


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(x, 0)`` of every element.

    Parameters
    ----------
    input : Tensor
    inplace : bool
        Write the result into `input`.

    Examples
    --------
    >>> tg.nn.functional.relu(tg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return _rule("relu", input, inplace)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)`` of every element.

    Parameters
    ----------
    input : Tensor
    inplace : bool
        Write the result into `input`.

    Examples
    --------
    >>> tg.nn.functional.silu(tg.tensor([0.0, 2.0]))
    tensor([0.0000, 1.7616])
    """
    return _rule("silu", input, inplace)


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))`` of every element."""
    return _rule("sigmoid", input, False)


def logsigmoid(input: Tensor) -> Tensor:
    """Logarithm of the sigmoid of every element, without overflow."""
    return _rule("logsigmoid", input, False)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent of every element."""
    return _rule("tanh", input, False)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``negative_slope * x``; the derivative at 0 is the slope.

    Examples
    --------
    >>> tg.nn.functional.leaky_relu(tg.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    if inplace:
        slope = float(arithmetic.plain_number("leaky_relu", "negative_slope", negative_slope))
        return input._leaky_relu_(slope)
    return arithmetic.leaky_relu(input, negative_slope)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``, linear where ``beta * x`` exceeds `threshold`."""
    return arithmetic.softplus(input, beta, threshold)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along a dimension times the sigmoid of the second.

    Raises
    ------
    RuntimeError
        If `input` has no dimensions, or an odd size in that one.

    Examples
    --------
    >>> tg.nn.functional.glu(tg.tensor([3.0, 0.0]))
    tensor([1.5000])
    """
    shape = array_of(input).shape
    if not shape:
        raise RuntimeError("glu does not support 0-dimensional tensors (scalars) because halving size must be even")
    position = axis(dim, len(shape))
    if shape[position] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {position} is size {shape[position]}")
    data, half = array_of(input), shape[position] // 2
    before = (slice(None),) * position
    halves = (*before, slice(None, half)), (*before, slice(half, None))
    former, latter = (data[half] for half in halves)
    if data.size > SMALL and former[(0,) * position].size > LEAST_RUN:  # NumPy begins a loop at each row of a half
        former, latter = np.ascontiguousarray(former), np.ascontiguousarray(latter)
    elif data.dtype == np.float64 and not latter.flags.c_contiguous:
        latter = np.ascontiguousarray(latter)  # of which the operator is compiled
    gate = elementwise.sigmoid(wrap(latter))
    with quiet():
        result = former * array_of(gate)
    return apply(_GLU, (input,), result, halves, (gate,))


def _glu_vjp(g: Tensor, ctx: Context) -> tuple[Tensor]:
    x, halves = ctx.inputs[0], ctx.attrs
    gate = elementwise.sigmoid(ctx.on.getitem(x, halves[1])) if x._row and is_recording() else ctx.extra[0]
    return (ctx.on.gate_cotangent(g, gate, x, halves),)


_GLU = Structural("GluBackward0", ((0,),), _glu_vjp, takes_stretched=True)


def softmax(input: Tensor, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Exponentials normalised to a sum of one along the axis `dim`.

    Parameters
    ----------
    input : Tensor
    dim : int
    dtype : dtype, optional
        Cast to it first.
    """
    return normalisation.softmax(input, dim, dtype)


def log_softmax(input: Tensor, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Logarithm of `softmax`, accurate where that is tiny; the same parameters."""
    return normalisation.log_softmax(input, dim, dtype)


def softmin(input: Tensor, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """`softmax` of the negative; the same parameters.

    Examples
    --------
    >>> tg.nn.functional.softmin(tg.tensor([0.0, 1000.0]), 0)
    tensor([1., 0.])
    """
    return normalisation.softmax(-input, dim, dtype)


relu_, leaky_relu_ = in_place_form(relu), in_place_form(leaky_relu)
