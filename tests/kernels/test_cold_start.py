"""What importing loads, and the engine where it is compiled: Numba's cache of it in every state it can be in."""

import functools
import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import forked_processes
import fresh_processes
import pytest
from forked_processes import Forked
from fresh_processes import PACKAGE

from tapegrad.kernels import library

GRADIENT = """
import tapegrad as tg
x = tg.tensor(0.5, requires_grad=True)
s = tg.tensor(3.0, requires_grad=True)
(tg.exp(x * s) + s * s).backward()
print(x.grad.item(), s.grad.item())
"""
POWER = 4.4816890703380645  # exp(1.5)
EXPECTED = [3.0 * POWER, 0.5 * POWER + 6.0]


def environment(cache: Path | None = None, package: Path = PACKAGE) -> dict[str, str]:
    """Settings of a process that compiles the engine."""
    return fresh_processes.environment(cache, package) | {"TAPEGRAD_COMPILE": "1"}


def assert_gradient(printed: str) -> None:
    assert [float(word) for word in printed.split()] == pytest.approx(EXPECTED, rel=1e-14)


def kernel_files(cache: Path) -> list[Path]:
    return sorted(cache.rglob("tapegrad_kernels_*.py"))


# Numba's own time is not what is looked at here.
run = functools.partial(forked_processes.run, quicker=True)


def start(settings: dict[str, str], code: str = GRADIENT) -> Forked:
    return forked_processes.start(code, settings, quicker=True)


# Entries of the engine that are compiled in a moment: to see whether a cache is used, it need not hold more.
SMALL = """
import numpy as np
from tapegrad.engine import layout as at
from tapegrad.kernels import kernel_files
header, engine = np.zeros(at.HEADER_WORDS, np.int64), kernel_files.load()
print(engine.pin.get()(header.ctypes.data, 1), *(callable(e.get()) for e in (engine.clear, engine.add_root)))
"""
DONE = "1 True True\n"


