"""Machine code of logsumexp, softmax and its logarithm: the values and gradients of eager ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

SHAPE = (5, 3, 4)
WEIGHTS = np.random.default_rng(0).normal(size=SHAPE)
FORMS: dict[str, Callable[[Any], Any]] = {
    "logsumexp of the last axis": lambda x: tg.logsumexp(x * 2.0, 2) * WEIGHTS[:, :, 0],
    "logsumexp of the first axis": lambda x: tg.logsumexp(x, 0) * x[0],
    "logsumexp of two axes": lambda x: tg.logsumexp(np.sin(x), (0, 2)) * WEIGHTS[0, :, 0],
    "logsumexp that keeps its axis": lambda x: tg.logsumexp(x, 1, keepdim=True) * x,
    "logsumexp of everything": lambda x: tg.logsumexp(x.reshape(-1), 0) * x,
    "logsumexp of numbers' sums": lambda x: tg.logsumexp(np.stack([x[0, 0, 0], x[0, 0, 1], 2.0 * x[1, 1, 1]]), 0) * x[0],
    "logsumexp of one element": lambda x: tg.logsumexp(x[:, :1], 1) * x[:, 2],
    "softmax": lambda x: tg.softmax(x * 0.5, 2) * WEIGHTS,
    "softmax of the first axis": lambda x: tg.softmax(x, 0) * x,
    "log_softmax": lambda x: tg.log_softmax(x, 1) * WEIGHTS,
    "log_softmax of a part": lambda x: -tg.log_softmax(x[1:4, 1], -1)[:, 2],
    "one after the other": lambda x: tg.logsumexp(tg.log_softmax(x, 2) + WEIGHTS, 1) * tg.softmax(x, 1)[:, 0],
}


def points() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    found = [rng.normal(size=SHAPE), 300.0 * rng.normal(size=SHAPE), np.round(rng.normal(size=SHAPE))]
    for special in (-np.inf, np.inf, np.nan, -0.0):
        other = rng.normal(size=SHAPE)
        other[rng.random(SHAPE) < 0.2] = special
        found.append(other)
    return [*found, np.full(SHAPE, -np.inf), np.full(SHAPE, np.inf)]


def is_close(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    known = np.isfinite(b) & np.isfinite(a)
    largest = np.abs(b[known]).max(initial=1.0)
    return np.array_equal(a[~known], b[~known], equal_nan=True) and bool(np.all(np.abs(a - b)[known] <= 1e-14 * largest))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(FORMS))
def test_values_and_gradients_are_those_of_the_function(name: str) -> None:
    def loss(x: Any) -> Any:
        return FORMS[name](x).sum()

    program = tg.program(loss)
    run, own = tg.value_and_grad(program), tg.value_and_grad(loss)
    run(points()[0])
    program.compile()
    run(points()[0])
    assert program.traces[0]["machine code"].startswith("machine code,"), program.explain()
    for x in points():
        (value, gradient), (own_value, expected) = run(x), own(x)
        assert is_close(value, own_value), x
        assert is_close(gradient, expected), x


def test_many_points_have_the_gradients_of_each() -> None:
    def loss(x: Any) -> Any:
        return tg.logsumexp(x * x, 0) + (tg.softmax(x, 0) * x).sum() - tg.log_softmax(x, 0)[1]

    program = tg.program(loss)
    both = tg.value_and_grad(program)
    xs = np.random.default_rng(2).normal(size=(6000, 5))
    xs[7, 2], xs[4100, 0] = -np.inf, np.inf
    with np.errstate(all="ignore"):
        both(xs[0])
        values, gradients = both.map(xs)
        for k in (0, 3, 7, 4100, 5999):
            value, gradient = tg.value_and_grad(loss)(xs[k])
            assert is_close(values[k], value)
            assert is_close(gradients[k], gradient)
