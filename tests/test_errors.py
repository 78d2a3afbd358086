"""Bad input: PyTorch's exception class and key words, the tape as it was, and the next operation right."""

import numpy as np
import pytest
from bad_calls import BAD, operands
from engine_fixtures import assert_values, leaf, live_rows

import tapegrad as tg

every_bad_call = pytest.mark.parametrize("name", BAD)


@every_bad_call
def test_bad_call_raises_with_the_key_words(name: str) -> None:
    bad, error, words = BAD[name]
    given = operands()
    with pytest.raises(error, match=f"(?is){words}"):
        bad(given)


@every_bad_call
def test_bad_call_leaves_the_tape_as_it_was(name: str) -> None:
    bad, error, _ = BAD[name]
    given = operands()
    before = live_rows()
    for _ in range(5):
        with pytest.raises(error):
            bad(given)
    assert live_rows() <= before + 2  # views of leaves that the bad call made on its way, at most


@every_bad_call
def test_operation_after_a_bad_call_is_right(name: str) -> None:
    bad, error, _ = BAD[name]
    given = operands()
    with pytest.raises(error):
        bad(given)
    (given.y * given.m).sum().backward()
    assert_values(given.x.grad, [10.0, 14.0, 18.0])


@every_bad_call
def test_values_and_gradients_survive_a_bad_call(name: str) -> None:
    bad, error, _ = BAD[name]
    given = operands()
    with pytest.raises(error):
        bad(given)
    assert given.x.tolist() == [1.0, 2.0, 3.0] and given.y.tolist() == [2.0, 4.0, 6.0] and given.x.grad is None


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_values_are_data_and_no_error(value: float) -> None:
    x = leaf([value, 2.0])
    (x * tg.exp(-x * x)).sum().backward()
    np.testing.assert_allclose(x.grad[1].item(), np.exp(-4.0) * (1.0 - 8.0), rtol=1e-13)


def test_division_by_zero_is_infinite_and_no_error() -> None:
    assert (leaf(1.0) / 0.0).item() == np.inf


def test_power_of_a_negative_number_is_nan_and_no_error() -> None:
    assert np.isnan((leaf(-1.0) ** 0.5).item())


def test_overflow_is_infinite_and_no_error() -> None:
    assert tg.exp(leaf(1000.0)).item() == np.inf
