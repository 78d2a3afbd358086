"""Sums, extremes, order statistics, norms and scans, over everything and along dimensions."""

from collections.abc import Callable
from typing import Any

import numpy as np
from operation_case import Case

import tapegrad as tg

A = np.array([[0.7, -1.3, 2.2, 1.1], [-0.4, 1.6, -2.8, 0.5], [2.9, -0.9, 0.3, -1.9]])
B = np.array([[1.9, 0.6, -1.1, 0.2], [2.5, -0.8, 1.4, -0.3], [0.1, 1.2, -2.1, 0.8]])
HOLES = np.where(np.arange(12).reshape(3, 4) % 5 == 2, np.nan, A)
CUBE = np.random.default_rng(7).normal(size=(2, 3, 2))


def _case(name: str, call: Any, reference: Any, label: str = "", point: np.ndarray = A, **options: Any) -> Case:
    return Case(name, call, (point,), reference, label, **options)


def _along(name: str, reference: Callable[..., Any], **options: Any) -> list[Case]:
    """Over everything, along one dimension, and along two of three with the dimensions kept."""
    function = getattr(tg, name)
    return [
        _case(name, function, reference, **options),
        _case(name, lambda x: function(x, 0), lambda x: reference(x, 0), "dim", **options),
        _case(name, lambda x: function(x, (0, -1), True), lambda x: reference(x, (0, 2), keepdims=True), "dims", CUBE, **options),
    ]


