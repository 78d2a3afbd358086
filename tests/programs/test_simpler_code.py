"""Machine code without operations that are there for signs of zeros alone, and with one walk for a sum and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture

import tapegrad as tg

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-310, -5e-324, 1e-200, -1e200, 1e308, 2.0, -0.5])

OF_NEIGHBOURS: dict[str, Callable[[Any], Any]] = {
    "one before": lambda x: (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum(),
    "two before": lambda x: ((x[2:] - 2.0 * x[1:-1] + x[:-2]) ** 2 * x[1:-1]).sum(),
    "three before, and all": lambda x: (x[3:] * x[:-3] ** 2 * x[1:-2]).sum() + (x * x).sum(),
    "negative factors": lambda x: (-x * x + (-x) / (1.0 + x * x) - (-x[::-1]) * (-x)).sum(),
    "differences of zeros": lambda x: ((x - x) * x - (0.0 - x) * 4.0).sum(),
    "functions": lambda x: (np.tanh(x * 0.7 + 0.1) * np.exp(-x * x) + x / (1.0 + x * x)).sum(),
}


def points(n: int, rng: np.random.Generator) -> list[Any]:
    return [
        rng.normal(size=n),
        np.round(rng.normal(size=n)),
        rng.choice(SPECIAL, size=n),
        np.where(rng.random(n) < 0.2, rng.choice(SPECIAL, size=n), rng.normal(size=n)),
    ]


def assert_same(f: Any, function: Callable[[Any], Any], x: Any) -> None:
    with np.errstate(all="ignore"):
        value, gradient = tg.value_and_grad(f)(x)
        other, expected = tg.value_and_grad(function)(x)
    if np.isfinite(other):  # what is too large on the way depends on the order of the sum
        np.testing.assert_allclose(value, other, rtol=1e-12)
    np.testing.assert_array_equal(gradient, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(gradient[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("n", [5, 18, 4101])
@pytest.mark.parametrize("name", list(OF_NEIGHBOURS))
def test_gradients_have_the_bits_of_eager_ones(name: str, n: int) -> None:
    function, rng = OF_NEIGHBOURS[name], np.random.default_rng(n)
    f = tg.program(function)
    tg.value_and_grad(f)(rng.normal(size=n))
    f.compile()
    tg.value_and_grad(f)(rng.normal(size=n))
    assert f.traces[0]["machine code"].startswith("machine code")
    for x in points(n, rng):
        assert_same(f, function, x)


def random_function(seed: int) -> Callable[[Any], Any]:
    """Signs, zeros and neighbours, put together at random."""
    rng, names, lines = Random(seed), ["x[:-1]", "x[1:]"], []
    for k in range(rng.randrange(2, 9)):
        a, b = rng.choice(names), rng.choice(names)
        made = [
            f"-{a}", f"{a} + 0.0", f"0.0 - {a}", f"{a} * {b}", f"{a} + {b}", f"{a} - {b}", f"{a} * -2.0", f"4.0 * {a}", f"{a} ** 2",
            f"{a} / (1.0 + {b} * {b})", f"np.abs({a})", f"np.where({a} > {b}, {a}, -{b})", f"np.maximum({a}, {b})", f"{a} * 0.0",
            f"np.exp(-{a} * {a})", f"np.sqrt({a} * {a})",
        ]  # fmt: skip
        lines.append(f"    a{k} = {rng.choice(made)}")
        names.append(f"a{k}")
    text = "\n".join(["def f(x):", *lines, f"    return ({names[-1]} * {rng.choice(names)}).sum() + x.sum()"])
    space: dict[str, Any] = {"np": np}
    exec(text, space)
    return space["f"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("seed", range(12))
def test_random_functions_have_the_bits_of_eager_ones(seed: int) -> None:
    function, rng = random_function(seed), np.random.default_rng(seed)
    f = tg.program(function)
    tg.value_and_grad(f)(rng.normal(size=20))
    f.compile()
    for x in [*points(20, rng), *points(20, rng)]:
        assert_same(f, function, x)
    assert f.traces[0]["machine code"].startswith("machine code")


def test_a_program_that_goes_on_returns_other_memory() -> None:
    f = tg.value_and_grad(program := tg.program(OF_NEIGHBOURS["one before"]))
    x = np.linspace(-1.0, 1.0, 9000)
    f(x)
    program.compile()
    f(x)
    kept = [f(x * k)[1] for k in range(1, 4)]
    views = f(x)[1][5:10]
    seen = views.copy()
    for k in range(1, 4):
        np.testing.assert_array_equal(kept[k - 1], tg.grad(OF_NEIGHBOURS["one before"])(x * k))
    f(2.0 * x)
    np.testing.assert_array_equal(views, seen)
