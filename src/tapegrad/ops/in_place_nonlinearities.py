"""Nonlinearities that write into what they are given, under the names that PyTorch has for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.ops.activations import celu, elu, selu
from tapegrad.ops.piecewise import hardtanh, rrelu, threshold
from tapegrad.tensors.tensor import Tensor

__all__ = ["celu_", "elu_", "hardtanh_", "in_place_form", "rrelu_", "selu_", "threshold_"]


def in_place_form(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function that writes into its operand, of one that has the argument `inplace`."""
    name = f"{function.__name__}_"

    def write(input: Tensor, *args: Any, **options: Any) -> Tensor:
        return function(input, *args, inplace=True, **options)

    write.__name__ = write.__qualname__ = name
    write.__doc__ = f"In-place form of `tapegrad.nn.functional.{function.__name__}`: writes into `input` and returns it."
    return write


celu_, elu_, hardtanh_ = in_place_form(celu), in_place_form(elu), in_place_form(hardtanh)
rrelu_, selu_, threshold_ = in_place_form(rrelu), in_place_form(selu), in_place_form(threshold)
