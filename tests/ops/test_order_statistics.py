"""Medians, modes, quantiles and running extremes where elements tie, are nan, or are none; and their errors."""

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf, node_name, numbers

import tapegrad as tg

NAN, INF = np.nan, np.inf


def gradient_of(f, values):
    x = leaf(values)
    f(x).sum().backward()
    return x.grad


@pytest.mark.point(79)
def test_median_of_everything_shares_the_gradient_among_ties() -> None:
    assert_values(gradient_of(tg.median, [[2.0, 3.0], [2.0, 1.0]]), [[0.5, 0.0], [0.5, 0.0]])


@pytest.mark.point(82)
def test_median_takes_the_lower_of_two_in_the_middle() -> None:
    assert tg.median(tg.tensor([4.0, 1.0, 3.0, 2.0])).item() == 2.0


def test_median_with_nan_is_nan_and_so_are_the_elements_that_get_its_gradient() -> None:
    x = leaf([1.0, NAN, 3.0, NAN])
    y = tg.median(x)
    y.backward()
    assert np.isnan(y.item())
    assert_values(x.grad, [0.0, 0.5, 0.0, 0.5])


def test_median_along_a_dimension_names_the_first_nan() -> None:
    values, indices = tg.median(tg.tensor([[1.0, NAN, 3.0, NAN], [4.0, 3.0, 2.0, 1.0]]), 1)
    assert_values(values, [NAN, 2.0])
    assert indices.tolist() == [1, 2]


def test_nanmedian_of_nothing_but_nan_is_nan() -> None:
    values, indices = tg.nanmedian(tg.tensor([[NAN, NAN], [NAN, 1.0]]), 1)
    assert_values(values, [NAN, 1.0])
    assert indices.tolist() == [0, 1]


def test_median_of_nothing_is_nan() -> None:
    assert np.isnan(tg.median(tg.zeros(0)).item())


def test_median_of_integers_is_an_integer() -> None:
    y = tg.median(tg.tensor([3, 1, 2, 2]))
    assert y.dtype == tg.int64 and y.item() == 2


@pytest.mark.parametrize("function", [tg.median, tg.nanmedian, tg.mode])
def test_choice_along_a_dimension_of_size_zero_is_refused(function) -> None:
    with pytest.raises(IndexError, match="Expected reduction dim 0 to have non-zero size"):
        function(tg.zeros(0, 3), 0)


@pytest.mark.parametrize("function", [tg.median, tg.nanmedian, tg.mode, tg.cummax, tg.cummin])
def test_choice_in_a_tensor_without_dimensions_is_the_tensor(function) -> None:
    x = leaf(3.0)
    values, indices = function(x, 0)
    values.backward()
    assert (values.item(), indices.item(), x.grad.item()) == (3.0, 0, 1.0)


@pytest.mark.parametrize("function", [tg.median, tg.nanmedian, tg.mode, tg.cummax, tg.cummin])
def test_indices_are_untracked_and_writing_them_does_no_harm(function) -> None:
    x = leaf([[3.0, 1.0, 2.0]])
    values, indices = function(x, 1)
    assert not indices.requires_grad
    expected = tg.autograd.grad(values.sum(), x, retain_graph=True)[0]
    indices.fill_(0)
    assert_values(tg.autograd.grad(values.sum(), x)[0], numbers(expected))


def test_mode_is_the_smallest_of_the_most_frequent_at_its_last_place() -> None:
    values, indices = tg.mode(tg.tensor([[2.0, 1.0, 2.0, 1.0, 3.0], [5.0, 4.0, 4.0, 3.0, 2.0]]))
    assert (values.tolist(), indices.tolist()) == ([1.0, 4.0], [3, 2])


def test_mode_along_the_first_dimension_keeps_it() -> None:
    values, indices = tg.mode(tg.tensor([[2, 1], [2, 0], [1, 1]]), 0, True)
    assert (values.tolist(), indices.tolist()) == ([[2, 1]], [[1, 2]])


def test_quantile_with_nan_is_nan_in_that_row_only() -> None:
    assert_values(tg.quantile(tg.tensor([[1.0, NAN], [1.0, 2.0]]), 0.5, 1), [NAN, 1.5])


def test_nanquantile_of_nothing_but_nan_is_nan() -> None:
    assert_values(tg.nanquantile(tg.tensor([[NAN, NAN], [NAN, 2.0]]), 0.5, 1), [NAN, 2.0])


def test_several_quantiles_stand_in_front() -> None:
    x = tg.tensor(np.arange(6.0).reshape(2, 3))
    assert tuple(tg.quantile(x, tg.tensor([0.1, 0.5, 0.6, 0.9]), 1, True).shape) == (4, 2, 1)


@pytest.mark.parametrize("count", [3, 3000])
def test_no_quantiles_of_some_numbers_are_no_numbers(count: int) -> None:
    x = leaf(np.arange(float(count)))
    y = tg.quantile(x, tg.zeros(0, dtype=tg.float64))
    y.sum().backward()
    assert tuple(y.shape) == (0,) and not x.grad.any()


def test_gradient_with_respect_to_the_quantile_is_the_slope_between_elements() -> None:
    q = leaf([0.25, 0.75])
    tg.quantile(tg.tensor([0.0, 1.0, 5.0]), q).sum().backward()
    assert_values(q.grad, [2.0, 8.0])


