"""Sparse derivatives of compiled functions by one pass over their rows: edge-pushing, and Jacobians row by row."""

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from random_sparse_functions import by_table, compiled_by_table, compiled_sum, random_table
from unoptimised_numba import numba_is_quicker  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.linear import front_passes, section_passes
from tapegrad.sparse.edges import fewest_colours

SEEDS = st.integers(0, 10**6)


@numba.njit  # type: ignore[untyped-decorator]
def elements(x: Any, first: Any, second: Any) -> Any:
    """A sum over elements of two variables each, of which many share one."""
    total = 0.0
    for k in range(len(first)):
        a, b = x[first[k]], x[second[k]]
        stretch = np.sin(a) * b
        total += stretch * stretch + np.exp(0.1 * a * b)
    return total


@numba.njit  # type: ignore[untyped-decorator]
def residuals(x: Any, first: Any, second: Any) -> Any:
    """An error of each element."""
    found = np.empty(len(first))
    for k in range(len(first)):
        found[k] = np.exp(0.1 * x[first[k]] * x[second[k]]) - x[first[k]]
    return found


@numba.njit  # type: ignore[untyped-decorator]
def running_products(x: Any) -> Any:
    """Each output by all before it."""
    found, total = np.empty(len(x)), 1.0
    for k in range(len(x)):
        total = total * (1.0 + x[k] * x[k])
        found[k] = total
    return found


@numba.njit  # type: ignore[untyped-decorator]
def product_of_all(x: Any) -> Any:
    """One row of each variable and all before."""
    total = 1.0
    for k in range(len(x)):
        total = total * (1.0 + x[k] * x[k])
    return total


@numba.njit  # type: ignore[untyped-decorator]
def squares_in_turns(x: Any) -> Any:
    """A branch in each element."""
    total = 0.0
    for k in range(len(x) - 1):
        total += x[k] * x[k + 1] if x[k] > 0.0 else x[k] * x[k]
    return total


def complete() -> tuple[Any, Any, Any]:
    """Every pair of 40 variables, so that no colouring has fewer than 40 colours."""
    first, second = np.triu_indices(40, 1)
    return np.random.default_rng(0).uniform(-1.0, 1.0, 40), first, second


def by_arrays(x: Any, first: Any, second: Any) -> Any:
    a, b = x[first], x[second]
    return ((np.sin(a) * b) ** 2 + np.exp(0.1 * a * b)).sum()


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12 + 1e-10 * np.abs(expected).max(initial=0.0))


@given(SEEDS)
@settings(max_examples=100)
def test_edge_pushing_gives_what_products_of_the_graph_give(seed: int) -> None:
    x, *tables = random_table(seed)
    found = tg.sparse.hessian(compiled_sum, mode="edges")(x, *tables)
    close(found.toarray(), tg.hessian(lambda x: np.sin(by_table(x, *tables)).sum())(x))
    np.testing.assert_array_equal(found.toarray(), found.toarray().T)


@given(SEEDS)
@settings(max_examples=100)
def test_rows_of_a_jacobian_each_by_itself(seed: int) -> None:
    x, *tables = random_table(seed)
    if len(tables[0]) > 16:
        tables = [table[:16] for table in tables]
    close(tg.sparse.jacobian(compiled_by_table, mode="rows")(x, *tables).toarray(), tg.jacobian(by_table)(x, *tables))


@given(SEEDS)
@settings(max_examples=60)
def test_patterns_of_both_methods_hold_what_the_derivative_has(seed: int) -> None:
    x, *tables = random_table(seed)
    made, coloured = (tg.sparse.hessian(compiled_sum, mode=mode, check=True) for mode in ("edges", "star"))
    for point in (x, 2.0 * x, 0.0 * x):
        made(point, *tables)
        coloured(point, *tables)
    np.testing.assert_array_equal(made.pattern.toarray(), coloured.pattern.toarray())


def test_sums_over_elements_take_edge_pushing_by_themselves() -> None:
    made = tg.sparse.plan(elements, *complete(), second=True)
    assert (made.info.method, made.info.colours) == ("edges", 0)
    close(made(*complete()).toarray(), tg.hessian(by_arrays)(*complete()))


def test_errors_of_elements_take_rows_by_themselves() -> None:
    x, first, second = complete()
    made = tg.sparse.plan(residuals, *complete())
    assert (made.info.method, made.info.colours) == ("rows", 0)
    close(made(x, first, second).toarray(), tg.jacobian(lambda x: np.exp(0.1 * x[first] * x[second]) - x[first])(x))


