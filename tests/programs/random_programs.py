"""Functions made at random: elementwise operations, views, writes in place, reductions, branches and loops on values."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

LENGTH = 6


def _values(rng: Random, count: int) -> list[str]:
    """Lines that make a new array of six elements, or write into one; names are ``v0`` to ``v{count - 1}``."""
    a, b, name = f"v{rng.randrange(count)}", f"v{rng.randrange(count)}", f"v{count}"
    k, other = rng.randrange(LENGTH), rng.randrange(LENGTH)
    first = rng.randrange(LENGTH - 1)
    last = rng.randrange(first + 1, LENGTH)
    number = round(rng.uniform(-2.0, 2.0), 2)
    made = [
        f"{name} = {a} * {b}",
        f"{name} = {a} + {number} * {b}",
        f"{name} = np.sin({a}) - {b}",
        f"{name} = np.where({a} > {b}, {a}, {number})",
        f"{name} = np.exp(-{a} * {a})",
        f"{name} = {a} / (1.0 + {b} * {b})",
        f"{name} = np.maximum({a}, {b})",
        f"{name} = {a}[::-1]",
        f"{name} = np.concatenate([{a}[{first}:], {b}[:{first}]])",
        f"{name} = np.cumsum({a}) * 0.25",
        f"{name} = np.sort({a})",
        f"{name} = {a} * {b}.sum()",
        f"{name} = {a} - {a}.mean()",
        f"{name} = {a}.reshape(2, 3).T.reshape(6) * {number}",
        f"{name} = {a} * ({b} > 0)",
        f"{name} = np.zeros_like({a}) + {b}[{k}]",
        f"{name} = ({a}.reshape(2, 3) @ {b}.reshape(3, 2)).sum() * {a}",
        f"{name} = {a} * {a}.argmax()",
        f"{name} = np.clip({a}, -1.0, {abs(number)})",
        f"{name} = np.stack([{a}[{k}]] * 6)",
        f"{name} = {a}.copy()\n{name}[{k}] = {b}[{other}] * {number}",
        f"{name} = np.zeros_like({a})\n{name}[{first}:{last}] = {b}[{first}:{last}]",
        f"{name} = {a} * 1.0\n{name}[{name} > {number}] = {number}",
        f"{name} = {a}.copy()\n{name} += {b}\n{name} *= {a}",
        f"{name} = {a}.copy()\npart = {name}[{first}:{last}]\npart *= {number}\n{name}[{k}] += {b}[{other}]",
        f"{name} = np.zeros_like({a})\nfor k in range({LENGTH}):\n    {name}[k] = {a}[k] * {b}[{other}]",
        f"{name} = np.ones_like({a})\nfor k in range({LENGTH - 1}):\n    {name}[k + 1] = {name}[k] * 0.5 + {a}[k]",
        f"if {a}[{k}] > {number}:\n    {name} = {a} * 2.0\nelse:\n    {name} = {b} - 1.0",
        f"{name} = {a} * 1.0\nwhile 1.5 < abs({name}[{k}]) < 1e9:\n    {name} = {name} * 0.5",
        f"{name} = {a} * (2.0 if {b}.sum() > {number} else 3.0)",
    ]
    return rng.choice(made).split("\n")


def random_program(seed: int) -> tuple[Callable[..., Any], str]:
    """A function of two arrays and a number, and its text."""
    rng = Random(seed)
    lines = ["v0, v1 = x, y", "v2 = x * s"]
    count = 3
    for _ in range(rng.randrange(2, 7)):
        lines += _values(rng, count)
        count += 1
    total = " + ".join(f"(v{k} * {0.3 + 0.1 * k:.1f}).sum()" for k in sorted(rng.sample(range(count), min(count, 3))))
    text = "def f(x, y, s):\n" + "".join(f"    {line}\n" for line in [*lines, f"return {total}"])
    space: dict[str, Any] = {"np": np}
    exec(compile(text, f"<program {seed}>", "exec"), space)
    function: Callable[..., Any] = space["f"]
    return function, text


def points(seed: int) -> list[tuple[Any, ...]]:
    """Arguments of six calls, of which two have special values."""
    rng = np.random.default_rng(seed)
    found = [(rng.normal(size=LENGTH), rng.normal(size=LENGTH), float(rng.normal())) for _ in range(4)]
    ties = np.round(rng.normal(size=LENGTH)), np.round(rng.normal(size=LENGTH)), 0.0
    special = rng.permutation([0.0, -0.0, 1.0, np.inf, 1e-310, -2.0]), rng.normal(size=LENGTH), -1.0
    return [*found, ties, special]
