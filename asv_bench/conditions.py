"""Under what conditions figures were measured: machine, versions, date."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Iterable
from pathlib import Path

__all__ = ["PACKAGES", "conditions"]

PACKAGES = ("tapegrad", "numpy", "numba", "scipy", "torch", "jax", "autograd")


def processor() -> str:
    """What the processor is called."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def versions(packages: Iterable[str] = PACKAGES) -> list[str]:
    """Those that are installed, with their versions."""
    found = []
    for name in packages:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def conditions() -> str:
    """A line for people."""
    cores = os.cpu_count() or 1
    machine = f"{processor()}, {cores} core{'s' * (cores != 1)}, {platform.system()} {platform.machine()}"
    return f"{machine}; Python {platform.python_version()}, {', '.join(versions())}; {datetime.date.today().isoformat()}"
