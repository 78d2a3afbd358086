"""Bounds and constraints of minima that are differentiated: which hold is decided without regard to units, or refused."""

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import optimize

SCALES = [(1e-8, 1e-6), (1e-8, 1.0), (1.0, 1e-6), (1.0, 1.0), (1.0, 1e6), (1e8, 1e-6), (1e8, 1.0), (1e8, 1e6)]


@pytest.mark.parametrize(("a", "d"), SCALES)
def test_bounds_do_not_depend_on_scale(a: float, d: float) -> None:
    def project(c: Any) -> Any:
        def f(x: Any) -> Any:
            y = x / d - c
            return a * ((y * y).sum() + 0.2 * y[0] * y[1])

        # L-BFGS-B itself compares gradients with distances from bounds, and stops where it starts if these are small.
        method = "TNC" if d < 1.0 else "L-BFGS-B"
        options = {"ftol": 0.0, "gtol": 1e-11 * a / d}
        return optimize.minimize(f, np.full(3, 0.5 * d), method=method, bounds=[(0.0, d)] * 3, options=options).x / d

    # Two are held, and one is free that is near its bound.
    np.testing.assert_allclose(tg.jacobian(project)(np.array([-1.0, -0.3, 0.002])), np.diag([0.0, 0.0, 1.0]), atol=1e-6)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
@pytest.mark.parametrize("u", [1e-4, 1.0, 1e4])
def test_constraints_do_not_depend_on_scale(method: str, u: float) -> None:
    def project(p: Any) -> Any:
        constraints = [optimize.inequality(lambda x: u * (x[0] - p[0])), optimize.inequality(lambda x: u * (x[1] + 0.005))]
        options = {"ftol": 1e-14} if method == "SLSQP" else {"gtol": 1e-10, "xtol": 1e-14}
        f = lambda x: ((x - p[1:]) ** 2).sum()  # noqa: E731
        return optimize.minimize(f, [1.0, 1.0], method=method, constraints=constraints, options=options).x

    expected = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # the first constraint holds, the second is only near
    np.testing.assert_allclose(tg.jacobian(project)(np.array([0.5, 0.2, 0.0])), expected, atol=1e-6)


def test_a_free_variable_near_its_bound_under_a_steep_objective() -> None:
    def solve(p: Any) -> Any:
        return optimize.minimize(lambda x: 1e8 * ((x - p) ** 4 + (x - p) ** 2).sum(), [1.0, 0.5], bounds=[(0, None)] * 2).x

    np.testing.assert_allclose(tg.jacobian(solve)(0.002), [1.0, 1.0], rtol=1e-9)


def test_all_variables_may_be_held() -> None:
    solve = lambda p: optimize.minimize(lambda x: ((x - p) ** 2).sum(), [1.0, 2.0], bounds=[(0, None)] * 2)  # noqa: E731
    np.testing.assert_array_equal(tg.jacobian(lambda p: solve(p).x)(-1.0), [0.0, 0.0])
    assert tg.grad(lambda p: solve(p).fun)(-1.0) == pytest.approx(-4.0)
    assert tg.grad(tg.grad(lambda p: solve(p).fun))(-1.0) == pytest.approx(4.0)


def test_all_variables_may_be_determined_by_constraints() -> None:
    def vertex(p: Any) -> Any:
        constraints = [optimize.inequality(lambda x: x[0] - p[0]), optimize.inequality(lambda x: x[1] - p[0] * p[1])]
        return optimize.minimize(lambda x: x[0] + 2.0 * x[1], [3.0, 3.0], constraints=constraints, method="SLSQP", tol=1e-12).x

    np.testing.assert_allclose(tg.jacobian(vertex)(np.array([0.5, 2.0])), [[1.0, 0.0], [2.0, 0.5]], atol=1e-9)


@pytest.mark.parametrize("method", ["L-BFGS-B", "SLSQP", "trust-constr", "Nelder-Mead"])
def test_a_bound_that_begins_to_hold_is_refused(method: str) -> None:
    def solve(p: Any) -> Any:
        return optimize.minimize(lambda x: ((x - p) ** 2).sum(), [0.7, 0.5], method=method, bounds=[(0.3, None)] * 2, tol=1e-9).x

    with pytest.raises(RuntimeError, match=r"not clear whether the bound 0.3 of variable 0 .*both about zero"):
        tg.jacobian(solve)(0.3)


