"""Programs that may round otherwise than NumPy: contracted products, and hyperbolic tangents of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from machine_code import fast

import tapegrad as tg

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-320, 709.7, 709.8, 1e300, -745.0, -745.2, -1e300, 22.0, -19.1, 1e-9])


def samples(scale: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate(
        [scale * rng.standard_normal(30_000), 10.0 ** rng.uniform(-12.0, 0.0, 5_000), np.linspace(-1.0, 1.0, 1001)]
    )


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_hyperbolic_tangents_are_within_two_units_of_the_last_digit(scale: float) -> None:
    x = samples(scale)
    exact = np.tanh(x.astype(np.longdouble))
    found = fast(lambda x: np.tanh(x) * 1.0, x)(x)
    assert not np.array_equal(found, np.tanh(x))
    units = np.abs(found - exact) / np.spacing(np.abs(exact).astype(np.float64))
    assert units.max() < 2.0


def test_hyperbolic_tangents_of_special_values() -> None:
    with np.errstate(all="ignore"):
        found, expected = fast(lambda x: np.tanh(x) * 1.0, SPECIAL)(SPECIAL), np.tanh(SPECIAL)
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=5e-324)
    assert np.array_equal(np.signbit(found), np.signbit(expected))


def angles() -> np.ndarray:
    """Of all sizes up to the limit, and near multiples of a quarter of a turn, where sines or cosines are tiny."""
    rng = np.random.default_rng(0)
    multiples = rng.integers(1, 2**29, 8_000) * (np.pi / 2)
    sizes = 10.0 ** rng.uniform(-300.0, 9.0, 8_000) * rng.choice([-1.0, 1.0], 8_000)
    near = [multiples, np.nextafter(multiples, 0.0), -np.arange(1000) * (np.pi / 4)]
    return np.concatenate([10.0 * rng.standard_normal(8_000), 1e5 * rng.standard_normal(8_000), sizes, *near])


@pytest.mark.parametrize("function", [np.sin, np.cos])
def test_sines_and_cosines_are_within_two_units_of_the_last_digit(function: Any) -> None:
    x = angles()
    exact = function(x.astype(np.longdouble))
    found = fast(lambda x: function(x) * 1.0, x)(x)
    assert not np.array_equal(found, function(x))
    units = np.abs(found - exact) / np.spacing(np.abs(exact).astype(np.float64))
    assert units.max() < 2.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", [np.sin, np.cos])
def test_sines_and_cosines_of_special_and_of_huge_numbers_are_numpys(function: Any) -> None:
    run = fast(lambda x: function(x) * 1.0, np.ones(19))
    for special in (*SPECIAL, -1e-320, 5e-324, 2.0**30, np.nextafter(2.0**30, np.inf), 1e22, -1.7e308):
        x = np.full(19, 0.75)
        for k in (3, 18):  # among eight and in what is left over
            x[k] = special
            found, expected = run(x)[k], function(x)[k]
            np.testing.assert_allclose(found, expected, rtol=4e-16, atol=0.0)
            assert np.signbit(found) == np.signbit(expected) or np.isnan(expected)


@pytest.mark.parametrize("function", [np.sin, np.cos])
def test_huge_neighbours_change_nothing(function: Any) -> None:
    run = fast(lambda x: function(x) * 1.0, np.ones(1000))
    x = np.random.default_rng(3).normal(size=1000)
    alone = run(x)
    x[::100] = 1e20
    found = run(x)
    assert np.array_equal(np.delete(found, np.s_[::100]), np.delete(alone, np.s_[::100]))
    assert np.array_equal(found[::100], function(x[::100]))


def test_products_and_sums_are_rounded_once() -> None:
    x = 1.0 + np.arange(1.0, 17.0) * 2.0**-30
    once = fast(lambda x: x * x - 1.0, x)(x)
    exact = x.astype(np.longdouble) ** 2 - 1.0
    assert np.array_equal(once, exact.astype(np.float64))
    assert not np.array_equal(once, x * x - 1.0)


LOSSES: dict[Any, Callable[[Any], Any]] = {
    tg.grad: lambda x: (np.tanh(x[1:]) * np.exp(-x[:-1] * x[1:]) + x[1:] / (1.0 + x[:-1] ** 2)).sum() + tg.logsumexp(x, 0),
    tg.hessian: lambda x: (np.tanh(x[1:] * 0.7) * np.exp(-x[:-1] * x[1:])).sum(),
    tg.jacobian: lambda x: np.tanh(x[1:] * 0.7) * np.exp(-x[:-1] * x[1:]),
}


@pytest.mark.parametrize("driver", list(LOSSES))
def test_derivatives_are_the_functions(driver: Any) -> None:
    x = np.linspace(-1.0, 2.0, 19)
    found = fast(LOSSES[driver], x, driver=driver)(x)
    np.testing.assert_allclose(found, driver(LOSSES[driver])(x), rtol=1e-13, atol=1e-14)


def test_zeros_stay_absolute() -> None:
    x = np.array([0.0, 1.0, -2.0, 4.0])
    with np.errstate(all="ignore"):
        found = fast(lambda x: (np.where(x > 0.0, np.sqrt(x), 0.0) + 0.0 * np.exp(x)).sum(), x, driver=tg.grad)(x)
    assert np.array_equal(found, [0.0, 0.5, 0.0, 0.25])


def test_many_points() -> None:
    f = tg.program(lambda x: np.tanh(x[0]) * np.exp(x[1]) + np.sin(x[1]) ** 2, fast=True)
    points = np.random.default_rng(1).normal(size=(9000, 2))
    points[4000, 1] = -1e20
    f(points[0])
    expected = np.tanh(points[:, 0]) * np.exp(points[:, 1]) + np.sin(points[:, 1]) ** 2
    np.testing.assert_allclose(f.map(points), expected, rtol=4e-15, atol=1e-15)
    np.testing.assert_allclose(tg.grad(f).map(points)[:, 0], np.exp(points[:, 1]) / np.cosh(points[:, 0]) ** 2, rtol=2e-13)


def test_a_fast_program_is_not_saved(tmp_path: Any) -> None:
    f = tg.program(lambda x: (x * x).sum(), fast=True)
    tg.grad(f)(np.ones(3))
    with pytest.raises(tg.ProgramError, match="last digits of its own"):
        f.save(tmp_path / "f.tgp")
