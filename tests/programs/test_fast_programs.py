"""Programs that may round otherwise than NumPy: contracted products, and hyperbolic tangents of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-320, 709.7, 709.8, 1e300, -745.0, -745.2, -1e300, 22.0, -19.1, 1e-9])


def fast(function: Callable[..., Any], *arguments: Any, driver: Any = None) -> Any:
    program = tg.program(function, fast=True)
    run = program if driver is None else driver(program)
    run(*arguments)
    program.compile()
    run(*arguments)
    run(*arguments)
    assert "machine code, made" in program.traces[0]["machine code"], program.explain()
    return run


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
    f = tg.program(lambda x: np.tanh(x[0]) * np.exp(x[1]), fast=True)
    points = np.random.default_rng(1).normal(size=(9000, 2))
    f(points[0])
    np.testing.assert_allclose(f.map(points), np.tanh(points[:, 0]) * np.exp(points[:, 1]), rtol=1e-15)


def test_a_fast_program_is_not_saved(tmp_path: Any) -> None:
    f = tg.program(lambda x: (x * x).sum(), fast=True)
    tg.grad(f)(np.ones(3))
    with pytest.raises(tg.ProgramError, match="last digits of its own"):
        f.save(tmp_path / "f.tgp")