def test_a_constraint_that_begins_to_hold_is_refused() -> None:
    def solve(p: Any) -> Any:
        above = optimize.inequality(lambda x: x[0] + x[1] - 1.0)
        return optimize.minimize(lambda x: ((x - p) ** 2).sum(), [2.0, 1.0], method="SLSQP", constraints=above, tol=1e-12).x

    with pytest.raises(RuntimeError, match=r"not clear whether the limit 0 of constraint 0 .*both about zero"):
        tg.jacobian(solve)(0.5)


def test_variables_held_where_the_gradient_is_infinite() -> None:
    def solve(p: Any) -> Any:
        return optimize.minimize(
            lambda x: np.sqrt(x[0]) + (x[1] - p) ** 2 * (1.0 + x[0]),
            [0.0, 0.5],
            method="Nelder-Mead",
            bounds=[(0, None)] * 2,
            tol=1e-9,
        ).x

    np.testing.assert_allclose(tg.jacobian(solve)(1.5), [0.0, 1.0], atol=1e-9)


@pytest.mark.parametrize("method", ["trf", "dogbox"])
def test_bounds_of_least_squares(method: str) -> None:
    t = np.linspace(0.0, 1.0, 5)

    def fit(p: Any) -> Any:
        residual = lambda x: x[0] + x[1] * t - p * (2.0 - 3.0 * t)  # noqa: E731
        return optimize.least_squares(residual, [0.1, 0.1], bounds=([-5.0, -1.0], [5.0, 5.0]), method=method, xtol=1e-14).x

    # The slope is held at -1, and the intercept is the mean of what is left.
    np.testing.assert_allclose(tg.jacobian(fit)(1.0), [0.5, 0.0], atol=1e-8)


# Least squares without a unique solution.


@pytest.mark.parametrize("change", [0.0, 1e-13, 1e-9])
@pytest.mark.parametrize("d", [1e-6, 1.0, 1e6])
def test_nearly_singular_least_squares_are_refused(change: float, d: float) -> None:
    t = np.linspace(0.0, 1.0, 6)
    design = np.stack([np.cos(t), 2.0 * np.cos(t) + change * t], axis=1) * [d, 1.0]

    def fit(p: Any) -> Any:
        return optimize.least_squares(lambda x: design @ x - p * np.exp(t), [1.0 / d, 1.0]).x

    with pytest.raises(RuntimeError, match="singular"):
        tg.jacobian(fit)(1.0)


def test_least_squares_of_fewer_residuals_than_variables_are_refused() -> None:
    with pytest.raises(RuntimeError, match="singular"):
        tg.jacobian(lambda p: optimize.least_squares(lambda x: [x[0] * x[1] - p], [1.0, 2.0]).x)(3.0)


@pytest.mark.parametrize("d", [1e-8, 1.0, 1e8])
def test_units_of_variables_make_no_equations_singular(d: float) -> None:
    t = np.linspace(0.0, 1.0, 6)

    def fit(p: Any) -> Any:
        return optimize.least_squares(lambda x: x[0] / d + x[1] * t - p * t, [0.5 * d, 1.0], x_scale=[d, 1.0], xtol=1e-14).x

    np.testing.assert_allclose(tg.jacobian(fit)(2.0), [0.0, 1.0], atol=1e-8 * max(d, 1.0))


# Results of functions in lists, and constraints with a Jacobian of the user's.


def test_equations_in_lists() -> None:
    x = lambda p: optimize.root(lambda x: [x[0] + p, [x[1] * p - 1.0]], [0.5, 0.5]).x  # noqa: E731
    np.testing.assert_allclose(tg.jacobian(x)(2.0), [-1.0, -0.25], rtol=1e-9)
    x = lambda p: optimize.fixed_point(lambda x: (0.5 * x[0] + p, [0.1 * x[1]]), [0.5, 0.5])  # noqa: E731
    np.testing.assert_allclose(tg.jacobian(x)(2.0), [2.0, 0.0], rtol=1e-9)


def test_residuals_in_lists_may_hold_integers() -> None:
    fit = lambda p: optimize.least_squares(lambda x: [x[0] - p, 2.0 * x[1] + p, 0], [0.5, 0.5]).x  # noqa: E731
    np.testing.assert_allclose(tg.jacobian(fit)(2.0), [1.0, -0.5], rtol=1e-9)


