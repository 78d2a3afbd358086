"""Patterns as index arrays, beside SciPy's sparse arrays of the same entries."""

import json
from typing import Any

import fresh_processes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from tapegrad.sparse.sparsity import Sparsity


@st.composite
def entries(draw: st.DrawFn) -> tuple[Any, Any, tuple[int, int]]:
    """Rows and columns of entries, some of them more than once, and a shape."""
    shape = draw(st.integers(0, 12)), draw(st.integers(0, 12))
    count = draw(st.integers(0, 40)) if min(shape) else 0
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return rng.integers(0, max(shape[0], 1), count), rng.integers(0, max(shape[1], 1), count), shape


def of_scipy(rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    made = coo_array((np.ones(len(rows), bool), (rows, columns)), shape=shape).tocsr()
    made.sum_duplicates()
    return made


def assert_same(found: Sparsity, expected: Any) -> None:
    expected = csr_array(expected)
    expected.sort_indices()
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    assert found.nnz == expected.nnz


@given(entries())
def test_entries_in_any_order_come_into_rows(given: Any) -> None:
    assert_same(Sparsity.from_pairs(*given), of_scipy(*given))


def test_structures_and_colours_import_no_scipy() -> None:
    code = """
import json, sys
import numpy as np
import tapegrad as tg
from tapegrad.sparse.evaluation import Evaluation
from tapegrad.sparse.recorded_calls import recorded
for second, f in ((False, lambda x: x[1:] * x[:-1] ** 2), (True, lambda x: (x[1:] * x[:-1] ** 2).sum())):
    derivative = recorded(f, (np.ones(50),), {}, 0, False, "sparse.jacobian", second)[2]
    pattern, values = Evaluation(second).entries(derivative)
    assert len(values) == pattern.nnz > 0
print(json.dumps([name for name in sys.modules if name.partition(".")[0] in ("scipy", "hashlib", "_hashlib")]))
"""
    assert json.loads(fresh_processes.run(code, fresh_processes.environment()).stdout) == []


@given(entries(), st.integers(0, 10**6))
def test_rows_in_any_order_are_sorted(given: Any, seed: int) -> None:
    expected = of_scipy(*given)
    rng, columns = np.random.default_rng(seed), expected.indices.copy()
    for start, end in zip(expected.indptr[:-1], expected.indptr[1:], strict=True):
        rng.shuffle(columns[start:end])
    assert_same(Sparsity.from_rows(expected.indptr.astype(np.int64), columns, given[2]), expected)


@given(entries())
def test_rows_of_entries(given: Any) -> None:
    np.testing.assert_array_equal(Sparsity.from_pairs(*given).rows(), of_scipy(*given).tocoo().coords[0])


@given(entries())
def test_transposes(given: Any) -> None:
    assert_same(Sparsity.from_pairs(*given).transposed(), of_scipy(*given).T)


@given(entries())
def test_numbers_of_entries_by_columns(given: Any) -> None:
    numbered = csr_array(of_scipy(*given), dtype=np.int64)
    numbered.data = np.arange(numbered.nnz)
    np.testing.assert_array_equal(Sparsity.from_pairs(*given).by_columns(), numbered.T.tocsr().data)


@given(entries(), entries())
def test_united_patterns_have_the_entries_of_both(one: Any, other: Any) -> None:
    shape = tuple(np.maximum(one[2], other[2]).tolist())
    found = Sparsity.from_pairs(*one[:2], shape).united(Sparsity.from_pairs(*other[:2], shape))
    assert_same(found, of_scipy(*one[:2], shape) + of_scipy(*other[:2], shape))


@given(entries(), st.integers(0, 10**6))
def test_parts_have_the_chosen_entries(given: Any, seed: int) -> None:
    whole = of_scipy(*given)
    chosen = np.random.default_rng(seed).random(whole.nnz) < 0.5
    rows, columns = (axis[chosen] for axis in whole.tocoo().coords)
    assert_same(Sparsity.from_pairs(*given).part(chosen), of_scipy(rows, columns, given[2]))


@given(entries())
def test_symmetric_patterns_are_known(given: Any) -> None:
    rows, columns, (m, n) = given
    half = of_scipy(rows, columns, (max(m, n), max(m, n)))
    assert Sparsity.from_matrix(half).is_symmetric() == (half.toarray() == half.T.toarray()).all()
    assert Sparsity.from_matrix(csr_array(half + half.T)).is_symmetric()


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1), (3, 5)])
def test_dense_patterns(shape: tuple[int, int]) -> None:
    assert_same(Sparsity.dense(shape), np.ones(shape, bool))


@given(entries())
def test_scipys_array_of_a_pattern_is_the_callers_own(given: Any) -> None:
    pattern, expected = Sparsity.from_pairs(*given), of_scipy(*given)
    made = pattern.to_scipy()
    assert made.dtype == np.bool_
    np.testing.assert_array_equal(made.toarray(), expected.toarray())
    made.indices[:], made.indptr[:] = 0, 0
    assert_same(pattern, expected)
