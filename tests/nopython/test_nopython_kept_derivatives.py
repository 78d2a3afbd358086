"""Compiled derivatives on disk: found by the next process, and never when anything that went into them is another one now."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from forked_processes import run
from fresh_processes import environment
from unoptimised_numba import numba_is_quicker  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.nopython.twins import constants, fingerprint
from tapegrad.nopython.twins.derivative_cache import DerivativeCache

HELPERS = """
import numba
import numpy as np

FACTOR = 2.0

@numba.njit(cache=True)
def helper(x):
    return FACTOR * x
"""
MODEL = """
import numba
import numpy as np
import kept_helpers
from kept_helpers import helper

SHIFT = 1.0

def made(power):
    @numba.njit
    def g(x):
        return x[0] ** power * x[1]
    return g

def long(factor):
    @numba.njit
    def g(x):
        total = 0.0
        for i in range(2):
            a = np.sin(x[i]) * factor
            b = np.exp(x[i]) + a
            if b > 0.0:
                total += np.log(b) * np.cos(a * b) + factor * x[i]
            else:
                total -= a * b + np.tanh(a) * np.sqrt(b * b + factor)
            for j in range(i):
                total += np.sin(x[i] * x[j]) * np.exp(-factor * x[j] * x[j]) + np.arctan(factor * x[i] - x[j])
        return total
    return g

first, second = long(1.0), long(2.0)

@numba.njit
def even(x, n):
    return odd(x, n - 1) * x if n > 0 else x * x

@numba.njit
def odd(x, n):
    return even(x, n - 1) + x if n > 0 else 2.0 * x

@numba.njit
def circle(x):
    return even(x[0], 4) + odd(x[1], 3)

@numba.njit(cache=True)
def f(x):
    return helper(x[0]) * x[1] + SHIFT * x[1]

@numba.njit
def determinant(x):
    a = np.zeros((2, 2))
    a[0, 0], a[1, 1] = x
    return np.linalg.det(a)

closed = made(2)

@numba.njit
def applied(function, x):
    return function(x)

@numba.njit
def largest(x):
    return applied(np.max, x) * x[1]

@numba.njit
def writes(x, c):
    c[0] = x[0]
    return c[0] * c[1]
