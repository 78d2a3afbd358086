"""`minimize` by HiGHS: linear programs are told from other problems, and solved as SciPy's `linprog` solves their matrices."""

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, linprog
from scipy.sparse import csr_array, eye_array

import tapegrad as tg

METHODS = ["highs", "highs-ds", "highs-ipm"]


def problem(seed: int, n: int) -> Any:
    """Costs, matrix and limits with a point that fulfils them."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(n // 2 + 1, n))
    middle = matrix @ rng.uniform(size=n)
    width = rng.choice([0.0, 0.5, np.inf], size=len(middle))
    upper = np.where(width > 0.0, middle + rng.choice([0.5, np.inf], size=len(middle)), middle)
    return rng.normal(size=n), matrix, middle - width, upper


@pytest.mark.parametrize("method", METHODS)
@given(st.integers(0, 10**6), st.integers(2, 12))
@settings(max_examples=25)
def test_solutions_fulfil_the_optimality_conditions(method: str, seed: int, n: int) -> None:
    cost, matrix, lower, upper = problem(seed, n)
    limited = tg.optimize.between(lambda x: matrix @ x + 2.0, lower + 2.0, upper + 2.0)
    found = tg.optimize.minimize(
        lambda x: (cost * x).sum() + 1.0, np.full(n, 0.3), method=method, bounds=[(0.0, 1.0)] * n, constraints=limited
    )
    assert found.success
    low, high = found.bound_multipliers
    value = matrix @ found.x
    np.testing.assert_allclose(cost + matrix.T @ found.v[0] - low + high, 0.0, atol=1e-6)
    np.testing.assert_allclose(low * found.x + high * (1.0 - found.x), 0.0, atol=1e-6)
    np.testing.assert_allclose(value[found.v[0] > 1e-7], upper[found.v[0] > 1e-7], atol=1e-6)
    np.testing.assert_allclose(value[found.v[0] < -1e-7], lower[found.v[0] < -1e-7], atol=1e-6)
    assert found.fun == pytest.approx(cost @ found.x + 1.0)
    assert (low >= -1e-9).all() and (high >= -1e-9).all()


def transport() -> tuple[Any, Any, Any]:
    return np.array([[8.0, 6.0, 10.0], [9.0, 12.0, 13.0]]), np.array([20.0, 30.0]), np.array([10.0, 25.0, 15.0])


def test_a_container_of_variables() -> None:
    cost, supply, demand = transport()
    found = tg.optimize.minimize(
        lambda v: (cost * v["sent"]).sum() + 100.0 * v["missing"].sum(),
        {"sent": np.zeros((2, 3)), "missing": np.zeros(3)},
        method="highs",
        bounds=[(0.0, None)] * 9,
        constraints=[
            tg.optimize.inequality(lambda v: supply - v["sent"].sum(axis=1)),
            tg.optimize.equality(lambda v: v["sent"].sum(axis=0) + v["missing"] - demand),
        ],
    )
    rows, columns = np.kron(np.eye(2), np.ones(3)), np.kron(np.ones(2), np.eye(3))
    expected = linprog(cost.reshape(-1), rows, supply, columns, demand)
    assert found.fun == pytest.approx(expected.fun)
    np.testing.assert_allclose(found.x["sent"].sum(axis=0), demand)
    np.testing.assert_allclose(found.x["missing"], 0.0, atol=1e-12)


def test_values_are_differentiable_by_what_limits_them() -> None:
    cost, supply, demand = transport()

    def least(demanded: Any) -> Any:
        return tg.optimize.minimize(
            lambda x: (cost * x).sum(),
            np.zeros((2, 3)),
            method="highs",
            bounds=[(0.0, None)] * 6,
            constraints=[
                tg.optimize.inequality(lambda x: supply + 1.0 - x.sum(axis=1)),
                tg.optimize.equality(lambda x: x.sum(axis=0) - demanded),
            ],
        ).fun

    gradient = tg.grad(least)(demand)
    steps = 1e-3 * np.eye(3)
    np.testing.assert_allclose(gradient, [(least(demand + h) - least(demand - h)) / 2e-3 for h in steps], rtol=1e-8)


def test_solutions_in_vertices_follow_the_limits() -> None:
    def solution(p: Any) -> Any:
        limited = tg.optimize.inequality(lambda x: np.array([[1.0, 2.0], [3.0, 1.0]]) @ x - p)
        return tg.optimize.minimize(lambda x: x.sum(), np.zeros(2), method="highs", constraints=limited).x

    jacobian = tg.jacobian(solution)(np.array([4.0, 6.0]))
    np.testing.assert_allclose(jacobian, np.linalg.inv([[1.0, 2.0], [3.0, 1.0]]), atol=1e-9)


@pytest.mark.parametrize("matrix", [np.eye(4), csr_array(eye_array(4))], ids=["dense", "sparse"])
def test_linear_constraints_of_scipy(matrix: Any) -> None:
    found = tg.optimize.minimize(lambda x: x.sum(), np.zeros(4), method="highs", constraints=LinearConstraint(matrix, 1.0, 2.0))
    np.testing.assert_array_equal(found.x, 1.0)


def test_compiled_functions() -> None:
    @numba.njit
    def cost(x: Any) -> Any:
        total = 0.0
        for k in range(len(x)):
            total += (k - 1.5) * x[k]
        return total

    found = tg.optimize.minimize(cost, np.zeros(4), method="highs", bounds=[(-1.0, 2.0)] * 4)
    np.testing.assert_array_equal(found.x, [2.0, 2.0, -1.0, -1.0])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: (x * x).sum(), "the objective has a second derivative by elements 0 and 0"),
        (lambda x: x[0] * x[2], "the objective has a second derivative by elements 0 and 2"),
        (lambda x: abs(x - 0.5).sum(), "the objective is another function at another point"),
        (lambda x: np.maximum(x, 0.5).sum(), "the objective is another function at another point"),
        (lambda x: x.sum() if x[0] > 0.5 else -x.sum(), "the objective is another function at another point"),
    ],
)
def test_what_is_not_linear_is_refused(function: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tg.optimize.minimize(function, np.ones(3), method="highs", bounds=[(0.0, 2.0)] * 3)


def test_a_constraint_that_is_not_linear_is_named() -> None:
    limited = [tg.optimize.inequality(lambda x: x), tg.optimize.equality(lambda x: abs(x[1:] - 3.0) - 2.0)]
    with pytest.raises(ValueError, match="number 0 of constraint 1 is another function at another point"):
        tg.optimize.minimize(lambda x: -x.sum(), np.ones(3), method="highs", bounds=[(0.0, 9.0)] * 3, constraints=limited)


def test_where_there_is_no_solution_the_result_says_why() -> None:
    unbounded = tg.optimize.minimize(lambda x: x.sum(), np.zeros(2), method="highs")
    limited = tg.optimize.inequality(lambda x: np.stack([x[0] - 1.0, -x[0]]))
    empty = tg.optimize.minimize(lambda x: x.sum(), np.zeros(2), method="highs", constraints=limited, bounds=[(-5.0, 5.0)] * 2)
    assert (unbounded.success, unbounded.status, empty.success, empty.status) == (False, 3, False, 2)
    assert np.isnan(unbounded.x).all() and np.isnan(empty.x).all()
    assert "unbounded" in unbounded.message
    assert "infeasible" in empty.message


def test_a_callback_is_refused() -> None:
    with pytest.raises(ValueError, match="no callback"):
        tg.optimize.minimize(lambda x: x.sum(), np.zeros(2), method="highs", bounds=[(0.0, 1.0)] * 2, callback=print)


def test_limits_of_another_number_are_refused() -> None:
    limited = tg.optimize.between(lambda x: x, np.zeros(2), 1.0)
    with pytest.raises(ValueError, match="a constraint gives 3 numbers, but has 2 limits"):
        tg.optimize.minimize(lambda x: x.sum(), np.zeros(3), method="highs", constraints=limited)
