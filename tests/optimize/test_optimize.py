"""SciPy's optimisers with exact derivatives: standard problems by every method, structures, constraints, and what is refused."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import optimize as scipy_optimize

import tapegrad as tg
from tapegrad import optimize


def rosenbrock(x: Any) -> Any:
    return 100.0 * ((x[1:] - x[:-1] ** 2) ** 2).sum() + ((1.0 - x[:-1]) ** 2).sum()


def powell(x: Any) -> Any:
    return (x[0] + 10.0 * x[1]) ** 2 + 5.0 * (x[2] - x[3]) ** 2 + (x[1] - 2.0 * x[2]) ** 4 + 10.0 * (x[0] - x[3]) ** 4


def wood(x: Any) -> Any:
    a = 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2 + 90.0 * (x[3] - x[2] ** 2) ** 2 + (1.0 - x[2]) ** 2
    return a + 10.1 * ((x[1] - 1.0) ** 2 + (x[3] - 1.0) ** 2) + 19.8 * (x[1] - 1.0) * (x[3] - 1.0)


def beale(x: Any) -> Any:
    a, b = x[0], x[1]
    return (1.5 - a + a * b) ** 2 + (2.25 - a + a * b**2) ** 2 + (2.625 - a + a * b**3) ** 2


def himmelblau(x: Any) -> Any:
    return (x[0] ** 2 + x[1] - 11.0) ** 2 + (x[0] + x[1] ** 2 - 7.0) ** 2


# Function, starting point, minimiser.
PROBLEMS: dict[str, tuple[Callable[[Any], Any], list[float], list[float]]] = {
    "rosenbrock": (rosenbrock, [-1.2, 1.0, 0.5], [1.0, 1.0, 1.0]),
    "powell": (powell, [3.0, -1.0, 0.0, 1.0], [0.0] * 4),
    "wood": (wood, [-3.0, -1.0, -3.0, -1.0], [1.0] * 4),
    "beale": (beale, [1.0, 1.0], [3.0, 0.5]),
    "himmelblau": (himmelblau, [2.5, 2.5], [3.0, 2.0]),
}
METHODS = [
    "CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", "Newton-CG", "trust-ncg", "trust-krylov", "trust-exact", "trust-constr",
]  # fmt: skip


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("method", METHODS)
def test_standard_problems(problem: str, method: str) -> None:
    f, x0, expected = PROBLEMS[problem]
    options = {"maxiter": 3000} if method != "TNC" else {"maxfun": 5000}
    result = optimize.minimize(f, x0, method=method, tol=1e-7 if method == "trust-krylov" else 1e-10, options=options)
    assert isinstance(result, scipy_optimize.OptimizeResult)
    assert f(result.x) < 1e-6  # all of them are zero at the minimum; line searches may stop for rounding just before
    np.testing.assert_allclose(result.x, expected, atol=0.1 if problem == "powell" else 1e-3)


@pytest.mark.parametrize("method", ["Nelder-Mead", "Powell", "COBYLA"])
def test_methods_without_derivatives(method: str) -> None:
    result = optimize.minimize(lambda x: ((x - 1.0) ** 2).sum(), [3.0, 2.0], method=method, tol=1e-8)
    np.testing.assert_allclose(result.x, [1.0, 1.0], atol=1e-3)


def test_dogleg_on_a_convex_function() -> None:
    result = optimize.minimize(lambda x: (np.exp(x) - x).sum() + (x**2).sum(), [2.0, -1.0], method="dogleg", tol=1e-8)
    np.testing.assert_allclose(np.exp(result.x) + 2.0 * result.x, 1.0, atol=1e-6)


@pytest.mark.parametrize("method", ["L-BFGS-B", "SLSQP", "trust-ncg", "trust-exact", "trust-constr"])
def test_each_point_is_recorded_once(method: str) -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(tuple(tg.stop_gradient(x).tolist()))
        return rosenbrock(x)

    optimize.minimize(f, [-1.2, 1.0], method=method)
    assert len(seen) <= len(set(seen)) + 1  # and once more at the solution, to see what it depends on
    assert len(seen) > 5


def test_structured_variables() -> None:
    def f(p: Any) -> Any:
        return (p["x"] - 1.0) ** 2 + ((p["y"] - np.array([2.0, 3.0])) ** 2).sum()

    result = optimize.minimize(f, {"x": 0.0, "y": np.zeros(2)}, method="BFGS")
    assert type(result.x["x"]) is float
    assert result.x["x"] == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(result.x["y"], [2.0, 3.0], atol=1e-6)
    np.testing.assert_allclose(result.flat, [1.0, 2.0, 3.0], atol=1e-6)


def test_matrices_and_further_arguments() -> None:
    target = np.arange(6.0).reshape(2, 3)
    result = optimize.minimize(lambda x, t: ((x - t) ** 2).sum(), np.zeros((2, 3)), (target,))
    np.testing.assert_allclose(result.x, target, atol=1e-6)


def test_bounds() -> None:
    result = optimize.minimize(lambda x: ((x - 2.0) ** 2).sum(), [0.0, 0.0], bounds=[(0.0, 1.0), (0.0, 5.0)])
    np.testing.assert_allclose(result.x, [1.0, 2.0], atol=1e-6)


HS071 = [1.0, 4.74299963, 3.82114998, 1.37940829]


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_hs071(method: str) -> None:
    result = optimize.minimize(
        lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2],
        [1.0, 5.0, 5.0, 1.0],
        method=method,
        bounds=[(1.0, 5.0)] * 4,
        constraints=[optimize.inequality(lambda x: x.prod() - 25.0), optimize.equality(lambda x: (x * x).sum() - 40.0)],
        tol=1e-9,
    )
    np.testing.assert_allclose(result.x, HS071, atol=1e-4)


def test_constraints_in_scipys_older_form_get_a_jacobian() -> None:
    constraint = {"type": "eq", "fun": lambda x, r: (x * x).sum() - r, "args": (2.0,)}
    result = optimize.minimize(lambda x: x.sum(), [1.0, -2.0], constraints=constraint, tol=1e-10)
    np.testing.assert_allclose(result.x, [-1.0, -1.0], atol=1e-6)


def test_constraints_of_structured_variables() -> None:
    result = optimize.minimize(
        lambda p: p["x"] + p["y"],
        {"x": 1.0, "y": -2.0},
        method="trust-constr",
        constraints=optimize.between(lambda p: p["x"] ** 2 + p["y"] ** 2, 0.0, 2.0),
    )
    np.testing.assert_allclose([result.x["x"], result.x["y"]], [-1.0, -1.0], atol=1e-3)


def test_a_constraint_for_scipy_itself() -> None:
    made = optimize.between(lambda x: np.stack([x[0] * x[1], x[0] ** 2]), 0.0, 1.0).to_scipy(np.zeros(2))
    x = np.array([2.0, 3.0])
    np.testing.assert_array_equal(made.fun(x), [6.0, 4.0])
    np.testing.assert_array_equal(made.jac(x), [[3.0, 2.0], [4.0, 0.0]])
    np.testing.assert_array_equal(made.hess(x, np.array([1.0, 10.0])), [[20.0, 1.0], [1.0, 0.0]])


def test_constraints_with_a_jacobian_of_their_own_take_the_structured_variable() -> None:
    for jacobian in (None, lambda p: np.array([p["y"] ** 0, 0.0])):
        constraint = {"type": "ineq", "fun": lambda p: p["x"] - 2.0, "jac": jacobian}
        result = optimize.minimize(lambda p: p["x"] ** 2 + (p["y"] - 1.0) ** 2, {"x": 3.0, "y": 2.0}, constraints=constraint)
        assert result.x["x"] == pytest.approx(2.0)


def test_constraints_of_second_order_run_the_function_once_for_each_point() -> None:
    seen = []

    def circle(x: Any) -> Any:
        seen.append(tuple(tg.stop_gradient(x).tolist()))
        return (x * x).sum() - 2.0

    result = optimize.minimize(
        lambda x: x.sum(), [1.0, -2.0], method="trust-constr", constraints=optimize.equality(circle), options={"gtol": 1e-9}
    )
    np.testing.assert_allclose(result.x, [-1.0, -1.0], atol=1e-6)
    assert len(seen) <= len(set(seen)) + 1  # and once more at the solution, to see what it depends on


@pytest.mark.parametrize("args", [2.0, (2.0,)])
def test_one_further_argument(args: Any) -> None:
    assert optimize.minimize(lambda x, c: ((x - c) ** 2).sum(), [0.0], args).x[0] == pytest.approx(2.0)
    assert optimize.least_squares(lambda x, c: x - c, [0.0], args).x[0] == pytest.approx(2.0)
    assert optimize.root(lambda x, c: x - c, [0.0], args).x[0] == pytest.approx(2.0)


def test_further_arguments_by_keyword() -> None:
    assert optimize.least_squares(lambda x, c=0.0: x - c, [0.0], kwargs={"c": 2.0}).x[0] == pytest.approx(2.0)


def test_callbacks_get_the_state_if_they_take_it() -> None:
    seen: list[Any] = []
    optimize.minimize(
        lambda p: (p["x"] - 1.0) ** 2, {"x": 0.0}, method="trust-constr", callback=lambda p, state: seen.append((p["x"], state.nit))
    )
    assert [nit for _, nit in seen] == list(range(1, len(seen) + 1))
    assert seen[-1][0] == pytest.approx(1.0)


def test_callbacks_get_the_structured_variable() -> None:
    seen: list[Any] = []
    optimize.minimize(lambda p: (p["x"] - 1.0) ** 2, {"x": 0.0}, method="BFGS", callback=seen.append)
    assert seen
    assert set(seen[-1]) == {"x"}


def test_callbacks_in_scipys_newer_form() -> None:
    seen = []

    def callback(intermediate_result: Any) -> None:
        seen.append(intermediate_result.fun)

    optimize.minimize(rosenbrock, [0.0, 0.0], method="BFGS", callback=callback)
    assert seen[-1] < seen[0]


def test_a_progress_bar(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    optimize.minimize(rosenbrock, [0.0, 0.0], method="BFGS", progress=True)
    assert "iterations" in capsys.readouterr().err


def test_scipy_fun_gives_all_derivatives() -> None:
    fun = optimize.scipy_fun(rosenbrock)
    x, v = np.array([0.5, -1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    value, gradient = fun(x)
    assert value == pytest.approx(scipy_optimize.rosen(x))
    np.testing.assert_allclose(gradient, scipy_optimize.rosen_der(x), rtol=1e-13)
    np.testing.assert_allclose(fun.hess(x), scipy_optimize.rosen_hess(x), rtol=1e-13)
    np.testing.assert_allclose(fun.hessp(x, v), scipy_optimize.rosen_hess_prod(x, v), rtol=1e-12)


def test_scipy_fun_shares_a_recording() -> None:
    fun = optimize.scipy_fun(rosenbrock)
    x = np.array([0.5, -1.0])
    fun.hessp(x, x)
    before = fun.evaluations
    fun(x)
    fun.gradient(x)
    fun.hess(x)
    assert fun.evaluations == before


def test_products_leave_gradients_of_tensors_around_the_function_alone() -> None:
    w = tg.tensor([2.0, 3.0], requires_grad=True)
    fun = optimize.scipy_fun(lambda x: ((x * w - 1.0) ** 2).sum(), np.ones(2))
    np.testing.assert_array_equal(fun.hessp(fun.x0, np.ones(2)), [8.0, 18.0])
    value, gradient = fun(fun.x0)  # of a recording that is kept for products
    assert value == 5.0
    np.testing.assert_array_equal(gradient, [4.0, 12.0])
    assert w.grad is None
    (w * w).sum().backward()
    np.testing.assert_array_equal(w.grad, [4.0, 6.0])


def test_scipy_fun_of_a_structured_variable() -> None:
    fun = optimize.scipy_fun(lambda p: p["x"] * (p["y"] ** 2).sum(), {"x": 2.0, "y": np.array([1.0, 3.0])})
    np.testing.assert_array_equal(fun.x0, [2.0, 1.0, 3.0])
    np.testing.assert_array_equal(fun(fun.x0)[1], [10.0, 4.0, 12.0])
    assert fun.structured(fun.x0)["x"] == 2.0


def test_a_point_that_is_changed_in_place_is_another_point() -> None:
    fun = optimize.scipy_fun(lambda x: (x * x).sum())
    x = np.array([1.0, 2.0])
    fun(x)
    x[0] = 5.0
    assert fun(x)[0] == 29.0


def test_a_function_that_was_changed_is_run_again() -> None:
    target = [1.0]
    fun = optimize.scipy_fun(lambda x: ((x - target[0]) ** 2).sum())
    for target[0] in (1.0, 2.0):
        x = scipy_optimize.minimize(fun, np.ones(2), jac=True).x
        np.testing.assert_allclose(x, target[0], atol=1e-6)


def test_a_vector_of_another_length_is_refused() -> None:
    fun = optimize.scipy_fun(lambda x: (x * x).sum(), np.ones(2))
    with pytest.raises(ValueError, match="variable has 2 elements, but the vector has 3"):
        fun(np.ones(3))


def residual(x: Any) -> Any:
    return np.stack([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]])


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(method: str) -> None:
    result = optimize.least_squares(residual, [-1.2, 1.0], method=method)
    np.testing.assert_allclose(result.x, [1.0, 1.0], atol=1e-7)
    np.testing.assert_allclose(result.jac, [[-20.0, 10.0], [-1.0, 0.0]], rtol=1e-5, atol=1e-12)


def test_least_squares_of_structured_variables() -> None:
    result = optimize.least_squares(lambda p: {"one": p["x"] - 1.0, "two": 2.0 * p["y"]}, {"x": 0.0, "y": np.ones(2)})
    assert result.x["x"] == pytest.approx(1.0)
    np.testing.assert_allclose(result.x["y"], 0.0, atol=1e-8)


def test_curve_fit_agrees_with_scipys_own() -> None:
    t = np.linspace(0.0, 3.0, 40)
    y = 3.0 * np.exp(-0.7 * t) + 0.05 * np.cos(37.0 * t)

    def model(t: Any, a: Any, k: Any) -> Any:
        return a * np.exp(-k * t)

    sigma = np.linspace(0.5, 1.5, 40)
    parameters, covariance = optimize.curve_fit(model, t, y, [1.0, 1.0], sigma=sigma)
    expected, expected_covariance = scipy_optimize.curve_fit(model, t, y, [1.0, 1.0], sigma=sigma)
    np.testing.assert_allclose(parameters, expected, rtol=1e-6)
    np.testing.assert_allclose(covariance, expected_covariance, rtol=1e-5)


def line(x: Any, a: Any, b: Any) -> Any:
    return a * x + b


@pytest.mark.parametrize("options", [{}, {"bounds": ([0.0, 0.0], [5.0, 4.0])}], ids=["free", "bounded"])
def test_curve_fit_starts_where_scipys_own_does(options: Any) -> None:
    x = np.arange(5.0)
    np.testing.assert_allclose(optimize.curve_fit(line, x, 2.0 * x + 1.0, **options)[0], [2.0, 1.0], rtol=1e-6)


@pytest.mark.parametrize("x", [[0.0, 1.0, 2.0, 3.0], np.arange(4)], ids=["list", "integers"])
def test_curve_fit_converts_data_as_scipy_does(x: Any) -> None:
    np.testing.assert_allclose(optimize.curve_fit(line, x, [1, 3, 5, 7], [1.0, 1.0])[0], [2.0, 1.0], rtol=1e-6)


def test_curve_fit_leaves_missing_values_out() -> None:
    x, y = np.arange(5.0), np.array([1.0, 3.0, np.nan, 7.0, 9.0])
    np.testing.assert_allclose(optimize.curve_fit(line, x, y, [1.0, 1.0], nan_policy="omit")[0], [2.0, 1.0], rtol=1e-6)


def test_a_jacobian_in_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="col_deriv"):
        optimize.root(residual, [0.0, 0.0], options={"col_deriv": 1})


@pytest.mark.parametrize("method", ["hybr", "lm", "broyden1"])
def test_root(method: str) -> None:
    result = optimize.root(lambda x: np.stack([x[0] ** 2 - x[1], x[0] + x[1] - 2.0]), [0.8, 0.8], method=method)
    np.testing.assert_allclose(result.x, [1.0, 1.0], atol=1e-5)


def _from_two(x: Any) -> Any:
    return sum(((part - 2.0) ** 2).sum() for part in (x.values() if isinstance(x, dict) else [x]))


@pytest.mark.parametrize(
    "x0", [[1, 1, 0], (1, 0.5), np.array([1, 2]), np.array([1], np.uint8), 3, {"a": 1, "b": np.array([3, 4])}], ids=repr
)
def test_integers_to_begin_with_mean_floats_as_in_scipy(x0: Any) -> None:
    found = optimize.minimize(_from_two, x0).x
    for part in found.values() if isinstance(found, dict) else [found]:
        assert np.asarray(part).dtype == np.float64
        np.testing.assert_allclose(part, 2.0, rtol=1e-6)


@pytest.mark.parametrize("solve", [optimize.root, optimize.least_squares, optimize.fixed_point])
def test_other_solvers_take_integers_too(solve: Any) -> None:
    found = solve(lambda x: np.cos(x) if solve is optimize.fixed_point else x**2 - 4.0, [1, 3])
    np.testing.assert_allclose(getattr(found, "x", found), 0.7390851332151607 if solve is optimize.fixed_point else 2.0, rtol=1e-6)


# What is refused.


@pytest.mark.parametrize("x0", [np.zeros(2, bool), [True, False], [1.0, 2j], {"x": 1j}, "x", np.zeros(2, complex)])
def test_variables_that_are_no_real_numbers_are_refused(x0: Any) -> None:
    with pytest.raises(TypeError, match=r"real-valued variables.*Pass floats"):
        optimize.minimize(rosenbrock, x0)


def test_messages_name_the_argument_that_is_wrong() -> None:
    with pytest.raises(TypeError, match="p0 of complex128"):
        tg.optimize.curve_fit(lambda t, a: a * t, np.arange(3.0), np.arange(3.0), [1j])
    with pytest.raises(TypeError, match=r"bounds are 2 pairs .* but got a dict"):
        tg.optimize.minimize(lambda p: p["a"] ** 2 + p["b"] ** 2, {"a": 1.0, "b": 2.0}, bounds={"a": (0.0, 1.0)})


def test_nan_at_the_start_is_refused() -> None:
    with pytest.raises(ValueError, match="nan at x0"):
        optimize.minimize(lambda x: np.log(x).sum(), [-1.0])


def test_a_result_that_left_the_graph_is_refused() -> None:
    with pytest.raises(TypeError, match="would have no derivative"):
        optimize.minimize(lambda x: (x * x).sum().item(), [1.0])


def test_a_result_that_is_no_scalar_is_refused() -> None:
    with pytest.raises(TypeError, match="scalar-output"):
        optimize.minimize(lambda x: x * x, [1.0, 2.0])


def test_optimisers_are_found_in_the_package() -> None:
    assert tg.optimize is optimize


def test_scipy_is_named_with_its_extra_where_it_is_missing() -> None:
    code = "import sys; sys.modules['scipy'] = None; import tapegrad; tapegrad.optimize"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip().endswith("tapegrad.optimize needs SciPy: pip install 'tapegrad[scipy]'")
