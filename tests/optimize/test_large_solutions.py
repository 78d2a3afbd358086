"""Derivatives of solutions by sparse factors and by products are those of dense matrices, and of closed forms."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import cg

import tapegrad as tg
from tapegrad.optimize.linear_systems import DENSE

optimize: Any = tg.optimize

SOLVERS = ["sparse", "gmres", "minres", lambda operator, right: cg(operator, right, rtol=1e-13)]
NAMES = ["sparse", "gmres", "minres", "the user's own"]
each_solver = pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
with_signs = pytest.mark.parametrize("solver", SOLVERS[:2], ids=NAMES[:2])  # what constraints add is not symmetric


def smooth(x: Any, p: Any) -> Any:
    return ((x - np.sin(np.arange(x.size))) ** 2).sum() + p * (np.diff(x) ** 2).sum() + 0.1 * (x**4).sum()


def stiffness(n: int, p: float) -> Any:
    """Matrix of the linear equations ``2 x + p (2 x[i] - x[i-1] - x[i+1]) = b``."""
    return np.diag(np.full(n, 2.0 + 2.0 * p)) - p * (np.eye(n, k=1) + np.eye(n, k=-1))


def balance(x: Any, p: Any, b: Any) -> Any:
    padded = np.concatenate([np.zeros(1), x, np.zeros(1)])
    return 2.0 * x + p * (2.0 * x - padded[2:] - padded[:-2]) - b


@each_solver
def test_roots_by_a_parameter(solver: Any) -> None:
    b = np.cos(np.arange(30.0))
    given = tg.jacobian(lambda p: optimize.root(balance, np.zeros(30), (p, b), tol=1e-12, solver=solver).x)(1.5)
    matrix = stiffness(30, 1.5)
    by_p = stiffness(30, 1.0) - stiffness(30, 0.0)
    np.testing.assert_allclose(given, -np.linalg.solve(matrix, by_p @ np.linalg.solve(matrix, b)), rtol=1e-9, atol=1e-12)


@each_solver
def test_roots_by_many_parameters(solver: Any) -> None:
    b, weights = np.cos(np.arange(30.0)), np.arange(30.0)
    given = tg.grad(lambda b: (weights * optimize.root(balance, np.zeros(30), (1.5, b), tol=1e-12, solver=solver).x).sum())(b)
    np.testing.assert_allclose(given, np.linalg.solve(stiffness(30, 1.5), weights), rtol=1e-9)


def test_roots_of_systems_that_are_not_symmetric() -> None:
    matrix = np.eye(20) * 3.0 + np.eye(20, k=1) - 0.5 * np.eye(20, k=-2)
    weights = np.arange(20.0)

    def loss(b: Any, solver: Any) -> Any:
        return (weights * optimize.root(lambda x, b: matrix @ x - b, np.zeros(20), (b,), tol=1e-12, solver=solver).x).sum()

    for solver in ("sparse", "gmres"):
        np.testing.assert_allclose(tg.grad(loss)(np.ones(20), solver), np.linalg.solve(matrix.T, weights), rtol=1e-9)


@each_solver
def test_fixed_points(solver: Any) -> None:
    def point(p: Any) -> Any:
        return optimize.fixed_point(lambda x, p: 0.5 * np.cos(x) * p, np.full(10, 0.4), (p,), xtol=1e-12, solver=solver)

    x = point(1.0)
    expected = 0.5 * np.cos(x) / (1.0 + 0.5 * np.sin(x))
    np.testing.assert_allclose(tg.jacobian(point)(1.0), expected, rtol=1e-9)


def minimum(p: Any, n: int, **options: Any) -> Any:
    return optimize.minimize(smooth, np.zeros(n), (p,), method="trust-constr" if "constraints" in options else "BFGS", **options).x


@each_solver
def test_minima_are_those_of_dense_matrices(solver: Any) -> None:
    derivative = tg.jacobian(lambda p: minimum(p, 20, tol=1e-9, solver=solver))(2.0)
    np.testing.assert_allclose(derivative, tg.jacobian(lambda p: minimum(p, 20, tol=1e-9))(2.0), rtol=1e-7, atol=1e-10)


@each_solver
def test_minima_between_bounds(solver: Any) -> None:
    def bounded(p: Any, solver: Any) -> Any:
        bounds = [(-0.3, 0.4)] * 20
        options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
        return optimize.minimize(smooth, np.zeros(20), (p,), "L-BFGS-B", bounds, options=options, solver=solver).x

    dense = tg.jacobian(bounded)(2.0, "dense")
    assert 0 < np.count_nonzero(dense) < 20
    np.testing.assert_allclose(tg.jacobian(bounded)(2.0, solver), dense, rtol=1e-6, atol=1e-9)


@with_signs
@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")
def test_minima_with_constraints(solver: Any) -> None:
    constraints = [
        optimize.equality(lambda x: x[:3].sum() - 0.5),
        optimize.inequality(lambda x: x[5] * x[6] - 0.2),
        optimize.between(lambda x: x[10:13] ** 2, -1.0, 9.0),
    ]

    def limited(p: Any, solver: Any) -> Any:
        options = {"gtol": 1e-10, "xtol": 1e-12, "barrier_tol": 1e-12, "maxiter": 2000}
        return minimum(p, 16, constraints=constraints, options=options, solver=solver)

    dense = tg.jacobian(limited)(2.0, "dense")
    np.testing.assert_allclose(tg.jacobian(limited)(2.0, solver), dense, rtol=1e-6, atol=1e-9)


def test_many_unknowns_take_sparse_matrices_by_themselves() -> None:
    n = 20_000
    b = np.cos(np.arange(n))

    def loss(p: Any) -> Any:
        return (optimize.root(balance, np.zeros(n), (p, b), sparse=True).x ** 2).sum()

    step = 1e-5
    np.testing.assert_allclose(tg.grad(loss)(1.5), (loss(1.5 + step) - loss(1.5 - step)) / (2.0 * step), rtol=1e-8)


def test_many_variables_of_a_minimum() -> None:
    n = 4 * DENSE
    target = np.cos(np.arange(n))

    def energy(x: Any, p: Any) -> Any:
        padded = np.concatenate([np.zeros(1), x, np.zeros(1)])
        return ((x - 0.5 * target) ** 2).sum() + 0.5 * p * (np.diff(padded) ** 2).sum()

    def solution(p: Any) -> Any:
        options = {"ftol": 1e-16, "gtol": 1e-11, "maxiter": 5000, "maxfun": 10_000}
        return optimize.minimize(energy, np.zeros(n), (p,), method="L-BFGS-B", options=options).x

    matrix, x = stiffness(n, 1.5), solution(1.5)
    by_p = 2.0 * x
    by_p[1:] -= x[:-1]
    by_p[:-1] -= x[1:]
    expected = -np.linalg.solve(matrix, by_p) @ target
    np.testing.assert_allclose(tg.grad(lambda p: (solution(p) * target).sum())(1.5), expected, rtol=1e-7)


@pytest.mark.parametrize("solver", ["sparse", "gmres", "minres"])
def test_singular_equations_are_refused(solver: str) -> None:
    def equations(x: Any, p: Any) -> Any:
        return np.stack([x[0] + x[1] - p, 2.0 * (x[0] + x[1] - p), x[2] - p])

    with pytest.raises((tg.linalg.LinAlgError, RuntimeError), match="singular|did not solve"):
        tg.grad(lambda p: optimize.root(equations, np.ones(3), (p,), method="lm", solver=solver).x[0])(1.0)


@pytest.mark.parametrize("solver", ["sparse", "gmres"])
def test_kinks_are_refused(solver: str) -> None:
    with pytest.raises(RuntimeError, match="kink"):
        tg.grad(lambda p: optimize.root(lambda x, p: 2.0 * x + np.abs(x - 1.0) - p, np.zeros(3), (p,), solver=solver).x[0])(2.0)


@pytest.mark.parametrize("solver", ["sparse", "gmres"])
def test_bounds_that_are_about_to_hold_are_refused(solver: str) -> None:
    def nearest(p: Any) -> Any:
        return optimize.minimize(lambda x, p: ((x - p) ** 2).sum(), np.ones(3), (p,), bounds=[(0.0, None)] * 3, solver=solver).x

    with pytest.raises(RuntimeError, match="not clear whether the bound"):
        tg.jacobian(nearest)(0.0)
    np.testing.assert_allclose(tg.jacobian(nearest)(-1.0), 0.0)
    np.testing.assert_allclose(tg.jacobian(nearest)(1.0), 1.0)


def test_constraints_that_are_about_to_hold_are_refused() -> None:
    above = optimize.inequality(lambda x: x[0] - 1.0)

    def nearest(p: Any) -> Any:
        return optimize.minimize(
            lambda x, p: ((x - p) ** 2).sum(), np.ones(3), (p,), "SLSQP", constraints=above, tol=1e-12, solver="sparse"
        ).x

    with pytest.raises(RuntimeError, match="not clear whether the limit of constraint 0"):
        tg.jacobian(nearest)(1.0)
    np.testing.assert_allclose(tg.jacobian(nearest)(0.0), [0.0, 1.0, 1.0], atol=1e-9)


def test_methods_that_do_not_converge_say_so() -> None:
    with pytest.raises(tg.linalg.LinAlgError, match="the given solver did not solve .*: a residual of 1"):
        tg.grad(lambda p: optimize.root(lambda x, p: x**3 - p, np.ones(3), (p,), solver=lambda a, b: 0.0 * b).x[0])(2.0)


def test_solutions_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must give a vector of shape \(3,\), but gave one of shape \(1,\)"):
        tg.grad(lambda p: optimize.root(lambda x, p: x**3 - p, np.ones(3), (p,), solver=lambda a, b: b[:1]).x[0])(2.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: optimize.root(lambda x: x, np.ones(2), solver="lu"),
        lambda: optimize.fixed_point(np.cos, np.ones(2), solver="lu"),
        lambda: optimize.minimize(lambda x: x @ x, np.ones(2), solver="lu"),
    ],
)
def test_other_solvers_are_refused(call: Any) -> None:
    with pytest.raises(ValueError, match="'dense', 'sparse', 'gmres', 'minres' or a function"):
        call()


def test_second_derivatives_of_many_unknowns_are_refused() -> None:
    def loss(p: Any) -> Any:
        return optimize.root(lambda x, p: x - p, np.zeros(DENSE + 1), (p,), sparse=True).x.sum()

    with pytest.raises(NotImplementedError, match="second derivatives of a solution"):
        tg.grad(tg.grad(loss))(1.0)


def test_a_dense_matrix_that_does_not_fit_is_refused_before_anything_is_computed() -> None:
    def never(x: Any, p: Any) -> Any:
        raise AssertionError

    with pytest.raises(MemoryError, match=r"root: a dense matrix of 9000000 unknowns takes .* GB.*'sparse', or 'gmres'"):
        optimize.root(never, np.broadcast_to(1.0, 9_000_000), (1.0,), solver="dense")
