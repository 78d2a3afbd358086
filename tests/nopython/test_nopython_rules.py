"""Every function of `math` and NumPy that has a rule, on scalars, in one compiled function."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.nopython.formulas.rule_names import RULE_OF
from tapegrad.rules.table import RULES

DOMAINS = {rule.name: rule.domain for rule in RULES}
ARITY = {rule.name: len(rule.args) for rule in RULES}
MODULES = (("math", math), ("np", np))


OF_MATH = """acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh degrees erf erfc exp exp2 expm1 fabs floor hypot
    lgamma log log10 log1p log2 pow radians sin sinh sqrt tan tanh trunc"""
BUILTINS = (abs, max, min, pow)


def _known(function: Any) -> bool:
    """Whether Numba compiles calls of it."""
    try:
        return numba.core.registry.cpu_target.typing_context.resolve_value_type(function) is not None
    except ValueError:
        return False


def functions() -> list[tuple[str, str]]:
    """How the functions are written, and their rules."""
    found = []
    for module_name, module in MODULES:
        for name in sorted(vars(module)):
            function = getattr(module, name)
            rule = RULE_OF.get(function) if callable(function) and not isinstance(function, type) else None
            if rule is not None and function not in BUILTINS and _known(function):
                found.append((f"{module_name}.{name}", rule))
    return found


numba.core.registry.cpu_target.typing_context.refresh()
FUNCTIONS = functions()


@pytest.fixture(scope="module")
def compiled() -> tuple[Any, np.ndarray]:
    """The function of two numbers for each, and the points."""
    points = np.full((len(FUNCTIONS), 2), 0.5)
    lines = ["def f(x, k):"]
    for k, (text, rule) in enumerate(FUNCTIONS):
        low, high = np.array(DOMAINS[rule]).T
        points[k, : len(low[:2])] = low[:2] + np.array([0.37, 0.61])[: len(low)] * (high - low)[:2]
        binary = ARITY[rule] == 2 or text == "np.floor_divide"
        lines.append(f"    if k == {k}:")
        lines.append(f"        return float({text}({'x[0], x[1]' if binary else 'x[0]'}))")
    lines.append("    return 0.0 * x[0]")
    space: dict[str, Any] = {"math": math, "np": np}
    exec("\n".join(lines), space)
    return numba.njit(space["f"]), points


@pytest.mark.parametrize("k", range(len(FUNCTIONS)), ids=[text for text, _ in FUNCTIONS])
def test_function_of_a_variable(compiled: tuple[Any, np.ndarray], k: int) -> None:
    f, points = compiled
    point = points[k]
    value, gradient = tg.value_and_grad(f)(point, k)
    assert value == f(point, k)
    for which in range(2):
        step = np.zeros(2)
        step[which] = 1e-6
        expected = (f(point + step, k) - f(point - step, k)) / 2e-6
        assert gradient[which] == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_functions_of_math_are_listed() -> None:
    assert {text for text, _ in FUNCTIONS if text.startswith("math.")} == {f"math.{name}" for name in OF_MATH.split()}
