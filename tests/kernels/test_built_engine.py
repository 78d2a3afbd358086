"""The engine that is built with the package: what loads it, what refuses it, and that it computes what is compiled here."""

import ast
import functools
import os
import shutil
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from fresh_processes import PACKAGE, environment, run

import tapegrad as tg
from tapegrad.compilation import jit
from tapegrad.engine import ARRAY_SOURCES, LANE_SOURCES, LINEAR_SOURCES, SOURCES
from tapegrad.kernels import generated_text, library
from tapegrad.kernels.generated_text import whole_source
from tapegrad.library_build import build, machine_code

FIRST = {
    "scalar": "x = tg.tensor(0.5, requires_grad=True); (x * x + x.sin()).backward(); print(x.grad.item())",
    "array": "x = tg.tensor([0.5, 2.0], requires_grad=True); (x.exp() / x).sum().backward(); print(x.grad.tolist())",
    "views": "x = tg.ones(3, 4, requires_grad=True); x.T[1:, ::2].reshape(-1).cumsum(0).sum().backward(); print(x.grad.tolist())",
    "loops over arrays": (
        "x = tg.arange(8.0, requires_grad=True)\n"
        "y = tg.nn.functional.max_pool1d(tg.nn.functional.layer_norm(x, (8,)).reshape(1, 8), 2)[0, [0, 3, 3]]\n"
        "tg.nn.functional.cross_entropy(y, tg.tensor(1)).backward(); print(x.grad.tolist())"
    ),
    "recurrence": "x = tg.tensor([0.5, 2.0], requires_grad=True); x.cumprod(0).sum().backward(); print(x.grad.tolist())",
    "gamma functions": "x = tg.tensor([0.5, 2.0], requires_grad=True); (x.lgamma() * x.erf()).sum().backward(); print([*x.grad])",
    "model": (
        "x = tg.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)\n"
        "y = tg.linalg.solve(x, tg.tensor([1.0, 2.0]))\n"
        "tg.logsumexp(tg.where(y > 0.3, y * y, y), 0).backward(); print(x.grad.tolist())"
    ),
    "second order": (
        "x = tg.tensor([0.5, 2.0], requires_grad=True)\n"
        "(g,) = tg.autograd.grad((x**3).sum(), x, create_graph=True); g.sum().backward(); print(x.grad.tolist())"
    ),
    "value_and_grad": "print(tg.value_and_grad(lambda x: (x * np.exp(x)).sum())(np.array([0.5, 2.0])))",
    "hessian": "print(tg.hessian(lambda x: (x[1:] ** 2 * x[:-1]).sum())(np.array([0.5, 2.0, 1.0])).tolist())",
    "jacobian": "print(tg.jacobian(lambda x: np.outer(x, np.tanh(x)))(np.array([0.5, 2.0])).tolist())",
    "jvp": "print(tg.jvp(np.exp, (np.array([0.5]),), (np.array([1.0]),)))",
    "minimize": "print(tg.optimize.minimize(lambda x: ((x - 1.0) ** 2).sum(), np.zeros(2), method='trust-ncg').x.round(9))",
    "float32": "x = tg.tensor([0.5, 2.0], dtype=tg.float32, requires_grad=True); x.sigmoid().sum().backward(); print([*x.grad])",
}
IMPORTS = "import numpy as np, tapegrad as tg\n"
HEAVY = "\nimport sys; print([name for name in ('numba', 'llvmlite') if name in sys.modules])"

TINY = """
from tapegrad.compilation.jit import entry, kernel

@entry("int64(int64,float64)")
def scaled(n, x):
    return int(n * x)

@entry("int64(int64,int64)", nogil=True)
def total(first, second):
    return first + second

@kernel("void(int64,int64)")
def nothing(first, second):
    return
"""


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    """A copy that the test may damage."""
    for path in built.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built by the project's own hook."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=PACKAGE.parents[1], env=environment(), check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def package(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as the wheel installs it."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--target", str(folder), str(wheel)]
    subprocess.run(command, check=True)
    return folder / "tapegrad"


def the_library(folder: Path) -> Path:
    (path,) = [path for path in folder.iterdir() if path.name != library.RECORD]
    return path


def changed_record(folder: Path, name: str, value: str) -> None:
    """A record that says something else and is whole in itself."""
    path = folder / library.RECORD
    record = dict(line.split(": ", 1) for line in path.read_text().splitlines()) | {name: value}
    del record["record"]
    text = "\n".join(f"{name}: {value}" for name, value in record.items())
    path.write_text(f"{text}\nrecord: {library.digest(text.encode())}\n")


def refusal(folder: Path) -> str:
    """Why a library is refused, which is said by a warning."""
    library._said.discard(str(folder))
    with pytest.warns(RuntimeWarning, match="is not used") as said:
        assert library.find(str(folder)) is None
    return str(said[0].message)


