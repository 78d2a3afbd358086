"""Programs in fresh processes, with a cache of compiled code and a copy of the package of their own."""

import os
import subprocess
import sys
from pathlib import Path

import tapegrad as tg

PACKAGE = Path(tg.__file__).parent


def environment(cache: Path | None = None, package: Path = PACKAGE) -> dict[str, str]:
    """Settings of a process that imports the package from its place, and keeps compiled code in a folder."""
    settings = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    settings.pop("NUMBA_CACHE_DIR", None)
    if cache is not None:
        settings["NUMBA_CACHE_DIR"] = str(cache)
    return settings


def run(code: str, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=True)
