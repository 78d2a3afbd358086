"""Numbers between two ends that may be differentiated, grids of them, and counts between them, with NumPy's names and arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.numpy_protocol.functions import real
from tapegrad.numpy_protocol.operands import NotCovered, one
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import Tensor, array_of
from tapegrad.tensors.tracers import makes_constants_of_shapes

__all__ = ["RANGES"]

_np: Any = np


@makes_constants_of_shapes
def _linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Any:
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    parts = num - 1 if endpoint else num
    first, last = tg.broadcast_tensors(real(start), real(stop))
    rise = last - first
    places = one(np.arange(num, dtype=float)).reshape(-1, *[1] * first.ndim)
    step = rise / parts if parts > 0 else rise * np.nan
    found = places * (step if parts > 0 else rise) + first
    if endpoint and num > 1:
        found = tg.cat([found[:-1], last.unsqueeze(0)], 0)
    if axis:
        found = _np.moveaxis(found, 0, axis)
    found = found if dtype is None else found.to(dtype)
    return (found, step) if retstep else found


def _logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    powers = _linspace(start, stop, num, endpoint, axis=axis)
    found = one(base) ** powers
    return found if dtype is None else found.to(dtype)


def _geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    first, last = tg.broadcast_tensors(real(start), real(stop))
    if np.any(array_of(first) == 0) or np.any(array_of(last) == 0):
        raise ValueError("Geometric sequence cannot include zero")
    sign = tg.sign(first.detach())
    found = sign * _logspace(tg.log10(first * sign), tg.log10(last * sign), num, endpoint)
    if num > 0:
        found = tg.cat([first.unsqueeze(0), found[1:]], 0)
        if endpoint and num > 1:
            found = tg.cat([found[:-1], last.unsqueeze(0)], 0)
    if axis:
        found = _np.moveaxis(found, 0, axis)
    return found if dtype is None else found.to(dtype)


def _histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Counts are steps; edges are placed between the extremes, with which they move. Weights are added up."""
    x = one(a)
    if isinstance(bins, str):
        raise NotCovered(f"bins={bins!r}")
    given = array_of(one(bins)) if np.ndim(bins) else operator.index(bins)
    bounds: Any = None if range is None else tuple(float(array_of(one(end))) for end in range)
    counts, edges = np.histogram(array_of(x), given, bounds)
    if np.ndim(bins):
        places = one(bins)
    elif range is not None:
        places = _linspace(one(range[0]), one(range[1]), int(bins) + 1)
    elif x.numel() and np.ptp(array_of(x)):
        places = _linspace(tg.amin(x), tg.amax(x), int(bins) + 1)
    else:
        places = one(edges)
    heights = one(counts) if weights is None else _weighed(x, weights, edges)
    return (heights / (places[1:] - places[:-1]) / heights.sum() if density else heights), places


def _histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    return _histogram(a, bins, range)[1]


def _weighed(x: Any, weights: Any, edges: Any) -> Any:
    """Sums of weights between edges, the last one of which is inside."""
    data, w = array_of(x).reshape(-1), one(weights)
    if w.shape != array_of(x).shape:
        raise ValueError("weights should have the same shape as a.")
    inside = np.flatnonzero((data >= edges[0]) & (data <= edges[-1]))
    bins = np.minimum(np.searchsorted(edges, data[inside], "right") - 1, len(edges) - 2)
    kept = w.reshape(-1)[tg.tensor(inside)]
    return tg.zeros(len(edges) - 1, dtype=w.dtype).index_add(0, tg.tensor(bins), kept)


def _meshgrid(*xi: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> Any:
    grids = _grids([one(x).reshape(-1) for x in xi], indexing, sparse)
    return tuple(tg.clone(grid) for grid in grids) if copy else tuple(grids)


def _grids(flat: list[Tensor], indexing: str, sparse: bool) -> list[Any]:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    lengths = [x.numel() for x in flat]
    order = [1, 0, *range(2, len(flat))] if indexing == "xy" and len(flat) > 1 else list(range(len(flat)))
    shape = [lengths[k] for k in order]
    lines = [x.reshape(*(-1 if k == j else 1 for k in order)) for j, x in enumerate(flat)]
    return lines if sparse else [tg.broadcast_to(x, shape) for x in lines]


RANGES: dict[str, Callable[..., Any]] = {
    "geomspace": _geomspace,
    "histogram": _histogram,
    "histogram_bin_edges": _histogram_bin_edges,
    "linspace": _linspace,
    "logspace": _logspace,
    "meshgrid": _meshgrid,
}
