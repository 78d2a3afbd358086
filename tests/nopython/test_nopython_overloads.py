"""What Numba and packages implement in Python is recorded, and has the derivative of the function, not that of its short-cuts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.polynomial.polynomial as poly
import pytest
from numba.core import types

import tapegrad as tg

X = np.array([1.3, 0.7])
INF, NAN = np.inf, np.nan


def power(x, n):
    raise NotImplementedError


@numba.extending.overload(power, prefer_literal=True)
def _power(x, n):
    text = " * ".join(["x"] * n.literal_value)
    return eval(f"lambda x, n: {text}")


def scaled(x, n):
    raise NotImplementedError


@numba.extending.overload(scaled)
def _scaled(x, n):
    if isinstance(n, types.IntegerLiteral):
        return lambda x, n: x * 1000.0
    return lambda x, n: x * n


def test_overload_that_asks_for_a_literal_gets_it() -> None:
    @numba.njit
    def f(x):
        return power(x[0], 3) * x[1]

    value, gradient = tg.value_and_grad(f)(X)
    assert value == f(X)
    np.testing.assert_allclose(gradient, [3 * 1.3**2 * 0.7, 1.3**3], rtol=1e-15)


def test_overload_is_asked_without_literals_first() -> None:
    @numba.njit
    def f(x):
        return scaled(x[0], 3)

    assert f(X) == 3 * X[0]
    assert tg.grad(f)(X).tolist() == [3.0, 0.0]


class Entry(NamedTuple):
    """An overload of Numba's: how it is called, at what points, and its gradient where tensors have no such function."""

    text: str
    points: list[list[float]]
    gradient: Callable[[np.ndarray], Any] | None = None


TIES = [[1, 1, 1], [2, 1, 2], [0, 0, 0], [1, 2, 3], [1, 1, 2], [3, -3, 3], [5], [1, 2, 2, 3], [INF, 1, INF], [-INF, 1, -INF]]
MISSING = [*TIES[:8], [1, NAN, 1], [NAN, 2, NAN, 2]]
SQUARES = [[1, 0, 0, 1], [1, 1, 1, 1], [1, -1, -1, 1], [1, 2, 2, 1], [1, 2, 3, 4]]
MATRIX = "x.reshape(2, 2)"
NODES, HEIGHTS = "np.arange(0.0, 7.0)", "np.array([0.0, 3.0, 4.0, 9.0, 2.0, 3.0, 7.0])"
W = np.array([1.0, 2.0, 4.0, 7.0, 11.0, 16.0, 22.0, 29.0, 37.0, 46.0])


def weighted(text: str) -> str:
    return f"(W[:np.size({text})] * np.ravel({text})).sum()"