@pytest.mark.parametrize("jacobian", [lambda x, q: [q, 0.0], lambda x, q: [[q, 0.0]], None])
def test_constraints_with_a_jacobian_of_their_own_of_tracked_numbers(jacobian: Any) -> None:
    def solve(q: Any) -> Any:
        constraint = {"type": "eq", "fun": lambda x, q: x[0] * q - 3.0, "args": (q,), "jac": jacobian}
        return optimize.minimize(lambda x: ((x - 1.0) ** 2).sum(), [0.5, 0.5], method="SLSQP", constraints=constraint, tol=1e-12).x

    np.testing.assert_allclose(tg.jacobian(solve)(2.0), [-0.75, 0.0], atol=1e-9)


def test_tracked_bounds_say_what_to_write() -> None:
    w = tg.tensor(0.0, requires_grad=True)
    with pytest.raises(NotImplementedError, match=r"least_squares: bounds that are tracked.*tg.optimize.minimize with constraints"):
        optimize.least_squares(lambda x: x - 1.0, [0.5], bounds=(w, 4.0))
    with pytest.raises(NotImplementedError, match="curve_fit: bounds that are tracked"):
        optimize.curve_fit(lambda t, a: a * t, np.arange(3.0), np.arange(3.0), [1.0], bounds=([w], [4.0]))


def test_a_kink_of_a_variable_that_is_held_is_refused() -> None:
    # For p above zero the solution is p, below it the bound holds.
    solve = lambda p: optimize.minimize(lambda x: 2.0 * abs(x - p) + x, 0.0, method="Nelder-Mead", bounds=[(0, None)]).x  # noqa: E731
    with pytest.raises(RuntimeError, match="the result sits at a kink"):
        tg.grad(solve)(0.0)


def test_constraints_that_follow_from_each_other_are_refused() -> None:
    def solve(p: Any) -> Any:
        twice = optimize.inequality(lambda x: x)
        return optimize.minimize(
            lambda x: ((x - p) ** 2).sum(), [1.0, 1.0], method="SLSQP", bounds=[(0, None)] * 2, constraints=twice
        ).x

    with pytest.raises(RuntimeError, match="not independent of each other"):
        tg.jacobian(solve)(-1.0)


def test_a_portfolio_with_weights_at_zero() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    covariance, expected = root @ root.T + np.eye(6), rng.normal(size=6)

    def weights(mu: Any) -> Any:
        budget = optimize.equality(lambda w: w.sum() - 1.0)
        f = lambda w: 0.5 * w @ (covariance @ w) - mu @ w  # noqa: E731
        return optimize.minimize(f, np.full(6, 1.0 / 6.0), method="SLSQP", bounds=[(0, None)] * 6, constraints=budget).x

    with tg.no_grad():
        held = weights(expected) < 1e-6
    free = ~held
    inverse = np.linalg.inv(covariance[np.ix_(free, free)])
    truth = np.zeros((6, 6))
    truth[np.ix_(free, free)] = inverse - np.outer(inverse.sum(0), inverse.sum(1)) / inverse.sum()
    assert 0 < held.sum() < 6
    np.testing.assert_allclose(tg.jacobian(weights)(expected), truth, atol=1e-9)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_many_variables_by_solvers_with_loose_tolerances(method: str) -> None:
    rng, n = np.random.default_rng(1), 60
    root = rng.normal(size=(n, n))
    hessian, normals, c = root @ root.T / n + np.eye(n), rng.normal(size=(20, n)), rng.normal(size=n)

    def solve(c: Any) -> Any:
        below = optimize.inequality(lambda x: 0.3 - normals @ x)
        return optimize.minimize(lambda x: 0.5 * x @ (hessian @ x) - c @ x, np.zeros(n), method=method, constraints=below).x

    with tg.no_grad():
        active = normals[abs(0.3 - normals @ solve(c)) < 1e-4]
    zeros = np.zeros((len(active),) * 2)
    truth = np.linalg.inv(np.block([[hessian, active.T], [active, zeros]]))[:n, :n]
    assert 0 < len(active) < 20
    np.testing.assert_allclose(tg.jacobian(solve)(c), truth, atol=1e-9)
    weights = np.cos(np.arange(n))
    # The solution is linear in c, so its square has the Hessian of the truth.
    hessian_of_square = tg.hvp(lambda c: 0.5 * ((weights * solve(c)) ** 2).sum(), c, np.ones(n))
    np.testing.assert_allclose(hessian_of_square, truth.T @ (weights**2 * (truth @ np.ones(n))), atol=1e-8)
