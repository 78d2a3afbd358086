"""NumPy's statistics on tensors: quantiles, covariances, missing values."""

import warnings
from typing import Any

import numpy as np
import pytest
from engine_fixtures import leaf
from like_numpy import assert_like_numpy, values_of

import tapegrad as tg

over = pytest.mark.parametrize
M = np.array([[0.31, 0.82, 0.55, 0.47], [0.66, 0.43, 0.91, 0.38], [0.72, 0.59, 0.34, 0.88]])
V = np.array([0.45, 0.77, 0.62, 0.53])
ONE = np.array([0.7])
NAN, INF = np.nan, np.inf
GAPS = np.array([[NAN, 1.0, 2.0, NAN], [3.0, 2.0, NAN, 5.0], [NAN, 7.0, NAN, NAN]])
ENDS = np.array([[-INF, NAN, -INF], [INF, NAN, 1.0], [NAN, NAN, NAN]])
NAMES = {
    "np": np,
    "M": M,
    "V": V,
    "ONE": ONE,
    "GAPS": GAPS,
    "ENDS": ENDS,
    "INTEGERS": np.array([3, 1, 4, 1]),
    "NONE": np.zeros((0, 3)),
}
NAMES |= {"SINGLE": M.astype(np.float32), "CUBE": np.sin(np.arange(24.0)).reshape(2, 3, 4)}


def line(text: str) -> tuple[Any, list[Any]]:
    call, names = text.split(" # ")
    return eval(f"lambda a: {call}", NAMES), [NAMES[name] for name in names.split()]


@over(
    "text",
    """
np.median(a) # M V ONE
np.median(a, axis=0) # M
np.median(a, axis=(0, 2), keepdims=True) # CUBE
np.median(a, 1, overwrite_input=False) # CUBE
np.nanmedian(a) # V
np.quantile(a, 0.3) # M V ONE
np.quantile(a, [[0.0, 0.35], [0.5, 1.0]], axis=1) # M CUBE
np.quantile(a, [0.35, 0.9], axis=(0, 1), keepdims=True) # M
np.quantile(a, [0.1, 0.35, 0.5, 0.9], method="lower") # V
np.quantile(a, [0.1, 0.35, 0.5, 0.9], method="higher") # V
np.quantile(a, [0.1, 0.35, 0.6, 0.9], method="nearest") # V
np.quantile(a, [0.1, 0.35, 0.5, 0.9], method="midpoint") # V
np.percentile(a, 25) # M
np.percentile(a, [33.3, 100], axis=-1) # CUBE
np.nanpercentile(a, 40, axis=1) # M
np.cov(a) # M V
np.cov(a, rowvar=False, bias=True) # M
np.cov(a, M[0], ddof=2) # V
np.corrcoef(a) # M
np.corrcoef(a, V) # V
np.nanmax(a, axis=0) # M
np.bincount([0, 2, 2, 5], a, minlength=7) # V
""".strip().splitlines(),
)
def test_statistics_are_numpy_s_with_derivatives(text: str) -> None:
    f, arrays = line(text)
    for array in arrays:
        assert_like_numpy(f, array, order=2)


@over(
    "text",
    """
np.nanmedian(a, axis=1) # GAPS ENDS
np.nanquantile(a, [0.2, 0.5, 0.8], axis=0) # GAPS
np.nanmax(a) # GAPS ENDS
np.nanmax(a, axis=1, keepdims=True) # GAPS ENDS
np.nanmin(a, axis=0) # GAPS ENDS
np.nanvar(a, axis=1) # GAPS
np.nanvar(a) # GAPS
np.nanstd(a, axis=0, ddof=1, keepdims=True) # GAPS
np.median(a, axis=0) # GAPS ENDS NONE INTEGERS SINGLE
np.quantile(a, 0.3) # GAPS ENDS INTEGERS SINGLE
np.quantile(a, [0.3]) # SINGLE
np.cov(a) # INTEGERS ONE
np.bincount(a) # INTEGERS
""".strip().splitlines(),
)
def test_missing_infinite_and_no_elements_count_as_in_numpy(text: str) -> None:
    f, arrays = line(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for array in arrays:
            values_of(f, array)


@over(
    "text", ["np.nanvar(a, axis=1)", "np.nanstd(a[:2], axis=1)", "np.nanmedian(a, axis=1)", "np.nanmax(a, axis=0)", "np.nanmin(a)"]
)
def test_missing_values_get_no_gradient_and_the_others_theirs(text: str) -> None:
    f, present = line(f"{text} # GAPS")[0], ~np.isnan(GAPS)

    def filled(given: Any) -> Any:
        a = given * tg.tensor(np.where(present, 1.0, NAN)) if isinstance(given, tg.Tensor) else np.where(present, given, NAN)
        return f(a)

    whole = leaf(GAPS)
    f(whole).sum().backward()
    assert not whole.grad.numpy()[~present].any()
    base = np.where(present, GAPS, 0.0)
    differences = np.zeros_like(base)
    for place in zip(*np.nonzero(present), strict=True):
        step = np.zeros_like(base)
        step[place] = 1e-6
        differences[place] = (np.sum(filled(base + step)) - np.sum(filled(base - step))) / 2e-6
    np.testing.assert_allclose(whole.grad.numpy(), differences, atol=1e-6)


def test_quantile_that_is_one_element_is_that_element_beside_infinite_ones() -> None:
    x = leaf([1.0, 2.0, INF])
    np.quantile(x, 0.5).backward()
    assert np.quantile(x, 0.5).item() == 2.0
    assert x.grad.tolist() == [0.0, 1.0, 0.0]


def test_nan_shares_no_gradient_with_a_largest_element_that_is_infinite() -> None:
    x = leaf([-INF, NAN])
    np.nanmax(x).backward()
    assert x.grad.tolist() == [1.0, 0.0]


def test_deviation_without_spread_has_the_gradient_zero() -> None:
    x = leaf([2.0, NAN, 2.0])
    np.nanstd(x).backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


@over("call", [lambda x: np.quantile(x, 1.1), lambda x: np.percentile(x, -1)])
def test_quantiles_outside_their_range_are_refused(call: Any) -> None:
    with pytest.raises(ValueError, match=r"Quantiles must be in the range \[0, 1\]"):
        call(leaf(V))


def test_other_methods_of_quantiles_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'inverted' is not a valid method: it is one of averaged_inverted_cdf, closest"):
        np.quantile(leaf(V), 0.3, method="inverted")  # type: ignore[call-overload]


def test_place_of_a_quantile_cannot_be_tracked() -> None:
    with pytest.raises(RuntimeError, match="Can't call numpy.. on Tensor that requires grad"):
        np.quantile(V, leaf(0.3))


def test_no_bins_take_no_weights() -> None:
    assert np.bincount([], leaf([])).tolist() == []


@over("call", [lambda: np.nanvar(leaf(V), ddof=leaf(1.0)), lambda: np.cov(leaf(V), ddof=leaf(1.0))])
def test_degrees_of_freedom_cannot_be_tracked(call: Any) -> None:
    with pytest.raises(TypeError, match="its argument 'ddof' is a number"):
        call()


def test_observations_are_made_a_whole_number_of_times() -> None:
    with pytest.raises(TypeError, match="fweights must be integer"):
        np.cov(leaf(M), fweights=[0.5] * M.shape[1])
