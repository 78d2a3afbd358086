"""Bad input: PyTorch's exception class and key words, the tape as it was, and the next operation right."""

import numpy as np
import pytest
from bad_calls import BAD, operands
from engine_fixtures import assert_values, leaf, live_rows
from many_cases import each

import tapegrad as tg

every_bad_call = each("name", BAD)


@pytest.mark.point(94, 95)
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
    assert live_rows() == before


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


@each("value", [np.nan, np.inf, -np.inf])
def test_non_finite_values_are_data_and_no_error(value: float) -> None:
    x = leaf([value, 2.0])
    (x * tg.exp(-x * x)).sum().backward()
    np.testing.assert_allclose(x.grad[1].item(), np.exp(-4.0) * (1.0 - 8.0), rtol=1e-13)


FUNCTIONS = "exp sin relu sum mean prod max amax var std norm logsumexp cumsum argmax clone t flatten ravel squeeze"


@each("value", [[1.0], "a"], ids=["list", "string"])
@each("name", FUNCTIONS.split())
def test_function_of_something_else_than_a_tensor_raises(name: str, value: object) -> None:
    with pytest.raises(TypeError, match=type(value).__name__):
        getattr(tg, name)(value)


NON_FINITE = "sum mean prod max min amax var std norm logsumexp softmax log_softmax cumsum cumprod"


@each("name", NON_FINITE.split())
def test_reduction_of_non_finite_values_neither_warns_nor_raises(name: str) -> None:
    x = leaf([np.inf, -np.inf, np.nan, 1e308, 1e308])
    needs_axis = name in ("logsumexp", "softmax", "log_softmax", "cumsum", "cumprod")
    y = getattr(x, name)(0) if needs_axis else getattr(x, name)()
    y.sum().backward()
    assert x.grad.shape == (5,)


def test_division_by_zero_is_infinite_and_no_error() -> None:
    assert (leaf(1.0) / 0.0).item() == np.inf


def test_power_of_a_negative_number_is_nan_and_no_error() -> None:
    assert np.isnan((leaf(-1.0) ** 0.5).item())


def test_overflow_is_infinite_and_no_error() -> None:
    assert tg.exp(leaf(1000.0)).item() == np.inf
