"""Solvers keep how they came to their results, show it on request, and tell callbacks."""

from __future__ import annotations

import copy
import io
import pickle
import sys
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import optimize

METHODS = [
    "CG",
    "BFGS",
    "L-BFGS-B",
    "TNC",
    "SLSQP",
    "Newton-CG",
    "trust-ncg",
    "trust-exact",
    "trust-constr",
    "dogleg",
    "Nelder-Mead",
]


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def bowl(x: Any) -> Any:
    return ((x - 1.0) ** 2).sum() + 0.1 * (x**4).sum()


def residual(x: Any) -> Any:
    return np.stack([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]])


@pytest.mark.parametrize("method", METHODS)
def test_history_of_every_method_begins_at_the_start_and_ends_at_the_result(method: str) -> None:
    result = optimize.minimize(bowl, np.array([3.0, -1.0]), method=method)
    history = result.history
    assert history[0] == (0, bowl(np.array([3.0, -1.0])), np.abs(tg.grad(bowl)(np.array([3.0, -1.0]))).max(), 1)
    assert history[-1].objective == pytest.approx(result.fun, abs=1e-6)
    assert list(history.iteration) == list(range(len(history)))
    assert (np.diff(history.evaluations) >= 0).all()
    if method not in ("TNC", "trust-constr", "Nelder-Mead"):  # whose count is another one
        assert len(history) == result.nit + 1


def test_gradient_norm_is_that_at_the_point() -> None:
    seen: list[Any] = []
    result = optimize.minimize(rosenbrock, [0.0, 0.0], method="BFGS", callback=lambda x: seen.append(x.copy()))
    expected = [np.abs(tg.grad(rosenbrock)(x)).max() for x in seen]
    np.testing.assert_allclose(result.history.gradient_norm[1:], expected)
    np.testing.assert_allclose(result.history.objective[1:], [rosenbrock(x) for x in seen])


def test_no_further_evaluation_is_made_for_it() -> None:
    result = optimize.minimize(bowl, [3.0, -1.0], method="BFGS")
    assert result.history[-1].evaluations == result.nfev == result.njev


def test_least_squares_has_an_entry_for_each_jacobian() -> None:
    seen: list[Any] = []
    result = optimize.least_squares(residual, [-1.2, 1.0], callback=seen.append)
    assert len(result.history) == result.njev == len(seen) + 1
    assert result.history[0].objective == 0.5 * (residual(np.array([-1.2, 1.0])) ** 2).sum()
    assert result.history[-1].objective == pytest.approx(result.cost, abs=1e-12)
    assert result.history[-1].gradient_norm == pytest.approx(result.optimality, abs=1e-9)


def test_least_squares_with_sparse_jacobians_and_structured_variables() -> None:
    seen: list[Any] = []
    result = optimize.least_squares(lambda p: p["a"] - np.arange(3.0), {"a": np.zeros(3)}, sparse=True, callback=seen.append)
    assert result.history[0].gradient_norm == 2.0
    assert all(set(p) == {"a"} for p in seen)


def test_curve_fit_tells_its_callback() -> None:
    seen: list[Any] = []
    t = np.linspace(0.0, 2.0, 20)
    optimize.curve_fit(lambda t, a, k: a * np.exp(-k * t), t, 3.0 * np.exp(-0.7 * t), [1.0, 1.0], callback=seen.append)
    assert len(seen) > 1
    np.testing.assert_allclose(seen[-1], [3.0, 0.7], rtol=1e-4)


@pytest.mark.parametrize("method", ["hybr", "lm", "krylov"])
def test_roots_have_the_size_of_the_residual(method: str) -> None:
    seen: list[Any] = []
    result = optimize.root(lambda x: x**2 - 2.0, [1.0, 3.0], method=method, callback=lambda *x: seen.append(x))
    assert result.history[0].objective == 7.0
    assert result.history[-1].objective < 1e-5
    assert np.isnan(result.history.gradient_norm).all()
    assert seen


def test_sparse_newton_has_a_history() -> None:
    result = optimize.root(lambda x: x**2 - 2.0, [1.0, 3.0], sparse=True)
    assert result.history[0].objective == 7.0
    assert result.history[-1].objective < 1e-8


def test_fixed_points_tell_their_callback() -> None:
    seen: list[Any] = []
    assert optimize.fixed_point(lambda x: 0.5 * (x + 2.0 / x), 1.0, callback=seen.append) == pytest.approx(2.0**0.5)
    assert seen and all(isinstance(x, float) for x in seen)


@pytest.mark.parametrize(
    "solve",
    [
        lambda: optimize.minimize(bowl, [3.0, -1.0], progress=True),
        lambda: optimize.least_squares(residual, [-1.2, 1.0], progress=True),
        lambda: optimize.curve_fit(lambda t, a: a * t, np.arange(3.0), np.arange(3.0), [2.0], progress=True),
        lambda: optimize.root(lambda x: x**2 - 2.0, [1.0], progress=True),
        lambda: optimize.fixed_point(lambda x: 0.5 * (x + 2.0 / x), 1.0, progress=True),
    ],
)
def test_bars_count_evaluations(solve: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    solve()
    shown = capsys.readouterr().err
    assert " iterations" in shown
    assert "f=" in shown and "evaluations=" in shown


def test_missing_libraries_are_named_with_their_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    result = optimize.minimize(bowl, [3.0, -1.0])
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match=r"progress=True needs tqdm: pip install 'tapegrad\[progress\]'"):
        optimize.minimize(bowl, [3.0, -1.0], progress=True)
    with pytest.raises(ModuleNotFoundError, match=r"plot\(\) needs matplotlib: pip install 'tapegrad\[plot\]'"):
        result.plot()


def test_plot_draws_objective_and_gradient() -> None:
    pytest.importorskip("matplotlib")
    result = optimize.minimize(rosenbrock, [0.0, 0.0, 0.0], method="BFGS")
    figure = result.plot()
    objective, norms = figure.axes
    np.testing.assert_array_equal(objective.lines[0].get_ydata(), result.history.objective)
    np.testing.assert_array_equal(norms.lines[0].get_ydata(), result.history.gradient_norm)
    file = io.BytesIO()
    figure.savefig(file, format="png")
    assert file.getvalue().startswith(b"\x89PNG")


def test_plot_takes_axes_and_roots() -> None:
    figure_module = pytest.importorskip("matplotlib.figure")
    figure = figure_module.Figure()
    axes = figure.add_subplot()
    assert optimize.root(lambda x: x**2 - 2.0, [1.0]).plot(axes) is figure
    assert len(figure.axes) == 1


def test_results_in_notebooks() -> None:
    shown = optimize.minimize(bowl, [3.0, -1.0])._repr_html_()
    texts = [text for text in ElementTree.fromstring(f"<div>{shown}</div>").itertext() if text.strip()]
    assert {"success", "True", "objective", "iterations", "x"} <= set(texts)
    assert "<polyline" in shown
    shown = optimize.least_squares(lambda p: [p["a"] - 1.0], {"a": 0.0})._repr_html_()
    ElementTree.fromstring(f"<div>{shown}</div>")


def test_results_are_scipys_otherwise_and_are_copied_with_their_history() -> None:
    result = optimize.minimize(bowl, [3.0, -1.0])
    assert "history" not in result
    for other in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert list(other.history) == list(result.history)
        np.testing.assert_array_equal(other.x, result.x)
    with pytest.raises(AttributeError, match="but no gradients"):
        _ = result.history.gradients
