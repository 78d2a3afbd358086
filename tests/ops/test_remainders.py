"""Remainders and whole quotients of large arrays: NumPy's bits, whatever the numbers, and slopes of whole quotients."""

import numpy as np
import pytest
from engine_fixtures import numbers
from many_cases import each

import tapegrad as tg

RNG = np.random.default_rng(6)
N = 4096
WIDE, WIDE_TOO = (RNG.normal(size=N) * 10.0 ** RNG.integers(-300, 300, N) for _ in range(2))
WHOLE, STEPS = RNG.integers(-1000, 1000, N).astype(float), RNG.normal(size=N)
ENDS = np.array([0.0, -0.0, 1.0, -3.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e308, 0.1, 2.0**53, 1e-310])
PAIRS = {
    "everyday": (10.0 * RNG.normal(size=N), STEPS),
    "any exponents": (WIDE, WIDE_TOO),
    "multiples": (WHOLE * STEPS, STEPS),
    "beside multiples": (np.nextafter(WHOLE * STEPS, np.inf), STEPS),
    "quarters": (np.round(8.0 * STEPS) / 4.0, np.round(4.0 * RNG.normal(size=N)) / 8.0),
    "ends": tuple(np.tile(part.ravel(), 13) for part in np.meshgrid(ENDS, ENDS)),
    "an infinite divisor": (STEPS, np.full(N, np.inf)),
}
FUNCTIONS = {
    "fmod": (tg.fmod, np.fmod),
    "remainder": (tg.remainder, np.remainder),
    "floor_divide": (tg.floor_divide, np.floor_divide),
}


@each("name", list(FUNCTIONS))
@each("pair", list(PAIRS))
def test_large_arrays_have_numpys_bits(pair: str, name: str) -> None:
    ours, theirs = FUNCTIONS[name]
    x, y = PAIRS[pair]
    with np.errstate(all="ignore"):
        expected = theirs(x, y)
    found = ours(tg.tensor(x), tg.tensor(y)).numpy()
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[found == found]), np.signbit(expected[found == found]))


@each("pair", ["everyday", "multiples", "beside multiples", "quarters"])
def test_slopes_by_the_divisor_are_whole_quotients(pair: str) -> None:
    x, y = PAIRS[pair]
    x, y = x[y != 0.0], y[y != 0.0]
    divisor = tg.tensor(y, requires_grad=True)
    tg.remainder(tg.tensor(x), divisor).sum().backward()
    np.testing.assert_array_equal(numbers(divisor.grad), -np.floor_divide(x, y))


BY_ZERO = {
    "operator": lambda x, y: x % y,
    "reflected": lambda x, y: 7 % y,
    "remainder": tg.remainder,
    "fmod": tg.fmod,
    "in place": lambda x, y: x.remainder_(y),
}


@each("name", BY_ZERO)
@each("divisor", [tg.tensor([0, 1]), tg.tensor(0), tg.tensor([0, 1], dtype=tg.uint8)])
def test_integers_have_no_remainder_by_zero(name, divisor):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        BY_ZERO[name](tg.tensor([7, 8]), divisor)


def test_floats_have_a_remainder_by_zero_that_is_no_number():
    assert np.isnan((tg.tensor([7, 8]) % 0.0).numpy()).all() and np.isnan((tg.tensor([7.0]) % tg.tensor([0])).numpy()).all()


def test_no_integers_may_be_divided_by_zero():
    nothing = tg.zeros(0, dtype=tg.int64)
    assert (nothing % 0).tolist() == (nothing // 0).tolist() == []
