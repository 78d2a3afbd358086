"""Ranges and the identity matrix: values, dtypes, refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tapegrad as tg


def test_eye():
    assert tg.eye(2, 3).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_eye_refuses_negative_lengths():
    with pytest.raises(RuntimeError, match="n must be greater or equal to 0, got -1"):
        tg.eye(-1)


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ((3,), [0, 1, 2]),
        ((1, 4), [1, 2, 3]),
        ((5, 0, -2), [5, 3, 1]),
        ((0,), []),
        ((1.5,), [0.0, 1.0]),
        ((0, 1, 0.25), [0.0, 0.25, 0.5, 0.75]),
    ],
)
def test_arange(arguments, values):
    assert tg.arange(*arguments).tolist() == values


def test_arange_is_of_integers_only_if_all_arguments_are():
    assert (tg.arange(3).dtype, tg.arange(3.0).dtype, tg.arange(0, 3, 0.5).dtype) == (
        tg.int64,
        tg.float64,
        tg.float64,
    )


def test_arange_of_large_integers_is_exact():
    assert tg.arange(2**60, 2**60 + 2).tolist() == [2**60, 2**60 + 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 5, 0), "step must be nonzero"),
        ((5, 0), "upper bound and lower bound inconsistent with step sign"),
        ((0, 5, -1), "upper bound and lower bound inconsistent with step sign"),
        ((float("nan"),), "unsupported range"),
        ((float("inf"),), "unsupported range"),
    ],
)
def test_arange_refuses(arguments, message):
    with pytest.raises(RuntimeError, match=message):
        tg.arange(*arguments)


@pytest.mark.parametrize(
    ("arguments", "values"),
    [((0, 1, 5), [0.0, 0.25, 0.5, 0.75, 1.0]), ((3, 9, 1), [3.0]), ((3, 9, 0), []), ((1, -1, 3), [1.0, 0.0, -1.0])],
)
def test_linspace(arguments, values):
    assert tg.linspace(*arguments).tolist() == values


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.integers(2, 50))
def test_linspace_has_exact_ends_and_is_symmetric(start, end, steps):
    there, back = tg.linspace(start, end, steps).numpy(), tg.linspace(end, start, steps).numpy()
    assert (there[0], there[-1]) == (start, end)
    np.testing.assert_allclose(there, back[::-1], rtol=0, atol=4e-10)


def test_linspace_refuses_a_negative_number_of_steps():
    with pytest.raises(RuntimeError, match="number of steps"):
        tg.linspace(0, 1, -1)


@pytest.mark.parametrize(
    ("arguments", "values"),
    [((3.9,), [0, 1, 2]), ((0.1, -7.9, -4.0), [0, -4]), ((-0.9, 2.1, 1.5), [0, 1]), ((0.9, 2.0, 1), [0, 1])],
)
def test_arange_of_integers_truncates_its_bounds_first(arguments, values):
    assert tg.arange(*arguments, dtype=tg.int64).tolist() == values


def test_arange_of_integers_refuses_a_step_below_one():
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        tg.arange(0, 3, 0.5, dtype=tg.int64)
