"""Machine code of sums of exponentials of float32: the bits of eager ones in sums of two elements, as exact in longer ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from machine_code import compiled

import tapegrad as tg

FORMS: dict[str, Callable[[Any, int], Any]] = {
    "logsumexp": tg.logsumexp,
    "logsumexp, kept": lambda x, axis: tg.logsumexp(x, axis, keepdim=True),
    "softmax": tg.softmax,
    "log_softmax": tg.log_softmax,
}
SPECIAL = [0.0, -0.0, 1.0, -2.5, 80.0, -104.0, 1e-42, 3e38, -3e38, -math.inf, math.inf, math.nan, 0.1]


def loss_of(form: Callable[[Any, int], Any], axis: int) -> Callable[..., Any]:
    def loss(x: Any, weights: Any) -> Any:
        return (form(x * 1.5, axis) * weights).sum()

    return loss


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", list(FORMS))
def test_gradients_of_pairs_have_the_bits_of_eager_ones(name: str, axis: int) -> None:
    x = np.array(list(product(SPECIAL, repeat=2)), np.float32)
    x = x if axis == 1 else np.ascontiguousarray(x.T)
    weights = np.linspace(-1.0, 2.0, x.size, dtype=np.float32).reshape(x.shape)
    if name.startswith("logsumexp"):
        weights = weights.take([0], axis) if name.endswith("kept") else weights.take(0, axis)
    loss = loss_of(FORMS[name], axis)
    known = [k for k in range(x.shape[1 - axis]) if not np.isposinf(x.take(k, 1 - axis)).any()]  # which the steps do, all of them
    for places in (known, known[::2], known[1::2]):
        own = x.take(places, 1 - axis)
        part = weights.take(places, 1 - axis if weights.ndim == 2 else 0)
        _, run = compiled(loss, np.zeros_like(own), part, argnums=(0, 1))
        found, expected = run(own, part)[1], tg.value_and_grad(loss, (0, 1))(own, part)[1]
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype == np.float32


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", list(FORMS))
def test_longer_sums_are_as_exact_as_eager_ones(name: str, axis: int) -> None:
    rng = np.random.default_rng(0)
    x = (3.0 * rng.normal(size=(3, 9, 11))).astype(np.float32)
    weights = rng.normal(size=np.shape(FORMS[name](tg.tensor(x), axis))).astype(np.float32)
    loss = loss_of(FORMS[name], axis)
    _, run = compiled(loss, x, weights)
    value, found = run(x, weights)
    exact_value, exact = tg.value_and_grad(loss)(x.astype(np.float64), weights.astype(np.float64))
    assert abs(value - exact_value) <= 1e-5 * (1.0 + abs(exact_value))
    assert np.abs(found - exact).max() <= 2e-6 * np.abs(exact).max()
    assert found.dtype == np.float32


def test_infinite_sums_share_their_derivative() -> None:
    loss = loss_of(tg.logsumexp, 1)
    x, weights = np.ones((4, 3), np.float32), np.arange(1.0, 5.0, dtype=np.float32)
    _, run = compiled(loss, x, weights)
    x[2, :2] = math.inf
    np.testing.assert_array_equal(run(x, weights)[1], tg.grad(loss)(x, weights))
