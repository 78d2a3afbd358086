"""Vector norms, and the distance that is the norm of a difference.

Every derivative is taken as zero where the norm is zero, in all orders, as PyTorch does in the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.deferred import look_up
from tapegrad.ops import elementwise
from tapegrad.ops.arithmetic import plain_number
from tapegrad.ops.namespaces import TENSORS
from tapegrad.ops.reductions import Dims, add_reduce, count, reduce_along, reduced
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.rules.norms import SLOPE
from tapegrad.tape.magnitudes import are_normal, have_magnitudes, have_normal_reciprocals
from tapegrad.tensors.tensor import Tensor, array_of, wrap

if TYPE_CHECKING:
    pass

__all__ = ["dist", "norm_of_elements", "without_zeros"]

Array = np.ndarray[Any, Any]
maximum_reduce: Any = np.maximum.reduce  # NumPy's stubs know keepdims only as a literal


def norm_of_elements(x: Tensor, p: float | str | None, dim: Dims, keepdim: bool) -> Tensor:
    """Vector norm of the elements, of all of them or along dimensions; `legacy_norm` says more.

    Raises
    ------
    RuntimeError
        If the dtype is not a floating point one, or the order is not known.
    """
    return _norm(_NORM, x, _order(p), dim, keepdim)


def dist(x: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Norm of the difference of two tensors.

    Parameters
    ----------
    x, other : Tensor, of floating point dtypes
        Broadcast.
    p : number
        The order, as in `norm`.

    Returns
    -------
    Tensor, shape ()

    Raises
    ------
    RuntimeError
        If the dtype is not a floating point one.

    Examples
    --------
    >>> tg.dist(tg.tensor([1.0, 2.0]), tg.tensor([4.0, 6.0]))
    tensor(5.)
    """
    return _norm(_DIST, elementwise.sub(x, other), plain_number("dist", "p", p), None, False)


def _norm(op: Structural, x: Tensor, order: float, dim: Dims, keepdim: bool) -> Tensor:
    data = array_of(x)
    if data.dtype.kind != "f":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{type_name(data.dtype)}. Convert the tensor or give dtype=."
        )
    removed = reduced(dim, data.ndim)
    if count(data.shape, removed) == 0 and (math.isinf(order) or order < 0):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {order} norm on an empty tensor because the operation does not have an identity"
        )
    token = enter(IGNORING)
    try:
        result = _value(data, order, removed, keepdim)
    finally:
        leave(token)
    return apply(op, (x,), result, (order, removed, keepdim))


def _value_again(arrays: Sequence[Any], attrs: Any) -> Any:
    return _value(arrays[0], *attrs)


def _order(p: Any) -> float:
    if p is None or p == "fro":
        return 2.0
    try:
        if isinstance(p, Tensor):
            raise TypeError
        return float(p)
    except (TypeError, ValueError):
        raise RuntimeError(f"norm: Order {p} not supported. Use a number or 'fro'.") from None


def _value(data: Array, order: float, removed: tuple[int, ...], keepdim: bool) -> Array:
    if order == 0.0:
        return _count(data != 0.0, removed, keepdim, data.dtype)
    magnitude = data if order == 2.0 else np.abs(data)
    if order == 1.0:
        return reduce_along(np.add, magnitude, removed, keepdim)
    if order == np.inf:
        return reduce_along(np.maximum, magnitude, removed, keepdim)
    if order == -np.inf:
        return reduce_along(np.minimum, magnitude, removed, keepdim)
    total = np.asarray(_power_sum(magnitude, order, removed, keepdim))
    if order < 0.0 or are_normal(total):
        return _root(total, order)
    # Some sum overflowed or underflowed; dividing by the largest magnitude brings it into range.
    magnitude, limits = np.abs(data), np.finfo(data.dtype)
    largest = np.max(magnitude, removed, keepdims=True, initial=0.0)
    scale = np.where((largest > 0.0) & (largest <= limits.max), largest, 1.0).astype(data.dtype)
    scaled = _root(_power_sum(magnitude / scale, order, removed, keepdim), order)
    return scaled * scale.reshape(np.shape(scaled))


def _count(chosen: Array, removed: tuple[int, ...], keepdim: bool, dtype: Any) -> Any:
    """How many are true, as a sum of ones in a floating point dtype, which for float64 is the number itself."""
    if dtype == np.float64 and len(removed) == chosen.ndim and not keepdim:
        return np.float64(np.count_nonzero(chosen))
    return add_reduce(chosen, removed, dtype, None, keepdim)


