"""Solvers that are given sparse derivatives find what they find with dense ones."""

from typing import Any

import numba
import numpy as np
import pytest

import tapegrad as tg

optimize: Any = tg.optimize


def chained(x: Any) -> Any:
    """Rosenbrock's function as residuals."""
    return np.concatenate([10.0 * (x[1:] - x[:-1] ** 2), 1.0 - x[:-1]])


def rosenbrock(x: Any) -> Any:
    return (chained(x) ** 2).sum()


@numba.njit  # type: ignore[untyped-decorator]
def compiled_rosenbrock(x: Any) -> Any:
    total = 0.0
    for k in range(len(x) - 1):
        total += 100.0 * (x[k + 1] - x[k] ** 2) ** 2 + (1.0 - x[k]) ** 2
    return total


def test_least_squares() -> None:
    start = np.full(200, 0.5)
    found = optimize.least_squares(chained, start, sparse=True)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-6)
    assert found.jac.format == "csr"
    assert found.jac.nnz == 3 * 199


def test_least_squares_of_structured_variables() -> None:
    target = np.arange(4.0)
    found = optimize.least_squares(lambda p: [p["a"] - target, p["b"] * 2.0 - 1.0], {"a": np.zeros(4), "b": 0.0}, sparse=True)
    np.testing.assert_allclose(found.x["a"], target, atol=1e-6)
    assert abs(found.x["b"] - 0.5) < 1e-6


@pytest.mark.parametrize("f", [rosenbrock, compiled_rosenbrock], ids=["Python", "compiled"])
def test_trust_constr(f: Any) -> None:
    found = optimize.minimize(f, np.full(30, 0.8), method="trust-constr", sparse=True, options={"gtol": 1e-9})
    np.testing.assert_allclose(found.x, 1.0, atol=1e-6)


@pytest.mark.parametrize("compiled", [False, True], ids=["Python", "compiled"])
def test_constraints_have_sparse_derivatives(compiled: bool) -> None:
    def products(x: Any) -> Any:
        return x[1:] * x[:-1]

    constraint = optimize.between(numba.njit(products) if compiled else products, 0.25, 4.0)
    options = {"gtol": 1e-10, "xtol": 1e-12}
    start = np.full(6, 1.5)

    def f(x: Any) -> Any:
        return ((x - 0.1) ** 2).sum()

    found = optimize.minimize(f, start, method="trust-constr", constraints=constraint, sparse=True, options=options)
    dense = optimize.minimize(f, start, method="trust-constr", constraints=constraint, options=options)
    np.testing.assert_allclose(found.fun, dense.fun, rtol=1e-6)
    assert all(hasattr(jacobian, "nnz") for jacobian in found.jac)


def test_other_methods_refuse() -> None:
    with pytest.raises(ValueError, match="sparse=True is for method='trust-constr' or 'ipopt'"):
        optimize.minimize(rosenbrock, np.zeros(3), method="L-BFGS-B", sparse=True)


def test_solutions_stay_differentiable() -> None:
    def solution(p: Any) -> Any:
        return optimize.least_squares(lambda x, p: x - p * np.arange(3.0), np.zeros(3), (p,), sparse=True).x

    np.testing.assert_allclose(tg.jacobian(solution)(2.0), np.arange(3.0), atol=1e-9)


def heat(u: Any) -> Any:
    """A nonlinear boundary value problem: u'' = exp(u), zero at both ends."""
    n = len(u)
    padded = np.concatenate([np.zeros(1), u, np.zeros(1)])
    return (padded[2:] - 2.0 * padded[1:-1] + padded[:-2]) * (n + 1) ** 2 - np.exp(u)


def test_roots_of_large_systems() -> None:
    found = optimize.root(heat, np.zeros(5000), sparse=True)
    assert found.success
    assert found.nit < 10
    coarse = optimize.root(heat, np.zeros(9)).x
    assert abs(found.x[2500] - coarse[4]) < 1e-3


def poisson(u: Any) -> Any:
    """A nonlinear equation on a square grid, zero around it."""
    n = int(np.sqrt(u.size))
    inside = u.reshape(n, n)
    padded = np.pad(inside, 1)
    around = padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2]
    return ((4.0 * inside - around) * (n + 1) ** 2 - np.exp(inside)).reshape(-1)


def test_krylov_steps_end_where_direct_ones_do() -> None:
    start = np.zeros(900)
    found = optimize.root(poisson, start, sparse=True, method="krylov")
    assert found.success
    assert found.method == "newton-krylov"
    np.testing.assert_allclose(found.x, optimize.root(poisson, start, sparse=True).x, rtol=1e-9)


def test_krylov_steps_of_a_singular_system() -> None:
    found = optimize.root(lambda x: np.stack([x[0] + x[1], x[0] + x[1] - 1.0]), np.zeros(2), sparse=True, method="krylov")
    assert not found.success
    assert "singular" in found.message


def test_roots_are_those_of_the_dense_method() -> None:
    np.testing.assert_allclose(optimize.root(heat, np.zeros(20), sparse=True).x, optimize.root(heat, np.zeros(20)).x, atol=1e-9)


def test_roots_far_away_are_reached_by_halved_steps() -> None:
    found = optimize.root(lambda x: np.arctan(x), np.full(3, 10.0), sparse=True)
    assert found.success
    np.testing.assert_allclose(found.x, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: np.stack([x[0] + x[1], 2.0 * (x[0] + x[1]) - 1.0]), "singular"),
        (lambda x: x * x + 1.0, "singular|decreases|iterations"),
        (lambda x: x / 0.0 * 0.0 + np.log(x - 1.0 + 1e-300), ""),
    ],
    ids=["singular", "none", "not finite"],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_systems_without_a_root(f: Any, message: str) -> None:
    if not message:
        with pytest.raises(ValueError, match="not finite at x0"):
            optimize.root(f, np.ones(2), sparse=True)
        return
    found = optimize.root(f, np.array([1.0, 0.5]), sparse=True)
    assert not found.success
    assert any(word in found.message for word in message.split("|"))


def test_roots_that_are_refused() -> None:
    with pytest.raises(ValueError, match="3 equations for 2 variables"):
        optimize.root(lambda x: np.concatenate([x, x[:1]]), np.ones(2), sparse=True)
    with pytest.raises(ValueError, match="Newton's method, and 'lm'"):
        optimize.root(lambda x: x, np.ones(2), method="lm", sparse=True)
    with pytest.raises(ValueError, match="maxiter and xtol, not ftol"):
        optimize.root(lambda x: x, np.ones(2), sparse=True, options={"ftol": 1.0})


def test_roots_stay_differentiable() -> None:
    def solution(p: Any) -> Any:
        return optimize.root(lambda x, p: x * x - p * np.arange(1.0, 4.0), np.ones(3), (p,), sparse=True).x

    np.testing.assert_allclose(tg.jacobian(solution)(4.0), np.sqrt(np.arange(1.0, 4.0)) / 4.0, rtol=1e-9)
