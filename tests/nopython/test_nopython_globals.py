"""Globals and closure values that change: value, gradient and Hessian belong to the function that Numba calls now."""

from __future__ import annotations

import types as python_types
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from forked_processes import run
from fresh_processes import environment
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from unoptimised_numba import numba_is_quicker  # noqa: F401 - a fixture

import tapegrad as tg


class Source(NamedTuple):
    """Where a function reads a factor: text that makes `f`, and text that changes what it reads from 2 to 5."""

    text: str
    change: str
    known: bool = True  # whether the compiler keeps the value that it has seen


PLAIN = """
@njit
def f(x):
    return {} * x * x
"""
SOURCES = {
    "number": Source("S = 2.0" + PLAIN.format("S"), "S = 5.0"),
    "integer": Source("S = 2" + PLAIN.format("S"), "S = 5"),
    "tuple": Source("S = (1.0, 2.0)" + PLAIN.format("S[1]"), "S = (1.0, 5.0)"),
    "tuple of an array": Source("A = np.array([2.0])\nS = (1.0, A)" + PLAIN.format("S[1][0]"), "A[0] = 5.0", False),
    "array": Source("S = np.array([2.0])" + PLAIN.format("S[0]"), "S = np.array([5.0])"),
    "array that is written into": Source("S = np.array([2.0])" + PLAIN.format("S[0]"), "S[0] = 5.0", False),
    "flag": Source("S = False" + PLAIN.format("(5.0 if S else 2.0)"), "S = True"),
    "text": Source("S = 'a'" + PLAIN.format("(2.0 if S == 'a' else 5.0)"), "S = 'b'"),
    "attribute of a module": Source("settings.S = 2.0" + PLAIN.format("settings.S"), "settings.S = 5.0", False),
    "array of a module": Source("settings.S = np.array([2.0])" + PLAIN.format("settings.S[0]"), "settings.S[0] = 5.0", False),
    "name of Python's own": Source(PLAIN.format("2.0 * abs(x) / x"), "abs = njit(lambda z: 2.5 * z)"),
    "inner function": Source(
        "S = 2.0\n@njit\ndef f(x):\n    scaled = lambda z: S * z\n    return scaled(x) * x", "S = 5.0"
    ),
    "closure": Source(
        """
def outer():
    S = 2.0
    def inner(x):
        return S * x * x
    def change(value):
        nonlocal S
        S = value
    return njit(inner), change
f, change = outer()
""",
        "change(5.0)",
    ),
    "global of a function that is called": Source(
        "S = 2.0\n@njit\ndef g(x):\n    return S * x\n@njit\ndef f(x):\n    return g(x) * x", "S = 5.0"
    ),
    "function that is called": Source(
        "@njit\ndef g(x):\n    return 2.0 * x\n@njit\ndef f(x):\n    return g(x) * x", "@njit\ndef g(x):\n    return 5.0 * x"
    ),
    "function of a module": Source(
        "@njit\ndef g(x):\n    return 2.0 * x\nsettings.g = g\n@njit\ndef f(x):\n    return settings.g(x) * x",
        "@njit\ndef g(x):\n    return 5.0 * x\nsettings.g = g",
        False,
    ),
    "global of a function that is inlined": Source(
        "S = 2.0\n@njit(inline='always')\ndef g(x):\n    return S * x\n@njit\ndef f(x):\n    return g(x) * x", "S = 5.0", False
    ),
}  # fmt: skip


class Space:
    """A module of its own with the function, and what changes it."""

    def __init__(self, source: Source, label: str) -> None:
        self.names: dict[str, Any] = {"njit": numba.njit, "np": np, "settings": python_types.ModuleType("settings")}
        self.source, self.label = source, label
        self.run(source.text)

    def run(self, text: str) -> None:
        exec(compile(text, f"<{self.label} {id(text)}>", "exec"), self.names)

    def change(self) -> None:
        self.run(self.source.change)

    @property
    def f(self) -> Any:
        return self.names["f"]

    def derivatives(self) -> list[float]:
        return [tg.grad(self.f)(1.0), float(tg.hessian(self.f)(1.0))]

    def all(self) -> list[float]:
        return [self.f(1.0), *self.derivatives()]


OLD, NEW = [2.0, 4.0, 4.0], [5.0, 10.0, 10.0]


@pytest.mark.parametrize("name", SOURCES)
def test_a_value_that_changes_before_numba_compiles_the_function(name: str) -> None:
    space = Space(SOURCES[name], name)
    assert space.derivatives() == OLD[1:]
    space.change()
    assert space.derivatives() == NEW[1:]
    assert space.all() == NEW


@pytest.mark.parametrize("name", SOURCES)
def test_a_value_that_changes_between_the_derivatives_of_a_compiled_function(name: str) -> None:
    space = Space(SOURCES[name], name)
    assert space.f(1.0) == 2.0
    assert tg.grad(space.f)(1.0) == 4.0
    space.change()
    assert space.all() == OLD


