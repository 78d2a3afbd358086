"""Points, calls and differences for the tests that run over the whole rule table."""

import itertools
import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from engine_fixtures import central_difference

import tapegrad as tg
from tapegrad.rules.table import RULES, Rule

PUBLIC = [rule for rule in RULES if not rule.name.startswith("_")]
STEP = 1e-3
Point = tuple[float, ...]


def names(rules: Sequence[Rule]) -> list[str]:
    return [rule.name for rule in rules]


def is_number(rule: Rule, k: int) -> bool:
    """Whether operand `k` is a plain number, such as an order, and no tensor."""
    low, high = rule.domain[k]
    return rule.partials[k] is None and low == high


def operand(rule: Rule, k: int, value: Any, dtype: Any = None, tracked: bool = True) -> Any:
    """Operand `k` as the public function takes it: a tracked tensor, a condition or an order."""
    low, high = rule.domain[k]
    if rule.partials[k] is not None:
        return tg.tensor(value, dtype=dtype, requires_grad=tracked)
    return int(low) if is_number(rule, k) else tg.tensor(np.asarray(value) > (low + high) / 2)


def operands(rule: Rule, values: Sequence[Any], dtype: Any = None, tracked: bool = True) -> list[Any]:
    return [operand(rule, k, value, dtype, tracked) for k, value in enumerate(values)]


def call(rule: Rule, arguments: Sequence[Any]) -> tg.Tensor:
    return getattr(tg, rule.name)(*arguments)


def value(rule: Rule, *point: float) -> float:
    return float(call(rule, operands(rule, point, tracked=False)).item())


def differentiable(rule: Rule) -> list[int]:
    return [k for k, text in enumerate(rule.partials) if text is not None]


def gradient(rule: Rule, point: Sequence[float], create_graph: bool = False) -> list[float]:
    """All partials at one point, by the sweep or by the recorded pass; 0.0 for parameters."""
    arguments = operands(rule, point)
    tracked = [arguments[k] for k in differentiable(rule)]
    got = tg.autograd.grad(call(rule, arguments), tracked, create_graph=create_graph, materialize_grads=True)
    partials = [0.0] * len(point)
    for k, g in zip(differentiable(rule), got, strict=True):
        partials[k] = float(g.item())
    return partials


def is_smooth(rule: Rule, point: Point) -> bool:
    """Whether slopes to the left and to the right agree at `point`, so that differences mean something there."""
    middle = value(rule, *point)
    for k in differentiable(rule):
        up, down = list(point), list(point)
        up[k] += 2 * STEP
        down[k] -= 2 * STEP
        right, left = value(rule, *up) - middle, middle - value(rule, *down)
        if not abs(right - left) <= 0.1 * (2 * STEP + abs(right) + abs(left)):
            return False
    return True


def points(rule: Rule, count: int = 6) -> list[Point]:
    """Smooth points of the rule's domain, the same ones in every run."""
    rng = np.random.default_rng(zlib.crc32(rule.name.encode()))
    found: list[Point] = []
    for _ in range(100 * count):
        margins = [3 * STEP if low < high else 0.0 for low, high in rule.domain]
        point = tuple(
            float(rng.uniform(low + margin, high - margin)) for (low, high), margin in zip(rule.domain, margins, strict=True)
        )
        if is_smooth(rule, point):
            found.append(point)
        if len(found) == count:
            return found
    raise AssertionError(f"no {count} smooth points in the domain of {rule.name}")


def differences(rule: Rule, point: Point) -> list[float]:
    """Partials at one point by Richardson's extrapolation."""
    tracked = differentiable(rule)
    return [central_difference(lambda *p: value(rule, *p), point, k, STEP) if k in tracked else 0.0 for k in range(len(point))]


def columns(rule: Rule, count: int = 6) -> list[np.ndarray]:
    """The points as one array per argument."""
    return [np.array(column) for column in zip(*points(rule, count), strict=True)]


# Where rules are delicate.
EDGES = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 30.0, 1e308, -1e308, 5e-324)


def edge_points(rule: Rule) -> list[tuple[float, ...]]:
    parameters = [(1.0,) if is_number(rule, k) else (0.0, 1.0) for k in range(len(rule.args))]
    few = (math.nan, math.inf, -math.inf, 0.0, -0.0, -2.5, 1e308)
    edges = EDGES if len(differentiable(rule)) == 1 else few
    choices = [parameters[k] if rule.partials[k] is None else edges for k in range(len(rule.args))]
    return list(itertools.product(*choices))


def edge_columns(rule: Rule) -> list[np.ndarray]:
    return [np.array(column) for column in zip(*edge_points(rule), strict=True)]
