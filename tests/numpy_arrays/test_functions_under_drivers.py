"""A function has the value under a driver that it has without, and its derivative, or says what to write instead."""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import re
import textwrap
from collections.abc import Callable
from typing import Any

import numpy
import numpy as np
import pytest
import scipy.special
from classes_of_numpy import QUESTIONS, WRITES_OF_NUMBERS
from idioms_of_numpy import IDIOMS, STATEMENTS
from lines_of_numpy import LINES, LOST, REFUSED, WRITES
from many_cases import each
from scripts_of_numpy import OF_PROBABILITIES, OF_VECTORS

import tapegrad as tg
import tapegrad.numpy

_RNG = np.random.default_rng(1)
V = np.array([0.71, -1.32, 2.13, 0.44, -0.66, 1.96])
POINTS = {
    "v": V, "p": np.array([0.71, 0.13, 0.42, 0.55, 0.34, 0.86]), "m": _RNG.normal(size=(3, 4)) * 1.3,
    "s": _RNG.normal(size=(3, 3)) + 2 * np.eye(3), "a": _RNG.normal(size=(2, 3, 4)), "n": np.array(0.83),
}  # fmt: skip
NAMESPACES = {"numpy": numpy, "tapegrad.numpy": tapegrad.numpy}


def parts_of(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [part for value in result for part in parts_of(value)]
    return [result]


def weighted(parts: list[Any]) -> Any:
    """A sum in which every element has another weight."""
    total, first = 0.0, 0
    for part in parts:
        shape = np.shape(part)
        weights = np.cos(1.0 + 0.7 * np.arange(first, first + math.prod(shape))).reshape(shape)
        total, first = total + np.sum(part * weights), first + math.prod(shape)
    return total


def differences(f: Callable[[Any], Any], x: Any) -> Any:
    slope = np.zeros(x.shape)
    for k in range(x.size):
        e = np.zeros(x.shape)
        e.flat[k] = 1e-4
        ahead, behind, far, back = (f(np.asarray(x + k * e)) for k in (1, -1, 2, -2))
        slope.flat[k] = (8.0 * (ahead - behind) - (far - back)) / 12e-4
    return slope


def plain(part: Any) -> Any:
    return np.asarray(tg.stop_gradient(part)) if isinstance(part, tg.Tensor) else np.asarray(part)


# Sums that are taken in another order than NumPy's; all else has NumPy's bits.
SUMS = re.compile(r"prod\(initial|convolve|polymul|correlate|chebmul|polyfit|cov|corrcoef|reduce|@|linalg|einsum|dot")


def check(make: Callable[[Any], Callable[[Any], Any]], name: str, x: Any, line: str) -> None:
    """Value, class, dtype, shape and derivative of a function that is made for a namespace."""
    own, function = make(numpy), make(NAMESPACES[name])
    seen: list[Any] = []

    def loss(x: Any) -> Any:
        seen[:] = parts_of(function(x))
        return weighted(seen)

    with np.errstate(all="ignore"):
        results = parts_of(own(x.copy()))
        expected = [np.asarray(part) for part in results]
        gradient = tg.grad(loss)(x)
        slope = differences(lambda x: float(weighted(parts_of(own(x)))), x)
    assert [part.__class__ for part in seen] == list(map(type, results))
    for want, got in zip(expected, map(plain, seen), strict=True):
        assert (want.shape, want.dtype) == (got.shape, got.dtype)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-15 * np.max(np.abs(want), initial=0) if SUMS.search(line) else 0)
    np.testing.assert_allclose(gradient, slope, rtol=1e-7, atol=1e-8 * max(1.0, np.abs(slope).max()))


def expression(line: str) -> Callable[[Any], Callable[[Any], Any]]:
    code = compile(f"lambda x: {line}", line, "eval")
    return lambda xp: eval(code, {"np": xp, "math": math, "sc": scipy.special, "numbers": numbers})


def statements(text: str) -> Callable[[Any], Callable[[Any], Any]]:
    lines = ["def function(x):", "    given = x", textwrap.indent(text, "    "), "    return y * given[0]"]
    code = compile("\n".join(lines), text, "exec")

    def make(xp: Any) -> Callable[[Any], Any]:
        names: dict[str, Any] = {"np": xp}
        exec(code, names)
        function: Callable[[Any], Any] = names["function"]
        return function

    return make


@each("name", NAMESPACES)
@each(("kind", "line"), LINES)
def test_line_has_its_value_and_derivative(kind: str, line: str, name: str) -> None:
    check(expression(line), name, POINTS[kind], line)


@each("name", NAMESPACES)
@each("line", IDIOMS)
def test_idioms_have_their_value_and_derivative(line: str, name: str) -> None:
    check(expression(line), name, V, line)


@each("name", NAMESPACES)
@each(("kind", "line"), QUESTIONS)
def test_choices_by_class_are_those_without_a_driver(kind: str, line: str, name: str) -> None:
    check(expression(line), name, POINTS[kind], line)


@each("name", NAMESPACES)
@each("text", WRITES + STATEMENTS + WRITES_OF_NUMBERS)
def test_writes_have_their_value_and_derivative(text: str, name: str) -> None:
    check(statements(text), name, V, text)


SCRIPTS = [*((f, V) for f in OF_VECTORS), *((f, POINTS["p"]) for f in OF_PROBABILITIES)]


@each("name", NAMESPACES)
@each(("script", "x"), SCRIPTS)
def test_functions_of_scripts_have_their_value_and_derivative(script: Callable[[Any, Any], Any], x: Any, name: str) -> None:
    check(lambda xp: functools.partial(script, xp), name, x, inspect.getsource(script))


@each(("kind", "line"), REFUSED)
def test_what_numpy_has_no_hook_for_works_with_the_namespace(kind: str, line: str) -> None:
    check(expression(line), "tapegrad.numpy", POINTS[kind], line)


@each(("kind", "line"), REFUSED)
def test_what_numpy_has_no_hook_for_says_what_to_write(kind: str, line: str) -> None:
    with pytest.raises((TypeError, RuntimeError), match="differentiat|derivative"):
        tg.grad(lambda x: weighted(parts_of(expression(line)(numpy)(x))))(POINTS[kind])


@each("name", NAMESPACES)
@each(("kind", "line"), LOST)
def test_numbers_that_would_lose_the_derivative_are_refused(kind: str, line: str, name: str) -> None:
    with pytest.raises((TypeError, RuntimeError), match="differentiat|derivative"):
        tg.grad(lambda x: weighted(parts_of(expression(line)(NAMESPACES[name])(x))))(POINTS[kind])


@each(("kind", "line"), [*LINES, *(("v", line) for line in IDIOMS)])
def test_single_precision_has_numpys_dtypes(kind: str, line: str) -> None:
    function = expression(line)(numpy)
    x = POINTS[kind].astype(np.float32)
    if x.ndim == 0:
        return  # a number of single precision is a number of NumPy's, and of its dtype
    seen: list[Any] = []

    def loss(x: Any) -> Any:
        seen[:] = parts_of(function(x))
        return sum(np.sum(part * 1.0) for part in seen)

    with np.errstate(all="ignore"):
        expected = [np.asarray(part) for part in parts_of(function(x.copy()))]
        assert tg.grad(loss)(x).dtype == np.float32
    for want, got in zip(expected, map(plain, seen), strict=True):
        assert (want.shape, want.dtype) == (got.shape, got.dtype)
        scale = max(1.0, np.nanmax(np.abs(want), initial=0.0))
        np.testing.assert_allclose(got, want, rtol=3e-5, atol=3e-5 * scale)
