"""Every function of the collection of lines as a program, at points where another way is taken: the function's own, or called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from many_cases import each
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture

import tapegrad as tg

sys.path.append(str(Path(__file__).parents[1] / "numpy_arrays"))

from idioms_of_numpy import IDIOMS, STATEMENTS
from lines_of_numpy import LINES, WRITES
from test_functions_under_drivers import POINTS, V, expression, parts_of, statements, weighted

CASES = [*LINES, *(("v", line) for line in IDIOMS)]


def points(x: Any) -> list[Any]:
    """A point, one at which everything has another sign and order, one with ties, and one with special values."""
    special = x.copy()
    special.reshape(-1)[:3] = [0.0, np.inf, np.nan][: x.size]
    return [x, -x.reshape(-1)[::-1].reshape(x.shape), np.round(x), special]


def outcome(run: Callable[[Any], Any], x: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            return run(x.copy())
    except Exception as error:
        return type(error)


def check(function: Callable[[Any], Any], x: Any) -> None:
    def loss(x: Any) -> Any:
        return weighted(parts_of(function(x)))

    own, run = tg.value_and_grad(loss), tg.value_and_grad(tg.program(loss))
    for point in points(x):
        expected, found = outcome(own, point), outcome(run, point)
        if isinstance(expected, type) or isinstance(found, type):
            assert expected is found
            continue
        np.testing.assert_allclose(found[0], expected[0], rtol=4e-15, atol=1e-15)
        np.testing.assert_allclose(found[1], expected[1], rtol=4e-15, atol=1e-15 * max(1.0, np.abs(expected[1]).max(initial=0.0)))


@pytest.mark.filterwarnings("ignore")
@each(("kind", "line"), CASES)
def test_lines_are_the_functions_own(kind: str, line: str) -> None:
    check(expression(line)(np), POINTS[kind])


@pytest.mark.filterwarnings("ignore")
@each("text", [text for text in WRITES + STATEMENTS if "while" not in text])
def test_writes_are_the_functions_own(text: str) -> None:
    check(statements(text)(np), V)


@each("function", [expression("np.exp(x) * x[0]"), statements("y = np.exp(x)")])
def test_what_makes_functions_of_lines_does_not_hide_them_from_programs(function: Any) -> None:
    p = tg.program(function(np))
    p(V)
    assert len(p.traces) == 1, p.explain()


@each(
    ("function", "others"),
    [
        (lambda x, w: np.sum(np.cov(x, fweights=w)), [np.array([1, 2, 3, 1, 2, 3]), np.array([3, 1, 1, 1, 1, 5])]),
        (lambda x, w: np.sum(np.cov(x, aweights=w)), [np.arange(1.0, 7.0), np.arange(7.0, 1.0, -1.0)]),
        (lambda x, least: np.sum(np.linalg.pinv(x.reshape(2, 3), least)), [1e-3, 0.9]),
        (lambda x, bound: np.sum(np.arange(6.0).clip(x, bound)), [1.0, 4.0]),
    ],
)
def test_what_says_how_it_is_computed_is_read_at_each_run(function: Callable[..., Any], others: list[Any]) -> None:
    p = tg.program(function)
    for other in others * 2:
        assert p(V, other) == pytest.approx(function(V, other), rel=1e-13)
