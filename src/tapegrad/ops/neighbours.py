"""The floating point number next to another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.ops import elementwise
from tapegrad.recording.apply_rule import check_broadcast
from tapegrad.recording.primal_values import LARGE
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["nextafter"]


def nextafter(x: Tensor, other: Tensor) -> Tensor:
    """The number next to `x` on the way to `other`; it moves with `x`, unless both are equal.

    Parameters
    ----------
    x, other : Tensor
        Of one floating point dtype; broadcast.

    Raises
    ------
    NotImplementedError
        If the dtype is not a floating point one.

    Examples
    --------
    >>> (tg.nextafter(tg.tensor(1.0), tg.tensor(2.0)) - 1.0).item()
    2.220446049250313e-16
    """
    if not isinstance(other, Tensor):
        raise TypeError(f"nextafter(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    u, v = x._data, other._data
    if (
        type(u) is np.ndarray is type(v)
        and u.dtype is v.dtype is dtypes.float64
        and u.shape == v.shape
        and u.ndim
        and u.size <= SMALL
    ):
        with quiet():
            all_move = np.logical_and.reduce(u != v, None)
            return apply(_NEXTAFTER, (x, other), np.nextafter(u, v), None if all_move else _moved(u, v))
    dtype = dtypes.result_type(x, other)
    if dtype.kind != "f":
        raise NotImplementedError(
            f"\"nextafter\" not implemented for '{dtypes.type_name(dtype)}'; convert the tensor to a float dtype"
        )
    a, b = array_of(x), array_of(other)
    check_broadcast(a, b)
    with quiet():
        a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
        found = LARGE[np.nextafter](a, b) if dtype.itemsize == 8 and max(a.size, b.size) > SMALL else np.nextafter(a, b)
    moved = np.asarray(a != b)
    return apply(_NEXTAFTER, (x, other), found, None if moved.all() else moved.astype(dtype))


def _moved(a: Any, b: Any) -> Any:
    return np.asarray(a != b).astype(np.float64)


def _nextafter_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    x_bar = g if ctx.attrs is None else elementwise._mul0(g, wrap(ctx.attrs))
    return ctx.on.sum_to(x_bar, ctx.shapes[0]), wrap(np.zeros(ctx.shapes[1], ctx.dtypes[1]))


_NEXTAFTER = Structural("NextafterBackward0", ((), ()), _nextafter_vjp)