@pytest.mark.parametrize("name", SOURCES)
def test_a_value_that_changes_before_the_derivatives_of_a_compiled_function(name: str) -> None:
    space = Space(SOURCES[name], name)
    assert space.f(1.0) == 2.0
    space.change()
    if SOURCES[name].known:
        assert space.all() == OLD
    else:
        for _ in range(2):
            with pytest.raises(tg.CompileError, match=r"has changed since Numba compiled f.*f.recompile\(\)"):
                tg.grad(space.f)(1.0)
    space.f.recompile()
    assert space.all() == (OLD if name == "global of a function that is called" else NEW)


def test_a_function_that_numba_compiles_after_its_gradient() -> None:
    space = Space(SOURCES["number"], "late")
    assert space.derivatives() == OLD[1:]
    space.change()
    assert space.f(1.0) == 5.0
    assert space.all() == NEW


def test_a_function_that_is_compiled_between_change_and_change_back() -> None:
    space = Space(SOURCES["number"], "back")
    assert tg.grad(space.f)(1.0) == 4.0
    space.change()
    assert space.f(1.0) == 5.0
    space.names["S"] = 2.0
    assert space.all() == NEW


def test_types_of_arguments_have_the_values_of_their_own_compilation() -> None:
    space = Space(Source("S = 2.0\n@njit\ndef f(x, n):\n    return S * x * x * n", "S = 5.0"), "types")
    f, both = space.f, lambda n: [space.f(1.0, n), tg.grad(space.f)(1.0, n), float(tg.hessian(space.f)(1.0, n))]
    f(1.0, 1)
    tg.grad(f)(1.0, 1.0)
    space.change()
    assert (both(1), both(1.0)) == (OLD, NEW)


def test_a_called_function_has_the_values_of_its_own_compilation() -> None:
    space = Space(SOURCES["global of a function that is called"], "helper")
    space.names["g"](1.0)
    space.change()
    assert space.all() == OLD


def test_a_called_function_that_was_compiled_anew_since_is_refused() -> None:
    space = Space(SOURCES["global of a function that is called"], "stale")
    assert space.all() == OLD
    space.change()
    space.names["g"].recompile()
    assert space.f(1.0) == 2.0
    with pytest.raises(tg.CompileError, match=r"f.recompile\(\)"):
        space.derivatives()
    space.f.recompile()
    assert space.all() == NEW


def test_a_name_that_was_missing_is_found_later() -> None:
    space = Space(Source(PLAIN.format("S"), "S = 5.0"), "missing")
    with pytest.raises(tg.CompileError):
        tg.grad(space.f)(1.0)
    space.change()
    assert space.all() == NEW


def test_a_global_that_takes_a_name_of_pythons_own() -> None:
    space = Space(SOURCES["name of Python's own"], "taken")
    assert [tg.grad(space.f)(1.0) for _ in range(2)] == [4.0, 4.0]
    space.change()
    assert [tg.grad(space.f)(1.0), space.f(1.0)] == [10.0, 5.0]


def test_an_operation_of_tensors_has_the_values_of_the_compiled_function() -> None:
    space = Space(SOURCES["number"], "operation")
    assert space.f(1.0) == 2.0
    operation = tg.njit_op(space.f)
    x = tg.tensor(1.0, requires_grad=True)
    (first,) = tg.autograd.grad(operation(x), x, create_graph=True)
    space.change()
    (second,) = tg.autograd.grad(first, x)
    assert (first.item(), second.item()) == (4.0, 4.0)


def test_a_minimum_is_that_of_the_function_that_numba_calls() -> None:
    space = Space(Source("S = 2.0\n@njit\ndef f(x):\n    return (x[0] - S) ** 2", "S = 5.0"), "minimum")
    space.f(np.zeros(1))
    space.change()
    assert tg.optimize.minimize(space.f, np.zeros(1), method="Newton-CG").x[0] == pytest.approx(2.0)


def test_a_function_that_calls_itself_may_read_arrays() -> None:
    text = "S = np.array([1.0, 2.0])\n@njit\ndef f(x, n=1):\n    return x * x * S[n] if n == 1 else f(x, n - 1)"
    space = Space(Source(text, "S[1] = 5.0"), "recursive")
    assert space.all() == OLD
    space.change()
    assert space.all() == OLD


def test_large_arrays_are_read_where_they_are() -> None:
    space = Space(Source("S = np.full(200_000, 2.0)" + PLAIN.format("S[7]"), "S[7] = 5.0"), "large")
    assert space.all() == OLD
    space.change()
    assert space.all() == NEW


BODIES = {
    "expression of arrays": "y = np.full(2, x) * A[:2]\n    return (y * y).sum()",
    "table and list": "d = {0: x * A[0]}\n    l = [v * A[1] for v in d.values()]\n    return l[0] * x",
    "error": "if x > 1e9:\n        raise ValueError('too large', A.size)\n    return x * A[0]",
    "generator": "s = 0.0\n    for v in several(x):\n        s += v\n    return s",
    "products": "return (M @ np.full(3, x)).sum() * np.dot(A, A)",
}


