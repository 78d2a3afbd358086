"""What Numba and packages implement in Python is recorded, and has the derivative of the function, not that of its short-cuts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.polynomial.polynomial as poly
import pytest
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from numba.core import types
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg

X = np.array([1.3, 0.7])


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
    """An overload of Numba's that tensors have not: how it is called, at what points, and its gradient."""

    text: str
    points: list[list[float]]
    gradient: Callable[[np.ndarray], Any]


TABLE = [
    Entry("np.percentile(np.array([1.0, 3.0, 7.0]), x[0])", [[0], [25], [50], [100]], lambda x: [0.04 if x[0] < 50 else 0.08]),
    Entry("weigh(poly.polyadd(x, np.array([3.0, 1.0])))", [[1, 0], [0, 2]], lambda x: W[: len(x)]),
    Entry("weigh(poly.polysub(np.array([3.0, 1.0]), x))", [[1, 0], [0, 2]], lambda x: -W[: len(x)]),
    Entry("poly.polymul(np.array([1.0, 2.0, 3.0]), x)[1]", [[1, 0], [5, 2]], lambda x: [2, 1]),
    Entry("poly.polydiv(x, np.array([1.0, 2.0]))[0][0]", [[1, 2, 3, 0], [1, 2, 3]], lambda x: [0, 0.5, -0.25, 0.125][: len(x)]),
    Entry("math.frexp(x[0])[0]", [[3.0], [-0.7], [0.0]], lambda x: [0.25 if x[0] == 3.0 else 1.0]),
    Entry("math.ldexp(x[0], -2)", [[3.0], [0.0]], lambda x: [0.25]),
    Entry("divmod(x[0], x[1])[1]", [[5.5, 2.0], [-4.0, 2.0], [1.0, -3.0]], lambda x: [1.0, -np.floor(x[0] / x[1])]),
    Entry("poly.polydiv(x, np.array([1.0, 2.0, 4.0]))[0][0]", [[1, 2, 0]], lambda x: [0, 0, 0.25]),
]
W = np.array([1.0, 2.0])


def weigh(a):
    return a[0] + 2.0 * a[1]


@pytest.fixture(scope="module")
def tabled() -> Any:
    lines = ["def f(x, k):"]
    for k, entry in enumerate(TABLE):
        lines += [f"    if k == {k}:", f"        return float({entry.text})"]
    space: dict[str, Any] = {"math": math, "np": np, "poly": poly, "weigh": numba.njit(weigh)}
    exec("\n".join([*lines, "    return 0.0 * x[0]"]), space)
    compiled = numba.njit(space["f"])
    return compiled, tg.value_and_grad(compiled)


@pytest.mark.parametrize("k", range(len(TABLE)), ids=[entry.text for entry in TABLE])
def test_overload_has_the_derivative_of_the_function(tabled: Any, k: int) -> None:
    compiled, both = tabled
    for numbers in TABLE[k].points:
        point = np.array(numbers, float)
        value, gradient = both(point, k)
        assert value == compiled(point, k)
        np.testing.assert_allclose(gradient, TABLE[k].gradient(point), rtol=1e-12, atol=1e-13, err_msg=str(numbers))