REDUCTIONS = "max min amax amin ptp median sum prod mean std var nansum nanmean"
LEAVING_NAN_OUT = "nanmax nanmin nanmedian nanstd nanvar"
TABLE = [
    *(Entry(f"np.{name}(x)", TIES) for name in REDUCTIONS.split()),
    *(Entry(f"np.{name}(x)", MISSING) for name in LEAVING_NAN_OUT.split()),
    *(Entry(f"x.{name}()", TIES) for name in ("max", "min")),
    Entry(weighted("np.quantile(x, np.array([0.0, 0.25, 0.4, 1.0]))"), TIES[:8]),
    Entry("np.nanpercentile(x, 30.0)", MISSING),
    Entry("np.percentile(np.array([1.0, 3.0, 7.0]), x[0])", [[0], [25], [50], [100]], lambda x: [0.04 if x[0] < 50 else 0.08]),
    *(Entry(f"max({given})", TIES) for given in ("x", "x[0], x[0] ** 2", "[x[0], 1.0]")),
    Entry(weighted("np.interp(x, np.array([0.0, 1.0, 2.0]), np.array([0.0, 3.0, 4.0]))"), [*TIES[:8], [-1, 0, 2.5]]),
    Entry(weighted(f"np.interp(x, {NODES}, {HEIGHTS})"), [[0, 1, 6], [5, 6, 7], [2.5, 3, -1], [NAN, 1]]),
    Entry("np.interp(1.0, x, np.arange(1.0, len(x) + 1) ** 2)", [[0, 1, 2], [1, 2, 3], [-1, 0, 1], [1, 1, 2], [0, 1, 1], [1], [2]]),
    Entry("np.interp(1.0, np.arange(0.0, len(x)), x)", [[5, 6], [5, 6, 8], [INF, 1, INF], [3, 1, INF], [5]]),
    *(Entry(weighted(f"np.clip(x, {bounds})"), TIES[:8]) for bounds in ("0.0, 1.0", "None, 1.0", "0.0, None", "1.0, 1.0")),
    Entry(weighted("np.clip(np.ones(3), x, 2.0)"), [[1, 1, 1], [0, 0, 0], [1.5, 1, 0.5]]),
    Entry(weighted("np.clip(np.ones(3), 0.0, x)"), [[1, 1, 1], [2, 2, 2], [1.5, 1, 0.5]]),
    Entry("x.clip(0.0, 2.0).sum()", TIES[:8]),
    Entry(weighted("np.unwrap(x * np.pi)"), TIES[:8]),
    Entry(weighted("np.unwrap(x, period=2.0)"), TIES[:8]),
    *(Entry(f"np.linalg.norm(x, {order})", TIES) for order in ("2", "1", "0", "np.inf", "-np.inf", "3", "0.5")),
    *(Entry(f"np.linalg.norm({MATRIX}, {order})", SQUARES) for order in ("1", "-1", "np.inf", "-np.inf", "2", "-2")),
    Entry(f"np.linalg.det({MATRIX})", [*SQUARES, [0, 0, 0, 0], [0, 1, 0, 0]]),
    Entry(f"np.linalg.slogdet({MATRIX})[1]", [[1, 0, 0, 1], [1, 2, 3, 4]]),
    *(Entry(f"np.linalg.matrix_power({MATRIX}, {n}).sum()", [[1, 0, 0, 1], [1, 2, 3, 4]]) for n in (0, 5, -2)),
    Entry(weighted(f"np.linalg.cholesky({MATRIX})"), [[1, 0, 0, 1], [2, 1, 1, 3]]),
    Entry("np.vdot(x, x)", TIES[:8]),
    *(Entry(weighted(f"np.sum(x.reshape(1, 2, 1, 2), {axis})"), [[1, 2, 3, 4]]) for axis in (0, 1, -1, -3)),
    *(Entry(weighted(f"{MATRIX}.T @ {other}"), SQUARES) for other in (MATRIX, "x[1:3]", f"{MATRIX}.T")),
    Entry(weighted(f"x[1:3] @ {MATRIX}.T"), SQUARES),
    Entry(weighted("np.sort(x)"), TIES[:8]),
    Entry(weighted("np.diff(x)"), TIES[:6]),
    Entry(weighted("np.ediff1d(x, x[0])"), TIES[:8]),
    Entry("np.trapezoid(x, x * x)", TIES[:8]),
    Entry("np.average(x, weights=np.arange(1.0, len(x) + 1))", TIES[:8]),
    Entry(weighted("np.convolve(x, x)"), TIES[:8]),
    Entry(weighted("np.select([x > 1, x < 1], [x, 2 * x], 0.0)"), TIES[:8]),
    Entry("np.cov(x, x * x)[0, 1]", TIES[:6]),
    Entry(weighted("poly.polyadd(x, np.array([3.0, 1.0]))"), [[1, 0], [0, 2]], lambda x: W[: len(x)]),
    Entry(weighted("poly.polysub(np.array([3.0, 1.0]), x)"), [[1, 0], [0, 2]], lambda x: -W[: len(x)]),
    Entry("poly.polymul(np.array([1.0, 2.0, 3.0]), x)[1]", [[1, 0], [5, 2]], lambda x: [2, 1]),
    Entry("poly.polydiv(x, np.array([1.0, 2.0]))[0][0]", [[1, 2, 3, 0], [1, 2, 3]], lambda x: [0, 0.5, -0.25, 0.125][: len(x)]),
    Entry("poly.polydiv(x, np.array([1.0, 2.0, 4.0]))[0][0]", [[1, 2, 0]], lambda x: [0, 0, 0.25]),
]  # fmt: skip


def of(text: str) -> Any:
    space: dict[str, Any] = {"np": np, "poly": poly, "W": W}
    exec(f"def f(x):\n    return {text}", space)
    return space["f"]


@pytest.mark.parametrize("entry", TABLE, ids=[entry.text for entry in TABLE])
def test_overload_has_the_derivative_of_the_function(entry: Entry) -> None:
    f = of(entry.text)
    compiled = numba.njit(f)
    both = tg.value_and_grad(compiled)
    for numbers in entry.points:
        point = np.array(numbers, float)
        value, gradient = both(point)
        np.testing.assert_equal(value, compiled(point), err_msg=str(numbers))
        if math.isnan(value):
            continue
        if entry.gradient is None:
            with np.errstate(all="ignore"):
                expected = tg.grad(f)(point)
        else:
            expected = entry.gradient(point)
        np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-13, err_msg=str(numbers))


def test_norm_of_nan_has_the_gradient_of_tensors() -> None:
    def f(x):
        return np.linalg.norm(x)

    point = np.array([NAN, 1.0])
    np.testing.assert_array_equal(tg.grad(numba.njit(f))(point), tg.grad(f)(point))
