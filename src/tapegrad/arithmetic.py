"""Named forms of rules that take keywords: ``add(x, y, alpha=2)``, ``div(x, y, rounding_mode="floor")``, ``softplus(x, beta)``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad import dtypes
from tapegrad.elementwise import FUNCTIONS
from tapegrad.kernels import OPCODES
from tapegrad.recording import apply_rule
from tapegrad.searching import nonzero
from tapegrad.tensor import Tensor, as_operand

__all__ = ["add", "clamp", "clip", "div", "leaky_relu", "rsub", "softplus", "sub", "where"]

_plain = FUNCTIONS


def _scaled(y: Any, alpha: Any) -> Any:
    return y if alpha == 1 else _plain["mul"](as_operand(y), alpha)


def add(x: Any, y: Any, *, alpha: float = 1, out: Tensor | None = None) -> Tensor:
    """Sum ``x + alpha * y``.

    Parameters
    ----------
    x, y : Tensor or number
        Broadcast.
    alpha : number
        Factor of `y`.
    out : Tensor, optional
        Receives the result; nothing may be tracked then.

    Examples
    --------
    >>> tg.add(tg.tensor([1.0, 2.0]), 1, alpha=10)
    tensor([11., 12.])
    """
    return _plain["add"](x, _scaled(y, alpha), out=out)


def sub(x: Any, y: Any, *, alpha: float = 1, out: Tensor | None = None) -> Tensor:
    """Difference ``x - alpha * y``.

    Examples
    --------
    >>> tg.sub(tg.tensor([1.0, 2.0]), 1)
    tensor([0., 1.])
    """
    return _plain["sub"](x, _scaled(y, alpha), out=out)


def rsub(x: Any, y: Any, *, alpha: float = 1) -> Tensor:
    """Difference ``y - alpha * x``."""
    return _plain["sub"](y, _scaled(x, alpha))


def div(x: Any, y: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Quotient ``x / y``, optionally rounded.

    Parameters
    ----------
    rounding_mode : {None, "trunc", "floor"}
        A rounded quotient has derivative 0.

    Raises
    ------
    RuntimeError
        For another rounding mode.

    Examples
    --------
    >>> tg.div(tg.tensor([7.0, -7.0]), 2.0, rounding_mode="floor")
    tensor([ 3., -4.])
    """
    quotient = _plain["div"](x, y)
    if rounding_mode is None:
        return quotient
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    rounded = _plain[rounding_mode](quotient)
    wanted = dtypes.result_type(x, y)
    if wanted.kind == "f":
        return rounded
    from tapegrad.casting import cast

    return cast(rounded, wanted)


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``, linear where ``beta * x`` exceeds `threshold`.

    Examples
    --------
    >>> tg.softplus(tg.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """
    if threshold != 20.0:
        scaled = x * float(beta)
        low = _plain["log1p"](_plain["exp"](_plain["minimum"](scaled, float(threshold))))
        return where(scaled > threshold, x, low / float(beta))
    return _plain["softplus"](x) if beta == 1.0 else _plain["softplus"](x * float(beta)) / float(beta)


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """``x`` where positive, else ``negative_slope * x``; the derivative at 0 is the slope."""
    return _plain["_leaky_relu"](x, float(negative_slope))


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """`x` where the condition holds, else `y`; the indices where it holds, if neither is given.

    A gradient that the condition masks is exactly zero, whatever the masked branch computed (nan included).

    Parameters
    ----------
    condition : Tensor of bool
    x, y : Tensor or number, optional
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
    if x is None or y is None:
        if x is not None or y is not None:
            raise TypeError("where() takes a condition alone, or a condition and two values to choose from")
        return nonzero(mask, as_tuple=True)
    if type(mask._data) is float or mask._data.dtype not in (dtypes.bool, dtypes.uint8):
        kind = "Double" if type(mask._data) is float else dtypes.type_name(mask._data.dtype)
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {kind}")
    return apply_rule(OPCODES["where"], mask, x, y)


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
