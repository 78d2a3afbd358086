"""Colours of random matrices and graphs: that they are valid, and how many there are."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

import tapegrad as tg
from tapegrad.sparse.colouring import ORDERS, column_colours, star_colours
from tapegrad.sparse.compression import of_hessian, of_jacobian


def random_pattern(seed: int, m: int, n: int, density: float) -> Any:
    made = csr_array(random_array((m, n), density=density, rng=np.random.default_rng(seed))) != 0
    made.sort_indices()
    return made


def random_graph(seed: int, n: int, density: float) -> Any:
    half = random_pattern(seed, n, n, density)
    made = csr_array((half + half.T) != 0)
    made.sort_indices()
    return made


def is_star_colouring(pattern: Any, colours: Any) -> bool:
    """Neighbours differ, and every two colours have stars between them: no vertex of an edge has two, unless the other has one."""
    dense = pattern.toarray()
    np.fill_diagonal(dense, False)
    n = len(dense)
    if any(dense[i, j] and colours[i] == colours[j] for i, j in combinations(range(n), 2)):
        return False
    for v in range(n):
        for w in np.flatnonzero(dense[v]):
            before = [u for u in np.flatnonzero(dense[v]) if u != w and colours[u] == colours[w]]
            behind = [x for x in np.flatnonzero(dense[w]) if x != v and colours[x] == colours[v]]
            if any(u != x for u in before for x in behind):
                return False
    return True


shapes = st.tuples(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 30), st.sampled_from([0.02, 0.1, 0.3, 0.9]))


@pytest.mark.parametrize("order", [*ORDERS, "auto"])
@given(shape=shapes)
@settings(max_examples=60)
def test_no_row_has_a_colour_twice(order: str, shape: Any) -> None:
    pattern = random_pattern(*shape)
    colours, count, _ = column_colours(pattern, order)
    assert colours.min() >= 0
    assert colours.max() < count
    for i in range(pattern.shape[0]):
        own = colours[pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]]]
        assert len(set(own.tolist())) == len(own)


@pytest.mark.parametrize("order", [*ORDERS, "auto"])
@given(shape=shapes)
@settings(max_examples=60)
def test_no_path_of_four_has_two_colours(order: str, shape: Any) -> None:
    seed, n, _, density = shape
    pattern = random_graph(seed, n, density)
    colours, count, _ = star_colours(pattern, order)
    assert colours.max() < count
    assert is_star_colouring(pattern, colours)


def test_a_wrong_star_colouring_is_seen_as_one() -> None:
    path = csr_array(np.eye(4, k=1) + np.eye(4, k=-1))
    assert not is_star_colouring(path, np.array([0, 1, 0, 1]))
    assert is_star_colouring(path, np.array([0, 1, 0, 2]))


@given(shape=shapes, mode=st.sampled_from(["forward", "reverse", "auto"]))
@settings(max_examples=60)
def test_all_entries_come_back_from_products(shape: Any, mode: str) -> None:
    pattern = random_pattern(*shape)
    values = pattern.astype(float)
    values.data = np.random.default_rng(1).uniform(size=pattern.nnz)
    plan = of_jacobian(pattern, mode)
    product = values if plan.info.method == "forward" else values.T
    np.testing.assert_allclose(plan.entries(lambda v: product @ v), values.data)


@given(shape=shapes)
@settings(max_examples=60)
def test_all_entries_of_symmetric_matrices_come_back(shape: Any) -> None:
    seed, n, _, density = shape
    pattern = random_graph(seed, n, density)
    values = csr_array(pattern.astype(float))
    values.data = np.random.default_rng(1).uniform(size=pattern.nnz)
    values = csr_array(values + values.T)
    values.sort_indices()
    plan = of_hessian(pattern)
    np.testing.assert_allclose(plan.entries(lambda v: values @ v), values.data)


def test_more_colours_than_products_in_one_band() -> None:
    pattern = csr_array(np.tril(np.ones((300, 300), bool)))
    values = pattern.astype(float)
    values.data = np.arange(1.0, values.nnz + 1)
    plan = of_jacobian(pattern, "forward")
    assert plan.info.colours == 300
    np.testing.assert_array_equal(plan.entries(lambda v: values @ v), values.data)


@pytest.mark.parametrize("seed", range(5))
def test_auto_is_within_a_fifth_of_the_best_order(seed: int) -> None:
    pattern = random_pattern(seed, 300, 300, 0.02)
    counts = [column_colours(pattern, order)[1] for order in ORDERS]
    assert column_colours(pattern)[1] <= 1.2 * min(counts)
    graph = random_graph(seed, 300, 0.01)
    counts = [star_colours(graph, order)[1] for order in ORDERS]
    assert star_colours(graph)[1] <= 1.2 * min(counts)


def test_bands_need_as_many_colours_as_a_row_has_entries() -> None:
    band = csr_array(sum(np.eye(50, k=k) for k in (-2, -1, 0, 1, 2)) != 0)
    assert of_jacobian(band).info.colours == 5
    assert of_hessian(csr_array(sum(np.eye(50, k=k) for k in (-1, 0, 1)) != 0)).info.colours == 3


def test_a_dense_row_is_taken_by_rows() -> None:
    pattern = np.eye(40, dtype=bool)
    pattern[3] = True
    info = of_jacobian(csr_array(pattern)).info
    assert (info.method, info.colours) == ("reverse", 2)


def test_columns_of_one_colour_share_no_row() -> None:
    structure = tg.sparse.plan(lambda x: x[1:] * x[:-1] + x[:1], np.ones(30), mode="forward")
    found = (structure.pattern.toarray() @ np.eye(structure.info.colours, dtype=int)[structure.colours]).max()
    assert structure.colours.shape == (30,)
    assert found == 1