def _middle(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    where = np.take(np.argsort(x, axis), (x.shape[axis] - 1) // 2, axis)
    return np.take_along_axis(x, np.expand_dims(where, axis), axis).squeeze(axis), where


def _vector_norm(order: float) -> Callable[..., Any]:
    return lambda x, axis=None: np.linalg.norm(x.reshape(-1) if axis is None else x, order, axis)


def _with_holes(x: tg.Tensor) -> tg.Tensor:
    return tg.where(tg.tensor(np.isnan(HOLES)), np.nan, x)


def _log_running_sum(x: np.ndarray, axis: int) -> np.ndarray:
    return np.log(np.cumsum(np.exp(x), axis))


CASES: list[Case] = [
    _case("cov", lambda x: tg.cov(x), np.cov),
    _case("cov", lambda x: x[0].cov(correction=0), lambda x: np.cov(x[0], ddof=0), "vector"),
    _case(
        "cov",
        lambda x: tg.cov(x, fweights=tg.tensor([1, 2, 0, 3])),
        lambda x: np.cov(x, fweights=[1, 2, 0, 3]),
        "counted",
    ),
    Case(
        "cov",
        lambda x, w: tg.cov(x, aweights=w, fweights=tg.tensor([1, 2, 0, 3])),
        (A, np.array([0.4, 1.2, 0.7, 2.0])),
        lambda x, w: np.cov(x, aweights=w, fweights=[1, 2, 0, 3]),
        "weighted",
        expands=False,
    ),
    _case("corrcoef", lambda x: tg.corrcoef(x), np.corrcoef),
    *_along("sum", np.sum),
    *_along("mean", np.mean),
    *_along("amax", np.max, expands=False),
    *_along("amin", np.min, expands=False),
    *_along("logsumexp", lambda x, *a, **k: np.log(np.sum(np.exp(x), *a, **k)))[1:],
    *_along("nansum", np.nansum),
    *_along("nanmean", np.nanmean),
    *_along("any", np.any, order=0),
    *_along("all", np.all, order=0),
    _case("nansum", lambda x: tg.nansum(tg.where(tg.tensor(np.isnan(HOLES)), np.nan, x), 1), lambda x: np.nansum(HOLES, 1), "nan"),
    _case(
        "nanmean", lambda x: tg.nanmean(tg.where(tg.tensor(np.isnan(HOLES)), np.nan, x), 1), lambda x: np.nanmean(HOLES, 1), "nan"
    ),
    _case("var", lambda x: tg.var(x, 1), lambda x: np.var(x, 1, ddof=1), "dim"),
    _case("std", lambda x: tg.std(x, 1, correction=0), lambda x: np.std(x, 1), "dim"),
    _case("var_mean", lambda x: tg.var_mean(x, 1), lambda x: (np.var(x, 1, ddof=1), np.mean(x, 1)), "dim"),
    _case("var_mean", lambda x: tg.var_mean(x, False), lambda x: (np.var(x), np.mean(x))),
    _case(
        "std_mean",
        lambda x: tg.std_mean(x, (0, 1), keepdim=True),
        lambda x: (np.std(x, (0, 1), ddof=1, keepdims=True), np.mean(x, (0, 1), keepdims=True)),
        "dims",
    ),
    _case("prod", tg.prod, np.prod),
    _case("prod", lambda x: tg.prod(x, 1), lambda x: np.prod(x, 1), "dim"),
    _case("max", tg.max, np.max, expands=False),
    _case("max", lambda x: tg.max(x, 1), lambda x: (np.max(x, 1), np.argmax(x, 1)), "dim", expands=False),
    _case("min", tg.min, np.min, expands=False),
    _case("min", lambda x: tg.min(x, 0), lambda x: (np.min(x, 0), np.argmin(x, 0)), "dim", expands=False),
    _case("aminmax", tg.aminmax, lambda x: (np.min(x), np.max(x)), expands=False),
    _case("aminmax", lambda x: tg.aminmax(x, dim=1), lambda x: (np.min(x, 1), np.max(x, 1)), "dim"),
    _case("argmax", lambda x: tg.argmax(x, 1), lambda x: np.argmax(x, 1), order=0),
    _case("argmin", tg.argmin, np.argmin, order=0),
    _case("count_nonzero", lambda x: tg.count_nonzero(x, 0), lambda x: np.count_nonzero(x, 0), order=0),
    _case("median", tg.median, lambda x: np.sort(x, None)[5], expands=False),
    _case("median", lambda x: tg.median(x, 0), lambda x: _middle(x, 0), "dim"),
    _case("median", lambda x: tg.median(x, 1), lambda x: _middle(x, 1), "even"),
    _case("nanmedian", tg.nanmedian, lambda x: np.sort(x, None)[5], expands=False),
    _case("nanmedian", lambda x: tg.nanmedian(x, -2), lambda x: _middle(x, 0), "dim"),
    _case("mode", lambda x: tg.mode(x, 1), lambda x: (np.min(x, 1), np.argmin(x, 1))),
    _case("quantile", lambda x: tg.quantile(x, 0.3, 1), lambda x: np.quantile(x, 0.3, 1), "dim"),
    Case(
        "quantile",
        lambda x, q: tg.quantile(x, q, 0, True),
        (A, np.array([0.2, 0.85])),
        lambda x, q: np.quantile(x, q, 0, keepdims=True),
    ),
    *[
        _case(
            "quantile",
            lambda x, way=way: tg.quantile(x, 0.63, interpolation=way),
            lambda x, way=way: np.quantile(x, 0.63, method=way),
            way,
            expands=False,
        )
        for way in ("lower", "higher", "midpoint", "nearest")
    ],
    _case("nanquantile", lambda x: tg.nanquantile(x, 0.4), lambda x: np.nanquantile(x, 0.4), expands=False),
    *[
        _case("norm", lambda x, p=p: tg.norm(x, p), _vector_norm(p), f"{p}", expands=p != np.inf)
        for p in (0, 1, 2, 3.5, -1.5, np.inf, -np.inf)
    ],
    _case("norm", lambda x: tg.norm(x, 3, 1), lambda x: np.linalg.norm(x, 3, 1), "dim"),
    Case("dist", tg.dist, (A, B), lambda x, y: np.linalg.norm((x - y).reshape(-1))),
    Case("dist", lambda x, y: tg.dist(x, y, 1), (A, B[:1]), lambda x, y: abs(x - y).sum(), "1"),
    _case("cumsum", lambda x: tg.cumsum(x, 1), lambda x: np.cumsum(x, 1)),
    _case("cumprod", lambda x: tg.cumprod(x, 0), lambda x: np.cumprod(x, 0)),
    _case("cummax", lambda x: tg.cummax(x, 1).values, lambda x: np.maximum.accumulate(x, 1)),
    _case("cummin", lambda x: tg.cummin(x, 0).values, lambda x: np.minimum.accumulate(x, 0), expands=False),
    _case("logcumsumexp", lambda x: tg.logcumsumexp(x, 1), lambda x: _log_running_sum(x, 1)),
    _case("logcumsumexp", lambda x: tg.logcumsumexp(x, 0), lambda x: _log_running_sum(x, 0), "front"),
    _case("softmax", lambda x: tg.softmax(x, 1), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    _case("log_softmax", lambda x: tg.log_softmax(x, 0), lambda x: x - np.log(np.exp(x).sum(0, keepdims=True))),
    _case("diff", tg.diff, np.diff),
    _case("diff", lambda x: tg.diff(x, 2, 0), lambda x: np.diff(x, 2, 0), "twice"),
    _case("diff", lambda x: tg.diff(x, 3), lambda x: np.diff(x, 3), "all but one"),
    Case("diff", lambda x, y: tg.diff(x, 1, 0, y, y), (A, B), lambda x, y: np.diff(x, 1, 0, y, y), "prepend"),
    Case("diff", lambda x, y: tg.diff(x, 0, 0, y, y), (A, B), lambda x, y: np.diff(x, 0, 0, y, y), "none"),
    _case("trapezoid", lambda y: tg.trapezoid(y, dx=0.3, dim=0), lambda y: np.trapezoid(y, dx=0.3, axis=0)),
    Case("trapezoid", tg.trapezoid, (A, np.array([0.0, 0.4, 1.5, 1.8])), np.trapezoid, "points"),
    Case("trapezoid", lambda y, x: tg.trapezoid(y, x, dim=0), (A, B), lambda y, x: np.trapezoid(y, x, axis=0), "own"),
    _case("cumulative_trapezoid", tg.cumulative_trapezoid, lambda y: np.cumsum((y[:, 1:] + y[:, :-1]) / 2, 1)),
    Case(
        "cumulative_trapezoid",
        tg.cumulative_trapezoid,
        (A, np.array([0.0, 0.4, 1.5, 1.8])),
        lambda y, x: np.cumsum((y[:, 1:] + y[:, :-1]) / 2 * np.diff(x), 1),
        "points",
    ),
    Case("trapz", tg.trapz, (A, np.array([0.0, 0.4, 1.5, 1.8])), np.trapezoid),
]
