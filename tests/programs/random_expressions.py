"""Functions made at random of what machine code is made of: elementwise operations, parts of arrays, sums, joins, branches."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

UNARY = [
    f"np.{name}"
    for name in (
        "sin", "cos", "tanh", "exp", "arctan", "sqrt", "log1p", "abs", "square", "negative", "sign", "floor", "reciprocal",
    )
]  # fmt: skip
BINARY = ["+", "-", "*", "/"]
PAIRS = ["np.maximum", "np.minimum", "np.arctan2", "np.copysign", "np.hypot", "np.logaddexp", "np.fmax"]


def _line(rng: Random, names: list[str], numbers: list[str], products: bool) -> str:
    """A line that gives a new array of shape (3, 4), a vector of four, or a number."""
    a, b, n = rng.choice(names), rng.choice(names), rng.choice(numbers)
    c = round(rng.uniform(-2.0, 2.0), 2)
    i, j = rng.randrange(3), rng.randrange(4)
    kind = rng.randrange(22 if products else 18)
    op = rng.choice(BINARY)
    made = {
        0: f"{rng.choice(UNARY)}({a})",
        1: f"{a} {op} {b}",
        2: f"{a} {op} {n}",
        3: f"{c} {op} {a}",
        4: f"{rng.choice(PAIRS)}({a}, {b})",
        5: f"np.where({a} > {b}, {a}, {c})",
        6: f"{a}[::-1]",
        7: f"{a}[:, ::-1] * {b}",
        8: f"np.concatenate([{a}[{max(i, 1)}:], {b}[:{max(i, 1)}]])",
        9: f"{a} + {b}[{i}]",
        10: f"{a} * {b}[:, {j}:{j + 1}]",
        11: f"{a} - {b}.sum(axis=0)",
        12: f"{a} - {b}.mean(axis=1, keepdims=True)",
        13: f"{a} * {b}[{i}, {j}]",
        14: f"({a}.T * {b}[{i}, :3]).T",
        15: f"{a}.reshape(4, 3).reshape(-1).reshape(3, 4) + {b}",
        16: f"np.concatenate([{a}[:, {max(j, 1)}:], {b}[:, :{max(j, 1)}]], axis=1)",
        17: f"np.clip({a}, -1.0, {abs(c)}) ** 2",
        18: f"{a} @ ({b}.T @ {a}) * 0.1",
        19: f"{a} * ({b} @ y)[:, None]",
        20: f"{a} - {b}[:, 0] @ {b}",
        21: f"{a} * ({b}[{i}] @ {a}[{i}])",
    }
    return made[kind]


def random_function(seed: int, products: bool = True) -> tuple[Callable[..., Any], str]:
    """A function of an array of shape (3, 4), a vector of four and a number, and its text."""
    rng = Random(seed)
    names, numbers = ["x", "v0"], ["s"]
    lines = ["v0 = x * y"]
    for k in range(rng.randrange(1, 7)):
        kind = rng.randrange(8)
        if kind == 0:
            source = rng.choice(names)
            lines.append(f"n{k} = {rng.choice(['np.sum', 'np.mean'])}({source}) * {rng.choice(numbers)}")
            numbers.append(f"n{k}")
        elif kind == 1:
            a, number = rng.choice(names), rng.choice(numbers)
            lines.append(f"n{k} = {rng.choice(UNARY)}({a}[{rng.randrange(3)}, {rng.randrange(4)}]) * {number} + {number}")
            numbers.append(f"n{k}")
        elif kind == 2 and k:
            a, b = rng.choice(names), rng.choice(names)
            test = rng.choice([f"{rng.choice(numbers)} > 0.1", f"{a}[0, 1] < {b}[2, 3]"])
            lines.append(f"w{k} = {a} * 2.0 if {test} else {b} - {rng.choice(numbers)}")
            names.append(f"w{k}")
        else:
            lines.append(f"w{k} = {_line(rng, names, numbers, products)}")
            names.append(f"w{k}")
    lines.append(f"return ({names[-1]} * 0.3).sum() + ({rng.choice(names)} * {rng.choice(names)}).mean() + {numbers[-1]}")
    text = "def f(x, y, s):\n" + "\n".join(f"    {line}" for line in lines)
    space: dict[str, Any] = {"np": np}
    exec(compile(text, f"<function {seed}>", "exec"), space)
    return space["f"], text


def points(seed: int) -> list[tuple[Any, ...]]:
    """Points for such functions: three at random, one of ties and zeros, one with special values."""
    rng = np.random.default_rng(seed)
    found = [(rng.standard_normal((3, 4)), rng.standard_normal(4), float(rng.standard_normal())) for _ in range(3)]
    x, y, s = found[0]
    special = x.copy()
    special[0, :3] = np.inf, np.nan, -0.0
    return [*found, (np.round(x), np.round(y), 0.0), (special, y, -s)]


def moved(arguments: tuple[Any, ...], by: float) -> tuple[Any, ...]:
    """The same arguments, each changed by so small a part of it up or down: how far results move says what roundings may do."""
    signs = np.where(np.arange(12) % 3 == 0, -1.0, 1.0)
    return tuple(
        a * (1.0 + by) if isinstance(a, float) else (a * (1.0 + by * signs[: a.size].reshape(a.shape))).astype(a.dtype)
        for a in arguments
    )
