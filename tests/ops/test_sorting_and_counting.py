"""Orders and counts: ties, nan, named results, what is not tracked, errors."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf
from hypothesis import given
from hypothesis import strategies as st

import tapegrad as tg

I = tg.tensor
F = tg.nn.functional
NAN = float("nan")
over = pytest.mark.parametrize
small = st.lists(st.sampled_from([0.0, 1.0, 2.0, NAN]), min_size=1, max_size=6)


@over("descending", [False, True])
@given(values=small)
def test_sort_is_pythons_stable_one_with_nan_largest(descending: bool, values: list[float]) -> None:
    keys = [np.inf if v != v else v for v in values]
    expected = sorted(range(len(values)), key=lambda k: -keys[k] if descending else keys[k])
    assert tg.argsort(I(values), descending=descending).tolist() == expected


@pytest.mark.point(11)
@over("f", [lambda x: x.sort(), lambda x: x.topk(2), lambda x: x.kthvalue(1), lambda x: x.sort(descending=True)])
def test_results_are_named_and_indices_untracked(f: Any) -> None:
    found = f(leaf([3.0, 1.0, 2.0]))
    values, indices = found
    assert found.values is values and found.indices is indices
    assert (values.requires_grad, indices.requires_grad, indices.dtype) == (True, False, tg.int64)


@pytest.mark.point(79)
@over("f", [lambda x: x.topk(2), lambda x: x.sort(), lambda x: x.kthvalue(2, keepdim=True), lambda x: x.max(0, keepdim=True)])
def test_gradient_of_ties_goes_to_the_places_that_the_indices_name(f: Any) -> None:
    x = leaf([2.0, 2.0, 1.0, 2.0])
    values, indices = f(x)
    weights = np.array([1.0, 10.0, 100.0, 1000.0])[: len(values)]
    (values * I(weights)).sum().backward()
    expected = np.zeros(4)
    expected[indices.numpy()] = weights
    assert_values(x.grad, expected)


@pytest.mark.point(79)
def test_first_of_equal_elements_are_the_largest() -> None:
    assert I([2.0, 2.0, 1.0, 2.0]).topk(2).indices.tolist() == [0, 1]


@over("largest", [True, False])
def test_choosing_few_of_many_equals_sorting_all(largest: bool) -> None:
    x = np.random.default_rng(0).permutation(4 * 3000).reshape(4, 3000) * 1.0
    got = tg.tensor(x).topk(7, 1, largest)
    order = np.argsort(-x if largest else x, 1)[:, :7]
    np.testing.assert_array_equal(got.indices.numpy(), order)
    np.testing.assert_array_equal(got.values.numpy(), np.take_along_axis(x, order, 1))


def test_largest_of_many_begin_with_nan() -> None:
    x = np.arange(2000.0)
    x[5] = NAN
    assert_values(tg.tensor(x).topk(2).values, [NAN, 1999.0])


def test_written_indices_do_no_harm() -> None:
    x = leaf([3.0, 1.0, 2.0])
    found = x.sort()
    found.indices.fill_(0)
    (found.values * I([1.0, 10.0, 100.0])).sum().backward()
    assert_values(x.grad, [100.0, 1.0, 10.0])


@over(("dim", "expected"), [(None, [0.0, 1.0, 2.0]), (0, [[0.0, 1.0], [2.0, 1.0]]), (1, [[0.0, 1.0], [2.0, 1.0], [0.0, 1.0]])])
def test_unique_elements_and_slices(dim: Any, expected: Any) -> None:
    x = np.array([[0.0, 1.0], [2.0, 1.0], [0.0, 1.0]])
    values, inverse, counts = tg.unique(tg.tensor(x), return_inverse=True, return_counts=True, dim=dim)
    assert_values(values, expected)
    rebuilt = values[inverse] if not dim else values[:, inverse]
    assert_values(rebuilt, x)
    assert counts.sum().item() == (x.size if dim is None else x.shape[dim])


@given(values=st.lists(st.integers(0, 2), max_size=8))
def test_unique_consecutive_is_itertools_groupby(values: list[int]) -> None:
    from itertools import groupby

    groups = [(key, len(list(group))) for key, group in groupby(values)]
    found, inverse, counts = tg.unique_consecutive(I(values, dtype=tg.int64), return_inverse=True, return_counts=True)
    assert list(zip(found.tolist(), counts.tolist(), strict=True)) == groups
    assert found[inverse].tolist() == values


def test_unique_consecutive_slices() -> None:
    assert tg.unique_consecutive(I([[1, 1, 2], [1, 1, 1]]), dim=1).tolist() == [[1, 2], [1, 1]]


@pytest.mark.point(31)
@over("f", [tg.unique, tg.unique_consecutive, lambda x: tg.unique(x, dim=0)])
def test_distinct_elements_have_no_derivative(f: Any) -> None:
    with pytest.raises(NotImplementedError, match="the derivative for 'unique.*' is not implemented"):
        f(leaf([1.0, 2.0])).sum().backward()


@over("right", [False, True])
@over("count", [0, 1, 5])
def test_searching_rows_equals_numpy_row_by_row(right: bool, count: int) -> None:
    rng = np.random.default_rng(count)
    rows = np.sort(rng.integers(0, 5, (2, 3, 4)), -1)
    values = rng.integers(-1, 6, (2, 3, count))
    expected = [
        np.searchsorted(a, v, "right" if right else "left") for a, v in zip(rows.reshape(6, 4), values.reshape(6, -1), strict=True)
    ]
    got = tg.searchsorted(I(rows), I(values), right=right)
    np.testing.assert_array_equal(got.numpy(), np.array(expected).reshape(values.shape))


def test_searching_through_a_sorter() -> None:
    x = I([3.0, 1.0, 2.0])
    assert tg.searchsorted(x, 2.5, sorter=x.argsort()).item() == 2


def test_search_gives_int32_where_it_is_asked_for() -> None:
    assert tg.bucketize(1.5, I([1.0, 2.0]), out_int32=True).dtype == tg.int32


def test_indices_of_a_number_that_is_not_zero() -> None:
    x = tg.tensor(3.0)
    assert (tuple(x.nonzero().shape), x.nonzero(as_tuple=True)[0].tolist()) == ((1, 0), [0])


def test_weights_of_a_count_keep_their_dtype() -> None:
    assert tg.bincount(I([0, 1]), tg.ones(2, dtype=tg.float32)).dtype == tg.float32


def test_one_hot_infers_the_number_of_classes() -> None:
    assert F.one_hot(I([[2, 0]])).tolist() == [[[0, 0, 1], [1, 0, 0]]]


ERRORS: list[tuple[Callable[[tg.Tensor], Any], type[Exception], str]] = [
    (lambda x: x.sort(1), IndexError, "Dimension out of range"),
    (lambda x: x.topk(4), RuntimeError, "selected index k out of range"),
    (lambda x: x.topk(-1), RuntimeError, "selected index k out of range"),
    (lambda x: x.kthvalue(0), RuntimeError, "kthvalue(): selected number k out of range for dimension 0"),
    (lambda x: x[:0].kthvalue(1), IndexError, "kthvalue(): Expected reduction dim 0 to have non-zero size."),
    (lambda x: tg.zeros(0, 2).unique(dim=1), RuntimeError, "There are 0 sized dimensions, and they aren't selected"),
    (lambda x: x.sum().unique(dim=0), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
    (lambda x: tg.searchsorted(tg.ones(2, 3), x), RuntimeError, "boundaries tensor should be 1 dimension or the first N-1"),
    (lambda x: tg.searchsorted(x, x, side="a"), RuntimeError, "side can only be 'left' or 'right' but got a"),
    (lambda x: tg.searchsorted(x, x, side="left", right=True), RuntimeError, "side and right can't be set to opposites"),
    (lambda x: tg.searchsorted(x.sum(), x), RuntimeError, "boundaries tensor should have positive dimension"),
    (lambda x: tg.searchsorted(tg.ones(2, 3), 1.0), RuntimeError, "input value can be a scalar only when boundaries tensor"),
    (lambda x: tg.searchsorted(x, x, sorter=I([0])), RuntimeError, "boundary and sorter must have the same size"),
    (lambda x: tg.searchsorted(x, x, sorter=I([0, 1, 3])), RuntimeError, "sorter index out of range"),
    (lambda x: tg.searchsorted(x, x, sorter=I([0.0, 1.0, 2.0])), RuntimeError, "sorter must be a tensor of long dtype"),
    (lambda x: tg.bucketize(x, tg.ones(1, 1)), RuntimeError, "boundaries tensor must be 1 dimension, but got dim(2)"),
    (lambda x: tg.isin(1, 2), TypeError, "must be a Tensor"),
    (lambda x: tg.bincount(x), NotImplementedError, "\"bincount_cpu\" not implemented for 'Double'"),
    (lambda x: tg.bincount(I([-1])), RuntimeError, "bincount only supports 1-d non-negative integral inputs"),
    (lambda x: tg.bincount(I([1]), minlength=-1), RuntimeError, "minlength should be >= 0"),
    (lambda x: tg.bincount(I([1]), x), RuntimeError, "weights should be 1-d and have the same length as input"),
    (lambda x: tg.histc(I([1])), NotImplementedError, "\"histc\" not implemented for 'Long'"),
    (lambda x: tg.histc(x, 0), RuntimeError, "bins must be > 0, but got 0"),
    (lambda x: tg.histc(x, 3, 2, 1), RuntimeError, "max must be larger than min, but got min=2.0 and max=1.0"),
    (lambda x: tg.histc(x / 0.0), RuntimeError, "is not finite"),
    (lambda x: tg.unravel_index(x, (2,)), TypeError, "expected 'indices' to be integer dtype, but got Double"),
    (lambda x: tg.unravel_index(I([1]), (2, -1)), ValueError, "'shape' cannot have negative values, but got (2, -1)"),
    (lambda x: tg.unravel_index(I([1]), (2, 0)), ValueError, "a tensor of shape (2, 0) has no elements"),
    (lambda x: F.one_hot(x), RuntimeError, "one_hot is only applicable to index tensor of type LongTensor"),
    (lambda x: F.one_hot(I([2]), 2), RuntimeError, "Class values must be smaller than num_classes."),
    (lambda x: F.one_hot(I([-1])), RuntimeError, "Class values must be non-negative"),
    (lambda x: F.one_hot(tg.zeros(0, dtype=tg.int64)), RuntimeError, "Can not infer total number of classes from empty tensor."),
    (lambda x: tg.where(x > 0, x), TypeError, "where()"),
]


@over(("f", "error", "message"), ERRORS)
def test_errors_of_orders_and_counts(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        f(leaf([3.0, 1.0, 2.0]))


def test_histogram_counts_as_numpy_does_and_is_no_part_of_the_graph() -> None:
    values = np.random.default_rng(0).integers(-40, 40, 200) / 8.0
    for bins, low, high in ((4, -2.0, 3.0), (7, 0.0, 0.0)):
        found = tg.histc(leaf(values), bins, low, high)
        assert found.requires_grad is False
        expected = np.histogram(values, bins, None if low == high else (low, high))[0]
        np.testing.assert_array_equal(found, expected)
    assert tg.histc(tg.tensor([2.0, 2.0], dtype=tg.float32), 2).tolist() == [0.0, 2.0]


def test_counted_elements_have_indices_that_begin_again_at_the_end() -> None:
    rows, columns = tg.unravel_index(tg.tensor([[0, 5], [7, -1]]), (2, 3))
    assert (rows.tolist(), columns.tolist()) == ([[0, 1], [0, 1]], [[0, 2], [1, 2]])
    assert [index.tolist() for index in tg.unravel_index(tg.tensor(3), 4)] == [3]


def test_histc_takes_a_number_of_bins_that_is_a_tensor() -> None:
    assert_values(tg.histc(tg.tensor([1.0, 2.0, 1.0]), tg.tensor(4), 0, 3), [0.0, 2.0, 1.0, 0.0])