"""
X = np.array([1.5, 0.5])


class Project:
    """Two modules in files of their own, imported anew as another process would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("kept_helpers", HELPERS)
        self.write("kept_model", MODEL)
        self.found: list[bool] = []

    def write(self, name: str, text: str) -> None:
        (self.folder / f"{name}.py").write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / f"{name}.py").read_text()
        assert old in text
        self.write(name, text.replace(old, new))

    def start(self) -> ModuleType:
        """The model's module, as a new process has it."""
        for name in ("kept_helpers", "kept_model"):
            sys.modules.pop(name, None)
        for cached in (self.folder / "__pycache__").glob("*.pyc"):  # two edits may come within the clock's resolution
            cached.unlink()
        importlib.invalidate_caches()
        return importlib.import_module("kept_model")

    def files(self) -> list[Path]:
        return sorted((self.folder / "__pycache__").glob("*.tapegrad-*"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    made = Project(tmp_path)
    load = DerivativeCache.load_overload

    def watched(self: Any, sig: Any, context: Any) -> Any:
        result = load(self, sig, context)
        made.found.append(result is not None)
        return result

    monkeypatch.setattr(DerivativeCache, "load_overload", watched)
    yield made
    for name in ("kept_helpers", "kept_model"):
        sys.modules.pop(name, None)


def gradient_of(f: Any, *more: Any) -> list[float]:
    found: np.ndarray = tg.grad(f)(X, *more)
    return found.tolist()


def expected(factor: float = 2.0, shift: float = 1.0) -> list[float]:
    return [factor * X[1], factor * X[0] + shift]


def test_the_next_process_compiles_nothing(project: Project) -> None:
    assert gradient_of(project.start().f) == expected()
    assert gradient_of(project.start().f) == expected()
    assert project.found == [False, True]


def test_second_order_is_kept_too(project: Project) -> None:
    for _ in range(2):
        np.testing.assert_array_equal(tg.hessian(project.start().f)(X), [[0.0, 2.0], [2.0, 0.0]])
    assert project.found == [False, True]


def test_what_was_compiled_for_a_function_of_numpy_as_an_argument_is_not_kept(project: Project) -> None:
    for _ in range(2):
        assert gradient_of(project.start().largest) == [X[1], X[0]]
    assert not project.files()


def test_a_function_that_was_called_before_has_its_derivative_kept_too(project: Project) -> None:
    for _ in range(2):
        model = project.start()
        model.first(X)
        gradient_of(model.first)
    assert project.found == [False, True]


def test_a_call_of_the_function_leaves_its_derivative_as_it_is(project: Project) -> None:
    model = project.start()
    gradient_of(model.first)
    model.first(X)
    gradient_of(model.first)
    assert project.found == [False]


def change_global(module: ModuleType) -> None:
    module.SHIFT = 3.0  # type: ignore[attr-defined]


EDITS: dict[str, tuple[Callable[[Project], None], list[float]]] = {
    "text of the function": (lambda p: p.edit("kept_model", "+ SHIFT", "- SHIFT"), expected(shift=-1.0)),
    "number in the text": (lambda p: p.edit("kept_model", "SHIFT * x[1]", "SHIFT * x[1] * 2.0"), expected(shift=2.0)),
    "global number": (lambda p: p.edit("kept_model", "SHIFT = 1.0", "SHIFT = 3.0"), expected(shift=3.0)),
    "helper in another module": (lambda p: p.edit("kept_helpers", "FACTOR * x", "3.0 * FACTOR * x"), expected(factor=6.0)),
    "global number of a helper": (lambda p: p.edit("kept_helpers", "FACTOR = 2.0", "FACTOR = 4.0"), expected(factor=4.0)),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_gives_a_new_derivative(project: Project, name: str) -> None:
    edit, wanted = EDITS[name]
    assert gradient_of(project.start().f) == expected()
    edit(project)
    assert gradient_of(project.start().f) == wanted
    assert project.found == [False, False]


def test_a_global_of_a_module_that_is_read_by_its_attribute(project: Project) -> None:
    project.edit("kept_model", "SHIFT * x[1]", "kept_helpers.FACTOR * x[1]")
    assert gradient_of(project.start().f) == expected(shift=2.0)
    project.edit("kept_helpers", "FACTOR = 2.0", "FACTOR = 5.0")
    assert gradient_of(project.start().f) == expected(5.0, 5.0)
    assert project.found == [False, False]


def test_functions_that_read_different_attributes_of_one_module(project: Project) -> None:
    inner = "@numba.njit\ndef inner(y):\n    return kept_helpers.SECOND * y\n\n@numba.njit(cache=True)\ndef f"
    project.edit("kept_helpers", "FACTOR = 2.0", "FACTOR = 2.0\nSECOND = 3.0")
    project.edit("kept_model", "@numba.njit(cache=True)\ndef f", inner)
    project.edit("kept_model", "helper(x[0]) * x[1] + SHIFT * x[1]", "kept_helpers.FACTOR * x[0] * x[1] + inner(x[1])")
    assert gradient_of(project.start().f) == expected(shift=3.0)
    project.edit("kept_helpers", "SECOND = 3.0", "SECOND = 5.0")
    assert gradient_of(project.start().f) == expected(shift=5.0)


LAZY = """
def __getattr__(name):
    if name != "LAZY":
        raise AttributeError(name)
    return 3.0
"""


def test_an_attribute_that_a_module_computes(project: Project) -> None:
    project.write("kept_helpers", HELPERS + LAZY)
    project.edit("kept_model", "SHIFT * x[1]", "kept_helpers.LAZY * x[1]")
    assert gradient_of(project.start().f) == expected(shift=3.0)
    project.edit("kept_helpers", "return 3.0", "return 5.0")
    assert gradient_of(project.start().f) == expected(shift=5.0)


OVERLOADED = """
import sys
sys.path.insert(0, {folder!r})
import numba, numpy as np, kept_overloads, tapegrad as tg
from kept_product import f
print(tg.grad(f)(1.0))
"""


def test_what_packages_say_of_a_function_of_a_submodule(project: Project) -> None:
    text = "import numpy as np\nfrom numba.extending import overload\n@overload(np.linalg.matrix_norm)\ndef norm(x):\n"
    project.write("kept_overloads", text + "    return lambda x: 2.0\n")
    project.write("kept_product", "import numba, numpy as np\n@numba.njit\ndef f(x):\n    return x * np.linalg.matrix_norm(3)\n")
    code = OVERLOADED.format(folder=str(project.folder))
    assert run(code, environment()).stdout == "2.0\n"
    project.edit("kept_overloads", "2.0", "5.0")
    assert run(code, environment()).stdout == "5.0\n"


def test_another_value_of_a_closure(project: Project) -> None:
    assert gradient_of(project.start().closed) == [2 * X[0] * X[1], X[0] ** 2]
    project.edit("kept_model", "made(2)", "made(3)")
    np.testing.assert_allclose(gradient_of(project.start().closed), [3 * X[0] ** 2 * X[1], X[0] ** 3], rtol=1e-15)
    assert project.found == [False, False]


def test_another_flag_of_a_helper(project: Project) -> None:
    gradient_of(project.start().f)
    project.edit("kept_helpers", "njit(cache=True)", "njit(cache=True, fastmath=True)")
    gradient_of(project.start().f)
    assert project.found == [False, False]


def test_other_types_of_arguments(project: Project) -> None:
    gradient_of(project.start().f)
    tg.grad(project.start().f)(np.asfortranarray(np.stack([X, X]))[0])
    assert project.found == [False, False]


@pytest.mark.parametrize("version", ["numba", "numpy", "tapegrad"])
def test_another_version(project: Project, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gradient_of(project.start().f)
    known = fingerprint._versions()
    monkeypatch.setattr(fingerprint, "_versions", lambda: known + version)
    gradient_of(project.start().f)
    assert project.found == [False, False]


def test_every_file_that_recordings_are_made_from_is_part_of_the_version() -> None:
    package = Path(tg.__file__).parent
    files = {
        *package.joinpath("nopython").rglob("*.py"),
        *(package / "rules").glob("*.py"),
        package / "kernels" / "second_partials.py",
    }
    assert files - set(fingerprint.own_sources()) == set()


def test_a_package_that_says_otherwise_what_a_function_is(project: Project) -> None:
    overload = "\ndef shown(x):\n    return x\n\n@numba.extending.overload(shown)\ndef _shown(x):\n    return lambda x: x * 2.0\n"
    project.edit("kept_helpers", "FACTOR = 2.0\n", "FACTOR = 2.0\n" + overload)
    project.edit("kept_model", "SHIFT * x[1]", "kept_helpers.shown(x[1])")
    assert gradient_of(project.start().f) == expected(shift=2.0)
    project.edit("kept_helpers", "x * 2.0", "x * 7.0")
    assert gradient_of(project.start().f) == expected(shift=7.0)
    assert project.found == [False, False]


def test_a_global_that_changes_after_the_derivative_was_found(project: Project) -> None:
    gradient_of(project.start().f)
    module = project.start()
    assert gradient_of(module.f) == expected()
    change_global(module)
    assert gradient_of(module.f) == expected(shift=3.0)
    assert project.found == [False, True, False]


def test_a_function_that_numba_has_compiled_with_another_value(project: Project) -> None:
    project.edit("kept_model", "@numba.njit(cache=True)\ndef f", "@numba.njit\ndef f")
    gradient_of(project.start().f)
    module = project.start()
    module.SHIFT = 3.0
    assert module.f(X) == 2.0 * X[0] * X[1] + 3.0 * X[1]
    module.SHIFT = 1.0
    assert gradient_of(module.f) == expected(shift=3.0)
    assert project.found == [False, False]


def test_a_form_that_does_not_compile_is_not_tried_again(project: Project) -> None:
    constants = np.array([1.0, 3.0])
    assert gradient_of(project.start().writes, constants) == [3.0, 0.0]
    before = len(project.found)
    assert gradient_of(project.start().writes, constants) == [3.0, 0.0]
    assert project.found[before:] == [True]


def damage(content: bytes, how: str) -> bytes:
    return {"empty": b"", "cut short": content[:100], "changed": content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]}[how]


@pytest.mark.parametrize("how", ["empty", "cut short", "changed"])
def test_damaged_files_are_compiled_and_written_anew(project: Project, how: str) -> None:
    gradient_of(project.start().f)
    (path,) = project.files()
    whole = path.read_bytes()
    path.write_bytes(damage(whole, how))
    assert gradient_of(project.start().f) == expected()
    assert project.found == [False, False]
    assert gradient_of(project.start().f) == expected()
    assert project.found[-1]


def test_a_file_under_the_name_of_another_is_not_used(project: Project) -> None:
    gradient_of(project.start().f)
    (first,) = project.files()
    project.edit("kept_model", "SHIFT = 1.0", "SHIFT = 3.0")
    gradient_of(project.start().f)
    (second,) = set(project.files()) - {first}
    second.write_bytes(first.read_bytes())
    assert gradient_of(project.start().f) == expected(shift=3.0)
    assert project.found == [False, False, False]


def test_the_folder_holds_a_bounded_number_of_files(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tapegrad.nopython.twins.derivative_cache.MOST", 1)
    gradient_of(project.start().f)
    project.edit("kept_model", "SHIFT = 1.0", "SHIFT = 3.0")
    gradient_of(project.start().f)
    assert len(project.files()) == 1


def test_what_reads_large_arrays_is_not_kept(project: Project) -> None:
    project.edit("kept_model", "SHIFT * x[1]", "TABLES[0][1] * x[1]")
    project.edit("kept_model", "SHIFT = 1.0", "TABLES = (np.zeros(200_000),)")
    assert gradient_of(project.start().f) == expected(shift=0.0)
    assert project.files() == []


def test_what_numba_compiles_by_itself_is_not_kept(project: Project) -> None:
    """Such code may hold values of another time, and there is no looking into it."""
    vectorized = "\n@numba.vectorize(['float64(float64)'])\ndef scale(n):\n    return FACTOR * n\n"
    project.edit("kept_helpers", "FACTOR = 2.0\n", "FACTOR = 2.0\n" + vectorized)
    project.edit("kept_model", "SHIFT * x[1]", "kept_helpers.scale(1.0) * x[1]")
    assert gradient_of(project.start().f) == expected(shift=2.0)
    assert project.files() == []


def test_a_module_of_the_users_with_a_name_of_pythons_is_looked_into(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("this", "VALUE = 3.0\n")
    project.edit("kept_model", "import kept_helpers\n", "import kept_helpers\nimport this\n")
    project.edit("kept_model", "SHIFT * x[1]", "this.VALUE * x[1]")
    monkeypatch.delitem(sys.modules, "this", raising=False)
    constants._is_standard.cache_clear()
    assert gradient_of(project.start().f) == expected(shift=3.0)
    monkeypatch.delitem(sys.modules, "this")
    project.edit("this", "3.0", "4.0")
    assert gradient_of(project.start().f) == expected(shift=4.0)
    constants._is_standard.cache_clear()


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
import tapegrad as tg
from kept_model import f
print(tg.value_and_grad(f)(np.array([1.5, 0.5])), tg.hessian(f)(np.array([1.5, 0.5])).tolist())
from tapegrad.nopython.recorder import recorder
stats = [drive.stats for drive in recorder(f, 0)._drives.values()]
print(sum(sum(s.cache_hits.values()) for s in stats), sum(sum(s.cache_misses.values()) for s in stats))
"""


def test_processes_share_what_they_keep(project: Project) -> None:
    code = SCRIPT.format(folder=str(project.folder))
    first, second = (run(code, environment()).stdout.splitlines() for _ in range(2))
    assert first[0] == second[0]
    assert (first[1], second[1]) == ("0 2", "2 0")


TWO_KEPT = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
import tapegrad as tg
import kept_model
x = np.array([1.5, 0.5])
for name in {names!r}:
    print(tg.value_and_grad(getattr(kept_model, name))(x), tg.hessian(getattr(kept_model, name))(x).tolist())
"""


def test_derivatives_that_several_processes_kept_are_linked_apart(project: Project) -> None:
    """Numba numbers functions anew in each process, so what two processes kept may have functions of one name."""

    def found(*names: str) -> list[str]:
        return run(TWO_KEPT.format(folder=str(project.folder), names=names), environment()).stdout.splitlines()

    apart = [*found("first"), *found("second")]
    assert apart[0] != apart[1]
    assert found("first", "second") == apart


def test_functions_that_call_each_other_in_a_circle_are_kept_with_it(project: Project) -> None:
    code = TWO_KEPT.format(folder=str(project.folder), names=("circle",))
    first, second = (run(code, environment()).stdout for _ in range(2))
    assert first == second
    assert len(project.files()) == 2


def test_what_is_kept_asks_python_for_the_cofactors_of_a_singular_matrix(project: Project) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(project.folder)!r})
import numpy as np
import tapegrad as tg
from kept_model import determinant
print(tg.grad(determinant)(np.array([2.0, 0.0])).tolist())
from tapegrad.nopython.recorder import recorder
print([sum(drive.stats.cache_hits.values()) for drive in recorder(determinant, 0)._drives.values()])
"""
    assert [run(code, environment()).stdout.splitlines() for _ in range(2)] == [["[0.0, 2.0]", "[0]"], ["[0.0, 2.0]", "[1]"]]
