"""Tangents and second derivatives in machine code of extremes, sums of exponentials, running sums and what else is linear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture

import tapegrad as tg

X, V = np.linspace(0.5, 1.5, 12).reshape(3, 4), np.cos(np.arange(12.0)).reshape(3, 4)
MATRIX = np.arange(9.0).reshape(3, 3) + 9.0 * np.eye(3)
# No sums of several numbers in tangents: these have the bits of eager ones.
EXACT: dict[str, Callable[[Any], Any]] = {
    "largest": lambda x: x * np.sin(x) * np.max(x * x),
    "smallest of rows": lambda x: np.sin(x) * np.min(x * x, axis=1, keepdims=True),
    "largest of columns": lambda x: np.max(np.sin(3.0 * x), axis=0) * x,
    "roll": lambda x: np.roll(np.sin(x), 2, axis=1) * x,
    "lower triangle": lambda x: np.tril(np.sin(x)) * x,
    "along an axis": lambda x: np.take_along_axis(np.sin(x), np.argsort(np.cos(7.0 * x), axis=1), 1) * x,
}
SUMS: dict[str, Callable[[Any], Any]] = {
    "logsumexp": lambda x: tg.logsumexp(x * x, 1, keepdim=True) * x,
    "logsumexp of all": lambda x: tg.logsumexp(np.sin(x), (0, 1)) * x,
    "softmax": lambda x: tg.softmax(x * x, 0) * x,
    "log_softmax": lambda x: tg.log_softmax(np.sin(x), 1) * x,
    "running sum": lambda x: np.cumsum(x * x, axis=1) * np.sin(x),
    "running sum of all": lambda x: np.cumsum(x * np.sin(x)) * x[0, 0],
    "solution": lambda x: np.linalg.solve(MATRIX, np.sin(x)) * x,
}
ALL = EXACT | SUMS
TIES = ("ties", "equal")  # whose shares are added up
DRIVERS: dict[str, Callable[..., Any]] = {
    "jacobian": lambda f, x: tg.jacobian(f, mode="forward")(x),
    "jvp": lambda f, x: tg.jvp(f, (x,), (V.astype(x.dtype),))[1],
}
POINTS = {
    "usual": V * 2.0,
    "ties": np.round(V * 2.0),
    "equal": np.ones((3, 4)),
    "negative": -np.abs(V) - 1.0,
    "large": V * 500.0,
}


def compiled(f: Any, run: Any, x: Any, kind: str) -> Any:
    """A program that has machine code of a driver.

    What else runs in the process may come in the middle of a recording, which is not kept then, and the function is called: that is
    no matter of rounding, so another program is asked.
    """
    known: list[Any] = []
    for _ in range(3):
        program = tg.program(f)
        for _ in range(4):
            run(program, x)
            program.compile()
        traces = list(program._recorded())
        known += [(paths.refused, paths.raised, paths.changes) for one in program._paths.values() for paths in one]
        if traces:
            break
    assert len(traces) == 1, (known, program.explain())
    assert traces[0].code_of(kind).code is not None, traces[0].code_of(kind).refused
    return program


def close(found: Any, expected: Any, rtol: float) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    largest = np.abs(expected, where=np.isfinite(expected), out=np.zeros(expected.shape, expected.dtype)).max()
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * float(largest))


@pytest.mark.parametrize(("driver", "dtype"), [("jacobian", np.float64), ("jvp", np.float32)])
@pytest.mark.parametrize("name", ALL)
def test_tangents_are_those_of_calls(name: str, driver: str, dtype: Any) -> None:
    f, run = ALL[name], DRIVERS[driver]
    program = compiled(f, run, X.astype(dtype), {"jvp": "value_jvp"}.get(driver, driver))
    for kind, x in POINTS.items():
        x = x.astype(dtype)
        found, expected = run(program, x), run(f, x)
        if name in EXACT and kind not in TIES:
            np.testing.assert_array_equal(found, expected)
        else:
            close(found, expected, 1e-13 if dtype is np.float64 else 1e-6)


@pytest.mark.parametrize("name", ALL)
def test_second_derivatives_are_those_of_calls_to_rounding(name: str) -> None:
    def f(x: Any) -> Any:
        return (ALL[name](x) * np.cos(x[0, 0])).sum()

    program = compiled(f, lambda f, x: tg.hessian(f)(x), X, "hessian")
    for x in POINTS.values():
        close(tg.hessian(program)(x), tg.hessian(f)(x), 1e-12)


@pytest.mark.parametrize("name", ["largest", "smallest of rows", "logsumexp", "softmax", "running sum"])
def test_products_from_the_left_round_as_sweeps_do(name: str) -> None:
    """Of float32, and of float64 through float32."""
    for f in (ALL[name], lambda x: ALL[name](x.astype(np.float32)).astype(np.float64) * x):
        for dtype in (np.float64, np.float32):
            program = compiled(f, lambda f, x: tg.vjp(f, x)[1](V), X.astype(dtype), "vjp")
            for x in POINTS.values():
                x = x.astype(dtype)
                (found,), (expected,) = tg.vjp(program, x)[1](V), tg.vjp(f, x)[1](V)
                close(found, expected, 5e-7 if dtype is np.float32 or f is not ALL[name] else 1e-13)


def test_products_from_the_left_have_the_bits_of_sweeps() -> None:
    def f(x: Any) -> Any:
        y = np.sin(x).astype(np.float32) * x[::-1]
        return np.exp(y) * y + y.astype(np.float64) / 3.0

    for dtype in (np.float64, np.float32):
        program = compiled(f, lambda f, x: tg.vjp(f, x)[1](V), X.astype(dtype), "vjp")
        for x in POINTS.values():
            x = np.clip(x, -5.0, 5.0).astype(dtype)
            np.testing.assert_array_equal(tg.vjp(program, x)[1](V)[0], tg.vjp(f, x)[1](V)[0])


def test_sorted_places_are_those_of_each_run() -> None:
    def f(x: Any) -> Any:
        return np.take_along_axis(np.sin(x), np.argsort(x, axis=1), 1) * np.cumsum(x, axis=1)

    program = compiled(f, DRIVERS["jacobian"], X, "jacobian")
    for x in (X[:, ::-1].copy(), V, -V):
        close(tg.jacobian(program, mode="forward")(x), tg.jacobian(f, mode="forward")(x), 1e-13)


def test_products_around_steps_of_python_are_those_of_their_point() -> None:
    f = ALL["running sum"]
    program = compiled(f, lambda f, x: (tg.vjp(f, x)[1](V), tg.linearize(f, x)[1](V)), X, "vjp")
    (_, pull), (_, push) = tg.vjp(program, X), tg.linearize(program, X)
    tg.vjp(program, V)[1](X), tg.jvp(program, (V,), (X,)), program(V)
    np.testing.assert_array_equal(pull(V)[0], tg.vjp(f, X)[1](V)[0])
    np.testing.assert_array_equal(push(V), tg.linearize(f, X)[1](V))


def test_products_around_steps_of_python_leave_a_path_alone_that_runs() -> None:
    f = ALL["running sum"]
    program = compiled(f, lambda f, x: tg.vjp(f, x)[1](V), X, "vjp")
    _, pull = tg.vjp(program, X)
    (trace,) = program._recorded()
    program(V)
    before = [value.array.copy() for value in trace.inputs]
    trace.is_running = True
    try:
        np.testing.assert_allclose(pull(V)[0], tg.vjp(f, X)[1](V)[0], rtol=1e-13)
        for value, own in zip(trace.inputs, before, strict=True):
            np.testing.assert_array_equal(value.array, own)
    finally:
        trace.is_running = False