@pytest.fixture(scope="module")
def raced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A cache that two processes at once have begun, and what they printed."""
    cache = tmp_path_factory.mktemp("raced")
    both = [start(environment(cache), SMALL) for _ in range(2)]
    return cache, [process.communicate()[0] for process in both]


@pytest.fixture(scope="module")
def filled(raced: tuple[Path, list[str]]) -> tuple[Path, str]:
    """The same, with all that the first gradient of scalars needs, and what was printed by the process that compiled it."""
    return raced[0], run(GRADIENT, environment(raced[0])).stdout


def blocked(folder: Path) -> dict[str, str]:
    """Settings under which every place for the cache is taken by a file, so that none can be made, even by root."""
    package = folder / "package" / "tapegrad"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for place in [package, *package.rglob("*/")]:
        (place / "__pycache__").touch()
    (folder / "taken").touch()
    settings = environment(folder / "taken" / "cache", package)
    return {**settings, "HOME": str(folder / "taken"), "XDG_CACHE_HOME": str(folder / "taken")}


def spoil(folder: Path) -> None:
    """Other content in the generated kernel file."""
    (file,) = kernel_files(folder)
    file.write_text("raise SystemExit('spoiled')\n")


@pytest.fixture(scope="module")
def without_cache(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """What a process prints, and what it complains about, that finds no place for a cache."""
    return start(blocked(tmp_path_factory.mktemp("blocked")), SMALL).communicate()


@pytest.fixture
def cache(filled: tuple[Path, str], tmp_path: Path) -> Iterator[Path]:
    """A filled cache that the test may damage. Compiled code is found by the place of its source, so it cannot be a copy."""
    before = tmp_path / "before"
    shutil.copytree(filled[0], before)
    yield filled[0]
    shutil.rmtree(filled[0])
    shutil.copytree(before, filled[0])


def loaded_after(code: str) -> set[str]:
    heavy = ["numba", "llvmlite", "scipy", "torch", "jax", "pandas", "matplotlib", "tapegrad.nn"]
    text = f"{code}\nimport sys\nprint(*[name for name in {heavy!r} if name in sys.modules])"
    return set(fresh_processes.run(text, environment()).stdout.split())


def test_import_loads_nothing_heavy() -> None:
    assert loaded_after("import tapegrad") == set()


def test_making_and_printing_tensors_loads_nothing_heavy() -> None:
    assert loaded_after("import tapegrad as tg; repr(tg.ones(3, requires_grad=True)); tg.zeros(2, 2).tolist()") == set()


def test_two_processes_may_fill_an_empty_cache_at_once(raced: tuple[Path, list[str]]) -> None:
    assert raced[1] == [DONE, DONE]


def test_gradient_of_an_engine_that_is_compiled_here_is_right(filled: tuple[Path, str]) -> None:
    assert_gradient(filled[1])


def test_filled_cache_holds_one_generated_file(filled: tuple[Path, str]) -> None:
    assert len(kernel_files(filled[0])) == 1


def test_filled_cache_is_used_as_it_is(filled: tuple[Path, str]) -> None:
    files = [path for path in filled[0].rglob("*") if path.is_file()]
    before = {path: path.stat().st_mtime_ns for path in files}
    assert_gradient(run(GRADIENT, environment(filled[0])).stdout)
    assert {path: path.stat().st_mtime_ns for path in filled[0].rglob("*") if path.is_file()} == before


def test_filled_cache_may_be_used_by_processes_at_once(filled: tuple[Path, str]) -> None:
    for process in [start(environment(filled[0])) for _ in range(2)]:
        assert_gradient(process.communicate()[0])


def test_spoiled_kernel_file_is_not_used(tmp_path: Path) -> None:
    run(SMALL, environment(tmp_path))
    spoil(tmp_path)
    assert run(SMALL, environment(tmp_path)).stdout == DONE


def test_engine_without_a_writable_cache_is_compiled(without_cache: tuple[str, str]) -> None:
    assert without_cache[0] == DONE


def test_engine_without_a_writable_cache_warns_and_names_the_remedy(without_cache: tuple[str, str]) -> None:
    assert "RuntimeWarning" in without_cache[1]
    assert "NUMBA_CACHE_DIR" in without_cache[1]


def test_unwritable_chosen_folder_falls_back_to_another_without_a_warning(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    done = run(SMALL, environment(tmp_path / "taken" / "cache"))
    assert done.stdout == DONE
    assert "Warning" not in done.stderr


def quickest(cache: Path) -> list[tuple[Path, Path]]:
    """Index and code of the two functions that are compiled fastest."""
    found = sorted(cache.rglob("*.nbc"), key=lambda path: path.stat().st_size)
    pairs = [(code.with_name(code.name.rsplit(".", 2)[0] + ".nbi"), code) for code in found]
    return [pair for pair in pairs if all(b"numba" in path.read_bytes() for path in pair)][:2]


def test_damaged_compiled_code_is_compiled_anew(cache: Path) -> None:
    for _, code in quickest(cache):
        code.write_bytes(code.read_bytes()[:100])
    first = run(GRADIENT, environment(cache))
    assert_gradient(first.stdout)
    assert first.stderr.count("is damaged (") == 1
    second = run(GRADIENT, environment(cache))
    assert_gradient(second.stdout)
    assert "damaged" not in second.stderr


def test_damaged_library_is_replaced_by_compiling(copied_package: Path, filled: tuple[Path, str]) -> None:
    """In a process of its own, from the warning to the result."""
    (path,) = [path for path in (copied_package / "compiled").iterdir() if path.name != library.RECORD]
    path.write_bytes(path.read_bytes().replace(b"tapegrad", b"tapegrax"))
    done = run(GRADIENT, fresh_processes.environment(filled[0], copied_package))
    assert_gradient(done.stdout)
    assert done.stderr.count("is not used") == 1


def test_compiled_code_that_cannot_be_kept_is_said_once_and_used(cache: Path) -> None:
    """Files may not grow, as on a full disk; some of the compiled code is missing."""
    indexes = [index for index, _ in quickest(cache)]
    for path in indexes:
        path.unlink()
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))" + GRADIENT
    done = fresh_processes.run(limited, environment(cache))  # it writes to pipes
    assert_gradient(done.stdout)
    assert done.stderr.count("cannot be kept in") == 1
    assert not any(path.exists() for path in indexes)


def test_loading_that_was_interrupted_starts_anew(filled: tuple[Path, str]) -> None:
    interrupted = """
import tapegrad as tg
tape = tg.tape.default_tape()

def interrupt():
    tape.on_load.remove(interrupt)
    raise KeyboardInterrupt

tape.on_load.append(interrupt)
try:
    tg.tensor(1.0, requires_grad=True) * 2.0
except KeyboardInterrupt:
    pass