@pytest.mark.parametrize("name", BODIES)
def test_constant_arrays_that_have_not_changed_are_found_equal(name: str) -> None:
    text = f"""
A, M = np.array([1.0, 2.0, 3.0]), np.arange(6.0).reshape(2, 3)
@njit
def several(x):
    for i in range(3):
        yield x * A[i]
@njit
def f(x):
    {BODIES[name]}
"""
    space = Space(Source(text, ""), name)
    value = space.f(1.5)
    assert tg.value_and_grad(space.f)(1.5)[0] == value


CACHED = """
import sys
import numba
import numpy as np
import tapegrad as tg

S, A = float(sys.argv[1]), np.array([float(sys.argv[2])])

@numba.njit(cache=True)
def g(x):
    return A[0] * x

@numba.njit(cache=True)
def f(x):
    return S * g(x) * x

value = f(1.0)
try:
    print(value, tg.grad(f)(1.0), float(tg.hessian(f)(1.0)))
except tg.CompileError as error:
    print("recompile" if "f.recompile()" in str(error) or "g.recompile()" in str(error) else error)
"""


def test_code_from_numbas_cache_may_be_stale_and_derivatives_are_of_the_function_as_it_is_now(tmp_path: Path) -> None:
    script = tmp_path / "cached.py"
    script.write_text(CACHED)

    values = ("2.0", "1.0"), ("2.0", "1.0"), ("5.0", "1.0"), ("2.0", "3.0")
    found = [run(str(script), environment(), *two, folder=tmp_path).stdout.strip() for two in values]
    assert found == ["2.0 4.0 4.0", "2.0 4.0 4.0", "2.0 10.0 10.0", "2.0 12.0 12.0"]


def test_functions_of_one_factory_that_are_inlined_into_each_other() -> None:
    def made(factor: float, inner: Any) -> Any:
        @numba.njit(inline="always")
        def scaled(x):  # type: ignore[no-untyped-def]
            return factor * inner(x)

        return scaled

    @numba.njit(inline="always")
    def square(x):  # type: ignore[no-untyped-def]
        return x * x

    for compiled in (False, True):
        f = made(7.0, made(5.0, made(2.0, square)))
        if compiled:
            assert f(3.0) == 630.0
        assert tg.value_and_grad(f)(3.0) == (630.0, 420.0)


def test_a_global_of_an_inlined_function_of_a_module() -> None:
    module = python_types.ModuleType("inlined_functions")
    text = "import numba\nS = 2.0\n@numba.njit(inline='always')\ndef h(x):\n    return S * x * x\n"
    exec(compile(text, "<inlined functions>", "exec"), vars(module))

    @numba.njit
    def f(x):  # type: ignore[no-untyped-def]
        return module.h(x)

    assert tg.grad(f)(3.0) == 12.0
    module.S = 5.0  # type: ignore[attr-defined]
    assert tg.value_and_grad(f)(3.0) == (45.0, 30.0)
    assert f(3.0) == 45.0


def test_modules_that_import_each_other() -> None:
    package, part = python_types.ModuleType("package"), python_types.ModuleType("package.part")
    vars(package).update(part=part, first=2.0)
    vars(part).update(package=package, second=3.0)

    @numba.njit
    def f(x):  # type: ignore[no-untyped-def]
        return package.part.second * package.first * x + package.part.package.first

    assert tg.value_and_grad(f)(1.0) == (8.0, 6.0)
    package.first = 5.0  # type: ignore[attr-defined]
    assert tg.value_and_grad(f)(1.0) == (20.0, 15.0)


SHIFT = 2.0


@numba.vectorize(["float64(float64)"])
def shifted(a):
    return a * SHIFT


@numba.stencil
def neighbours(a):
    return a[-1] * SHIFT


@pytest.mark.parametrize("text", ["shifted(x).sum()", "neighbours(x).sum()"])
def test_ufuncs_and_stencils_whose_globals_changed_are_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    space: dict[str, Any] = {"shifted": shifted, "neighbours": neighbours}
    exec(f"def f(x):\n    return {text}", space)
    monkeypatch.setitem(globals(), "SHIFT", 3.0)
    f = numba.njit(space["f"])
    assert f(np.ones(2)) in (4.0, 2.0)
    with pytest.raises(tg.CompileError, match="has changed since Numba compiled it"):
        tg.grad(f)(np.ones(2))


def test_a_branch_that_is_left_out_is_no_change_where_errors_are_raised() -> None:
    @numba.njit
    def vector(x):
        if x[0] < 0.0:
            raise ValueError("negative")
        return x[0] ** 2

    @numba.njit
    def matrix(x):
        return x[0, 0]

    @numba.njit
    def either(x):
        if x.size == 0:
            raise ValueError("empty")
        return vector(x) if x.ndim == 1 else matrix(x)

    calls = numba.njit(lambda x: either(x))
    calls(np.ones(2))
    np.testing.assert_array_equal(tg.grad(calls)(np.ones(2)), [2.0, 0.0])
