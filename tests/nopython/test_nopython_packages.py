"""Functions of packages that people use, unmodified; each test runs where its package is installed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from package_cases import Case, all_cases

import tapegrad as tg

pytestmark = pytest.mark.packages

X = np.random.default_rng(0).random(12) + 0.1


def check(f: Callable[..., Any], point: np.ndarray, *constants: Any, step: float = 1e-6, relative: bool = False) -> None:
    """Compare with central differences. Values may differ in the last bits where a package asks for fast mathematics."""

    def at(x: np.ndarray) -> Any:
        return f(x if x.ndim else float(x), *constants)

    value, gradient = tg.value_and_grad(f)(point if point.ndim else float(point), *constants)
    assert value == pytest.approx(at(point.copy()), rel=1e-12)
    expected = np.zeros_like(point)
    for place in np.ndindex(point.shape):
        by = np.zeros_like(point)
        by[place] = step * abs(point[place]) if relative else step
        expected[place] = (at(point + by) - at(point - by)) / (2.0 * by[place])
    size = abs(point) if relative else 1.0
    scale = abs(expected * size).max()
    np.testing.assert_allclose(gradient * size, expected * size, rtol=30.0 * step, atol=3.0 * step * scale + 1e-9)


def test_numba_stats() -> None:
    norm = pytest.importorskip("numba_stats.norm")
    expon = pytest.importorskip("numba_stats.expon")

    @numba.njit
    def likelihood(p, x):
        return np.sum(norm.logpdf(x, p[0], p[1])) + np.sum(np.log(expon.pdf(x, p[2], p[1]))) + norm.cdf(x, p[0], p[1]).sum()

    check(likelihood, np.array([0.3, 1.2, 0.01]), X)


def test_quantecon() -> None:
    finding = pytest.importorskip("quantecon.optimize.root_finding")
    newton, brentq = finding.newton, finding.brentq

    @numba.njit
    def cubic(y, p):
        return y**3 - p

    @numba.njit
    def slope(y, p):
        return 3 * y**2

    @numba.njit
    def roots(p):
        return newton(cubic, 1.0, slope, args=(p[0],)).root * brentq(cubic, 0.0, 3.0, args=(p[1],)).root

    check(roots, np.array([2.0, 3.0]))


def test_stumpy() -> None:
    stumpy = pytest.importorskip("stumpy.core")
    distances, deviations = stumpy._p_norm_distance_profile, stumpy._rolling_nanstd_1d

    @numba.njit
    def profile(query, series):
        return distances(query, series, 2.0).sum() + (deviations(query, 3) ** 2).sum()

    check(profile, X[:4].copy(), X)


def test_arch() -> None:
    recursion = pytest.importorskip("arch.univariate.recursions_python").garch_recursion

    @numba.njit
    def likelihood(p, residuals):
        n = len(residuals)
        variances, bounds = np.zeros(n), np.ones((n, 2)) * np.array([1e-6, 1e6])
        recursion(p, residuals**2, np.sign(residuals), variances, 1, 0, 1, n, 0.5, bounds)
        return (np.log(variances) + residuals**2 / variances).sum()

    check(likelihood, np.array([0.1, 0.2, 0.6]), X - 0.5)


def test_arch_with_leverage() -> None:
    recursion = pytest.importorskip("arch.univariate.recursions_python").egarch_recursion

    @numba.njit
    def likelihood(p, residuals):
        n = len(residuals)
        variances, bounds = np.zeros(n), np.ones((n, 2)) * np.array([1e-6, 1e6])
        logs, standardised, magnitudes = np.zeros(n), np.zeros(n), np.zeros(n)
        recursion(p, residuals, variances, 1, 1, 1, n, 0.1, bounds, logs, standardised, magnitudes)
        return (np.log(variances) + residuals**2 / variances).sum()

    check(likelihood, np.array([0.01, 0.1, 0.05, 0.9]), X - 0.5)


@numba.njit
def weighted(y):
    """One number of any array, where it is one."""
    total = 0.0
    for k, value in enumerate(np.asarray(y).flat):
        if not np.isnan(value):
            total += value * np.cos(k)
    return total


@pytest.mark.parametrize("case", list(all_cases()), ids=lambda case: f"{case.module.partition('.')[0]}-{case.name}")
def test_functions_of_packages(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_FUNCTION_CACHE_SIZE", "0")  # fluids then leaves its functions out of Numba's cache
    function = getattr(pytest.importorskip(case.module, exc_type=ImportError), case.name)
    if inspect.isfunction(function) and "numba_stats" not in case.module:  # which knows its functions by overloads
        function = numba.njit(function)
    count, place = len(case.arguments), case.differentiated
    names = [f"x[{k}]" if place < 0 else "x" if k == place else f"a{k}" for k in range(count)]
    space: dict[str, Any] = {"function": function, "weighted": weighted}
    constants = [k for k in range(count) if place >= 0 and k != place and not isinstance(case.arguments[k], type)]
    space |= {f"a{k}": value for k, value in enumerate(case.arguments) if isinstance(value, type)}
    parameters = ", ".join(["x", *(f"a{k}" for k in constants)])
    exec(f"def f({parameters}):\n    return weighted(function({', '.join(names)}){case.item})", space)
    point = np.array(case.arguments if place < 0 else case.arguments[place], np.float64)
    check(numba.njit(space["f"]), point, *(case.arguments[k] for k in constants), step=case.step, relative=place < 0)


def test_interpolation() -> None:
    splines = pytest.importorskip("interpolation.splines")
    grid, values = splines.UCGrid((0.0, 1.0, 5)), np.linspace(0.0, 1.0, 5) ** 2
    coefficients = splines.filter_cubic(grid, values)
    linear, cubic = splines.eval_linear, splines.eval_cubic

    @numba.njit
    def evaluated(x):
        return linear(grid, values, x).sum() + cubic(grid, coefficients, x).sum()

    check(evaluated, np.array([[0.3], [0.6]]))
