"""What Numba and packages implement in Python is recorded, and has the derivative of the function, not that of its short-cuts."""

from __future__ import annotations

import numba
import numpy as np
from numba.core import types

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
