"""Sections of a recording that have one structure: eight at once, as one after the other and as dense derivatives."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from random_sparse_functions import compiled_by_table, compiled_sum, random_table
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.linear import section_passes
from tapegrad.linear.front_passes import FrontPass
from tapegrad.linear.section_passes import SectionPass, sections_of
from tapegrad.sparse.recorded_calls import recorded

SEEDS = st.integers(0, 10**6)


@numba.njit  # type: ignore[untyped-decorator]
def errors(x: Any, kinds: Any, other: Any) -> Any:
    """Two outputs of each turn, of which there are three kinds; some turns refer to one input twice."""
    found = np.empty((len(kinds), 2))
    for k in range(len(kinds)):
        a, b = x[k], x[other[k]]
        c = np.sin(a) * b
        if np.exp(c) * a < -50.0:  # rows that nothing comes of
            c = c + 1.0
        if kinds[k] == 0:
            found[k, 0], found[k, 1] = c * c + a, c - b * b * a
        elif kinds[k] == 1:
            found[k, 0], found[k, 1] = c * b, b
        else:
            found[k, 0], found[k, 1] = 1.0, c
    return found


@numba.njit  # type: ignore[untyped-decorator]
def energy(x: Any, kinds: Any, other: Any) -> Any:
    """A sum of such turns and of products of what they give."""
    total = 0.0
    for k in range(len(kinds)):
        a, b = x[k], x[other[k]]
        c = np.sqrt(a * a + b)
        if kinds[k] == 0:
            total += c * c * b
        elif kinds[k] == 1:
            total += np.exp(c) / (1.0 + b * b) + a
        else:
            total += a
    return total


def arguments(seed: int, count: int = 37) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 1.5, count), rng.integers(0, 3, count), rng.integers(0, count, count)


def both(function: Any, second: bool, *args: Any) -> tuple[Any, Any]:
    """Values by sections and row by row; None where there is no such pass."""
    recording = recorded(function, args, {}, 0, False, "", second)[2]
    pattern = tg.sparse.plan(function, *args, second=second, mode="star" if second else "forward").pattern.toarray()
    rows, columns = np.nonzero(np.tril(pattern) if second else pattern)
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=recording.inputs if second else recording.results))])
    items = columns.astype(np.int32)
    sections = sections_of(recording, second, ends, items)
    places = FrontPass(recording, second).places(ends, items)
    found = None if sections is None else sections.values(recording, len(items))
    return found, None if places is None else FrontPass(recording, second).values(places, len(items))


@pytest.mark.parametrize("seed", range(4))
def test_turns_of_several_structures(seed: int) -> None:
    args = arguments(seed)
    for function, second in ((errors, False), (energy, True)):
        by_sections, row_by_row = both(function, second, *args)
        np.testing.assert_allclose(by_sections, row_by_row, rtol=1e-13, atol=1e-14)


@given(SEEDS)
@settings(max_examples=60)
def test_random_programs(seed: int) -> None:
    args = random_table(seed)
    for function, second in ((compiled_by_table, False), (compiled_sum, True)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(section_passes, "MOST_LANES", 100)  # so few sections would go row by row
            by_sections, row_by_row = both(function, second, *args)
        if row_by_row is not None:
            np.testing.assert_allclose(by_sections, row_by_row, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("value", [0.0, np.inf, np.nan, -1.0])
def test_what_is_not_finite_is_where_it_is_row_by_row(value: float) -> None:
    x, kinds, other = arguments(1)
    x[[3, 20]] = value
    other[3] = 3
    for function, second in ((errors, False), (energy, True)):
        by_sections, row_by_row = both(function, second, x, kinds, other)
        np.testing.assert_allclose(by_sections, row_by_row, rtol=1e-13, atol=1e-14)


def test_derivatives_are_the_dense_ones() -> None:
    args = arguments(2)
    jacobian, hessian = tg.sparse.jacobian(errors, mode="rows"), tg.sparse.hessian(energy, mode="edges")
    np.testing.assert_allclose(jacobian(*args).toarray(), tg.jacobian(errors)(*args).reshape(74, 37), rtol=1e-13, atol=1e-14)
    dense = tg.hessian(energy.py_func)(*args)
    np.testing.assert_allclose(hessian(*args).toarray(), dense, rtol=1e-12, atol=1e-13)


def test_weighted_sums_of_results() -> None:
    args, weights = arguments(3), np.random.default_rng(0).standard_normal((37, 2))
    recording = recorded(errors, args, {}, 0, False, "", True, weighted=True)[2]
    expected = recording.curve(np.eye(37), weights.reshape(-1))
    lower = np.tril(np.ones((37, 37)))
    ends, items = np.append(0, np.cumsum(lower.sum(1))).astype(np.int64), np.nonzero(lower)[1].astype(np.int32)
    sections = sections_of(recording, True, ends, items)
    assert isinstance(sections, SectionPass)
    found = sections.values(recording, len(items), weights.reshape(-1))
    np.testing.assert_allclose(found, expected[np.nonzero(lower)], rtol=1e-12, atol=1e-13)


def test_entries_that_a_pattern_has_not_are_left_out() -> None:
    args = arguments(2)
    found = tg.sparse.hessian(energy, mode="edges", pattern=np.eye(37))(*args)
    np.testing.assert_allclose(found.diagonal(), np.diag(tg.hessian(energy.py_func)(*args)), rtol=1e-12, atol=1e-13)
