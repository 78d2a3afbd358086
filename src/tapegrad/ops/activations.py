"""Nonlinearities made of exponentials and hyperbolic tangents: rules of the table, with the arguments that PyTorch gives them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.arrays.sizes import is_one_number
from tapegrad.ops import elementwise
from tapegrad.ops.arithmetic import plain_number
from tapegrad.ops.namespaces import TENSORS
from tapegrad.ops.piecewise import floating, number_of
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, make

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
    data = floating(input, "elu_cpu")
    factor = number_of(data, alpha)
    return input._elu_(factor, 1.0) if inplace else elementwise._elu(input, factor, 1.0)


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
    data, scale = floating(input, "elu_cpu"), 1.0507009873554804934193349852946
    factors = number_of(data, 1.6732632423543772848170429916717 * scale), number_of(data, scale)
    return input._elu_(*factors) if inplace else elementwise._elu(input, *factors)


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
    data = floating(input, "elu_cpu")
    factors = number_of(data, alpha), number_of(data, 1.0 / alpha)
    return input._celu_(*factors) if inplace else elementwise._celu(input, *factors)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``.

    Examples
    --------
    >>> tg.nn.functional.mish(tg.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """
    floating(input, "mish_cpu")
    return input._mish_() if inplace else elementwise._mish(input)


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
    floating(input, "GeluKernelImpl")
    return elementwise.gelu(input) if approximate == "none" else elementwise._gelu_tanh(input)


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


LEAST_RUN = 16  # elements of a half


def gate_cotangent(g: Tensor, gate: Tensor, x: Tensor, halves: Any, on: Any = TENSORS) -> Tensor:
    """The cotangent of both halves of `glu`'s operand."""
    passed = g * gate
    return on.cat([passed, passed * (1.0 - gate) * on.getitem(x, halves[0])], len(halves[0]) - 1)


def gate_cotangent_by_loop(g: Tensor, gate: Tensor, x: Tensor, halves: Any) -> Tensor | None:
    """The same of float64 arrays in one pass, of large ones whose halves are in long runs; None for others."""
    data, position = array_of(x), len(halves[0]) - 1
    count = math.prod(data.shape[:position])
    if (
        not data.size
        or (data.size > SMALL and data.size < 2 * LEAST_RUN * count)
        or not data.dtype == array_of(gate).dtype == array_of(g).dtype == np.float64
    ):
        return None
    open_by, cotangent = np.ascontiguousarray(array_of(gate)), array_of(g)
    step = 0 if is_one_number(cotangent) else 1
    data, cotangent = np.ascontiguousarray(data), cotangent if step == 0 else np.ascontiguousarray(cotangent)
    result = large_empty(data.shape, data.dtype)
    ARRAY_KERNELS.gate_cotangents(id(result), id(cotangent), id(open_by), id(data), count, open_by.size // count, step)
    return make(result, 0)
