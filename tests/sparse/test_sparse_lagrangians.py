"""Hessians of Lagrangians where the objective, the constraints or both are compiled functions."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.sparse import PatternError, lagrangian_hessian

X = np.linspace(0.5, 2.0, 7)
MULTIPLIERS = np.array([1.5, 0.0, -2.0, 0.7, 3.0])


@numba.njit  # type: ignore[untyped-decorator]
def energy(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 1):
        total += np.exp(0.1 * x[i]) * x[i + 1] ** 2 if x[i] > 0.0 else x[i] ** 3
    return total


@numba.njit  # type: ignore[untyped-decorator]
def constraints(x: Any) -> Any:
    found = np.empty(len(x) - 2)
    for i in range(len(x) - 2):
        found[i] = x[i] * x[i + 2] - np.sin(x[i])
    return found


@numba.njit  # type: ignore[untyped-decorator]
def length(x: Any) -> Any:
    return np.sum(x[:3] ** 4)


def energy_of_arrays(x: Any) -> Any:
    return (np.exp(0.1 * x[:-1]) * x[1:] ** 2).sum()


def constraints_of_arrays(x: Any) -> Any:
    return x[:-2] * x[2:] - np.sin(x[:-2])


def expected(x: Any, multipliers: Any) -> Any:
    return tg.hessian(lambda x: energy_of_arrays(x) + (multipliers * constraints_of_arrays(x)).sum())(x)


@pytest.mark.parametrize(
    ("f", "g"), [(energy, constraints), (energy, constraints_of_arrays), (energy_of_arrays, constraints)], ids=["both", "f", "g"]
)
def test_hessians_with_compiled_functions(f: Any, g: Any) -> None:
    made = lagrangian_hessian(f, g, check=True)
    for multipliers in (MULTIPLIERS, 0.0 * MULTIPLIERS, np.arange(5.0)):
        found = made(X, multipliers)
        np.testing.assert_allclose(found.toarray(), expected(X, multipliers), rtol=1e-12, atol=1e-13)
        np.testing.assert_array_equal(found.toarray(), found.toarray().T)
        assert found.nnz == made.pattern.nnz == made.info.entries == 7 + 2 * 6 + 2 * 5


def test_patterns_grow_with_branches() -> None:
    made = lagrangian_hessian(energy, constraints, mode="star")
    other = X - 3.0
    assert made(other, MULTIPLIERS).nnz == 6 + 2 * 5
    np.testing.assert_allclose(made(X, MULTIPLIERS).toarray(), expected(X, MULTIPLIERS), rtol=1e-12, atol=1e-13)
    assert made(other, MULTIPLIERS).nnz == 7 + 2 * 6 + 2 * 5
    assert made.info.method == "star"
    assert made.info.colours == sum(colours.max() + 1 for colours in made.colours)


def test_a_constraint_that_is_a_number() -> None:
    found = lagrangian_hessian(length, length)(X, 0.5)
    np.testing.assert_allclose(found.diagonal(), 18.0 * X**2 * (np.arange(7) < 3), rtol=1e-14)


def test_structure_before_the_first_call_and_formats() -> None:
    made = lagrangian_hessian(energy, constraints, format="coo").prepare(X, MULTIPLIERS)
    assert made.info.shape == (7, 7)
    assert made(X, MULTIPLIERS).format == "coo"


def test_multipliers_that_do_not_fit() -> None:
    made = lagrangian_hessian(energy, constraints)
    with pytest.raises(ValueError, match=r"constraints of shape \(5,\), but multipliers of shape \(2,\)"):
        made(X, MULTIPLIERS[:2])
    with pytest.raises(TypeError, match="multipliers must be real, but got complex128"):
        made(X, 1j * MULTIPLIERS)


def test_a_pattern_that_misses_an_entry_of_the_constraints() -> None:
    pattern = np.abs(np.subtract.outer(np.arange(7), np.arange(7))) < 2
    with pytest.raises(PatternError, match=r"no entry \(0, 2\)"):
        lagrangian_hessian(energy, constraints, pattern=pattern, check=True)(X, MULTIPLIERS)


def test_constraints_in_a_container_are_refused() -> None:
    @numba.njit  # type: ignore[untyped-decorator]
    def pair(x: Any) -> Any:
        return x[0] * x[1], x[1] ** 2

    with pytest.raises(TypeError, match="constraints must return an array or a float"):
        lagrangian_hessian(energy, pair)(X, np.ones(2))
