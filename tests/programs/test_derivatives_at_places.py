"""Tangents and second derivatives of elements that long index arrays choose: by machine code, with the bits of eager ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from many_cases import each
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture

import tapegrad as tg

N, M = 40, 300
RNG = np.random.default_rng(0)
PLACES, WEIGHTS = RNG.integers(0, N, M), RNG.standard_normal(M)
MASK = RNG.random(N) < 0.6


def repeated(x: Any) -> Any:
    z = x[PLACES]
    return (np.sin(z) * WEIGHTS.astype(z.dtype) * z).sum() + (x * x * x).sum()


def of_rows(x: Any) -> Any:
    cameras, points = x[:30].reshape(10, 3), x[30:]
    z, p = cameras[PLACES % 10], points[PLACES % 7]
    return (z[:, 0] * z[:, 1] * p + np.exp(z[:, 2] * p)).sum()


def pairs(x: Any) -> Any:
    return (np.exp(x.reshape(8, 5)[PLACES % 8, PLACES % 5]) * x[PLACES]).sum()


def chosen_again(x: Any) -> Any:
    z = (x * x)[PLACES][::-1]
    return (z[PLACES] * z).sum()


def masked(x: Any) -> Any:
    return (np.tile(x, 8)[np.tile(MASK, 8)] ** 3).sum()


def between(x: Any) -> Any:
    return np.exp(np.sin(x * x)[PLACES] * x[PLACES]).sum() + (np.sin(x * x)[[3, 5, 7, 7, 7, 1, 1, 1]] ** 3).sum()


FUNCTIONS: list[Callable[[Any], Any]] = [repeated, of_rows, pairs, chosen_again, between, masked]


def made(program: Any, what: str) -> bool:
    return any(f"{what}: machine code, made" in trace["machine code"] for trace in program.traces)


@each("dtype", [np.float64, np.float32])
@each("function", FUNCTIONS)
def test_second_derivatives_are_those_of_calls(function: Any, dtype: Any) -> None:
    program, point = tg.program(function), RNG.standard_normal(N).astype(dtype)
    v = RNG.standard_normal(N).astype(dtype)
    hessian = tg.hessian(program)
    for _ in range(3):
        hessian(point), tg.hvp(program, point, v)
        program.compile()
    for x in (point, 2.0 * point, RNG.standard_normal(N).astype(dtype)):
        np.testing.assert_array_equal(hessian(x.astype(dtype)), tg.hessian(function)(x.astype(dtype)))
        np.testing.assert_array_equal(tg.hvp(program, x.astype(dtype), v), tg.hvp(function, x.astype(dtype), v))


def test_there_is_code_of_them() -> None:
    for function in FUNCTIONS[:5]:
        program, x = tg.program(function), RNG.standard_normal(N)
        for _ in range(3):
            tg.hessian(program)(x), tg.hvp(program, x, x)
            program.compile()
        assert made(program, "hessian"), function
        assert made(program, "hvp"), function


def test_jacobians_and_products_are_those_of_calls() -> None:
    def function(x: Any) -> Any:
        z = x[PLACES]
        return z * np.sin(z) * x[3]

    program, v = tg.program(function), RNG.standard_normal(N)
    points = [RNG.standard_normal(N) for _ in range(3)]
    for _ in range(3):
        tg.jacobian(program)(points[0]), tg.jvp(program, (points[0],), (v,))
        program.compile()
    assert made(program, "jacobian")
    assert made(program, "value_jvp")
    for x in points:
        np.testing.assert_array_equal(tg.jacobian(program)(x), tg.jacobian(function, mode="forward")(x))
        for a, b in zip(tg.jvp(program, (x,), (v,)), tg.jvp(function, (x,), (v,)), strict=True):
            np.testing.assert_array_equal(a, b)


def test_places_among_the_arguments_are_read_anew() -> None:
    def function(x: Any, places: Any) -> Any:
        z = x[places]
        return (np.sin(z) * z * z).sum() + (z[::2] * x[0]).sum()

    program, x = tg.program(function), RNG.standard_normal(N)
    hessian = tg.hessian(program)
    for _ in range(3):
        hessian(x, PLACES)
        program.compile()
    assert made(program, "hessian")
    for places in (PLACES, (PLACES * 7) % N, np.zeros(M, int), -1 - PLACES):
        np.testing.assert_array_equal(hessian(x, places), tg.hessian(function)(x, places))
    with pytest.raises(IndexError):
        hessian(x, PLACES + N)
    np.testing.assert_array_equal(hessian(x, PLACES), tg.hessian(function)(x, PLACES))


def test_infinite_and_undefined_elements_go_where_they_belong() -> None:
    program = tg.program(repeated)
    hessian = tg.hessian(program)
    x = RNG.standard_normal(N)
    for _ in range(3):
        hessian(x)
        program.compile()
    for value in (np.inf, -np.inf, np.nan, 0.0):
        x[5] = value
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(hessian(x), tg.hessian(repeated)(x))
