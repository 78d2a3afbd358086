"""NumPy's functions of samples and polynomials on tensors: interpolation, integrals, slopes, convolutions."""

import warnings
from typing import Any

import numpy as np
import pytest
from engine_fixtures import leaf
from like_numpy import assert_like_numpy, values_of

import tapegrad as tg

over = pytest.mark.parametrize
NAN, INF = np.nan, np.inf
M = np.array([[0.31, 0.82, 0.55, 0.47], [0.66, 0.43, 0.91, 0.38], [0.72, 0.59, 0.34, 0.88]])
V = np.array([0.45, 0.77, 0.62, 0.53])
KNOTS, HEIGHTS = np.array([0.0, 0.4, 0.7, 1.2]), np.array([1.0, -1.0, 2.0, 7.0])
NAMES: dict[str, Any] = {"np": np, "INF": INF, "M": M, "V": V, "KNOTS": KNOTS, "HEIGHTS": HEIGHTS, "ONE": np.array([0.7])}
NAMES |= {"NUMBER": np.array(0.3), "NONE": np.zeros(0), "INTEGERS": np.array([7, 1, 4, 12]), "SINGLE": M.astype(np.float32)}
NAMES |= {"CUBE": np.sin(np.arange(24.0)).reshape(2, 3, 4), "OUTSIDE": np.array([-1.3, -0.05, 1.21, 3.0, 0.33])}
NAMES |= {"ENDS": np.array([0.0, 0.4, 1.2, NAN, INF, -INF, 0.5]), "LONG": np.cos(np.arange(9.0))}


def line(text: str) -> tuple[Any, list[Any]]:
    call, names = text.split(" # ")
    return eval(f"lambda a: {call}", NAMES), [NAMES[name] for name in names.split()]


@over(
    "text",
    """
np.interp(a, KNOTS, HEIGHTS) # M NUMBER NONE OUTSIDE
np.interp(a, KNOTS, HEIGHTS, left=-5.0, right=9) # OUTSIDE
np.interp(a, KNOTS, HEIGHTS, period=1.35) # OUTSIDE
np.interp(a, [0.5], [2.0], right=3.0) # OUTSIDE
np.interp([[0.3, 0.5], [-1.0, 2.0]], KNOTS, a) # V
np.interp([0.5, 0.58], a, HEIGHTS) # KNOTS
np.interp(0.3, KNOTS, a, period=-1.3) # V
np.trapezoid(a) # V M ONE NONE
np.trapezoid(a, dx=0.3, axis=0) # M
np.trapezoid(a, KNOTS) # CUBE
np.trapezoid(a, a * a, axis=1) # CUBE
np.trapezoid(M, a) # KNOTS
np.gradient(a) # V CUBE
np.gradient(a, 0.1, axis=0) # M
np.gradient(a, KNOTS) # V
np.gradient(a, KNOTS, edge_order=2) # V
np.gradient(a, [1.0, 2.0, 5.0], 0.3, edge_order=2) # M
np.gradient(V, a) # KNOTS
np.gradient(M, a, 0.5) # NUMBER
np.ediff1d(a, to_begin=[1.0, 2.0], to_end=9.0) # M V ONE
np.unwrap(a * 20.0) # M
np.unwrap(a * 20.0, axis=0, period=3.0) # M
np.polyval(a, 2.0) # V
np.polyval([1.0, 2.0, 3.0], a) # M NUMBER NONE
np.vander(a) # V
np.vander(a, 3, increasing=True) # V NONE
np.vander(a, 0) # V
np.convolve(a, [1.0, 2.0, -1.0]) # V ONE
np.convolve([1.0, 2.0, -1.0, 3.0], a, mode="same") # LONG ONE V
np.convolve(a, a, mode="valid") # V
np.correlate(a, [1.0, 2.0, -1.0]) # V ONE
np.correlate(a, [1.0, 2.0, -1.0, 3.0], "same") # LONG ONE V
np.correlate([1.0, 2.0], a, mode="full") # LONG
""".strip().splitlines(),
)
def test_functions_of_samples_are_numpy_s_with_derivatives(text: str) -> None:
    f, arrays = line(text)
    for array in arrays:
        assert_like_numpy(f, array, order=2)


@over(
    "text",
    """
np.interp(a, KNOTS, HEIGHTS) # ENDS
np.interp(a, KNOTS, [1.0, INF, 2.0, -INF]) # ENDS
np.interp(a, [0.0, 1.0, 1.0, 2.0], HEIGHTS) # M
np.interp(a, [0.5], [2.0], left=7.0) # ENDS
np.unwrap(a) # INTEGERS ENDS
np.gradient(a) # INTEGERS SINGLE
np.polyval([2.0, 1.0], a) # ENDS
np.polyval(np.arange(3), a) # INTEGERS
np.vander(a, 3) # INTEGERS ENDS
np.convolve(a, [1.0, 2.0]) # ENDS
np.convolve(a, [1.0, INF, 2.0]) # V
np.convolve(a, [1, 2]) # INTEGERS
np.ediff1d(a) # NONE INTEGERS
""".strip().splitlines(),
)
def test_ends_of_the_line_and_integers_count_as_in_numpy(text: str) -> None:
    f, arrays = line(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for array in arrays:
            values_of(f, array)


def test_slope_at_a_knot_is_that_of_the_piece_after_it_or_of_the_last() -> None:
    x = leaf([0.0, 0.4, 1.2])
    np.interp(x, KNOTS, HEIGHTS).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [-5.0, 10.0, 10.0])


def test_slope_outside_the_knots_is_zero_even_at_infinity() -> None:
    x, heights = leaf([-INF, -1.0, 2.0, INF]), leaf(HEIGHTS)
    np.interp(x, KNOTS, heights).sum().backward()
    assert x.grad.tolist() == [0.0] * 4
    assert heights.grad.tolist() == [2.0, 0.0, 0.0, 2.0]


def test_coefficients_may_be_a_list_of_tensors_and_numbers() -> None:
    x, c = leaf(2.0), leaf(3.0)
    np.polyval([c, 1.0, 0.0], x).backward()
    assert (x.grad.item(), c.grad.item()) == (13.0, 4.0)


@over(
    ("call", "message"),
    [
        (lambda x: np.interp(x, [0.0, 1.0], [1.0]), "fp and xp are not of the same length"),
        (lambda x: np.interp(x, [], []), "array of sample points is empty"),
        (lambda x: np.interp(x, KNOTS, HEIGHTS, period=0), "period must be a non-zero value"),
        (lambda x: np.gradient(x[:1]), "too small to calculate a numerical gradient"),
        (lambda x: np.gradient(x, [1.0, 2.0]), "distances must match the length"),
        (lambda x: np.convolve(x, []), "v cannot be empty"),
        (lambda x: np.correlate(x.reshape(2, 2), x), "object too deep"),
        (lambda x: np.convolve(x, x, mode="half"), "mode must be one of"),
        (lambda x: np.vander(x.reshape(2, 2)), "one-dimensional"),
    ],
)
def test_what_numpy_refuses_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(leaf(V))


@over(
    ("call", "name"),
    [
        (lambda s: np.interp(V, KNOTS, tg.tensor(HEIGHTS), period=s), "period"),
        (lambda s: np.unwrap(leaf(V), period=s), "period"),
        (lambda s: np.unwrap(leaf(V), discont=s), "discont"),
    ],
)
def test_periods_cannot_be_tracked(call: Any, name: str) -> None:
    with pytest.raises(TypeError, match=f"its argument '{name}' is a number"):
        call(leaf(2.0))
