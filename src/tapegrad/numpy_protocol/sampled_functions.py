"""Functions that are given by samples, with NumPy's names and arguments: between the samples, their integrals and slopes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.numpy_protocol.functions import real
from tapegrad.numpy_protocol.operands import NotCovered, as_tensors, one
from tapegrad.ops.slopes import slope
from tapegrad.recording.axes import axes_in_order
from tapegrad.recording.axes import axis as axis_of
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import Tensor, array_of
from tapegrad.tensors.tracers import makes_constants_of_shapes

__all__ = ["SAMPLED"]


def along(x: Tensor, axis: int, key: Any) -> Tensor:
    """A part of a tensor by a key for one of its axes."""
    part: Tensor = x[(*[slice(None)] * axis, key)]
    return part


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    x, knots, values = (one(t).to(np.float64) for t in (x, xp, fp))
    if isinstance(period, Tensor):
        raise NotCovered("its argument 'period' is a number")
    if period is not None:
        return _interp(*_unrolled(x, knots, values, abs(float(period))))
    if knots.ndim != 1 or values.ndim != 1:
        raise ValueError("xp and fp must be of one dimension")
    if knots.shape != values.shape:
        raise ValueError(f"fp and xp are not of the same length: {values.shape[0]} and {knots.shape[0]}")
    if not knots.shape[0]:
        raise ValueError("array of sample points is empty")
    first, last = knots[0], knots[-1]
    left, right = (end if given is None else as_tensors(given)[0] for given, end in ((left, values[0]), (right, values[-1])))
    # What lies outside is not multiplied by anything, since infinity times a gradient of zero is nan.
    beyond = (x < first) | (x > last)
    inner = tg.where(beyond, first.detach(), x)
    within = values[0] + 0.0 * tg.nan_to_num(inner) if knots.shape[0] == 1 else _between(inner, knots, values)
    return tg.where(x < first, left, tg.where(x > last, right, within))


def _between(x: Tensor, knots: Tensor, values: Tensor) -> Any:
    """On a knot the slope is that of the piece after it, on the last knot that of the piece before."""
    at = array_of(x)
    place = np.clip(np.searchsorted(array_of(knots), at, "right") - 1, 0, knots.shape[0] - 2)
    before, after = tg.tensor(place), tg.tensor(place + 1)
    low, high = knots[before], knots[after]
    slope = (values[after] - values[before]) / (high - low)
    found = slope * (x - low) + values[before]
    missed = np.isnan(array_of(found))
    if missed.any():  # infinite values at knots, or two knots at one place
        there = np.interp(at, array_of(knots), array_of(values))
        found = tg.where(tg.tensor(missed & ~np.isnan(there)), tg.tensor(there), found)
        place = np.clip(np.searchsorted(array_of(knots), at, "right") - 1, 0, knots.shape[0] - 1)
        found = tg.where(tg.tensor(missed & (array_of(knots)[place] == at)), values[tg.tensor(place)], found)
    return found


def _unrolled(x: Tensor, knots: Tensor, values: Tensor, period: float) -> tuple[Tensor, Tensor, Tensor]:
    """The same of a periodic function, with one more knot on either side of its period."""
    if period == 0:
        raise ValueError("period must be a non-zero value")
    x, knots = tg.remainder(x, period), tg.remainder(knots, period)
    order = tg.tensor(np.argsort(array_of(knots)))
    knots, values = knots[order], values[order]
    return x, tg.cat([knots[-1:] - period, knots, knots[:1] + period]), tg.cat([values[-1:], values, values[:1]])


@makes_constants_of_shapes
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = one(y)
    k = axis_of(axis, y.ndim)
    if x is None:
        steps = as_tensors(dx)[0]
    else:
        x = one(x)
        where = x.ndim - 1 if x.ndim == 1 else axis_of(axis, x.ndim)
        steps = along(x, where, slice(1, None)) - along(x, where, slice(None, -1))
        if x.ndim == 1:
            steps = steps.reshape(*(-1 if n == k else 1 for n in range(y.ndim)))
    return (steps * (along(y, k, slice(1, None)) + along(y, k, slice(None, -1))) / 2.0).sum(k)


def _gradient(f: Any, *varargs: Any, axis: int | Sequence[int] | None = None, edge_order: int = 1) -> Any:
    f = real(f)
    axes = tuple(range(f.ndim)) if axis is None else axes_in_order(axis if isinstance(axis, (tuple, list)) else (axis,), f.ndim)
    spacings = [as_tensors(s)[0] for s in varargs]
    if not spacings:
        spacings = [1.0] * len(axes)
    elif len(spacings) == 1 and not getattr(spacings[0], "ndim", 0):
        spacings *= len(axes)
    elif len(spacings) != len(axes):
        raise TypeError("invalid number of arguments")
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    slopes = [_slope(f, k, spacing, edge_order) for k, spacing in zip(axes, spacings, strict=True)]
    return slopes[0] if len(axes) == 1 else tuple(slopes)


def _slope(f: Tensor, k: int, spacing: Any, edge_order: int) -> Any:
    size = f.shape[k]
    if size < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient: it needs edge_order + 1 elements, and axis "
            f"{k} of {list(f.shape)} is smaller"
        )
    if getattr(spacing, "ndim", 0):
        if spacing.ndim != 1:
            raise ValueError("distances must be either scalars or 1d")
        if spacing.shape[0] != size:
            raise ValueError("when 1d, distances must match the length of the corresponding dimension")
        spacing = spacing[1:] - spacing[:-1]
    return slope(f, k, spacing, edge_order)


def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    flat = one(ary).reshape(-1)
    begin, end = ([] if given is None else [one(given).reshape(-1).to(flat.dtype)] for given in (to_begin, to_end))
    return tg.cat([*begin, flat[1:] - flat[:-1], *end], 0)


def _unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    x = one(p)
    for name, given in (("discont", discont), ("period", period)):
        if isinstance(given, Tensor):
            raise NotCovered(f"its argument {name!r} is a number")
    values = array_of(x)
    unwrapped = np.unwrap(values, discont, axis, period=period)
    if x.dtype.kind != "f":
        return one(unwrapped)
    # Whole periods are added: the derivative is that of the values.
    added = np.subtract(unwrapped, values, out=np.zeros_like(unwrapped), where=unwrapped != values)
    return x + tg.tensor(added)


_NAMES = "ediff1d gradient interp trapezoid unwrap"
SAMPLED: dict[str, Callable[..., Any]] = {name: globals()[f"_{name}"] for name in _NAMES.split()} | {"trapz": _trapezoid}
