"""Dense structure is said before it is written down, with the row that made it so."""

import warnings
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.sparse.index_sets import IndexSets

MANY = 100_000


def log_sum_exp(x: Any) -> Any:
    scaled = np.exp(x)
    return np.log(scaled.sum())


def with_largest(x: Any) -> Any:
    largest = x.max()
    return largest + np.log(np.exp(x - largest).sum())


def softmax(x: Any) -> Any:
    scaled = np.exp(x)
    return (scaled / scaled.sum()) ** 2


def squared(x: Any) -> Any:
    first = (x**2).sum()
    return first + x.sum() ** 2


def in_a_loop(x: Any) -> Any:
    total = 0.0
    for k in range(len(x)):
        total = total + x[k]
    return np.sin(total)


@pytest.mark.parametrize(
    ("function", "row"),
    [
        (log_sum_exp, r"of Log at test_sparse_dense_structure.py:\d+ in log_sum_exp: return np.log\(scaled.sum\(\)\)"),
        (with_largest, r"of Max at .* in with_largest: largest = x.max\(\)"),
        (lambda x: softmax(x).sum(), r"of Div at .* in softmax: return \(scaled / scaled.sum\(\)\)"),
        (squared, r"of Pow at .* in squared: return first \+ x.sum\(\)"),
    ],
)
def test_the_row_that_makes_a_hessian_dense_is_named(function: Any, row: str) -> None:
    for find in (tg.sparse.hessian_structure, tg.sparse.hessian(function)):
        arguments = (function,) if find is tg.sparse.hessian_structure else ()
        with pytest.raises(MemoryError, match=row):
            find(*arguments, np.linspace(0.0, 1.0, MANY))


def test_the_row_that_makes_a_jacobian_dense_is_named() -> None:
    with pytest.raises(MemoryError, match="100000 rows, because of Sum at .* in softmax: return .* make what gathers all inputs"):
        tg.sparse.jacobian_structure(softmax, np.linspace(0.0, 1.0, MANY))


def test_a_loop_over_numbers_is_named_by_its_curved_row() -> None:
    with pytest.warns(RuntimeWarning, match=r"by 2500 of 2500 inputs at once, because of Sin at .* return np.sin\(total\)"):
        tg.sparse.hessian_structure(in_a_loop, np.ones(2500))


@numba.njit  # type: ignore[untyped-decorator]
def compiled_square(x: Any) -> Any:
    return np.sum(x) ** 2


def test_compiled_functions_have_no_line() -> None:
    with pytest.raises(MemoryError, match="100000 inputs at once"):
        tg.sparse.hessian_structure(compiled_square, np.ones(MANY))


def test_a_jacobian_of_many_dense_rows_is_warned_of() -> None:
    with pytest.warns(RuntimeWarning, match="Jacobian is dense: about .* of 2500 inputs .* because of Sum"):
        tg.sparse.jacobian_structure(softmax, np.linspace(0.0, 1.0, 2500))


def test_a_few_dense_rows_are_no_harm() -> None:
    def arrow(x: Any) -> Any:
        return np.concatenate([x.sum()[None], x[1:] * x[0], (x * x).sum()[None]])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tg.sparse.jacobian_structure(arrow, np.ones(MANY)).nnz == 4 * MANY - 2


def test_the_function_may_fail_when_it_is_called_once_more() -> None:
    calls = []

    def once(x: Any) -> Any:
        calls.append(x)
        if len(calls) > 1:
            raise ValueError("once")
        return x.sum() ** 2

    with pytest.raises(MemoryError, match="as the square of a sum"):
        tg.sparse.hessian_structure(once, np.ones(MANY))
    assert len(calls) == 2


@given(st.integers(0, 10**6), st.integers(200, 600), st.integers(0, 25))
@settings(max_examples=40)
def test_estimates_of_entries_are_not_too_high_for_few_long_rows(seed: int, rows: int, long: int) -> None:
    rng = np.random.default_rng(seed)
    sets = IndexSets(200, 200 + rows)
    for k in range(min(long, rows // 20)):
        sets.add_edges(np.arange(200), np.full(200, 200 + rng.integers(rows) * (k >= 0)))
    sets.add_edges(rng.integers(0, 200, rows), 200 + np.arange(rows))
    numbers = sets.places[200:]
    assert sets.estimated(numbers) <= 2 * len(sets.collected(numbers)[1])
