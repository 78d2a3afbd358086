"""Functions of packages that people use, unmodified; each test runs where its package is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.packages

X = np.random.default_rng(0).random(12) + 0.1


def check(f: Callable[..., Any], point: np.ndarray, *constants: Any) -> None:
    """Compare with central differences. Values may differ in the last bits where a package asks for fast mathematics."""
    value, gradient = tg.value_and_grad(f)(point, *constants)
    assert value == pytest.approx(f(point.copy(), *constants), rel=1e-13)
    for place in np.ndindex(point.shape):
        step = np.zeros_like(point)
        step[place] = 1e-6
        expected = (f(point + step, *constants) - f(point - step, *constants)) / 2e-6
        assert gradient[place] == pytest.approx(expected, rel=1e-5, abs=1e-6)


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

    check(profile, X[:4], X)


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


def test_fluids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_FUNCTION_CACHE_SIZE", "0")  # the package then leaves its functions out of Numba's cache
    fluids = pytest.importorskip("fluids.numba")
    implicit, explicit, drag, bend = fluids.Colebrook, fluids.Churchill_1977, fluids.Barati, fluids.bend_rounded

    @numba.njit
    def losses(p):
        reynolds, roughness = 1e5 * p[0], 1e-4 * p[1]
        friction = implicit(reynolds, roughness)
        return friction + explicit(reynolds, roughness) + drag(200.0 * p[2]) + bend(p[2], 30.0 * p[3], friction)

    check(losses, np.array([1.0, 1.2, 0.9, 1.1]))


METRICS = ["euclidean", "canberra", "cosine", "correlation", "bray_curtis", "hellinger", "poincare", "minkowski", "symmetric_kl"]


@pytest.mark.parametrize("metric", METRICS)
def test_umap(metric: str) -> None:
    distance = getattr(pytest.importorskip("umap.distances"), metric)

    @numba.njit
    def between(a, b):
        return distance(a, b)

    check(between, X[:5] / 5, X[5:10] / 7)


def test_interpolation() -> None:
    splines = pytest.importorskip("interpolation.splines")
    grid, values = splines.UCGrid((0.0, 1.0, 5)), np.linspace(0.0, 1.0, 5) ** 2
    coefficients = splines.filter_cubic(grid, values)
    linear, cubic = splines.eval_linear, splines.eval_cubic

    @numba.njit
    def evaluated(x):
        return linear(grid, values, x).sum() + cubic(grid, coefficients, x).sum()

    check(evaluated, np.array([[0.3], [0.6]]))
