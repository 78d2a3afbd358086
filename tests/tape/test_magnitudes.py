"""Whether numbers are of a size that what is computed with them stands in the range of their type."""

import numpy as np
from many_cases import each

from tapegrad.tape.magnitudes import are_finite_and_not_zero, are_normal, have_magnitudes, have_normal_reciprocals

TINY = 1e-310


@each("dtype", [np.float64, np.float32])
@each("form", [lambda a: a, lambda a: a[::2], lambda a: a.reshape(2, 5).T])
@each(
    ("value", "not_zero", "normal"),
    [(-2.0, True, True), (0.0, False, False), (-0.0, False, False), (np.inf, False, False), (np.nan, False, False)],
)
def test_one_number_decides(dtype, form, value: float, not_zero: bool, normal: bool) -> None:
    x = np.full(10, 3.0, dtype)
    x[4] = value
    assert are_finite_and_not_zero(form(x)) is not_zero
    assert are_normal(form(x)) is normal


@each("form", [float, np.asarray, lambda x: np.array([1.0, x])])
def test_small_numbers_are_not_normal(form) -> None:
    assert are_finite_and_not_zero(form(TINY))
    assert not are_normal(form(TINY))


def test_nothing_is_in_every_range() -> None:
    assert have_magnitudes(np.zeros(0), 1.0, 2.0)
    assert have_magnitudes(np.zeros((3, 0), np.float32), 1.0, 2.0)


def test_ends_of_the_range_are_in_it() -> None:
    assert have_magnitudes(np.array([-1.0, 2.0]), 1.0, 2.0)
    assert not have_magnitudes(np.array([-1.0, 2.0]), 1.5, 2.0)
    assert not have_magnitudes(2.5, 1.5, 2.0)
    with np.errstate(all="raise"):
        assert not have_magnitudes(np.array([np.inf]), 1.5, 2.0)


@each("dtype", [np.float64, np.float32])
def test_reciprocals_of_normal_numbers_may_have_fewer_digits(dtype) -> None:
    limits = np.finfo(dtype)
    assert have_normal_reciprocals(np.array([1.0, limits.tiny, 1.0 / limits.tiny], dtype))
    assert not have_normal_reciprocals(np.array([1.0, limits.max], dtype))
    assert not have_normal_reciprocals(np.array([1.0, limits.tiny / 2], dtype))
