"""The floating point number next to another one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.ops import elementwise
from tapegrad.recording.apply_rule import check_broadcast
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
    dtype = dtypes.result_type(x, other)
    if dtype.kind != "f":
        raise NotImplementedError(
            f"\"nextafter\" not implemented for '{dtypes.type_name(dtype)}'; convert the tensor to a float dtype"
        )
    a, b = array_of(x), array_of(other)
    check_broadcast(a, b)
    with quiet():
        found = np.nextafter(a.astype(dtype), b.astype(dtype))
    return apply(_NEXTAFTER, (x, other), found, np.asarray(a != b).astype(dtype))


def _nextafter_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    slopes = ctx.attrs, np.zeros(())
    return tuple(ctx.on.sum_to(elementwise._mul0(g, wrap(slope)), shape) for slope, shape in zip(slopes, ctx.shapes, strict=True))


_NEXTAFTER = Structural("NextafterBackward0", ((), ()), _nextafter_vjp)
