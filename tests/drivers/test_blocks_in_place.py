"""Blocks of vectors, first and second derivatives through writes in place, beside difference quotients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

Function = Callable[[Any], Any]


def whole(x: Any) -> Any:
    y = x * 1.0
    y[...] = x[::-1] * x
    return y * x


def part(x: Any) -> Any:
    y = x * x
    y[1:4] *= x[2:5]
    y[::2] = np.sin(y[::2])
    return y * x[0]


def broadcast(x: Any) -> Any:
    y = np.zeros((2, 6)) + x
    y[:, 1] = x[0] * x[1]
    y[1] = x[2]
    return y * y


def cleared(x: Any) -> Any:
    y = x**3
    y[2] = 0.0
    y[4:] = 2.0
    return y * x


def through_a_view(x: Any) -> Any:
    y = x * x
    z = y.reshape(2, 3).T
    z[1] *= x[0]
    z[:, 0] += x[:3]
    return y * y


def at_places(x: Any) -> Any:
    y = x * x
    y[np.array([0, 5])] = x[1] * x[2:4]
    np.add.at(y, np.array([1, 1, 2]), x[:3] * x[3:])
    y[x > 0.5] = x[0]
    return y * x


FUNCTIONS = [whole, part, broadcast, cleared, through_a_view, at_places]
X = np.array([0.3, 0.9, -0.4, 1.2, 0.7, -0.8])


def quotients(f: Function) -> Any:
    steps = 1e-6 * np.eye(6)
    return np.stack([(np.ravel(f(X + step)) - np.ravel(f(X - step))) / 2e-6 for step in steps], axis=1)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_jacobians(f: Function) -> None:
    expected = quotients(f)
    np.testing.assert_allclose(tg.jacobian(f)(X).reshape(-1, 6), expected, atol=1e-8)
    np.testing.assert_allclose(tg.sparse.jacobian(f, check=True)(X).toarray(), expected, atol=1e-8)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_hessians(f: Function) -> None:
    def scalar(x: Any) -> Any:
        return np.sin(f(x)).sum()

    expected = quotients(tg.grad(scalar))
    np.testing.assert_allclose(tg.hessian(scalar)(X), expected, atol=1e-7)
    np.testing.assert_allclose(tg.sparse.hessian(scalar, mode="star", check=True)(X).toarray(), expected, atol=1e-7)


@pytest.mark.parametrize("f", [f for f in FUNCTIONS if f is not part])  # of which a derivative needs what was overwritten
def test_hessians_by_elements(f: Function) -> None:
    def scalar(x: Any) -> Any:
        return np.sin(f(x)).sum()

    for x in (X, X[::-1].copy()):
        np.testing.assert_allclose(tg.sparse.hessian(scalar, mode="edges")(x).toarray(), tg.hessian(scalar)(x), atol=1e-10)
