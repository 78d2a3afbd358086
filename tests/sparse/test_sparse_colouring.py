"""Colours of random matrices and graphs: that they are valid, and how many there are."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array
from scipy.sparse.csgraph import connected_components

import tapegrad as tg
from tapegrad.sparse.colouring import ORDERS, acyclic_colours, column_colours, star_colours
from tapegrad.sparse.compression import Bidirectional, Substitution, of_hessian, of_jacobian
from tapegrad.sparse.sparsity import Sparsity

sparsity = Sparsity.from_matrix


def random_pattern(seed: int, m: int, n: int, density: float) -> Any:
    made = csr_array(random_array((m, n), density=density, rng=np.random.default_rng(seed))) != 0
    made.sort_indices()
    return made


def random_graph(seed: int, n: int, density: float) -> Any:
    half = random_pattern(seed, n, n, density)
    made = csr_array((half + half.T) != 0)
    made.sort_indices()
    return made


def random_symmetric(seed: int, n: int, density: float) -> tuple[Any, Any]:
    """A pattern, and a matrix that has it."""
    pattern = random_graph(seed, n, density)
    values = csr_array(pattern.astype(float))
    values.data = np.random.default_rng(1).uniform(size=pattern.nnz)
    values = csr_array(values + values.T)
    values.sort_indices()
    return pattern, values


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


def is_acyclic_colouring(pattern: Any, colours: Any) -> bool:
    """Neighbours differ, and two colours have a forest between them, with an edge less than vertices in each of its trees."""
    dense = pattern.toarray()
    np.fill_diagonal(dense, False)
    if any(dense[i, j] and colours[i] == colours[j] for i, j in combinations(range(len(dense)), 2)):
        return False
    for a, b in combinations(range(max(colours) + 1), 2):
        own = np.flatnonzero((colours == a) | (colours == b))
        part = dense[np.ix_(own, own)]
        if part.sum() // 2 != len(own) - connected_components(csr_array(part))[0]:
            return False
    return True


shapes = st.tuples(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 30), st.sampled_from([0.02, 0.1, 0.3, 0.9]))


@pytest.mark.parametrize("order", [*ORDERS, "auto"])
@given(shape=shapes)
@settings(max_examples=60)
def test_no_row_has_a_colour_twice(order: str, shape: Any) -> None:
    pattern = random_pattern(*shape)
    colours, count, _ = column_colours(sparsity(pattern), order)
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
    colours, count, _ = star_colours(sparsity(pattern), order)
    assert colours.max() < count
    assert is_star_colouring(pattern, colours)


@pytest.mark.parametrize("order", [*ORDERS, "auto"])
@given(shape=shapes)
@settings(max_examples=60)
def test_no_cycle_has_two_colours(order: str, shape: Any) -> None:
    seed, n, _, density = shape
    pattern = random_graph(seed, n, density)
    colours, count, _ = acyclic_colours(sparsity(pattern), order)
    assert colours.max() < count
    assert is_acyclic_colouring(pattern, colours)


def test_a_wrong_acyclic_colouring_is_seen_as_one() -> None:
    cycle = csr_array(np.eye(4, k=1) + np.eye(4, k=-1) + np.eye(4, k=3) + np.eye(4, k=-3))
    assert not is_acyclic_colouring(cycle, np.array([0, 1, 0, 1]))
    assert is_acyclic_colouring(cycle, np.array([0, 1, 0, 2]))


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
    plan = of_jacobian(sparsity(pattern), mode)
    if isinstance(plan, Bidirectional):
        assert mode == "auto"
        np.testing.assert_allclose(plan.entries_from(lambda v: values @ v, lambda v: values.T @ v), values.data)
        return
    product = values if plan.info.method == "forward" else values.T
    np.testing.assert_allclose(plan.entries(lambda v: product @ v), values.data)


@given(shape=shapes)
@settings(max_examples=60)
def test_all_entries_of_symmetric_matrices_come_back(shape: Any) -> None:
    seed, n, _, density = shape
    pattern, values = random_symmetric(seed, n, density)
    np.testing.assert_allclose(of_hessian(sparsity(pattern)).entries(lambda v: values @ v), values.data)


@given(shape=shapes)
@settings(max_examples=60)
def test_all_entries_of_symmetric_matrices_come_back_by_substitution(shape: Any) -> None:
    seed, n, _, density = shape
    pattern, values = random_symmetric(seed, n, density)
    np.testing.assert_allclose(Substitution(sparsity(pattern), "auto").entries(lambda v: values @ v), values.data, rtol=1e-11)


def test_trees_have_two_acyclic_colours() -> None:
    tridiagonal = csr_array(sum(np.eye(50, k=k) for k in (-1, 0, 1)) != 0)
    arrow = np.eye(50, dtype=bool)
    arrow[0] = arrow[:, 0] = True
    assert acyclic_colours(sparsity(tridiagonal))[1] == acyclic_colours(sparsity(csr_array(arrow)))[1] == 2


def test_more_colours_than_products_in_one_band() -> None:
    pattern = csr_array(np.tril(np.ones((300, 300), bool)))
    values = pattern.astype(float)
    values.data = np.arange(1.0, values.nnz + 1)
    plan = of_jacobian(sparsity(pattern), "forward")
    assert plan.info.colours == 300
    np.testing.assert_array_equal(plan.entries(lambda v: values @ v), values.data)


@pytest.mark.parametrize("seed", range(5))
def test_auto_is_within_a_fifth_of_the_best_order(seed: int) -> None:
    pattern = random_pattern(seed, 300, 300, 0.02)
    counts = [column_colours(sparsity(pattern), order)[1] for order in ORDERS]
    assert column_colours(sparsity(pattern))[1] <= 1.2 * min(counts)
    graph = random_graph(seed, 300, 0.01)
    for colours in (star_colours, acyclic_colours):
        assert colours(sparsity(graph))[1] <= 1.2 * min(colours(sparsity(graph), order)[1] for order in ORDERS)


def test_bands_need_as_many_colours_as_a_row_has_entries() -> None:
    band = csr_array(sum(np.eye(50, k=k) for k in (-2, -1, 0, 1, 2)) != 0)
    assert of_jacobian(sparsity(band)).info.colours == 5
    assert of_hessian(sparsity(csr_array(sum(np.eye(50, k=k) for k in (-1, 0, 1)) != 0))).info.colours == 3


def test_a_dense_row_is_taken_by_rows() -> None:
    pattern = np.eye(40, dtype=bool)
    pattern[3] = True
    info = of_jacobian(sparsity(csr_array(pattern))).info
    assert (info.method, info.colours) == ("reverse", 2)


def test_columns_of_one_colour_share_no_row() -> None:
    structure = tg.sparse.plan(lambda x: x[1:] * x[:-1] + x[:1], np.ones(30), mode="forward")
    found = (structure.pattern.toarray() @ np.eye(structure.info.colours, dtype=int)[structure.colours]).max()
    assert structure.colours.shape == (30,)
    assert found == 1


def test_both_directions_have_colours_of_their_own() -> None:
    structure = tg.sparse.plan(lambda x: np.concatenate([(x * x).sum()[None], x[1:] * x[0]]), np.arange(1.0, 31.0))
    columns, rows = structure.colours
    assert structure.info.method == "bidirectional"
    assert structure.info.colours == columns.max() + rows.max() + 2
    assert rows[0] == 0
    assert (columns[1:] == columns[1]).all()


def with_long_lines(seed: int, m: int, n: int, long_rows: int, long_columns: int) -> Any:
    rng = np.random.default_rng(seed)
    dense = rng.random((m, n)) < 2.0 / n
    dense[np.arange(min(m, n)), np.arange(min(m, n))] = True
    dense[rng.integers(0, m, long_rows)] |= rng.random(n) < 0.9
    dense[:, rng.integers(0, n, long_columns)] |= rng.random((m, 1)) < 0.9
    made = csr_array(dense)
    made.sort_indices()
    return made


@given(st.integers(0, 10**6), st.integers(2, 40), st.integers(2, 40), st.integers(0, 3), st.integers(0, 3))
@settings(max_examples=100)
def test_products_in_both_directions_give_all_entries(seed: int, m: int, n: int, rows: int, columns: int) -> None:
    pattern = with_long_lines(seed, m, n, rows, columns)
    values = pattern.astype(float)
    values.data = np.random.default_rng(1).uniform(size=pattern.nnz)
    for chosen in (np.random.default_rng(seed).random(m) < 0.4, np.random.default_rng(seed).random(n) < 0.4):
        lines = np.repeat(np.arange(m), np.diff(pattern.indptr)) if chosen is not None and len(chosen) == m else pattern.indices
        plan = Bidirectional(sparsity(pattern), chosen[lines], "auto")
        found = plan.entries_from(lambda v: values @ v, lambda v: values.T @ v)
        np.testing.assert_allclose(found, values.data)


def test_arrows_take_both_directions() -> None:
    dense = np.eye(500, dtype=bool)
    dense[:3] = True
    dense[:, -2:] = True
    pattern = csr_array(dense)
    plan = of_jacobian(sparsity(pattern))
    assert (plan.info.method, plan.info.colours) == ("bidirectional", 6)
    assert of_jacobian(sparsity(pattern), "forward").info.colours == of_jacobian(sparsity(pattern), "reverse").info.colours == 500


@given(st.integers(0, 10**6), st.integers(2, 40), st.integers(0, 3))
@settings(max_examples=60)
def test_both_directions_are_taken_for_fewer_colours_only(seed: int, n: int, long: int) -> None:
    pattern = with_long_lines(seed, n, n, long, long)
    one = min(of_jacobian(sparsity(pattern), mode).info.colours for mode in ("forward", "reverse"))
    found = of_jacobian(sparsity(pattern)).info
    assert found.colours <= (0.75 * one if found.method == "bidirectional" else one)
