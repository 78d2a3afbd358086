"""Affine and bilinear maps with learned coefficients."""

from __future__ import annotations

import math
from typing import Any

from tapegrad.nn import functional, init
from tapegrad.nn.module import Module
from tapegrad.nn.parameter import Parameter
from tapegrad.tensors.factories import empty
from tapegrad.tensors.tensor import Tensor

__all__ = ["Bilinear", "Linear"]


class Linear(Module):
    """``x @ weight.T + bias``.

    Parameters
    ----------
    in_features, out_features : int
        Lengths of the last axis of the argument and of the result.
    bias : bool
        Whether there is a bias.
    dtype : dtype, optional
        Floating dtype of the parameters; the default float if not given.

    Attributes
    ----------
    weight : Parameter, shape (out_features, in_features)
    bias : Parameter, shape (out_features,), or None

    Notes
    -----
    Both start uniform in ``(-b, b)`` with ``b = 1 / sqrt(in_features)``.

    Examples
    --------
    >>> layer = tg.nn.Linear(3, 4)
    >>> layer
    Linear(in_features=3, out_features=4, bias=True)
    >>> layer(tg.ones(2, 3)).shape
    tapegrad.Size([2, 4])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = None) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in_features, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_features, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1.0 / math.sqrt(self.in_features) if self.in_features > 0 else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """The map, over the last axis of ``input`` of shape ``(..., in_features)``."""
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The two lengths, and whether there is a bias."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """``y[k] = x1 @ weight[k] @ x2 + bias[k]``.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
        Lengths of the last axes of the arguments and of the result.
    bias : bool
        Whether there is a bias.
    dtype : dtype, optional
        Floating dtype of the parameters; the default float if not given.

    Attributes
    ----------
    weight : Parameter, shape (out_features, in1_features, in2_features)
    bias : Parameter, shape (out_features,), or None

    Raises
    ------
    ValueError
        If `in1_features` is not positive.

    Notes
    -----
    Both start uniform in ``(-b, b)`` with ``b = 1 / sqrt(in1_features)``.

    Examples
    --------
    >>> tg.nn.Bilinear(3, 4, 5)(tg.ones(2, 3), tg.ones(2, 4)).shape
    tapegrad.Size([2, 5])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, dtype: Any = None) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(empty(out_features, in1_features, in2_features, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_features, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1.0 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """The map, over the last axes."""
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The three lengths, and whether there is a bias."""
        lengths = f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}"
        return f"{lengths}, bias={self.bias is not None}"