"""
    assert_gradient(run(interrupted + GRADIENT, environment(filled[0])).stdout)


def test_gradient_of_scalars_compiles_nothing_for_arrays_nor_operators(filled: tuple[Path, str]) -> None:
    names = {path.name.split(".")[1].split("-")[0] for path in filled[0].rglob("*.nbi")}
    assert {"start", "run", "scalar_run"} <= names
    assert not names & {"gather_block", "scatter_block", "partial_block", "scalar_partials", "operate", "primal"}


# From here on more is compiled into the cache, by one test for those after it.


def test_operators_are_compiled_once_there_were_some_passes(filled: tuple[Path, str]) -> None:
    code = f"""
{GRADIENT}
kinds = [type(tg.Tensor.__mul__).__name__]
from tapegrad.ops.compiled_operators import WORTHWHILE
for _ in range(WORTHWHILE):
    (x * x).backward()
x.grad = s.grad = None
print(*kinds, type(tg.Tensor.__mul__).__name__)
(tg.exp(x * s) + s * s).backward()
print(x.grad.item(), s.grad.item())
"""
    first, kinds, second = run(code, environment(filled[0])).stdout.splitlines()
    assert kinds == "function method_descriptor"
    assert_gradient(first)
    assert_gradient(second)


def test_methods_are_compiled_once_there_were_more_passes() -> None:
    """With entries of the library, which take no time, as if they were to be compiled here."""
    code = """
import tapegrad as tg
from tapegrad.ops import compiled_operators
compiled_operators.ModuleType = object
x = tg.tensor([0.5, 2.0], requires_grad=True)
for passes in (1, compiled_operators.WORTHWHILE, compiled_operators.ALL_WORTHWHILE):
    for _ in range(passes):
        x.grad = None
        y = x * x
        y[0] *= 3.0
        y.exp_().sum().backward()
    methods = tg.Tensor.__mul__, tg.Tensor.sum, tg.Tensor.backward, tg.Tensor.mul_, tg.Tensor.__setitem__
    print(*["method_descriptor" == type(method).__name__ for method in methods], x.grad.tolist())
"""
    first, second, third = fresh_processes.run(code, fresh_processes.environment()).stdout.splitlines()
    gradient = [3.0 * math.exp(0.75), 4.0 * math.exp(4.0)]
    assert first == f"False False False False False {gradient}"
    assert second == f"True False False False False {gradient}"
    assert third == f"True True True True True {gradient}"


# Kernels of costly rules and of arrays are compiled when rows of them are recorded.
LATER = """
import numpy as np, tapegrad as tg
x = tg.tensor(0.5, requires_grad=True); (x * x + x.sin()).backward(); tg.tanh(x).backward(); print(x.grad.item())
x = tg.tensor([0.5, 2.0], requires_grad=True); (x.exp() / x).sum().backward(); print(x.grad.tolist())
x = tg.tensor([1.0, 2.0, 4.0], requires_grad=True)
x.backward(tg.ones(6)[::2]); (x * x)[::2].sum().backward(); print(x.grad.tolist())
x = tg.tensor([0.5, 2.0], requires_grad=True); x.cumprod(0).sum().backward(); print(x.grad.tolist())
x = tg.tensor([0.5, 2.0], requires_grad=True); (x.lgamma() * x.erf()).sum().backward(); print(x.grad.tolist())
"""


def test_values_have_the_bits_of_code_compiled_here(filled: tuple[Path, str], copied_package: Path) -> None:
    compiled_here = run(LATER, environment(filled[0]))
    assert run(LATER, fresh_processes.environment(package=copied_package)).stdout == compiled_here.stdout
    first, _, third, *_ = compiled_here.stdout.splitlines()
    assert float(first) == pytest.approx(1.0 + math.cos(0.5) + 1.0 - math.tanh(0.5) ** 2, rel=1e-14)
    assert third == "[3.0, 1.0, 9.0]"


OPERATORS = """
import numpy as np, tapegrad as tg
x = np.array([1.0, 2.0, 4.0])
for f in (lambda x: (x * x).std(), lambda x: (2.0 - x).std(), lambda x: (-x / 3.0 + x**2).std(), lambda x: abs(x % 3.0).std()):
    assert abs(tg.value_and_grad(f)(x)[0] - f(x)) < 1e-15
"""


def test_operators_of_an_engine_that_is_compiled_here_give_arrays(filled: tuple[Path, str]) -> None:
    run(OPERATORS, environment(filled[0]))


NESTED = """
import numpy as np, tapegrad as tg
t = np.array([0.5, 1.0, 2.0])
print(tg.grad(lambda a: tg.jacobian(lambda s: a * s**3)(t).sum())(np.ones(3)).tolist())
"""


def test_nested_drivers_of_an_engine_that_is_compiled_here_differentiate_what_is_in_between(filled: tuple[Path, str]) -> None:
    assert run(NESTED, environment(filled[0])).stdout == f"{[0.75, 3.0, 12.0]}\n"
