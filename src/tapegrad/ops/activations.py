"""Nonlinearities made of exponentials and hyperbolic tangents that are no rules.

They cost nothing until they are called, where a rule is compiled for everyone.
"""

from __future__ import annotations

import math

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.ops import elementwise
from tapegrad.ops.arithmetic import plain_number
from tapegrad.ops.in_place import written_by
from tapegrad.ops.piecewise import curve, floating
from tapegrad.recording.structural import Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["celu", "elu", "gelu", "mish", "selu", "softsign", "tanhshrink"]


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``alpha * (exp(x) - 1)``; the derivative at 0 is `alpha`.

    Raises
    ------
    NotImplementedError
        If the dtype is not a floating point one.

    Examples
    --------
    >>> tg.nn.functional.elu(tg.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return written_by(elu, input, alpha) if inplace else _exponential(_ELU, input, alpha, 1.0, 1.0)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` with the two factors for which activations keep mean 0 and variance 1 [1]_.

    References
    ----------
    .. [1] G. Klambauer et al., "Self-Normalizing Neural Networks", NeurIPS 2017.

    Examples
    --------
    >>> tg.selu(tg.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    if inplace:
        return written_by(selu, input)
    return _exponential(_ELU, input, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``alpha * (exp(x / alpha) - 1)``, which has no kink.

    Raises
    ------
    RuntimeError
        If `alpha` is zero.

    Examples
    --------
    >>> tg.celu(tg.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.4323,  2.0000])
    """
    alpha = plain_number("celu", "alpha", alpha)
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return written_by(celu, input, alpha) if inplace else _exponential(_CELU, input, alpha, 1.0, 1.0 / alpha)


def _exponential(op: Structural, x: Tensor, alpha: float, scale: float, rate: float) -> Tensor:
    """``scale * x`` where positive, else ``scale * alpha * (exp(rate * x) - 1)``."""
    data = floating(x, "elu_cpu")
    with quiet():
        low = np.expm1(np.minimum(data, 0) * data.dtype.type(rate)) * data.dtype.type(alpha * scale)
        result = np.where(data <= 0, low, data * data.dtype.type(scale))
    return apply(op, (x,), result, (alpha * scale * rate, scale, rate))


def _exponential_slope(x: Tensor, steepness: float, scale: float, rate: float) -> Tensor:
    below = wrap(array_of(x) <= 0)
    return elementwise.where(below, elementwise.exp(elementwise.where(below, x, 0.0) * rate) * steepness, scale)


_ELU = curve("EluBackward0", _exponential_slope)
_CELU = curve("CeluBackward0", _exponential_slope)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``.

    Examples
    --------
    >>> tg.nn.functional.mish(tg.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """
    if inplace:
        return written_by(mish, input)
    data = floating(input, "mish_cpu")
    with quiet():
        return apply(_MISH, (input,), data * np.tanh(np.logaddexp(data, 0)).astype(data.dtype, copy=False), ())


def _mish_slope(x: Tensor) -> Tensor:
    t = elementwise.tanh(elementwise.logaddexp(x, 0.0))
    return t + elementwise._mul0(x * elementwise.sigmoid(x), 1.0 - t * t)


_MISH = curve("MishBackward0", _mish_slope)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """``x`` times the probability that a standard normal variable is smaller.

    Parameters
    ----------
    input : Tensor
    approximate : {"none", "tanh"}
        ``"tanh"``: that probability from a hyperbolic tangent instead of the error function.

    Raises
    ------
    RuntimeError
        For another `approximate`.

    Examples
    --------
    >>> tg.nn.functional.gelu(tg.tensor([-1.0, 2.0]), approximate="tanh")
    tensor([-0.1588,  1.9546])
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"approximate argument must be either none or tanh., got {approximate!r}")
    data = floating(input, "GeluKernelImpl")
    if approximate == "none":
        return elementwise.gelu(input)
    with quiet():
        inner = data.dtype.type(_GELU_SCALE) * (data + data.dtype.type(_GELU_CUBIC) * data * data * data)
        return apply(_GELU, (input,), (data * (1 + np.tanh(inner))) / 2, ())


_GELU_SCALE, _GELU_CUBIC = math.sqrt(2.0 / math.pi), 0.044715


def _gelu_slope(x: Tensor) -> Tensor:
    squares = x * x
    t = elementwise.tanh(_GELU_SCALE * (x + _GELU_CUBIC * squares * x))
    inner = _GELU_SCALE * (1.0 + (3.0 * _GELU_CUBIC) * squares)
    return 0.5 * (1.0 + t) + elementwise._mul0(0.5 * x * (1.0 - t * t), inner)


_GELU = curve("GeluBackward0", _gelu_slope)


def softsign(input: Tensor) -> Tensor:
    """``x / (1 + abs(x))``.

    Examples
    --------
    >>> tg.nn.functional.softsign(tg.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return input / (elementwise.abs(input) + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``.

    Examples
    --------
    >>> tg.nn.functional.tanhshrink(tg.tensor([-1.0, 0.0]))
    tensor([-0.2384,  0.0000])
    """
    return input - elementwise.tanh(input)