WRONG_QUANTILES = {
    "number out of range": (lambda: tg.quantile(tg.ones(2), 1.5), "q must be in the range [0, 1] but got 1.5"),
    "tensor out of range": (lambda: tg.quantile(tg.ones(2), tg.tensor([-0.5])), "q values must be in the range [0, 1]"),
    "matrix": (lambda: tg.quantile(tg.ones(2), tg.tensor([[0.5]])), "q must be a scalar or 1D tensor"),
    "other dtype": (lambda: tg.quantile(tg.ones(2), tg.tensor([0.5], dtype=tg.float32)), "same dtype as the input tensor"),
    "integers": (lambda: tg.quantile(tg.tensor([1, 2]), 0.5), "must be either float or double dtype"),
    "empty": (lambda: tg.nanquantile(tg.zeros(0), 0.5), "nanquantile() input tensor must be non-empty"),
    "interpolation": (lambda: tg.quantile(tg.ones(2), 0.5, interpolation="cubic"), "interpolation must be one of linear"),
}


@pytest.mark.parametrize("name", WRONG_QUANTILES)
def test_wrong_quantile_is_refused(name: str) -> None:
    call, message = WRONG_QUANTILES[name]
    with pytest.raises(RuntimeError) as caught:
        call()
    assert message in str(caught.value)


def test_running_maximum_names_the_last_of_several() -> None:
    values, indices = tg.cummax(tg.tensor([1.0, 1.0, 0.0, 2.0]), 0)
    assert (values.tolist(), indices.tolist()) == ([1.0, 1.0, 1.0, 2.0], [0, 1, 1, 3])


def test_running_maximum_stays_nan_and_names_the_last_nan() -> None:
    values, indices = tg.cummax(tg.tensor([1.0, NAN, 2.0, NAN, 3.0]), 0)
    assert_values(values, [1.0, NAN, NAN, NAN, NAN])
    assert indices.tolist() == [0, 1, 1, 3, 3]


def test_gradient_of_a_running_minimum_counts_how_long_an_element_was_the_least() -> None:
    assert_values(gradient_of(lambda x: tg.cummin(x, 0).values, [2.0, 3.0, 1.0, 4.0]), [2.0, 0.0, 2.0, 0.0])


def test_smallest_and_largest_share_their_gradients_among_ties() -> None:
    assert_values(gradient_of(lambda x: sum(tg.aminmax(x)), [1.0, 1.0, 2.0, 3.0]), [0.5, 0.5, 0.0, 1.0])


def test_aminmax_of_nothing_is_refused() -> None:
    with pytest.raises(RuntimeError, match="no identity"):
        tg.aminmax(tg.zeros(0))


def test_running_sum_of_exponentials_does_not_overflow() -> None:
    x = leaf([1000.0, 1000.0, -1000.0])
    y = tg.logcumsumexp(x, 0)
    y.sum().backward()
    assert_values(y, [1000.0, 1000.0 + np.log(2.0), 1000.0 + np.log(2.0)])
    assert_values(x.grad, [2.0, 1.0, 0.0])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([-INF, -INF, 2.0], [0.0, 0.0, 1.0]),
        ([1.0, -INF, 1.0], [2.5, 0.0, 0.5]),
        ([1.0, INF, 2.0], [1.0, 0.0, 0.0]),
    ],
)
def test_running_sum_of_exponentials_with_infinities_has_finite_gradients(values, expected) -> None:
    assert_values(gradient_of(lambda x: tg.logcumsumexp(x, 0), values), expected)


def test_second_derivative_of_a_running_sum_of_exponentials_behind_minus_infinity() -> None:
    x = leaf([-INF, 1.0, 2.0])
    (g,) = tg.autograd.grad(tg.logcumsumexp(x, 0).sum(), x, create_graph=True)
    (h,) = tg.autograd.grad(g[1], x)
    p = 1.0 / (1.0 + np.exp(1.0))
    assert_values(h, [0.0, p * (1.0 - p), -p * (1.0 - p)])


NODES = {
    "MedianBackward0": lambda x: tg.median(x),
    "MedianBackward1": lambda x: tg.median(x, 0).values,
    "NanmedianBackward0": lambda x: tg.nanmedian(x),
    "NanmedianBackward1": lambda x: x.nanmedian(0).values,
    "ModeBackward0": lambda x: x.mode(0).values,
    "AminmaxBackward0": lambda x: x.aminmax(dim=0).max,
    "CummaxBackward0": lambda x: x.cummax(0).values,
    "CumminBackward0": lambda x: x.cummin(0).values,
    "LogcumsumexpBackward0": lambda x: x.logcumsumexp(0),
    "VarMeanBackward0": lambda x: tg.var_mean(x)[1],
    "StdMeanBackward0": lambda x: tg.std_mean(x)[0],
    "NansumBackward0": lambda x: x.nansum(),
    "NanToNumBackward0": lambda x: x.nan_to_num(),
    "DistBackward0": lambda x: tg.dist(x, 2 * x),
    "SubBackward0": lambda x: x.diff(),
}


@pytest.mark.point(87)
@pytest.mark.parametrize("name", NODES)
def test_node_has_its_name(name: str) -> None:
    assert node_name(NODES[name](leaf([1.0, 3.0]))) == name
