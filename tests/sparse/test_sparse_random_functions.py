"""Sparse derivatives of random functions beside dense ones and differences, and patterns that hold whatever the point is."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_sparse_functions import by_table, compiled_by_table, compiled_sum, random_function, random_table

import tapegrad as tg

SEEDS = st.integers(0, 10**6)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12 + 1e-10 * np.abs(expected).max(initial=0.0))


def central_differences(f: Any, x: Any) -> Any:
    columns = []
    for k in range(len(x)):
        step = np.zeros_like(x)
        step[k] = 1e-6
        columns.append((f(x + step) - f(x - step)) / 2e-6)
    return np.stack(columns, axis=1)


@given(SEEDS)
@settings(max_examples=200)
def test_jacobians_are_the_dense_ones(seed: int) -> None:
    f, x = random_function(seed)
    made = tg.sparse.jacobian(f, check=True)
    dense = tg.jacobian(f)(x)
    close(made(x).toarray(), dense)
    assert made.pattern.toarray()[dense != 0].all()


@given(SEEDS)
@settings(max_examples=200)
def test_hessians_are_the_dense_ones(seed: int) -> None:
    f, x = random_function(seed)

    def scalar(x: Any) -> Any:
        return np.cos(f(x)).sum()

    made = tg.sparse.hessian(scalar)
    found, dense = made(x).toarray(), tg.hessian(scalar)(x)
    close(found, dense)
    np.testing.assert_array_equal(found, found.T)


@given(SEEDS)
@settings(max_examples=60)
def test_one_callable_at_many_points_is_right_at_each(seed: int) -> None:
    f, x = random_function(seed)
    made, rng = tg.sparse.jacobian(f), np.random.default_rng(seed)
    for _ in range(4):
        point = rng.uniform(-1.0, 1.0, len(x))
        close(made(point).toarray(), tg.jacobian(f)(point))


@given(SEEDS)
@settings(max_examples=40)
def test_jacobians_are_difference_quotients(seed: int) -> None:
    f, x = random_function(seed)
    found = tg.sparse.jacobian(f)(x).toarray()
    np.testing.assert_allclose(found, central_differences(f, x), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("function", [by_table, compiled_by_table], ids=["Python", "compiled"])
@given(seed=SEEDS)
@settings(max_examples=100)
def test_loops_over_elements(function: Any, seed: int) -> None:
    x, *tables = random_table(seed)
    made = tg.sparse.jacobian(function, check=True)
    close(made(x, *tables).toarray(), tg.jacobian(by_table)(x, *tables))


@given(SEEDS)
@settings(max_examples=60)
def test_hessians_of_compiled_loops(seed: int) -> None:
    arguments = random_table(seed)
    made = tg.sparse.hessian(compiled_sum)
    close(made(*arguments).toarray(), tg.hessian(compiled_sum)(*arguments))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert made.pattern.nnz >= np.count_nonzero(made(*arguments).toarray())
