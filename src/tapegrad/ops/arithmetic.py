"""Named forms of rules that take keywords: ``add(x, y, alpha=2)``, ``div(x, y, rounding_mode="floor")``, ``softplus(x, beta)``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.ops.elementwise import FUNCTIONS
from tapegrad.ops.searching import nonzero
from tapegrad.ops.undifferentiable import floored_quotient
from tapegrad.recording.casting import cast
from tapegrad.recording.structural import Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, array_of, as_operand, make, wrap
from tapegrad.tensors.tracers import makes_constants_of_shapes

__all__ = [
    "add",
    "clamp",
    "clip",
    "div",
    "float_power",
    "leaky_relu",
    "logit",
    "round",
    "rsub",
    "softplus",
    "sub",
    "where",
]

_plain = FUNCTIONS


def scaled(y: Any, alpha: Any, x: Any) -> Any:
    """``alpha * y``, to be added to `x`, for a factor that must be a number: a tracked one would lose its gradient where it is 1.

    Raises
    ------
    TypeError
        If `alpha` is not a number or an untracked tensor without dimensions.
    RuntimeError
        If it is a float, and the sum has no place for one.
    """
    factor = plain_number("add", "alpha", alpha)
    if factor == 1:
        return y
    dtype = dtypes.result_type(x, y)
    if dtype.kind != "f" and isinstance(factor, float):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(y, int | float):
        return y * factor
    return _plain["mul"](as_operand(y), bool(factor) if dtype.kind == "b" else factor)


def add(x: Any, other: Any, *, alpha: float = 1, out: Tensor | None = None) -> Tensor:
    """Sum ``x + alpha * other``.

    Parameters
    ----------
    x, other : Tensor or number
        Broadcast.
    alpha : number
        Factor of `other`.
    out : Tensor, optional
        Receives the result; nothing may be tracked then.

    Examples
    --------
    >>> tg.add(tg.tensor([1.0, 2.0]), 1, alpha=10)
    tensor([11., 12.])
    """
    return _plain["add"](x, scaled(other, alpha, x), out=out)


def sub(x: Any, other: Any, *, alpha: float = 1, out: Tensor | None = None) -> Tensor:
    """Difference ``x - alpha * other``.

    Examples
    --------
    >>> tg.sub(tg.tensor([1.0, 2.0]), 1)
    tensor([0., 1.])
    """
    return _plain["sub"](x, scaled(other, alpha, x), out=out)


def rsub(x: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """Difference ``other - alpha * x``."""
    return _plain["sub"](other, scaled(x, alpha, other))


def div(x: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Quotient ``x / other``, optionally rounded.

    Parameters
    ----------
    rounding_mode : {None, "trunc", "floor"}
        A rounded quotient has derivative 0.

    Raises
    ------
    RuntimeError
        For another rounding mode, and for division of integers by zero if the quotient is rounded.

    Examples
    --------
    >>> tg.div(tg.tensor([7.0, -7.0]), 2.0, rounding_mode="floor")
    tensor([ 3., -4.])
    """
    if rounding_mode is None:
        return _plain["div"](x, other)
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    operands = as_operand(x), as_operand(other)
    if rounding_mode == "floor":
        return apply(_ROUNDED_DIV, operands, floored_quotient(x, other))
    dtype = dtypes.result_type(x, other)
    if dtype.kind == "f":
        rounded = _plain["trunc"](_plain["div"](_untracked(x), _untracked(other)))
        return apply(_ROUNDED_DIV, operands, array_of(rounded))
    floor = floored_quotient(x, other)
    a, b = (array_of(t).astype(dtype) for t in operands)
    return wrap(floor + ((a % b != 0) & ((a < 0) != (b < 0))).astype(dtype))


def _untracked(x: Any) -> Any:
    if type(x) is Tensor and not TAPE.tracers:
        return make(x._data, 0)
    return x.detach() if isinstance(x, Tensor) else x


_ROUNDED_DIV = Structural(
    "DivBackward2",
    ((),),
    lambda g, ctx: tuple([wrap(np.zeros(s, d)) for s, d in zip(ctx.shapes, ctx.dtypes, strict=True)]),
    takes_stretched=True,
)


def round(x: Tensor, *, decimals: int = 0) -> Tensor:
    """Nearest number with so many decimals, halves to even; the derivative is 0.

    Parameters
    ----------
    x : Tensor
    decimals : int
        May be negative.

    Examples
    --------
    >>> tg.round(tg.tensor([2.5, 1.26]))
    tensor([2., 1.])
    >>> tg.round(tg.tensor([2.5, 1.26]), decimals=1)
    tensor([2.5000, 1.3000])
    """
    if decimals == 0:
        return _plain["round"](x)
    data = array_of(x)
    if data.dtype.kind != "f":
        raise NotImplementedError(f"\"round_vml_cpu\" not implemented for '{dtypes.type_name(data.dtype)}' with decimals")
    with quiet():
        return apply(_ROUND, (x,), _rounded(data, decimals))


def _rounded(data: Any, decimals: int) -> Any:
    """`np.round`, in one pass over large arrays."""
    if data.size <= SMALL or data.dtype is not dtypes.float64 or not data.flags.c_contiguous or not -23 < decimals < 23:
        return np.round(data, decimals)
    result, factor = large_empty(data.shape, data.dtype), np.array(10.0 ** abs(decimals))
    ARRAY_KERNELS.round_to_decimals(id(result), id(data), id(factor), int(decimals < 0))
    return result


