"""Functions get arrays with NumPy's meaning from optimisers, solvers and checkpoints, in each of the runs that these make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

X = np.array([1.5, -0.5, 2.0, 0.7])
POINTS = np.linspace(0.0, 1.0, 8)


def squares(x: Any, target: Any = 1.0) -> Any:
    """Of deviations, with what NumPy's arrays have and tensors have not, or in another meaning."""
    y = x.copy()
    y[0] *= 2.0
    return ((y - target * np.arange(4.0)) ** 2).sum() + 0.1 * x.std() * x.size


def residuals(x: Any, target: Any = 1.0) -> Any:
    y = x.copy()
    y[0] = 2.0 * x[0]
    return y - target * (1.0 + 0.1 * x.std())


def model(t: Any, a: Any, b: Any) -> Any:
    assert a.copy().size == 1
    return a * np.exp(b * t)


SOLVERS: dict[str, Callable[[Any], Any]] = {
    "minimize": lambda p: tg.optimize.minimize(lambda x: squares(x, p), X, method="BFGS").fun,
    "least_squares": lambda p: tg.optimize.least_squares(lambda x: residuals(x, p), X).x.sum(),
    "root": lambda p: tg.optimize.root(lambda x: residuals(x, p), X).x.sum(),
    "curve_fit": lambda p: tg.optimize.curve_fit(model, POINTS, 2.0 * np.exp(-POINTS), p0=[1.0, 0.0])[0].sum() * p,
}


@pytest.mark.parametrize("name", SOLVERS)
def test_functions_of_numpy_are_solved(name: str) -> None:
    assert np.isfinite(SOLVERS[name](1.0))


@pytest.mark.parametrize("name", SOLVERS)
def test_solutions_of_functions_of_numpy_have_derivatives(name: str) -> None:
    solve = SOLVERS[name]
    step = (solve(1.0 + 1e-4) - solve(1.0 - 1e-4)) / 2e-4
    np.testing.assert_allclose(tg.grad(solve)(1.0), step, rtol=1e-4, atol=1e-5)


def test_a_checkpoint_runs_again_with_arrays_and_gives_arrays() -> None:
    def piece(x: Any) -> Any:
        return x.copy()[::-1] * x.std()

    def f(x: Any, run: Any) -> Any:
        y = run(2.0 * x)
        return y.std() + y.sum()

    np.testing.assert_allclose(tg.grad(f)(X, tg.checkpoint(piece)), tg.grad(f)(X, piece), rtol=1e-14)
