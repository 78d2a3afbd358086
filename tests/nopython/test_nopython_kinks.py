"""One function has one derivative, in compiled code and on tensors: at ties, kinks, nodes, zeros and infinities.

Values are those of the compiled function to the bit. Where the result is nan there is nothing to compare.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg

INF, NAN = np.inf, np.nan

PAIRS = [
    (1, 1), (0, 0), (-2, -2), (INF, INF), (-INF, -INF), (INF, 1), (1, INF), (NAN, 1), (1, NAN), (0, 1), (1, 0), (-1, 0), (0, -1),
    (2, -1), (-2, 3), (INF, -INF), (4, 2), (5.5, -2), (0, INF), (INF, 0), (180, 0.5), (20, 1),
    (-0.0, 0), (0, -0.0), (-0.0, -0.0), (-0.0, 1), (1, -0.0), (NAN, NAN), (NAN, 0), (0, NAN),
]  # fmt: skip

# Of two numbers; Python's own functions of two floats raise where these do not, and have no form for tensors.
ONE = """fabs abs sign sqrt square exp expm1 log log1p log2 log10 exp2 sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh
    arccosh arctanh floor ceil trunc rint negative positive sinc degrees radians deg2rad rad2deg nan_to_num reciprocal cbrt"""
TWO = """add subtract multiply divide true_divide power float_power mod remainder fmod maximum minimum fmax fmin hypot arctan2
    copysign logaddexp logaddexp2"""
ELEMENTWISE = [
    *(f"np.{name}(x[0])" for name in ONE.split()),
    *(f"np.{name}(x[0], x[1])" for name in TWO.split()),
    *(f"{name}(x[0], x[1])" for name in ("max", "min")),
    *(f"{name}({a}, {b})" for name in ("max", "min", "np.maximum", "np.minimum", "np.fmax", "np.fmin")
      for a, b in (("x[0]", "1.0"), ("1.0", "x[0]"))),
    "max(x[0], x[1], 1.0)", "min(x[0], x[1], 1.0)", "max((x[0], x[1]))", "abs(x[0] - x[1])", "x[0] if x[0] > x[1] else x[1]",
    *(f"x[0] ** {p}" for p in ("0", "1", "2", "3", "4", "17", "0.0", "1.0", "1.5", "2.0", "2.5", "-0.5")),
    *(f"{base} ** x[0]" for base in ("0.0", "1.0", "2.0")),
    "x[0] ** x[1]", "np.divmod(x[0], x[1])[1]",
    "x[0] * abs(x[0])", "x[0] % 1.0", "np.round(x[0], 1)", "np.hypot(x[0], 0.0)", "np.arctan2(x[0], 0.0)", "np.arctan2(0.0, x[0])",
    "np.copysign(x[0], -1.0)", "0 * x[0]", "np.where(x > 0.0, np.log(x), 0.0)[0]", "np.where(x == 0.0, 1.0, np.sin(x) / x)[0]",
]  # fmt: skip


@pytest.fixture(scope="module")
def elementwise() -> Any:
    lines = ["def f(x, k):"]
    for k, text in enumerate(ELEMENTWISE):
        lines += [f"    if k == {k}:", f"        return float({text})"]
    space: dict[str, Any] = {"np": np, "math": math}
    exec("\n".join([*lines, "    return 0.0 * x[0]"]), space)
    compiled = numba.njit(error_model="numpy")(space["f"])
    return compiled, tg.value_and_grad(compiled), tg.hessian(compiled)


def of_tensors(text: str) -> Callable[..., Any]:
    space: dict[str, Any] = {"np": np, "math": math}
    exec(f"def f(x):\n    return {text}", space)
    return space["f"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("k", range(len(ELEMENTWISE)), ids=ELEMENTWISE)
def test_elementwise_functions_have_the_derivatives_of_tensors(elementwise: Any, k: int) -> None:
    compiled, value_and_gradient, _ = elementwise
    f = of_tensors(ELEMENTWISE[k])
    for pair in PAIRS:
        point = np.array(pair, float)
        value, gradient = value_and_gradient(point, k)
        with np.errstate(all="ignore"):
            expected_value, expected = tg.value_and_grad(f)(point)
        np.testing.assert_equal(value, compiled(point, k), err_msg=str(pair))
        if not math.isnan(value):
            np.testing.assert_allclose(value, expected_value, rtol=1e-14, err_msg=str(pair))
            np.testing.assert_allclose(gradient, expected, rtol=1e-13, err_msg=str(pair))


@pytest.mark.parametrize("k", range(len(ELEMENTWISE)), ids=ELEMENTWISE)
def test_elementwise_functions_have_the_second_derivatives_of_tensors(elementwise: Any, k: int) -> None:
    compiled, _, hessian = elementwise
    expected = tg.hessian(of_tensors(ELEMENTWISE[k]))
    for pair in PAIRS:
        point = np.array(pair, float)
        if math.isfinite(compiled(point, k)):
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(hessian(point, k), expected(point), rtol=1e-12, atol=1e-15, err_msg=str(pair))


@numba.njit
def applied(function, x):
    return np.sum(function(x))


@pytest.mark.parametrize("name", ["max", "min", "ptp", "nanmax", "median"])
def test_functions_that_are_arguments_have_the_derivatives_that_they_have_by_name(name: str) -> None:
    space: dict[str, Any] = {"np": np, "applied": applied}
    exec(f"def f(x):\n    return applied(np.{name}, x)", space)
    point = np.array([1.0, 1.0, 2.0, 2.0])
    np.testing.assert_array_equal(tg.grad(numba.njit(space["f"]))(point), tg.grad(of_tensors(f"np.{name}(x)"))(point))