_ROUND = Structural("RoundBackward1", ((),), lambda g, ctx: (wrap(np.zeros(ctx.shapes[0], ctx.dtypes[0])),), takes_stretched=True)


def times(x: Tensor, factor: float) -> Tensor:
    """A cotangent times a number."""
    return x * factor


def float_power(x: Any, exponent: Any) -> Tensor:
    """Power ``x ** exponent`` in float64.

    Parameters
    ----------
    x, exponent : Tensor or number
        One of them a tensor; broadcast.

    Examples
    --------
    >>> tg.float_power(tg.tensor([2, 3]), -1)
    tensor([0.5000, 0.3333])
    """
    x, exponent = (cast(operand, dtypes.float64) if isinstance(operand, Tensor) else float(operand) for operand in (x, exponent))
    return _plain["pow"](x, exponent)


def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """Logarithm of the odds ``x / (1 - x)``, inverse of `sigmoid`.

    Parameters
    ----------
    x : Tensor
    eps : number, optional
        Limit `x` to the interval from `eps` to ``1 - eps`` first.

    Examples
    --------
    >>> tg.logit(tg.tensor([0.5, 1.0]), eps=0.1)
    tensor([0.0000, 2.1972])
    """
    return _plain["logit"](x) if eps is None else _plain["_limited_logit"](x, float(eps))


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``, linear where ``beta * x`` exceeds `threshold`.

    Examples
    --------
    >>> tg.softplus(tg.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """
    beta, threshold = _float("softplus", "beta", beta), _float("softplus", "threshold", threshold)
    if threshold != 20.0:
        return _plain["_scaled_softplus"](x, threshold, beta)
    return _plain["softplus"](x) if beta == 1.0 else _plain["softplus"](x * beta) / beta


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """``x`` where positive, else ``negative_slope * x``; the derivative at 0 is the slope."""
    return _plain["_leaky_relu"](x, _float("leaky_relu", "negative_slope", negative_slope))


def plain_number(function: str, name: str, value: Any) -> bool | int | float:
    """An argument that must be a number, or an untracked tensor of one element without dimensions.

    Raises
    ------
    OverflowError
        If it is an integer that does not fit in int64.
    TypeError
        If it is anything else; a tracked tensor would lose its gradient.
    """
    if type(value) is float:
        return value  # the commonest first
    if isinstance(value, Tensor) and not value._row and np.ndim(value._data) == 0:
        value = value.item()
    if issubclass(type(value), np.number):
        value = value.item()
    if not issubclass(type(value), (int, float)):
        tracked = " that requires grad" if isinstance(value, Tensor) and value._row else ""
        raise TypeError(f"{function}(): argument '{name}' must be a number, not {type(value).__name__}{tracked}")
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise OverflowError(f"{function}(): argument '{name}' is too big to convert to int64; write it as a float")
    return value


def _float(function: str, name: str, value: Any) -> float:
    return float(plain_number(function, name, value))


@makes_constants_of_shapes
def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """`input` where the condition holds, else `other`; the indices where it holds, if neither is given.

    A gradient that the condition masks is exactly zero, whatever the masked branch computed (nan included).

    Parameters
    ----------
    condition : Tensor of bool
    input, other : Tensor or number, optional
        Broadcast with the condition.

    Returns
    -------
    Tensor or tuple of Tensor
        The tuple is ``nonzero(condition, as_tuple=True)``.

    Raises
    ------
    RuntimeError
        If the condition is not bool.
    TypeError
        If only one of the others is given.

    Examples
    --------
    >>> x = tg.tensor([0.0, 2.0], requires_grad=True)
    >>> tg.where(x > 0, tg.log(x), 0.0).sum().backward()
    >>> x.grad
    tensor([0.0000, 0.5000])
    """
    mask = as_operand(condition)
    if input is None or other is None:
        if input is not None or other is not None:
            raise TypeError("where() takes a condition alone, or a condition and two values to choose from")
        return nonzero(mask, as_tuple=True)
    if type(mask._data) is float or mask._data.dtype not in (dtypes.bool, dtypes.uint8):
        kind = "Double" if type(mask._data) is float else dtypes.type_name(mask._data.dtype)
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {kind}")
    return _plain["where"](mask, input, other)


@makes_constants_of_shapes
def clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Limit values to an interval; the derivative is 1 at its bounds.

    Parameters
    ----------
    min, max : number or Tensor, optional
        Bounds; None is no bound. Where they cross, the result is `max`.

    Raises
    ------
    RuntimeError
        If neither is given.

    Examples
    --------
    >>> tg.clamp(tg.tensor([-2.0, 0.5, 3.0]), min=-1, max=1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None")
    dtype = as_operand(x).dtype
    infinite = dtype.kind == "f"
    low = (-np.inf if infinite else int(np.iinfo(dtype).min)) if min is None else min
    high = (np.inf if infinite else int(np.iinfo(dtype).max)) if max is None else max
    return _plain["_clamp"](x, low, high)


clip = clamp