def test_outputs_that_share_many_rows_go_by_products() -> None:
    x = np.random.default_rng(0).uniform(0.1, 0.2, 200)
    made = tg.sparse.jacobian(running_products)
    expected = np.tril(np.cumprod(1.0 + x * x)[:, None] * (2.0 * x / (1.0 + x * x)))
    close(made(x).toarray(), expected)
    assert made.info.method in ("forward", "reverse")
    with pytest.raises(ValueError, match="mode='rows'"):
        tg.sparse.jacobian(running_products, mode="rows")(x)


def test_a_method_that_is_asked_for_is_taken() -> None:
    found = {mode: tg.sparse.hessian(elements, mode=mode) for mode in ("star", "acyclic", "edges")}
    expected = tg.hessian(by_arrays)(*complete())
    for mode, made in found.items():
        close(made(*complete()).toarray(), expected)
        assert made.info.method == mode


def test_the_dense_hessian_of_a_compiled_function_is_that_of_the_graph() -> None:
    x, first, second = complete()
    found = tg.hessian(elements)(x, first, second)
    close(found, tg.hessian(by_arrays)(x, first, second))
    np.testing.assert_array_equal(found, found.T)


def test_what_all_variables_meet_in_goes_by_products() -> None:
    x = np.random.default_rng(0).uniform(0.1, 0.2, 200)
    expected = np.outer(2 * x / (1 + x * x), 2 * x / (1 + x * x))
    expected[np.diag_indices(200)] = 2.0 / (1 + x * x)
    close(tg.hessian(product_of_all)(x), expected * np.prod(1 + x * x))
    made = tg.sparse.hessian(product_of_all)
    close(made(x).toarray(), expected * np.prod(1 + x * x))
    assert made.info.method == "star"


def test_passes_that_would_write_too_much_down_go_by_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_passes, "MOST_PLACES", 500)
    monkeypatch.setattr(section_passes, "MOST_TEMPLATES", 0)
    made = tg.sparse.plan(elements, *complete(), second=True)
    assert made.info.method == "star"
    close(made(*complete()).toarray(), tg.hessian(by_arrays)(*complete()))


def test_branches_that_change_keep_the_matrix_right() -> None:
    made, rng = tg.sparse.hessian(squares_in_turns, mode="edges", check=True), np.random.default_rng(0)
    for _ in range(8):
        x = rng.standard_normal(30)
        positive = x[:-1] > 0.0
        expected = np.diag(np.append(np.where(positive, 0.0, 2.0), 0.0))
        expected += np.diag(np.where(positive, 1.0, 0.0), 1) + np.diag(np.where(positive, 1.0, 0.0), -1)
        close(made(x).toarray(), expected)


def test_a_pattern_of_the_users_is_followed_when_branches_change() -> None:
    band = np.eye(30) + np.eye(30, k=1) + np.eye(30, k=-1)
    made, rng = tg.sparse.hessian(squares_in_turns, mode="edges", pattern=band), np.random.default_rng(0)
    for _ in range(4):
        x = rng.standard_normal(30)
        close(made(x).toarray(), tg.sparse.hessian(squares_in_turns)(x).toarray())


def test_a_missing_entry_is_named() -> None:
    with pytest.raises(tg.sparse.PatternError, match=r"no entry \(\d+, \d+\)"):
        tg.sparse.hessian(squares_in_turns, mode="edges", pattern=np.eye(30), check=True)(np.ones(30))


def test_zeros_and_infinities_meet_as_in_products() -> None:
    x, first, second = complete()
    x[3], x[7] = 0.0, np.inf
    by_edges = tg.sparse.hessian(elements, mode="edges")(x, first, second).toarray()
    by_products = tg.sparse.hessian(elements, mode="star")(x, first, second).toarray()
    np.testing.assert_array_equal(np.isfinite(by_edges), np.isfinite(by_products))
    close(by_edges[np.isfinite(by_edges)], by_products[np.isfinite(by_edges)])


def test_methods_of_compiled_functions_are_refused_for_others() -> None:
    with pytest.raises(ValueError, match="mode='rows'"):
        tg.sparse.jacobian(lambda x: x * x, mode="rows")(np.ones(3))
    with pytest.raises(ValueError, match="mode must be one of"):
        tg.sparse.hessian(elements, mode="forward")


def test_no_colouring_has_fewer_colours_than_the_bound() -> None:
    pattern = tg.sparse.hessian_structure(elements, *complete())
    assert fewest_colours(pattern) == 20
    assert tg.sparse.plan(elements, *complete(), second=True, mode="acyclic").info.colours >= 20
