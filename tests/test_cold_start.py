"""The first minute of a process: what importing loads, and the cache of compiled code in every state it can be in."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tapegrad as tg

PACKAGE = Path(tg.__file__).parent
GRADIENT = """
import tapegrad as tg
x = tg.tensor([0.5, 2.0], requires_grad=True)
s = tg.tensor(3.0, requires_grad=True)
(tg.exp(x * s).sum() + s * s).backward()
print(*x.grad.tolist(), s.grad.item())
"""
HALF, TWO = 4.4816890703380645, 403.4287934927351  # exp(1.5), exp(6)
EXPECTED = [3.0 * HALF, 3.0 * TWO, 0.5 * HALF + 2.0 * TWO + 6.0]


def environment(cache: Path | None = None, package: Path = PACKAGE) -> dict[str, str]:
    settings = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    settings.pop("NUMBA_CACHE_DIR", None)
    if cache is not None:
        settings["NUMBA_CACHE_DIR"] = str(cache)
    return settings


def run(code: str, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=True)


def assert_gradient(printed: str) -> None:
    assert [float(word) for word in printed.split()] == pytest.approx(EXPECTED, rel=1e-14)


def kernel_files(cache: Path) -> list[Path]:
    return sorted(cache.rglob("tapegrad_kernels_*.py"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that one process has filled."""
    cache = tmp_path_factory.mktemp("filled")
    assert_gradient(run(GRADIENT, environment(cache)).stdout)
    return cache


def copy_of(cache: Path, to: Path) -> Path:
    return Path(shutil.copytree(cache, to / "copy"))


def loaded_after(code: str) -> set[str]:
    heavy = ["numba", "llvmlite", "scipy", "torch", "jax", "pandas", "matplotlib"]
    printed = run(
        f"{code}\nimport sys\nprint(*[name for name in {heavy!r} if name in sys.modules])", environment()
    ).stdout
    return set(printed.split())


def test_import_loads_nothing_heavy() -> None:
    assert loaded_after("import tapegrad") == set()


def test_untracked_arithmetic_loads_nothing_heavy() -> None:
    assert loaded_after("import tapegrad as tg; (tg.ones(3) * 2.0).sum().item()") == set()


def test_first_gradient_with_an_empty_cache(filled: Path) -> None:
    assert len(kernel_files(filled)) == 1


def test_filled_cache_is_used_as_it_is(filled: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in filled.rglob("*") if path.is_file()}
    assert_gradient(run(GRADIENT, environment(filled)).stdout)
    assert {path: path.stat().st_mtime_ns for path in filled.rglob("*") if path.is_file()} == before


def test_filled_cache_may_be_shared_by_processes_at_once(filled: Path) -> None:
    both = [
        subprocess.Popen([sys.executable, "-c", GRADIENT], env=environment(filled), stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in both:
        assert_gradient(process.communicate()[0])


def test_two_processes_may_fill_an_empty_cache_at_once(tmp_path: Path) -> None:
    both = [
        subprocess.Popen([sys.executable, "-c", GRADIENT], env=environment(tmp_path), stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in both:
        assert_gradient(process.communicate()[0])


@pytest.mark.parametrize("content", ["raise SystemExit('spoiled')\n", ""], ids=["spoiled", "empty"])
def test_spoiled_kernel_file_is_not_used(filled: Path, tmp_path: Path, content: str) -> None:
    cache = copy_of(filled, tmp_path)
    (file,) = kernel_files(cache)
    file.write_text(content)
    assert_gradient(run(GRADIENT, environment(cache)).stdout)
    assert file.read_text() != content


def blocked(folder: Path) -> dict[str, str]:
    """Settings under which every place for the cache is taken by a file, so that none can be made, even by root."""
    package = folder / "package" / "tapegrad"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for place in package.rglob("*"):
        if place.is_dir():
            (place / "__pycache__").touch()
    (package / "__pycache__").touch()
    (folder / "taken").touch()
    settings = environment(folder / "taken" / "cache", package)
    return {**settings, "HOME": str(folder / "taken"), "XDG_CACHE_HOME": str(folder / "taken")}


def test_first_gradient_without_a_writable_cache_is_right_and_warns(tmp_path: Path) -> None:
    done = run(GRADIENT, blocked(tmp_path))
    assert_gradient(done.stdout)
    assert "RuntimeWarning" in done.stderr and "NUMBA_CACHE_DIR" in done.stderr


def test_unwritable_chosen_folder_falls_back_to_another_without_a_warning(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    done = run(GRADIENT, environment(tmp_path / "taken" / "cache"))
    assert_gradient(done.stdout)
    assert done.stderr == ""
