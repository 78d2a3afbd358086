"""A single product with the Hessian has the bits of the sweeps that take any number of them, whatever is infinite or nan."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.engine import linear_layout as lin
from tapegrad.linear import linear_tape as tapes
from tapegrad.numpy_arrays.array import Array

SHAPES = [(5,), (6,), (3, 4), (1,), (2, 1), (1, 4)]
SPECIAL = np.array([0.0, -0.0, np.inf, np.nan, 1e-300, 1e200])
Function = Callable[..., Any]
OF_ONE: list[Function] = [
    lambda a: -a,
    lambda a: 1.0 - a,
    lambda a: 2.0 * a,
    lambda a: a * np.inf,
    lambda a: a * a,
    lambda a: a**3,
    lambda a: a**1.5,
    lambda a: 1.0 / a,
    lambda a: abs(a),
    np.sin,
    np.exp,
    np.log,
    np.tanh,
    lambda a: np.maximum(a, 0.0),
    lambda a: a[1:] if a.ndim else a,
    lambda a: a[::-1] if a.ndim else a,
    lambda a: a[..., ::2] if a.ndim else a,
    lambda a: a.T.reshape(-1),
    lambda a: a.sum(0) if a.ndim else a,
    lambda a: a.sum(-1, keepdims=True) if a.ndim else a,
]
OF_TWO: list[Function] = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a / b,
    lambda a, b: np.where(b > 0.0, np.sqrt(b) * a, 0.0 * a),
]


def numbers(rng: np.random.Generator, shape: tuple[int, ...], special: bool) -> np.ndarray:
    drawn = rng.normal(size=shape)
    return np.where(rng.random(shape) < 0.2, rng.choice(SPECIAL, shape), drawn) if special else drawn


def function(rng: np.random.Generator, leaves: list[Any]) -> Any:
    pool = list(leaves)
    for _ in range(rng.integers(2, 12)):
        a, b = (pool[rng.integers(len(pool))] for _ in range(2))
        if rng.random() < 0.6:
            pool.append(OF_ONE[rng.integers(len(OF_ONE))](a))
        elif np.shape(a) == np.shape(b) or not np.shape(a) or not np.shape(b):
            pool.append(OF_TWO[rng.integers(len(OF_TWO))](a, b))
    sums = [np.sum(value) for value in pool[-3:]]
    return sums[0] * sums[0] + sum(sums[1:])


def product(seed: int, once: bool) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shapes = [SHAPES[k] for k in rng.integers(len(SHAPES), size=rng.integers(1, 4))]
    special = rng.random() < 0.5
    leaves: list[Any] = [tg.tensor(numbers(rng, shape, special), requires_grad=True) for shape in shapes]
    direction = np.concatenate([numbers(rng, shape, special).reshape(-1) for shape in shapes])
    for leaf in leaves:
        leaf.__class__ = Array
    output = function(rng, leaves)
    tape = tapes.linear_tape(leaves, [output], second=True, once=once)
    assert tape is not None
    assert (tape.header[lin.WITH_SECOND] == lin.ONE_PRODUCT) == once
    return tape.curve(direction[:, None])[:, 0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("block", range(4))
def test_products_of_random_functions(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tapes, "LONG_ROWS", 0)
    for seed in range(100 * block, 100 * (block + 1)):
        found, expected = product(seed, once=True), product(seed, once=False)
        np.testing.assert_array_equal(found, expected, err_msg=f"seed {seed}")
        np.testing.assert_array_equal(np.signbit(found[found == 0.0]), np.signbit(expected[expected == 0.0]), f"seed {seed}")
