"""What the compiler raises is a refusal that names the line, whatever it is; what the function raises is the function's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from numba.core.compiler_machinery import PassManager
from numba.core.errors import LoweringError, NumbaError, TypingError
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.errors import CompileError
from tapegrad.nopython.recorder import recorder
from tapegrad.nopython.twins.derivative_cache import DerivativeCache

X = np.array([1.3, 0.7])
ERRORS = [KeyError, AttributeError, AssertionError, IndexError, RecursionError, NotImplementedError, SystemError, ZeroDivisionError]


def function() -> Any:
    """A function that is compiled anew."""

    @numba.njit
    def product(x):
        return x[0] * x[1]

    return product


def line_of(f: Any) -> int:
    """The line that a report about the whole function names: that of its text, or of its decorator."""
    return inspect.getsourcelines(f.py_func)[1]


def during(monkeypatch: pytest.MonkeyPatch, what: Callable[[str, Any], None]) -> None:
    """Call a function with the name of each pass and what is compiled in it, before it runs; nothing is taken from the disk."""
    monkeypatch.setattr(DerivativeCache, "_place", lambda self, sig: None)
    plain = PassManager._runPass

    def run(self: Any, index: int, which: Any, state: Any) -> Any:
        if state.func_id.func_name == "product":
            what(which.name(), state)
        return plain(self, index, which, state)

    monkeypatch.setattr(PassManager, "_runPass", run)


def passes() -> list[str]:
    names: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        during(patch, lambda name, state: names.append(name))
        tg.grad(function())(X)
    return names


PASSES = passes()


def test_the_recording_has_passes_of_its_own() -> None:
    assert {"tapegrad_add_tape", "tapegrad_fold", "tapegrad_part_lowering"} <= set(PASSES)


@pytest.mark.parametrize(("number", "name"), list(enumerate(PASSES)), ids=PASSES)
def test_any_error_in_a_pass_is_a_refusal(number: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = ERRORS[number % len(ERRORS)]

    def fail(now: str, state: Any) -> None:
        if now == name:
            raise kind("injected")

    during(monkeypatch, fail)
    f = function()
    with pytest.raises(CompileError, match=kind.__name__) as caught:
        tg.grad(f)(X)
    assert isinstance(caught.value.__cause__, kind)
    assert "injected" in str(caught.value)
    lines = [f"line {line_of(f) + k}\n" for k in range(3)]
    assert any(line in str(caught.value) for line in lines)
    monkeypatch.undo()
    assert tg.grad(f)(X).tolist() == [0.7, 1.3]


@pytest.mark.parametrize("kind", [NumbaError, TypingError, LoweringError])
def test_any_error_of_numba_in_a_pass_is_a_refusal(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(now: str, state: Any) -> None:
        if now == "tapegrad_fold":
            raise kind("injected")

    during(monkeypatch, fail)
    f = function()
    with pytest.raises(CompileError, match="injected") as caught:
        tg.grad(f)(X)
    assert f"line {line_of(f)}" in str(caught.value)


def test_lack_of_memory_in_a_pass_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(now: str, state: Any) -> None:
        if now == "tapegrad_fold":
            raise MemoryError

    during(monkeypatch, fail)
    with pytest.raises(MemoryError):
        tg.grad(function())(X)


@pytest.mark.parametrize("kind", ERRORS)
def test_any_error_of_an_extension_is_a_refusal(kind: Any) -> None:
    @numba.extending.intrinsic
    def broken(typingctx, x):
        raise kind("inside of the compiler")

    @numba.njit
    def f(x):
        return broken(x) * x

    with pytest.raises(CompileError, match=kind.__name__) as caught:
        tg.grad(f)(2.0)
    assert f"line {line_of(f) + 2}" in str(caught.value)


@pytest.mark.parametrize("kind", [*ERRORS[:4], *ERRORS[5:], ValueError, TypeError, RuntimeError])
def test_any_exception_of_the_function_is_its_own(kind: Any) -> None:
    @numba.njit
    def f(x):
        if x[0] > 1.0:
            raise kind("of the function")
        return x[0] * x[1]

    with pytest.raises(kind, match="of the function") as caught:
        tg.grad(f)(X)
    assert not isinstance(caught.value, CompileError)
    assert tg.grad(f)(X / 2).tolist() == [0.35, 0.65]


def test_error_of_numba_that_the_function_raises_is_its_own() -> None:
    @numba.njit
    def f(x):
        if x[0] > 1.0:
            raise TypingError("of the function")
        return x[0] * x[1]

    with pytest.raises(TypingError, match="of the function"):
        tg.grad(f)(X)


@numba.experimental.jitclass([("rate", numba.float64[:])])
class Rates:
    def __init__(self):
        self.rate = np.ones(2)

    def replaced(self, rate):
        self.rate = rate
        return rate[0]


def test_method_of_an_instance_that_keeps_variables_is_a_refusal() -> None:
    @numba.njit
    def f(x, rates):
        return rates.replaced(x)

    with pytest.raises(CompileError) as caught:
        tg.grad(f)(X, Rates())
    assert "self.rate = rate" in str(caught.value)


def test_argument_whose_type_cannot_be_told_is_a_refusal() -> None:
    class Odd:
        @property
        def _numba_type_(self) -> Any:
            raise KeyError("no type")

    with pytest.raises(CompileError, match="no type"):
        tg.grad(numba.njit(lambda x, odd: x[0]))(X, Odd())


@numba.experimental.jitclass([("a_field_that_no_other_class_has", numba.float64)])
class Kept:
    def __init__(self, value: float) -> None:
        self.a_field_that_no_other_class_has = value


def test_what_is_made_for_a_call_is_known_to_the_first_attempt() -> None:
    @numba.njit
    def f(x: Any, kept: Any) -> Any:
        kept.a_field_that_no_other_class_has = 2.0
        return x[0] * kept.a_field_that_no_other_class_has

    assert tg.grad(f)(np.array([1.5]), Kept(1.0)).tolist() == [2.0]
    assert [level for level, *_ in recorder(f, 0)._drives] == [0]
