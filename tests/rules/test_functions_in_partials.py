"""Partials on arrays have NumPy's functions, as values do; numbers have the C library's."""

import math
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

POINTS = np.concatenate([np.random.default_rng(8).uniform(-3.0, 3.0, 997), [0.0, -0.0, 40.0]])


def gradient(function: Any, x: np.ndarray) -> np.ndarray:
    t = tg.tensor(x, requires_grad=True)
    function(t).sum().backward()
    return t.grad.numpy()


def logistic(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0.0, 1.0, e) / (1.0 + e)


# By what a partial calls, and on which it is that function alone.
PARTIALS = {
    "sin": np.cos, "sinh": np.cosh, "cosh": np.sinh, "softplus": lambda x: np.where(x > 20.0, 1.0, logistic(x)),
    "logsigmoid": lambda x: logistic(-x), "cos": lambda x: 0.0 - np.sin(x),
}  # fmt: skip


@pytest.mark.parametrize("name", list(PARTIALS))
@pytest.mark.parametrize("count", [1, 5, 512, 1000])
def test_partials_on_arrays_have_the_bits_of_numpy(name: str, count: int) -> None:
    x = POINTS[-count:]
    function = getattr(tg.nn.functional, name, None) or getattr(tg, name)
    np.testing.assert_array_equal(gradient(function, x), PARTIALS[name](x))


@pytest.mark.parametrize("steps", [(2,), (-1,)])
def test_strided_operands_have_the_same(steps: tuple[int, ...]) -> None:
    x = tg.tensor(POINTS, requires_grad=True)
    tg.sin(x[:: steps[0]] if steps[0] > 0 else x.flip(0)).sum().backward()
    expected = np.zeros_like(POINTS)
    expected[:: steps[0]] = np.cos(POINTS[:: steps[0]].copy())
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_a_power_along_another_array_has_the_bits_of_numpy() -> None:
    base, exponent = np.abs(POINTS[:-3]) + 0.1, np.linspace(-2.0, 2.0, len(POINTS) - 3)
    x = tg.tensor(base, requires_grad=True)
    (x ** tg.tensor(exponent)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), exponent * np.power(base, exponent - 1.0))


@pytest.mark.parametrize("x", [0.3, -1.7, 2.9])
def test_numbers_have_the_c_librarys(x: float) -> None:
    t = tg.tensor(x, requires_grad=True)
    tg.sin(t).backward()
    assert t.grad.item() == math.cos(x)


@pytest.mark.parametrize("name", ["sin", "exp", "tanh", "softplus"])
def test_a_jacobian_has_the_bits_of_the_sweep(name: str) -> None:
    x = POINTS[:7]
    function = getattr(tg, name, None) or getattr(tg.nn.functional, name)
    np.testing.assert_array_equal(np.diag(tg.jacobian(lambda t: function(t))(x)), gradient(function, x))
