"""What a program cannot see is another recording or a call of the function, and never a value of before."""

from __future__ import annotations

import builtins
import datetime
import decimal
import os
import pathlib
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from interrupts import interrupt

import tapegrad as tg
from tapegrad.deferred import Deferred
from tapegrad.numpy_arrays.array import Array

X = np.array([0.5, -1.0, 2.0, 0.25])
SCALE = 2.0


def check(f: Callable[..., Any], *points: Any) -> tg.Program:
    """Compare a program with its function, and its gradient with that of its function, at points in turn."""
    p = tg.program(f)
    for _ in range(2):
        for x in points:
            np.testing.assert_allclose(p(x), f(x), rtol=1e-13)
            for found, expected in zip(tg.value_and_grad(p)(x), tg.value_and_grad(f)(x), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-12)
        p.compile()
    return p


SINGULAR, REGULAR = np.array([1.0, 1.0, 1.0, 1.0]), np.array([2.0, 1.0, 1.0, 3.0])


@pytest.mark.parametrize("points", [(SINGULAR, REGULAR), (REGULAR, SINGULAR)])
@pytest.mark.parametrize("operation", [np.linalg.inv, np.linalg.cholesky, lambda a: np.linalg.solve(a, np.ones(2))])
def test_errors_that_the_function_catches_depend_on_values(operation: Callable[..., Any], points: Any) -> None:
    def f(x: Any) -> Any:
        try:
            return operation(x.reshape(2, 2) * 1.0).sum()
        except np.linalg.LinAlgError:
            return (x * x).sum() * 3.0

    check(f, *points)


def test_errors_that_a_nested_function_catches() -> None:
    def inner(x: Any) -> Any:
        return np.linalg.inv(x.reshape(2, 2)).sum()

    def f(x: Any) -> Any:
        y = x * 2.0
        try:
            y = y * inner(y)
        except np.linalg.LinAlgError:
            y = y + 1.0
        return (y * x).sum()

    check(f, SINGULAR, REGULAR)


@pytest.mark.parametrize("n", [3, 5000])
def test_arrays_of_another_byte_order(n: int) -> None:
    def f(x: Any) -> Any:
        return (x * x).sum()

    p = tg.program(f)
    x = np.linspace(0.5, 2.0, n).astype(">f8")
    for k in range(4):
        value, gradient = tg.value_and_grad(p)(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-13)
        np.testing.assert_array_equal(gradient, 2.0 * x)
        if k == 0:
            p.compile()
        x[0] += 1.0


def test_programs_are_run_again_after_interrupts() -> None:
    package = os.path.dirname(tg.__file__) + os.sep
    p = tg.program(lambda x: (np.sin(x) * x).sum())
    both = tg.value_and_grad(p)
    expected = both(X)
    p(X)
    for compiled in (False, True):
        if compiled:
            p.compile()
            both(X)
        for run in (lambda: both(2.0 * X), lambda: p(2.0 * X)):
            k = 1
            while interrupt(run, k, package):
                k += 1
                assert not any(trace.is_running for trace in p._recorded())
            assert k > 2
        np.testing.assert_array_equal(both(X)[1], expected[1])


def test_a_user_made_ufunc() -> None:
    held = [1.0]
    scaled = np.frompyfunc(lambda v: v * held[0], 1, 1)
    p = tg.program(lambda x: (x * scaled(X).astype(float)).sum())
    first = p(X)
    held[0] = 3.0
    assert p(X) == 3.0 * first


class Money(decimal.Decimal):
    rate = 1.0


class Day(datetime.date):
    rate = 1.0


@pytest.mark.parametrize("made", [Money(2), Day(2020, 1, 1)])
def test_objects_of_classes_that_derive_from_fixed_ones(made: Any) -> None:
    p = tg.program(lambda x: x.sum() * made.rate)
    first = tg.grad(p)(X)
    type(made).rate = 3.0
    try:
        np.testing.assert_array_equal(tg.grad(p)(X), 3.0 * first)
    finally:
        type(made).rate = 1.0


FINDING = {
    "an alias": lambda find: lambda x: x.sum() * find("SCALE"),
    "in a dict": lambda find: lambda x, found={"it": find}: x.sum() * found["it"]("SCALE"),
    "of builtins": lambda _: lambda x: x.sum() * builtins.eval("SCALE"),
    "globals": lambda _: lambda x: x.sum() * builtins.globals()["SCALE"],
}


@pytest.mark.parametrize("how", list(FINDING))
def test_globals_that_are_found_by_text(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f = FINDING[how](eval)
    p = tg.program(f)
    first = tg.grad(p)(X)
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 6.0)
    np.testing.assert_array_equal(tg.grad(p)(X), 3.0 * first)


def test_modules_that_are_found_by_name() -> None:
    sys.modules["some_settings"] = settings = types.ModuleType("some_settings")
    settings.number = 2.0  # type: ignore[attr-defined]
    try:
        p = tg.program(lambda x: x.sum() * sys.modules["some_settings"].number)
        first = tg.grad(p)(X)
        settings.number = 6.0  # type: ignore[attr-defined]
        np.testing.assert_array_equal(tg.grad(p)(X), 3.0 * first)
    finally:
        del sys.modules["some_settings"]


@pytest.mark.parametrize("asked", [os.path.exists, lambda path: path.exists(), lambda path: path.name in os.listdir(path.parent)])
def test_whether_a_file_is_there(asked: Callable[[Any], bool], tmp_path: pathlib.Path) -> None:
    path = tmp_path / "switch"
    p = tg.program(lambda x: x.sum() * (3.0 if asked(path) else 1.0))
    first = tg.grad(p)(X)
    path.touch()
    np.testing.assert_array_equal(tg.grad(p)(X), 3.0 * first)


def test_numbers_of_installed_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.constants

    p = tg.program(lambda x: x.sum() * scipy.constants.g)
    tg.grad(p)(X), tg.grad(p)(X)
    monkeypatch.setattr(scipy.constants, "g", 2.0)
    np.testing.assert_array_equal(tg.grad(p)(X), np.full(4, 2.0))
    monkeypatch.setattr(scipy.constants, "g", np.arange(4.0))
    np.testing.assert_array_equal(tg.grad(lambda x: p(x).sum())(X), np.full(4, 6.0))


def test_functions_of_installed_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = tg.grad(lambda x: np.cos(x).sum())(X)
    p = tg.program(lambda x: np.sin(x).sum())
    tg.grad(p)(X), tg.grad(p)(X)
    monkeypatch.setattr(np, "sin", np.cos)
    np.testing.assert_array_equal(tg.grad(p)(X), expected)


def test_shapes_are_told_by_attributes_that_are_made_in_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    tg.grad(lambda x: (x * x.size).sum())(X)  # the attribute is there after this at the latest
    monkeypatch.setattr(Array, "size", Deferred(Array, "size", lambda own: own, vars(Array)["size"]))
    p = tg.program(lambda x: (x * x.size).sum())
    np.testing.assert_array_equal(tg.grad(p)(X), np.full(4, 4.0))
    assert len(p.traces) == 1
