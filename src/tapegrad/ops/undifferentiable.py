"""Operations on numbers for which no derivative is defined: the result is tracked, and going back through it is an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.recording.apply_rule import check_broadcast
from tapegrad.recording.primal_values import LARGE
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, as_operand

__all__ = ["floor_divide", "heaviside"]


def _refuse(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    raise RuntimeError(f"derivative for aten::{ctx.attrs} is not implemented. Use it under no_grad(), or detach() its operands.")


_NO_DERIVATIVE = Structural("NotImplemented", ((),), _refuse)


def floor_divide(x: Any, other: Any) -> Tensor:
    """Quotient rounded down; its derivative is not defined.

    Parameters
    ----------
    x, other : Tensor or number
        Broadcast.

    Raises
    ------
    RuntimeError
        For division of integers by zero.

    Notes
    -----
    ``div(x, other, rounding_mode="floor")`` has the same value and the derivative 0.

    Examples
    --------
    >>> tg.floor_divide(tg.tensor([7.0, -7.0]), 2)
    tensor([ 3., -4.])
    """
    return apply(_NO_DERIVATIVE, (as_operand(x), as_operand(other)), floored_quotient(x, other), "floor_divide")


def floored_quotient(x: Any, y: Any) -> Any:
    """The value of `floor_divide` for operands of any kind: the largest integer that is not above the exact quotient."""
    a, b = array_of(as_operand(x)), array_of(as_operand(y))
    if a.dtype is b.dtype is dtypes.float64 and a.shape == b.shape and a.ndim and a.size <= SMALL:
        with quiet():
            return np.floor_divide(a, b)
    check_broadcast(a, b)
    dtype = dtypes.result_type(x, y)
    with quiet():
        a, b = a.astype(dtype), b.astype(dtype)
    if dtype.kind != "f" and a.size and not np.all(b):
        raise RuntimeError("ZeroDivisionError: integer division by zero")
    with quiet():
        return np.asarray(LARGE[np.floor_divide](a, b) if max(a.size, b.size) > SMALL else np.floor_divide(a, b))


def heaviside(x: Tensor, values: Tensor) -> Tensor:
    """0 where negative (or nan), 1 where positive, else `values`; its derivative is not defined.

    Parameters
    ----------
    x : Tensor
    values : Tensor
        Of the dtype of `x`; broadcast.

    Raises
    ------
    RuntimeError
        If the dtypes differ.

    Examples
    --------
    >>> tg.heaviside(tg.tensor([-1.0, 0.0, 2.0]), tg.tensor(0.5))
    tensor([0.0000, 0.5000, 1.0000])
    """
    if not isinstance(values, Tensor):
        raise TypeError(f"heaviside(): argument 'values' (position 2) must be Tensor, not {type(values).__name__}")
    a, b = array_of(x), array_of(values)
    if a.dtype != b.dtype:
        raise RuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes, got "
            f"{dtypes.type_name(a.dtype)} and {dtypes.type_name(b.dtype)}"
        )
    check_broadcast(a, b)
    return apply(_NO_DERIVATIVE, (x, values), np.where(a == 0, b, (a > 0).astype(a.dtype)), "heaviside")