def test_wheel_is_for_a_platform_and_every_later_python(wheel: Path) -> None:
    *_, python, interface, platform = wheel.stem.split("-")
    assert (python, interface) == ("cp311", "abi3")
    assert platform != "any"


def test_wheel_has_library_and_record(package: Path) -> None:
    assert {path.suffix for path in (package / "compiled").iterdir()} == {".txt", the_library(package / "compiled").suffix}


@pytest.mark.parametrize("name", FIRST)
def test_first_derivative_imports_no_compiler(name: str, package: Path) -> None:
    assert run(IMPORTS + FIRST[name] + HEAVY, environment(package=package)).stdout.endswith("[]\n")


def test_no_two_functions_of_the_engine_have_one_name() -> None:
    names = [node.name for node in ast.parse(whole_source()).body if isinstance(node, ast.FunctionDef)]
    assert [name for name, often in Counter(names).items() if often > 1] == []


@pytest.mark.parametrize(
    ("addition", "wrong"), [("TWICE = 1", ""), ("OTHER, TWICE = 1, 2", "TWICE"), ("def TWICE():\n    pass", "TWICE")]
)
def test_one_name_for_two_things_of_the_engine_is_refused(
    addition: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(generated_text.PACKAGE, tmp_path, ignore=shutil.ignore_patterns("compiled", "__pycache__"), dirs_exist_ok=True)
    for name, text in (("elimination", "TWICE = 1"), ("triangular_systems", addition)):
        with (tmp_path / "engine" / f"{name}.py").open("a", encoding="utf-8") as file:
            file.write(f"\n\n{text}\n")
    monkeypatch.setattr(generated_text, "PACKAGE", tmp_path)
    with pytest.raises(ValueError, match=f"defines {wrong} more than once") if wrong else nullcontext():
        whole_source()


def test_library_is_found_where_it_was_built(built: Path) -> None:
    found = library.find(str(built))
    assert found is not None
    assert found.path == str(the_library(built))


def test_setting_makes_the_engine_be_compiled(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEGRAD_COMPILE", "1")
    assert library.find(str(built)) is None
    assert library.why_compiled(str(built)) == "TAPEGRAD_COMPILE is set"


@pytest.mark.parametrize("place", [0, 0.1, 0.5, 0.9, 1])
def test_library_with_a_flipped_bit_is_not_called(folder: Path, place: float) -> None:
    path = the_library(folder)
    content = bytearray(path.read_bytes())
    content[round(place * (len(content) - 1))] ^= 4
    path.write_bytes(content)
    assert "is damaged" in refusal(folder)


@pytest.mark.parametrize("place", [0, 0.2, 0.5, 0.8])
def test_record_with_a_flipped_bit_is_not_believed(folder: Path, place: float) -> None:
    path = folder / library.RECORD
    content = bytearray(path.read_bytes())
    content[round(place * (len(content) - 1))] ^= 1
    path.write_bytes(content)
    assert refusal(folder)


def test_library_that_was_cut_short_is_not_called(folder: Path) -> None:
    path = the_library(folder)
    path.write_bytes(path.read_bytes()[:-100])
    assert "is damaged" in refusal(folder)


def test_library_that_is_missing_is_said(folder: Path) -> None:
    the_library(folder).unlink()
    assert "cannot be read" in refusal(folder)


def test_record_that_is_no_text_is_damaged(folder: Path) -> None:
    (folder / library.RECORD).write_bytes(b"\xff\xfe\x00")
    assert "is damaged" in refusal(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", "0"),
        ("platform", "cpython another machine"),
        ("object header", "32"),
        ("rules", "1 2 3"),
        ("second_partials", "x"),
    ],
)
def test_library_for_something_else_is_not_called(folder: Path, name: str, value: str) -> None:
    changed_record(folder, name, value)
    assert refusal(folder)


def test_library_of_another_function_is_not_called(folder: Path) -> None:
    """Swapped for another extension module, with a record that fits it."""
    path = the_library(folder)
    path.write_bytes(b"\x7fELF no module at all")
    changed_record(folder, "hash", library.digest(path.read_bytes()))
    assert "cannot be loaded" in refusal(folder)


def test_it_is_said_once(folder: Path) -> None:
    the_library(folder).unlink()
    refusal(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert library.find(str(folder)) is None


def test_processor_without_the_features_compiles_in_silence(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "available_features", lambda: {"SSE"})
    monkeypatch.setattr(library, "FEATURES", dict.fromkeys(library.FEATURES, ("SSE", "AVX2")))
    assert library.find(str(built)) is None
    assert "lacks ['AVX2']" in library.why_compiled(str(built))


def test_numpy_of_another_layout_compiles_in_silence(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library.numpy_api, "has_known_arrays", lambda: False)
    assert library.find(str(built)) is None
    assert "lays arrays out" in library.why_compiled(str(built))


def test_edited_sources_are_noticed(copied_package: Path) -> None:
    with (copied_package / "engine" / "sweep.py").open("a") as file:
        file.write("\n# edited\n")
    code = "from tapegrad.kernels import library; print(library.why_compiled())"
    assert run(code, environment(package=copied_package)).stdout == "the sources were changed since it was built\n"


def imported_by(name: str) -> set[str]:
    """Modules of the kernels and the rules that a module of the package imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((PACKAGE / name).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module in ("tapegrad.kernels", "tapegrad.rules"):
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("tapegrad.kernels.", "tapegrad.rules.")):
            found.add(str(node.module))
    return {f"{module.removeprefix('tapegrad.').replace('.', '/')}.py" for module in found}


def test_whatever_the_text_is_made_by_counts_among_the_sources() -> None:
    seen, waiting = set(), {"kernels/generated_text.py"}
    while waiting:
        seen |= waiting
        waiting = {other for name in waiting for other in imported_by(name)} - seen
    assert seen <= set(library.SOURCES)


def test_a_library_is_not_built_again_without_need(built: Path) -> None:
    assert library.is_current(str(built), build.default_processor())


def test_a_library_for_other_processors_is_built_again(built: Path) -> None:
    assert not library.is_current(str(built), "x86-64-v2")


def test_processes_that_have_loaded_a_library_keep_it_when_another_is_written(tmp_path: Path) -> None:
    build.keep(tmp_path, {}, "engine.abi3.so", b"before")
    with (tmp_path / "engine.abi3.so").open("rb") as loaded:
        build.keep(tmp_path, {}, "engine.abi3.so", b"after.")
        assert loaded.read() == b"before"


@pytest.fixture(scope="module")
def object_code() -> Iterator[Callable[[str], bytes]]:
    """Compiles a text, without the sweeps over recordings that are in every library: they take seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine_code, "_parts_of_recordings", dict)
        patch.setattr(jit, "takes_all_passes", False)  # and as it was, afterwards
        yield functools.cache(lambda text: build.object_code(text, ""))


@pytest.fixture(scope="module", params=["linked", "object"])
def small(request: pytest.FixtureRequest, object_code: Callable[[str], bytes], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A small library, made and loaded."""
    folder = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "_linker", build._linker if request.param == "linked" else lambda: None)
        build.keep(folder, library.record_of_this("generic"), *build.linked(object_code(TINY)))
    found = library.find(str(folder))
    assert found is not None
    assert found.path.endswith(".so" if request.param == "linked" else ".o")
    return found


def test_entries_are_called_and_kernels_have_addresses(small: Any) -> None:
    assert (small.scaled.get()(3, 2.5), small.total.get()(2, -5)) == (7, -3)
    assert small.nothing.get() > 2**12


@pytest.mark.parametrize("arguments", [(), (1,), (1, 2.0, 3), ("1", 2.0), (1, "2"), (1.5, 2.0), (2**80, 1.0)])
def test_wrong_arguments_of_an_entry_raise(small: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises((TypeError, OverflowError)):
        small.scaled.get()(*arguments)


def test_entries_without_an_integer_result_are_refused(object_code: Callable[[str], bytes]) -> None:
    text = 'from tapegrad.compilation.jit import entry\n@entry("float64(float64)")\ndef half(x):\n    return 0.5 * x\n'
    with pytest.raises(TypeError, match="half returns float64"):
        object_code(text)


def test_code_that_needs_numba_is_refused(object_code: Callable[[str], bytes]) -> None:
    text = (
        'from tapegrad.compilation.jit import entry\nimport numpy as np\n@entry("int64(int64)")\n'
        "def size(n):\n    a = np.ones(n)\n    return len(np.append(a, a))\n"
    )
    with pytest.raises(RuntimeError, match="only Numba has"):
        object_code(text)


def test_linker_that_fails_leaves_the_object_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    false = os.environ.get("FALSE", "/bin/false")
    monkeypatch.setattr(build, "_linker", lambda: false)
    assert build.linked(b"code") == ("engine.o", b"code")
    assert "failed, so the object file is kept" in capsys.readouterr().err


def test_tape_of_this_process_says_where_its_code_came_from() -> None:
    (tg.tensor(1.0, requires_grad=True) * 2.0).backward()
    assert hasattr(tg.tape.default_tape().kernels, "path") == (not library.why_compiled())


def defined_by(source: str) -> Iterator[str]:
    """Names that a module of the engine defines for all that it is joined with."""
    for node in ast.parse((PACKAGE / "engine" / f"{source}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name))


@pytest.mark.parametrize("sources", [(*SOURCES, *LINEAR_SOURCES, *LANE_SOURCES), ARRAY_SOURCES], ids=["tapes", "arrays"])
def test_a_name_means_one_thing_in_all_sources_that_are_joined(sources: tuple[str, ...]) -> None:
    found = Counter(name for source in sources for name in defined_by(source))
    assert {name for name, count in found.items() if count > 1} == set()
