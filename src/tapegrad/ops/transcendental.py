"""Special functions that are no rules, since every rule is compiled for everyone: `erfinv`, `sinc`, `logaddexp2`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.kernels.opcodes import OPCODES
from tapegrad.ops import elementwise
from tapegrad.recording.apply_rule import check_broadcast
from tapegrad.recording.casting import cast
from tapegrad.recording.primal_values import forward
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.rules import cardinal_sine
from tapegrad.tensors.tensor import Tensor, array_of, as_operand

__all__ = ["erfinv", "logaddexp2", "sinc"]

Array = np.ndarray[Any, Any]


def _floating(x: Tensor) -> Tensor:
    return x if array_of(x).dtype.kind == "f" else cast(x, dtypes.get_default_dtype())


def erfinv(x: Tensor) -> Tensor:
    """Inverse of the error function: infinite at -1 and 1, nan beyond.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor, of the shape of `x`

    Notes
    -----
    Winitzki's closed form [1]_ is right to 0.2 per cent; each of Halley's steps then triples the digits. Beyond one half they are
    taken on the complementary function, which keeps the digits of ``1 - x``.

    References
    ----------
    .. [1] S. Winitzki, "A handy approximation for the error function and its inverse", 2008.

    Examples
    --------
    >>> tg.erfinv(tg.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.4769,    inf])
    """
    x = _floating(x)
    data = array_of(x)
    with quiet():
        return apply(_ERFINV, (x,), _inverse_error_function(data.astype(np.float64)).astype(data.dtype))


def _inverse_error_function(y: Array) -> Array:
    erf, erfc = forward[OPCODES["erf"]], forward[OPCODES["erfc"]]
    a = np.abs(y)
    tail = 0.5 * np.log1p(-a * a)
    middle = 2.0 / (math.pi * 0.147) + tail
    x = np.asarray(np.sqrt(np.sqrt(middle * middle - tail * (2.0 / 0.147)) - middle))
    for _ in range(3):
        error = np.where(a < 0.5, erf(x) - a, (1.0 - a) - erfc(x))
        step = error * (0.5 * math.sqrt(math.pi)) * np.exp(x * x)
        x = x - step / (1.0 + x * step)
    return np.copysign(np.where(a == 1.0, np.inf, x), y)


def _erfinv_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    z = erfinv(ctx.inputs[0])
    return (elementwise._mul0(g, elementwise.exp(z * z) * (0.5 * math.sqrt(math.pi))),)


_ERFINV = Structural("ErfinvBackward0", ((0,),), _erfinv_vjp)


def sinc(x: Tensor) -> Tensor:
    """``sin(pi * x) / (pi * x)``, 1 at 0; derivatives of every order keep their digits near 0.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor, of the shape of `x`

    Examples
    --------
    >>> tg.sinc(tg.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """
    return _sinc(_floating(x), 0)


def _sinc(x: Tensor, order: int) -> Tensor:
    """Derivative of `sinc`."""
    data = array_of(x)
    with quiet():
        value = _derivative_of_sinc(math.pi * data.astype(np.float64), order) * math.pi**order
    return apply(_SINC, (x,), np.asarray(value, data.dtype), order)


def _derivative_of_sinc(y: Array, order: int) -> Array:
    """Derivative of ``sin(y) / y``: near 0 by its series, elsewhere by its recurrence."""
    bound = cardinal_sine.bound_of_series(order)
    near = np.abs(y) <= bound
    series = cardinal_sine.series(np.where(near, y, 0.0), order)
    return np.where(near, series, cardinal_sine.recurrence(np.where(near, bound, y), order))


def _sinc_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (elementwise._mul0(g, _sinc(ctx.inputs[0], ctx.attrs + 1)),)


_SINC = Structural("SincBackward0", ((0,),), _sinc_vjp)


def logaddexp2(x: Tensor, other: Any) -> Tensor:
    """``log2(2**x + 2**other)`` without overflow.

    Parameters
    ----------
    x, other : Tensor
        Broadcast.

    Examples
    --------
    >>> tg.logaddexp2(tg.tensor([1.0, 3.0]), tg.tensor([1.0, 2.0]))
    tensor([2.0000, 3.5850])
    """
    y = as_operand(other)
    dtype = dtypes.result_type(x, other)
    if dtype.kind != "f":
        dtype = dtypes.get_default_dtype()
    with quiet():
        a, b = array_of(x).astype(dtype, copy=False), array_of(y).astype(dtype, copy=False)
    check_broadcast(a, b)
    with quiet():
        return apply(_LOGADDEXP2, (x, y), np.asarray(np.logaddexp2(a, b)))


def _logaddexp2_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    difference = (ctx.inputs[0] - ctx.inputs[1]) * math.log(2.0)
    return (
        on.sum_to(elementwise._mul0(g, elementwise.sigmoid(difference)), ctx.shapes[0]) if ctx.needs[0] else None,
        on.sum_to(elementwise._mul0(g, elementwise.sigmoid(-difference)), ctx.shapes[1]) if ctx.needs[1] else None,
    )


_LOGADDEXP2 = Structural("Logaddexp2Backward0", ((0, 1), (0, 1)), _logaddexp2_vjp)
