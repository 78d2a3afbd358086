"""Problems as collections of test problems have them: sparse derivatives beside dense ones, closed forms and patterns."""

from functools import cache
from typing import Any

import numba
import numpy as np
import pytest
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from problems import OBJECTIVES, RESIDUALS, SIZE
from scipy.sparse import csr_array
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg


@cache
def compiled(function: Any) -> Any:
    return numba.njit(function)


def points() -> list[Any]:
    return [np.random.default_rng(seed).uniform(0.4, 1.3, SIZE) for seed in range(2)]


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max(initial=1.0))


@pytest.mark.parametrize("is_compiled", [False, True], ids=["Python", "compiled"])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_hessians(name: str, is_compiled: bool) -> None:
    function = OBJECTIVES[name].function
    hessian = tg.sparse.hessian(compiled(function) if is_compiled else function, check=True)
    expected = np.zeros((SIZE, SIZE), bool)
    for x in points():
        dense = tg.hessian(function)(x)
        found = hessian(x)
        close(found.toarray(), dense)
        np.testing.assert_array_equal(found.toarray(), found.toarray().T)
        expected |= np.abs(dense) > 1e-9 * np.abs(dense).max()
    np.testing.assert_array_equal(hessian.pattern.toarray(), expected)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradients_as_sparse_jacobians(name: str) -> None:
    function, stationary = OBJECTIVES[name]
    jacobian, gradient = tg.sparse.jacobian(function, check=True), tg.grad(function)
    for x in points():
        close(jacobian(x).toarray().reshape(-1), gradient(x))
        steps = 1e-6 * np.eye(SIZE)
        np.testing.assert_allclose(gradient(x), [(function(x + h) - function(x - h)) / 2e-6 for h in steps], rtol=1e-5, atol=1e-4)
    if stationary is not None:
        np.testing.assert_allclose(gradient(stationary), 0.0, atol=1e-9)


@pytest.mark.parametrize("is_compiled", [False, True], ids=["Python", "compiled"])
@pytest.mark.parametrize("name", RESIDUALS)
def test_jacobians(name: str, is_compiled: bool) -> None:
    function = RESIDUALS[name].function
    jacobian = tg.sparse.jacobian(compiled(function) if is_compiled else function, check=True)
    for x in points():
        band = np.diag(3.0 - 4.0 * x) - np.eye(SIZE, k=-1) - 2.0 * np.eye(SIZE, k=1)
        close(jacobian(x).toarray(), band)
        close(jacobian(x).toarray(), tg.jacobian(function)(x))
    assert (jacobian.info.colours, jacobian.info.entries) == (3, 3 * SIZE - 2)


def of_rosenbrock(x: Any) -> Any:
    diagonal = np.zeros(SIZE)
    diagonal[:-1] += 1200.0 * x[:-1] ** 2 - 400.0 * x[1:] + 2.0
    diagonal[1:] += 200.0
    return np.diag(diagonal) + np.diag(-400.0 * x[:-1], 1) + np.diag(-400.0 * x[:-1], -1)


def of_arwhead(x: Any) -> Any:
    made, last = np.zeros((SIZE, SIZE)), x[-1]
    own = 12.0 * x[:-1] ** 2 + 4.0 * last**2
    made[np.arange(SIZE - 1), np.arange(SIZE - 1)] = own
    made[-1, :-1] = made[:-1, -1] = 8.0 * x[:-1] * last
    made[-1, -1] = (4.0 * x[:-1] ** 2 + 12.0 * last**2).sum()
    return made


def of_tridia(x: Any) -> Any:
    weights = np.arange(2.0, SIZE + 1.0)
    diagonal = np.zeros(SIZE)
    diagonal[0] = 2.0
    diagonal[1:] += 8.0 * weights
    diagonal[:-1] += 2.0 * weights
    return np.diag(diagonal) + np.diag(-4.0 * weights, 1) + np.diag(-4.0 * weights, -1)


def of_dqrtic(x: Any) -> Any:
    return np.diag(12.0 * (x - np.arange(1.0, SIZE + 1.0)) ** 2)


@pytest.mark.parametrize(
    ("name", "form", "colours"),
    [("ROSENBR", of_rosenbrock, 3), ("ARWHEAD", of_arwhead, 2), ("TRIDIA", of_tridia, 3), ("DQRTIC", of_dqrtic, 1)],
)
def test_closed_forms(name: str, form: Any, colours: int) -> None:
    hessian = tg.sparse.hessian(OBJECTIVES[name].function)
    for x in points():
        close(hessian(x).toarray(), form(x))
    assert hessian.info.colours == colours


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_missing_entry_is_named(name: str) -> None:
    function, x = OBJECTIVES[name].function, points()[0]
    whole = tg.sparse.hessian_structure(function, x).toarray()
    row, column = np.argwhere(np.triu(whole))[-1]
    whole[row, column] = whole[column, row] = False
    with pytest.raises(tg.sparse.PatternError, match=rf"no entry \(({row}, {column}|{column}, {row})\)"):
        tg.sparse.hessian(function, pattern=csr_array(whole), check=True)(x)
