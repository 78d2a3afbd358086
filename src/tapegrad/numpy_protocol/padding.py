"""`numpy.pad`: elements that are moved, statistics of the elements at an edge, and ramps towards a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.numpy_protocol.operands import NotCovered, one
from tapegrad.numpy_protocol.rearranging import numbered, taken
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import Tensor, array_of
from tapegrad.tensors.tracers import makes_constants_of_shapes

__all__ = ["PADDING"]

_np: Any = np
COPYING_MODES = frozenset(["edge", "reflect", "symmetric", "wrap"])
STATISTICS: dict[str, Callable[..., Any]] = {"maximum": np.max, "mean": np.mean, "median": np.median, "minimum": np.min}


@makes_constants_of_shapes
def _pad(
    array: Any,
    pad_width: Any,
    mode: Any = "constant",
    *,
    constant_values: Any = None,
    reflect_type: Any = None,
    stat_length: Any = None,
    end_values: Any = None,
) -> Any:
    x = one(array)
    given = {"reflect_type": reflect_type, "stat_length": stat_length, "end_values": end_values}
    given = {name: value for name, value in given.items() if value is not None}
    if mode == "empty":
        mode = "constant"  # what is there is not said
    if mode == "constant":
        new = one(0 if constant_values is None else constant_values).to(x.dtype)
        return taken([x, new], np.pad(numbered(x), pad_width, constant_values=numbered(new, x.numel()), **given))
    if constant_values is not None:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {{'constant_values'}}")
    if mode in COPYING_MODES and reflect_type in (None, "even"):
        return taken([x], np.pad(numbered(x), pad_width, mode, **given))
    if mode not in STATISTICS and mode != "linear_ramp":
        raise NotCovered(f"reflect_type={reflect_type!r}" if mode in COPYING_MODES else f"mode={mode!r}")
    if any(isinstance(value, Tensor) for value in given.values()):
        raise NotCovered("its stat_length and end_values are numbers")
    np.pad(array_of(x), pad_width, mode, **given)  # raises what NumPy raises
    for axis, widths in enumerate(_pairs(pad_width, x.ndim)):
        if mode == "linear_ramp":
            before, after = _ramps(x, axis, widths, _pairs(0 if end_values is None else end_values, x.ndim)[axis])
        else:
            lengths = (None, None) if stat_length is None else _pairs(stat_length, x.ndim)[axis]
            before, after = _repeated(STATISTICS[mode], x, axis, widths, lengths)
        x = tg.cat([before, x, after], axis)
    return x


def _pairs(value: Any, ndim: int) -> list[Any]:
    """What belongs to the two ends of each axis."""
    if isinstance(value, dict):
        found = [(0, 0)] * ndim
        for axis, width in value.items():
            found[axis] = tuple(np.broadcast_to(width, 2).tolist())
        return found
    pairs: list[Any] = np.broadcast_to(np.asarray(value), (ndim, 2)).tolist()
    return pairs


def _part(x: Tensor, axis: int, key: slice) -> Tensor:
    found: Tensor = x[(*[slice(None)] * axis, key)]
    return found


def _repeated(statistic: Callable[..., Any], x: Tensor, axis: int, widths: Any, lengths: Any) -> list[Tensor]:
    """A statistic of so many elements at either end, as often as it is wanted."""
    extent = x.shape[axis]
    known = [extent if length is None else min(length, extent) for length in lengths]
    chosen = [slice(0, known[0]), slice(extent - known[1], extent)]
    found = []
    for width, key in zip(widths, chosen, strict=True):
        values = one(statistic(_part(x, axis, key), axis=axis, keepdims=True))
        shape = list(x.shape)
        shape[axis] = width
        found.append(tg.broadcast_to(values, shape))
    return found


def _ramps(x: Tensor, axis: int, widths: Any, ends: Any) -> list[Tensor]:
    """Numbers from an end to the element at the edge, without that."""
    extent = x.shape[axis]
    edges = [_part(x, axis, slice(0, 1)), _part(x, axis, slice(extent - 1, extent))]
    found = []
    for edge, width, end in zip(edges, widths, ends, strict=True):
        ramp = one(_np.linspace(float(end), edge.squeeze(axis), width, endpoint=False, axis=axis)).to(x.dtype)
        found.append(ramp)
    return [found[0], found[1].flip(axis)]


PADDING: dict[str, Callable[..., Any]] = {"pad": _pad}
