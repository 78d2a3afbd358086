"""Settings that all tests share."""

import compileall
import gc
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fresh_processes import PACKAGE, environment
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from many_cases import apart, only

import tapegrad as tg
from tapegrad.compilation.compiler_room import with_room
from tapegrad.kernels import library

# The first example of a test may compile; no test may depend on how fast the machine is, nor on chance.
settings.register_profile("tapegrad", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tapegrad")
# Nor on what numbers stand in the sources, which Hypothesis would read, and after each edit find other examples.
providers.is_local_module_file = lambda path: False

# Collections look at what compiling has just made. All that is made while tests are collected stays, so there are none until then:
# they took a quarter of that time.
gc.set_threshold(50_000, 20, 20)
gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # once, whatever the settings: two hundred processes import the package
        compileall.compile_dir(PACKAGE, quiet=2)
    only(config.getoption("--case"))
    apart(config.getoption("--each"))


# Files that take longest. They are begun first: with one of them last, one worker would wait for the other.
LONGEST = [
    "test_nopython_agreement", "test_nopython_gradients", "test_cold_start", "test_nopython_tangents", "test_nopython_globals",
    "test_nopython_complex", "test_nopython_compiled_derivatives", "test_stress_compiled_programs", "test_programs",
    "test_nopython_second_order", "test_nopython_float32", "test_examples", "test_nopython_arguments", "test_sparse_problems",
    "test_memory", "test_benchmark_pages", "test_operations", "test_built_engine", "test_nopython_kinks", "test_saved_programs",
    "test_fused_programs", "test_sums_on_dask", "test_pictures_in_a_browser", "test_stress_driver_faults",
    "test_nopython_overloads", "test_nopython_kept_derivatives", "test_drivers_compiled", "test_initial_values",
    "test_programs_of_operations", "test_start_up", "test_stress_processes", "test_forking", "test_stress_caches",
]  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


def pytest_collection_finish() -> None:
    gc.enable()


def pytest_unconfigure() -> None:
    gc.freeze()  # the interpreter looks through all that is left when it ends: three seconds of each process


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    """Run a test with room for the compiler's recursion: without, a fifth of what Numba takes is asking for memory."""
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    assert with_room(lambda: pyfuncitem.obj(**given)) is None, "a test returns nothing"
    return True


@pytest.fixture(autouse=True, scope="session")
def _loaded() -> None:
    """The engine is loaded before anything is counted."""
    x = tg.tensor(1.0, requires_grad=True)
    (x * x).backward()


@pytest.fixture(autouse=True, scope="module")
def _short_collections(_loaded: None) -> None:
    """Collections look only at what the tests of a file make: with modules and compiled functions each would take a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    tg.manual_seed(0)


@pytest.fixture
def default_float32() -> Iterator[None]:
    """The test runs with float32 as the default dtype."""
    tg.set_default_dtype(tg.float32)
    yield
    tg.set_default_dtype(tg.float64)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the library: a copy of what came with the package, or one made now."""
    folder = tmp_path_factory.mktemp("built")
    if library.why_compiled():
        command = [sys.executable, "-m", "tapegrad.library_build", str(folder)]
        subprocess.run(command, env=environment(), check=True, stdout=subprocess.DEVNULL)
    else:
        for path in Path(library.FOLDER).glob("engine.*"):
            (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.fixture
def copied_package(built: Path, tmp_path: Path) -> Path:
    """A copy of the package and the library that the test may change."""
    place = tmp_path / "copied" / "tapegrad"
    shutil.copytree(PACKAGE, place, ignore=shutil.ignore_patterns("*.nb?", "tapegrad_*.py", "compiled"))
    shutil.copytree(built, place / "compiled")
    return place
