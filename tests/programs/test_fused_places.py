"""Machine code of elements at chosen places: views with steps, and index arrays that are the same in each run."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture

import tapegrad as tg

PLACES = np.array([0, 2, 2, 1, -1])


def waves(x: Any) -> Any:
    """Steps that differ in nothing but numbers."""
    y = x
    for k in range(6):
        y = y + 0.01 * np.sin(x * (0.5 * k)) * k - y * (-0.3) ** k
    return (y * y).sum() + y[3] * 0.7


OF_PLACES: dict[str, Callable[[Any], Any]] = {
    "every other": lambda x: (x[::2] * x[1::2]).sum(),
    "backwards by three": lambda x: (x[::-3] * 2.0).sum() - x[4],
    "of matrices": lambda x: (x.reshape(3, 4)[::2, 1::2] * x.reshape(3, 4)[1:, ::3]).sum(),
    "steps that meet": lambda x: (x[::2] * 3.0).sum() + (x[::3] ** 2).sum() * x[6],
    "a list": lambda x: (x[[0, 2]] ** 2).sum(),
    "an array": lambda x: (np.sin(x)[PLACES] * x[:5]).sum(),
    "take": lambda x: np.take(x, [3, 1, 3]).sum() * x[3],
    "roll": lambda x: (np.roll(x, 2) * x).sum(),
    "pad": lambda x: (np.pad(x, 1, mode="edge") ** 2).sum(),
    "rows": lambda x: (x.reshape(3, 4)[[2, 0, 2]] ** 2).sum(),
    "columns": lambda x: (x.reshape(3, 4)[:, [1, 3]] * 0.5).sum(),
    "pairs": lambda x: (x.reshape(3, 4)[[0, 1, 1], [1, 2, 2]] ** 2).sum(),
    "steps with other numbers": waves,
    "chosen values": lambda x: np.where(x > 0, x, 0).sum() * 2.0,
}


def points() -> list[Any]:
    rng = np.random.default_rng(5)
    special = np.array([0.0, -0.0, np.inf, 1.0, -1.0, 1e-310, 2.0, -0.0, 3.0, 0.5, -2.0, 0.25])
    return [rng.normal(size=12), rng.normal(size=12), np.round(rng.normal(size=12)), special]


def assert_same_bits(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("name", list(OF_PLACES))
def test_gradients_have_the_bits_of_eager_ones(name: str) -> None:
    function = OF_PLACES[name]
    f = tg.program(function)
    for k, x in enumerate([*points(), *points()]):
        with np.errstate(all="ignore"):
            assert_same_bits(tg.grad(f)(x), tg.grad(function)(x))
        if k == 1:
            f.compile()
    assert f.traces[0]["machine code"].startswith("machine code")


def random_function(seed: int) -> tuple[Callable[[Any], Any], str]:
    rng, names, lines = Random(seed), ["x"], []
    for k in range(rng.randrange(1, 6)):
        a, b = rng.choice(names), rng.choice(names)
        places = [rng.randrange(-12, 12) for _ in range(12)]
        start, step = rng.randrange(2), rng.choice([2, 3])
        parts = ", ".join(f"{b}[{start + j}::{step}]" for j in range(step))
        made = [
            f"{a}[np.array({places})] * {b}",
            f"np.roll({a}, {places[0]}) - {b}",
            f"np.concatenate([{parts}, {a}])[:12]",
            f"{a}.reshape(3, 4)[::2].reshape(8)[np.array({[p % 8 for p in places]})]",
            f"np.concatenate([{a}[:6:2]] * 4) * {b}[::-1]",
            f"np.where({a} > 0.3, {a}, {b}[np.array({places})])",
            f"np.exp(-{a} * {b})",
        ]
        lines.append(f"v{k} = {rng.choice(made)}")
        names.append(f"v{k}")
    text = "\n".join(
        [
            "def f(x):",
            *(f"    {line}" for line in lines),
            f"    for k in range({rng.randrange(4)}):",
            f"        {names[-1]} = ({names[-1]} * (0.5 * k - 0.5) + np.sin(x * k)){rng.choice(['', '[::-1]', ' * x[::-1]'])}",
            f"    return ({names[-1]} * 0.3).sum() + {rng.choice(names)}[7]",
        ]
    )
    space: dict[str, Any] = {"np": np}
    exec(compile(text, f"<places {seed}>", "exec"), space)
    return space["f"], text


@pytest.mark.filterwarnings("ignore")
def test_random_places_have_the_bits_of_eager_gradients() -> None:
    compiled = 0
    for seed in range(40):
        function, text = random_function(seed)
        f = tg.program(function)
        for k, x in enumerate([*points(), points()[0]]):
            with np.errstate(all="ignore"):
                assert np.array_equal(tg.grad(f)(x), tg.grad(function)(x), equal_nan=True), f"{text} at {x}"
            if k == 1:
                f.compile()
        compiled += any(trace["machine code"].startswith("machine code") for trace in f.traces)
    assert compiled > 10


def test_index_arrays_among_the_arguments_are_not_believed_to_stay() -> None:
    f = tg.program(lambda x, places: (x[places] ** 2).sum())
    x = points()[0]
    for k, places in enumerate([PLACES, PLACES, PLACES[::-1].copy(), np.array([1, 1, 1, 1, 3]), PLACES]):
        assert_same_bits(tg.grad(f)(x, places), tg.grad(f.function)(x, places))
        if k == 1:
            f.compile()
