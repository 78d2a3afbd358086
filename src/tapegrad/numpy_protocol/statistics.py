"""Statistics with NumPy's names, arguments and defaults: quantiles, covariances, and what leaves nan out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.numpy_protocol.functions import Axis, every, real
from tapegrad.numpy_protocol.operands import NotCovered, one
from tapegrad.numpy_protocol.reductions import REDUCTIONS
from tapegrad.ops.covariances import correlations, products_of_deviations
from tapegrad.ops.reductions import count
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import Tensor, array_of
from tapegrad.tensors.tracers import looks_at_values, makes_constants_of_shapes

__all__ = ["STATISTICS"]

Array = np.ndarray[Any, Any]
_quantile_of: Any = np.quantile
# Methods of quantiles between elements, by the two constants of Hyndman and Fan's positions; and those that name elements.
CONTINUOUS = {
    "hazen": (0.5, 0.5), "interpolated_inverted_cdf": (0.0, 1.0), "median_unbiased": (1.0 / 3.0, 1.0 / 3.0),
    "normal_unbiased": (3.0 / 8.0, 3.0 / 8.0), "weibull": (0.0, 0.0),
}  # fmt: skip
# Those that take an element or the middle of two of them, by rules with cases, which NumPy applies to the ranks.
DISCRETE = frozenset(["averaged_inverted_cdf", "closest_observation", "inverted_cdf"])
METHODS = frozenset(["linear", "lower", "higher", "midpoint", "nearest", *CONTINUOUS, *DISCRETE])


# Elements by their rank


def _median(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    return _middle(real(a), axis, keepdims, False)


def _nanmedian(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    return _middle(real(a), axis, keepdims, True)


def _middle(x: Tensor, axis: Axis, keepdims: bool, leaves_nan_out: bool) -> Any:
    axes = every(x, axis)
    ordered, sizes = _ordered(x, axes, leaves_nan_out)
    low, high = (_ranked(ordered, rank[..., None])[..., 0] for rank in (np.maximum(sizes - 1, 0) // 2, sizes // 2))
    return _kept((low + high) / 2.0, x, axes, keepdims)


def _quantile(a: Any, q: Any, axis: Axis = None, *, method: str = "linear", keepdims: bool = False) -> Any:
    return _quantiles(a, np.asarray(q), axis, method, keepdims, False, isinstance(q, (int, float)))


def _nanquantile(a: Any, q: Any, axis: Axis = None, *, method: str = "linear", keepdims: bool = False) -> Any:
    return _quantiles(a, np.asarray(q), axis, method, keepdims, True, isinstance(q, (int, float)))


def _percentile(a: Any, q: Any, axis: Axis = None, *, method: str = "linear", keepdims: bool = False) -> Any:
    return _quantiles(a, np.true_divide(np.asarray(q), 100), axis, method, keepdims, False, isinstance(q, (int, float)))


def _nanpercentile(a: Any, q: Any, axis: Axis = None, *, method: str = "linear", keepdims: bool = False) -> Any:
    return _quantiles(a, np.true_divide(np.asarray(q), 100), axis, method, keepdims, True, isinstance(q, (int, float)))


def _quantiles(a: Any, q: Any, axis: Axis, method: str, keepdims: bool, leaves_nan_out: bool, number: bool) -> Any:
    if method not in METHODS:
        raise ValueError(f"{method!r} is not a valid method: it is one of {', '.join(sorted(METHODS))}")
    if not np.all((q >= 0) & (q <= 1)):
        raise ValueError("Quantiles must be in the range [0, 1]")
    x = real(a)
    axes = every(x, axis)
    ordered, sizes = _ordered(x, axes, leaves_nan_out)
    flat = np.asarray(q, np.float64).reshape(-1)
    places = np.maximum(sizes - 1, 0)[..., None] * flat
    if method in CONTINUOUS:
        alpha, beta = CONTINUOUS[method]
        count = np.asarray(sizes)[..., None]
        places = np.clip(count * flat + (alpha + flat * (1.0 - alpha - beta)) - 1.0, 0.0, np.maximum(count - 1, 0))
    elif method in DISCRETE:
        for size in np.unique(sizes):
            places[sizes == size] = _quantile_of(np.arange(max(size, 1.0)), flat, method=method)
    elif method == "nearest":
        places = np.rint(places)
    elif method in ("lower", "higher"):
        places = np.floor(places) if method == "lower" else np.ceil(places)
    low, high = np.floor(places).astype(np.int64), np.ceil(places).astype(np.int64)
    found = below = _ranked(ordered, low)
    if method in ("linear", "midpoint", "averaged_inverted_cdf") or method in CONTINUOUS:
        share = np.where(low == high, 0.0, 0.5) if method == "midpoint" else places - low
        above = _ranked(ordered, high)
        rise = above - below
        share = np.asarray(share, x.dtype if number else np.float64)
        late = share >= 0.5
        # From the nearer side, as NumPy does, which makes the result monotone in q.
        base = tg.where(tg.tensor(late), above, below)
        found = base + rise * tg.tensor(np.where(late, share - 1, share))
        alone = low == high
        if alone.any():  # infinity times zero is nan; NumPy gives nan in that case, though the place is one element's
            found = tg.where(tg.tensor(alone), below, found)
    kept = tuple(1 if k in axes else size for k, size in enumerate(x.shape)) if keepdims else ordered.shape[:-1]
    return found.movedim(-1, 0).reshape((*np.shape(q), *kept))


@looks_at_values
def _ordered(x: Tensor, axes: tuple[int, ...], leaves_nan_out: bool) -> tuple[Tensor, Array]:
    """The reduced axes as one, which is last and in ascending order, and how many of its elements count.

    One nan makes all elements nan, unless it is left out. Without elements there is one that is nan.
    """
    rest = [k for k in range(x.ndim) if k not in axes]
    shape = tuple(x.shape[k] for k in rest)
    flat = x.permute(*rest, *axes).reshape(*shape, count(x.shape, axes))
    if not flat.shape[-1]:
        return tg.cat([flat, tg.full((*shape, 1), np.nan, dtype=x.dtype)], -1), np.zeros(shape, np.int64)
    ordered = tg.sort(flat, -1, stable=True)[0]
    missing = np.isnan(array_of(ordered))
    sizes = np.full(shape, flat.shape[-1], np.int64)
    if not missing.any():
        return ordered, sizes
    if leaves_nan_out:
        return ordered, sizes - missing.sum(-1)
    return tg.where(tg.tensor(missing[..., -1:]), ordered[..., -1:], ordered), sizes


def _ranked(ordered: Tensor, ranks: Array) -> Tensor:
    found: Tensor = tg.gather(ordered, -1, tg.tensor(np.minimum(ranks, ordered.shape[-1] - 1)))
    return found


def _kept(result: Tensor, x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    return result.reshape(*(1 if k in axes else size for k, size in enumerate(x.shape))) if keepdims else result


# Missing values


def _nanmax(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    return _present(a, axis, keepdims, "max", -np.inf)


def _nanmin(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    return _present(a, axis, keepdims, "min", np.inf)


@looks_at_values
def _present(a: Any, axis: Axis, keepdims: bool, name: str, least: float) -> Any:
    x = one(a)
    function = REDUCTIONS[name]
    missing = np.isnan(array_of(x))
    if not missing.any():
        return function(x, axis, keepdims=keepdims)
    axes = every(x, axis)
    chosen = {"max": np.fmax, "min": np.fmin}[name].reduce(array_of(x), axes, keepdims=True)
    filled = tg.where(tg.tensor(missing), tg.tensor(np.where(np.isnan(chosen), np.nan, least)).to(x.dtype), x)
    result = function(filled, axis, keepdims=True)
    if (chosen == least).any():  # what fills the gaps would share the gradient there
        equal = array_of(x) == chosen
        among = tg.tensor(np.maximum(equal.sum(axes, keepdims=True), 1)).to(x.dtype)
        shared = tg.where(tg.tensor(equal), x, 0.0).sum(axes, True) / among
        result = tg.where(tg.tensor(chosen == least), shared, result)
    return result if keepdims else tg.squeeze(result, axes)


def _nanvar(
    a: Any, axis: Axis = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False, correction: Any = None
) -> Any:
    return _spread(a, axis, dtype, ddof if correction is None else correction, keepdims)


def _nanstd(
    a: Any, axis: Axis = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False, correction: Any = None
) -> Any:
    variance = _spread(a, axis, dtype, ddof if correction is None else correction, keepdims)
    none = variance == 0  # without spread the gradient is zero, as that of std
    return tg.where(none, 0.0, tg.sqrt(tg.where(none, 1.0, variance)))


def _spread(a: Any, axis: Axis, dtype: Any, correction: Any, keepdims: bool) -> Any:
    x = real(a) if dtype is None else one(a).to(dtype)
    axes = every(x, axis)
    if not axes:
        raise NotCovered("it reduces at least one axis")
    if isinstance(correction, Tensor):
        raise NotCovered("its argument 'ddof' is a number")
    missing = np.isnan(array_of(x))
    sizes = np.sum(~missing, axes, keepdims=True)
    mean = tg.nansum(x, axes, True) / tg.tensor(np.maximum(sizes, 1)).to(x.dtype)
    squares = tg.where(tg.tensor(missing), 0.0, x - mean) ** 2
    free = np.where(sizes > correction, sizes - correction, np.nan)
    result = tg.sum(squares, axes, True) / tg.tensor(free).to(x.dtype)
    return result if keepdims else tg.squeeze(result, axes)


# Several variables


@makes_constants_of_shapes
def _cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    if isinstance(ddof, Tensor):
        raise NotCovered("its argument 'ddof' is a number")
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    if dtype is None and any(isinstance(x, Tensor) and type(x) is not Tensor for x in (m, y)):
        dtype = np.float64  # which NumPy computes in at least
    variables = [real(x) if dtype is None else one(x).to(dtype) for x in (m, y) if x is not None]
    for k, x in enumerate(variables):
        if x.ndim > 2:
            raise ValueError(f"{'my'[k]} has more than 2 dimensions")
        variables[k] = x.reshape(1, -1) if x.ndim < 2 else x if rowvar else tg.t(x)
    rows = variables[0] if y is None else tg.cat(variables, 0)
    correction = (0 if bias else 1) if ddof is None else ddof
    if fweights is None and aweights is None:
        return tg.squeeze(products_of_deviations(rows, rows.shape[1] - correction))
    times = None if fweights is None else _times(one(fweights))
    weights = None if aweights is None else one(aweights).to(rows.dtype)
    return tg.cov(rows, correction=correction, fweights=times, aweights=weights)


@looks_at_values
def _times(fweights: Tensor) -> Tensor:
    """How often each observation was made."""
    if (array_of(fweights) != np.around(array_of(fweights))).any():
        raise TypeError("fweights must be integer")
    return fweights.to(np.int64)


def _corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    return correlations(_cov(x, y, rowvar, dtype=dtype))


def _bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    bins = np.asarray(x)
    bins = bins if bins.size else bins.astype(np.int64)  # an empty list has no dtype
    sizes = np.bincount(bins, minlength=minlength)
    if weights is None:
        return one(sizes)
    w = one(weights).to(np.float64)
    if w.shape != bins.shape:
        raise ValueError("The weights and list don't have the same length.")
    return tg.zeros(len(sizes)).index_add(0, tg.tensor(bins.astype(np.int64)), w)


_NAMES = "bincount corrcoef cov median nanmax nanmedian nanmin nanpercentile nanquantile nanstd nanvar percentile quantile"
STATISTICS: dict[str, Callable[..., Any]] = {name: globals()[f"_{name}"] for name in _NAMES.split()}
