"""The library that is built with the package, as tests use and damage it; a plugin of the modules that name it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fresh_processes import PACKAGE, environment

from tapegrad.kernels import library


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
    shutil.copytree(PACKAGE, place, ignore=shutil.ignore_patterns("__pycache__", "compiled"))
    shutil.copytree(built, place / "compiled")
    return place
