"""Sums with multiples of products and quotients, ``x + value * y * w`` and ``x + value * y / w``, in few passes over memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave, quiet
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.arrays.sizes import stretches_to
from tapegrad.ops.arithmetic import plain_number
from tapegrad.ops.elementwise import FUNCTIONS
from tapegrad.ops.namespaces import TENSORS
from tapegrad.recording.apply_rule import check_broadcast
from tapegrad.recording.stretched_operands import OPERATIONS, combined, scaled_sum
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["addcdiv", "addcmul"]

_plain = FUNCTIONS


def _fused(op: Structural, combine: Any, x: Tensor, tensor1: Any, tensor2: Any, value: float) -> Tensor:
    for place, t in ((1, tensor1), (2, tensor2)):
        if not isinstance(t, Tensor):
            name = "addcmul" if op is _ADDCMUL else "addcdiv"
            raise TypeError(f"{name}(): argument 'tensor{place}' (position {place + 1}) must be Tensor, not {type(t).__name__}")
    found = _of_small_doubles(combine, x._data, tensor1._data, tensor2._data, value)
    if found is not None:
        return apply(op, (x, tensor1, tensor2), found, value)
    dtype = dtypes.result_type(x, tensor1, tensor2)
    with quiet():
        a, b, c = (array_of(t).astype(dtype, copy=False) for t in (x, tensor1, tensor2))
        check_broadcast(a, b, c)
        if max(b.size, c.size) > SMALL:
            return apply(op, (x, tensor1, tensor2), _in_one_memory(combine, a, b, c, value), value)
        term = combine(b, c)
        if value != 1:
            term = dtype.type(value) * term
        return apply(op, (x, tensor1, tensor2), np.asarray(a + term, dtype), value)


def _of_small_doubles(combine: Any, a: Any, b: Any, c: Any, value: float) -> Any:
    """``a + value * combine(b, c)`` of small float64 arrays; None for others, and where they do not fit together."""
    for operand in (a, b, c):
        if type(operand) is float or operand.dtype is not dtypes.float64 or operand.size > SMALL or not operand.ndim:
            return None
    token = enter(IGNORING)
    try:
        term = combine(b, c)
        return a + (term if value == 1 else float(value) * term)
    except ValueError:
        return None
    finally:
        leave(token)


def _in_one_memory(combine: Any, a: Any, b: Any, c: Any, value: float) -> Any:
    """``a + value * combine(b, c)`` of large arrays, in one pass or in the memory of the first result where the others fit in."""
    found = scaled_sum(OPERATIONS[combine], a, b, c, value)
    if found is not None:
        return found
    both = b.dtype is c.dtype is dtypes.float64 and b.shape != c.shape
    term = combined(OPERATIONS[combine], b, c) if both else None
    if term is None:
        term = combine(b, c)
    kept = term if stretches_to(a.shape, term.shape) else None
    if value != 1:
        term = np.multiply(a.dtype.type(value), term, out=kept)
    return np.add(a, term, out=kept)


def addcmul(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Sum ``x + value * tensor1 * tensor2``.

    Parameters
    ----------
    x, tensor1, tensor2 : Tensor
        Broadcast.
    value : number

    Examples
    --------
    >>> tg.addcmul(tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0]), tg.tensor(2.0), value=10)
    tensor([61., 82.])
    """
    value = plain_number("addcmul", "value", value)
    return _fused(_ADDCMUL, np.multiply, x, tensor1, tensor2, value)


def addcdiv(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Sum ``x + value * tensor1 / tensor2``.

    Parameters
    ----------
    x, tensor1, tensor2 : Tensor
        Broadcast.
    value : number

    Raises
    ------
    RuntimeError
        If `tensor1` and `tensor2` are of integers.

    Examples
    --------
    >>> tg.addcdiv(tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0]), tg.tensor(2.0), value=10)
    tensor([16., 22.])
    """
    value = plain_number("addcdiv", "value", value)
    is_double = type(tensor1) is Tensor and type(tensor1._data) is np.ndarray and tensor1._data.dtype is dtypes.float64
    if not is_double and dtypes.result_type(tensor1, tensor2).kind != "f":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported. Convert a tensor, or add trunc(tensor1 / tensor2)."
        )
    return _fused(_ADDCDIV, np.divide, x, tensor1, tensor2, value)


def _addcmul_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    _, b, c = ctx.inputs
    x_shape, b_shape, c_shape = ctx.shapes
    weighted = g if ctx.attrs == 1 else on.times(g, ctx.attrs)
    return (
        on.sum_to(g, x_shape) if ctx.needs[0] else None,
        on.product_to(weighted, c, b_shape) if ctx.needs[1] else None,
        on.product_to(weighted, b, c_shape) if ctx.needs[2] else None,
    )


def _addcdiv_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    _, b, c = ctx.inputs
    x_shape, b_shape, c_shape = ctx.shapes
    weighted = g if ctx.attrs == 1 else on.times(g, ctx.attrs)
    return (
        on.sum_to(g, x_shape) if ctx.needs[0] else None,
        on.product_to(weighted, _plain["reciprocal"](c), b_shape) if ctx.needs[1] else None,
        on.product_to(on.times(g, -ctx.attrs), on.divided_twice(b, c), c_shape) if ctx.needs[2] else None,
    )


def product_to(g: Tensor, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Products that are zero if either factor is, summed to a shape."""
    product: Tensor = TENSORS.sum_to(_plain["_mul0"](g, x), shape)
    return product


def divided_twice(x: Tensor, y: Tensor) -> Tensor:
    """``x / y / y``."""
    return x / y / y


_ADDCMUL = Structural("AddcmulBackward0", ((), (2,), (1,)), _addcmul_vjp, takes_stretched=True)
_ADDCDIV = Structural("AddcdivBackward0", ((), (2,), (1, 2)), _addcdiv_vjp, takes_stretched=True)