def _power_sum(magnitude: Array, order: float, removed: tuple[int, ...], keepdim: bool) -> Array:
    if order == 2.0 and magnitude.size > SMALL:
        found = look_up("ops.run_reductions:along_runs")(np.add, magnitude, removed, keepdim, True)
        if found is not None:
            return found
    powers = magnitude * magnitude if order == 2.0 else magnitude**order
    return reduce_along(np.add, powers, removed, keepdim)


def _root(total: Array, order: float) -> Array:
    return np.sqrt(total) if order == 2.0 else total ** (1.0 / order)


_NAMES = {"abs": elementwise.abs, "mul0": elementwise._mul0, "pow": elementwise.pow, "sign": elementwise.sign}
_slope = eval(f"lambda x, y, z: {SLOPE}", _NAMES)  # the text is ours


def _norm_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    order, removed, keepdim = ctx.attrs
    shape = ctx.shapes[0]
    x = ctx.inputs[0]
    if math.isinf(order):
        return (on.shared_magnitudes(g, x, ctx.result, removed, keepdim, shape),)
    g = on.restore(g, removed, keepdim, shape)
    if order == 0.0:
        return (wrap(np.zeros(shape, ctx.dtypes[0])),)
    if order == 1.0:
        return (elementwise._mul0(g, elementwise.sign(x)),)
    z = on.restore(ctx.result, removed, keepdim, shape)
    g, z = without_zeros(g, z)
    if order == 2.0:
        quotient = g / z  # there are fewer cotangents to divide than elements
        return (elementwise._mul0(quotient, x) if are_exact(quotient, g, z) else elementwise._mul0(g, x / z),)
    return (elementwise._mul0(g, _slope(x, order, z)),)


def shared_magnitudes(
    g: Tensor, x: Tensor, z: Tensor, removed: tuple[int, ...], keepdim: bool, shape: tuple[int, ...], on: Any = TENSORS
) -> Tensor:
    """The cotangent of what was reduced to its largest or smallest magnitudes `z`: those that tie have equal shares."""
    data, value = array_of(x), array_of(on.restore(z, removed, keepdim, shape))
    chosen = (np.abs(data) == value) | ((data != data) & (value != value))
    share = np.sign(data) * chosen / add_reduce(chosen, removed, None, None, True)
    return elementwise._mul0(on.restore(g, removed, keepdim, shape), wrap(np.asarray(share, data.dtype)))


def are_exact(quotients: Tensor, g: Tensor, z: Tensor) -> bool:
    """Whether cotangents divided by norms stand in the range of numbers, and derivatives by either do; else elements are.

    A derivative by the norm divides once more. Linear maps are recorded with cotangents of zero, of which others come later.
    """
    if not have_normal_reciprocals(z._data) or not _stand_in_range(quotients, g):
        return False
    if not quotients._row:
        return True
    return (not g._row or bool(np.any(array_of(g)))) and _stand_in_range(quotients.detach() / z.detach(), g)


def _stand_in_range(quotients: Tensor, g: Tensor) -> bool:
    """Whether quotients have all digits; those of cotangents that are zero, or no finite numbers, may be anything."""
    found = quotients._data
    if are_normal(found):
        return True
    found, values = array_of(quotients), array_of(g)
    is_normal = np.isfinite(found) & (np.abs(found) >= np.finfo(found.dtype).tiny)
    return bool(np.all(is_normal | (values == 0.0) | ~np.isfinite(values)))


def without_zeros(g: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """A cotangent of norms that is cut where they are zero, and the norms with ones to divide by there.

    Where a norm is nan, so is what is left of the cotangent, unless that is zero.
    """
    if have_magnitudes(z._data, math.ulp(0.0), math.inf):  # which nan has not
        return g, z
    value = array_of(z)
    unusable = (value == 0.0) | (value != value)
    kept = np.where(value == 0.0, 0.0, np.where(value == value, 1.0, np.nan))
    known = elementwise._mul0(z, wrap((~unusable).astype(value.dtype)))
    return elementwise._mul0(g, wrap(kept.astype(value.dtype))), known + wrap(unusable.astype(value.dtype))


_NORM = Structural("LinalgVectorNormBackward0", ((0, "z"),), _norm_vjp, forward=_value_again)
_DIST = Structural("DistBackward0", ((0, "z"),), _norm_vjp, forward=_value_again)
