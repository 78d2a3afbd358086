"""Starting values of parameters, written in place and not recorded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.ops import sampling
from tapegrad.tensors import random
from tapegrad.tensors.grad_mode import no_grad
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

Array = np.ndarray[Any, Any]


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity's input should be spread, so that its output keeps its variance.

    Parameters
    ----------
    nonlinearity : str
        ``"linear"``, ``"sigmoid"``, ``"tanh"``, ``"relu"``, ``"leaky_relu"``, ``"selu"``, or the name of a convolution.
    param : float, optional
        Slope of ``"leaky_relu"`` below zero; 0.01 if not given.

    Raises
    ------
    ValueError
        For any other name.

    Examples
    --------
    >>> tg.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity in ("linear", "sigmoid") or nonlinearity.startswith("conv"):
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3.0
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 0.75
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    if param is None:
        param = 0.01
    if isinstance(param, bool) or not isinstance(param, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1.0 + param**2))


def _write(tensor: Tensor, values: Any) -> Tensor:
    with no_grad():
        return tensor.copy_(wrap(np.broadcast_to(np.asarray(values), array_of(tensor).shape).astype(array_of(tensor).dtype)))


def _uniform(shape: tuple[int, ...]) -> Array:
    return array_of(random.rand(*shape, dtype=np.float64))


def _normal(shape: tuple[int, ...]) -> Array:
    return array_of(random.randn(*shape, dtype=np.float64))


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Uniform numbers from `a` to `b`.

    Examples
    --------
    >>> bool((tg.nn.init.uniform_(tg.empty(100), 2.0, 3.0) >= 2.0).all())
    True
    """
    with no_grad():
        return sampling.uniform_(tensor, a, b)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normal numbers of a mean and a standard deviation."""
    with no_grad():
        return sampling.normal_(tensor, mean, std)


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Tensor:
    """Normal numbers of which those outside of the interval from `a` to `b` are drawn again."""
    low, high = (a - mean) / std, (b - mean) / std
    if low >= high:
        raise ValueError(f"trunc_normal_ needs a < b, but got {a} and {b}")
    nearest = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
    narrow = nearest > 0.0 or high - low < 1.0
    values = np.full(array_of(tensor).shape, np.nan)
    while (missing := np.isnan(values)).any():
        count = (int(missing.sum()),)
        if narrow:  # few normal numbers would be inside, so uniform ones are kept as often as their density asks
            drawn = low + (high - low) * _uniform(count)
            kept = _uniform(count) <= np.exp(0.5 * (nearest**2 - drawn**2))
        else:
            drawn = _normal(count)
            kept = (drawn >= low) & (drawn <= high)
        values[missing] = np.where(kept, drawn, np.nan)
    return _write(tensor, values * std + mean)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere."""
    return _write(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """Ones everywhere."""
    return _write(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros everywhere."""
    return _write(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Ones on the diagonal of a matrix, zeros elsewhere."""
    if array_of(tensor).ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return _write(tensor, np.eye(*array_of(tensor).shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution's weight that hands its input on: one in the middle of the window from each channel to its like."""
    shape = array_of(tensor).shape
    if len(shape) not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    values = np.zeros(shape)
    each = shape[0] // groups
    middle = tuple(extent // 2 for extent in shape[2:])
    for channel in range(min(each, shape[1])):
        values[(slice(channel, None, each), channel, *middle)] = 1.0
    return _write(tensor, values)


def _fans(tensor: Tensor) -> tuple[int, int]:
    """Elements that go into, and come out of, one output or input of a layer with this weight."""
    shape = array_of(tensor).shape
    if len(shape) < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Uniform numbers of variance ``2 * gain**2 / (fan_in + fan_out)`` [1]_.

    References
    ----------
    .. [1] X. Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010.
    """
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Normal numbers of variance ``2 * gain**2 / (fan_in + fan_out)``."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))))


def kaiming_uniform_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Uniform numbers of variance ``gain**2 / fan`` [1]_.

    Parameters
    ----------
    tensor : Tensor
        At least two dimensions.
    a : float
        Slope of ``"leaky_relu"`` below zero.
    mode : {"fan_in", "fan_out"}
        Whether values or gradients shall keep their variance.
    nonlinearity : str
        As for `calculate_gain`.

    Raises
    ------
    ValueError
        If the mode or the nonlinearity is unknown, or there are fewer dimensions.

    References
    ----------
    .. [1] K. He, X. Zhang, S. Ren, J. Sun, "Delving deep into rectifiers", ICCV 2015.
    """
    bound = math.sqrt(3.0) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Normal numbers of variance ``gain**2 / fan``; arguments and errors as for `kaiming_uniform_`."""
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity))


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan = _fans(tensor)[mode.lower() == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


def orthogonal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """An orthogonal matrix, or one with orthonormal rows or columns, times `gain`; later dimensions count as columns.

    Raises
    ------
    ValueError
        If there are fewer than two dimensions.

    Examples
    --------
    >>> q = tg.nn.init.orthogonal_(tg.empty(3, 3)).numpy()
    >>> bool(np.allclose(q @ q.T, np.eye(3)))
    True
    """
    shape = array_of(tensor).shape
    if len(shape) < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if not math.prod(shape):
        return tensor
    rows, columns = shape[0], math.prod(shape[1:])
    q, r = np.linalg.qr(_normal((max(rows, columns), min(rows, columns))))
    q = q * np.sign(np.diag(r))  # uniform over all orthogonal matrices
    return _write(tensor, gain * (q if rows >= columns else q.T).reshape(shape))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01) -> Tensor:
    """Normal numbers in a matrix, of which a share in each column is zero."""
    shape = array_of(tensor).shape
    if len(shape) != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    values = _normal(shape) * std
    zeros = math.ceil(sparsity * shape[0])
    order = np.argsort(_uniform(shape), axis=0)[:zeros]
    np.put_along_axis(values, order, 0.0, axis=0)
    return _write(tensor, values)
