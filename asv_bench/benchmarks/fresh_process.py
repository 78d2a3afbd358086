"""What a new process pays: the import, and the first gradient with and without compiled code on disk."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import NamedTuple

_FIRST_GRADIENT = {
    "numpy": "",
    "tapegrad": "x = m.tensor([2.0], requires_grad=True); ((x + 1.0) * x).backward()",
    "torch": "x = m.tensor([2.0], requires_grad=True); ((x + 1.0) * x).backward()",
    "jax": "m.jit(m.value_and_grad(lambda x: (x + 1.0) * x))(2.0)[1].block_until_ready()",
    "autograd": "m.value_and_grad(lambda x: (x + 1.0) * x)(2.0)",
}


class Cost(NamedTuple):
    """Seconds, counted inside the new process."""

    importing: float
    first_gradient: float


def measure(library: str, cache: str | None = None) -> Cost:
    """Start a process that imports the library and takes one gradient.

    Parameters
    ----------
    library : str
        Or "numpy", which is imported only.
    cache : str, optional
        Folder for compiled code, where the engine is compiled and not the one that came with the package; an empty one makes the
        start cold.

    Raises
    ------
    NotImplementedError
        If a peer is not installed, which tells asv to skip.
    """
    if library != "tapegrad" and importlib.util.find_spec(library) is None:
        raise NotImplementedError(f"{library} is not installed")
    script = (
        "from time import perf_counter as now\n"
        f"a = now()\nimport {library} as m\n"
        f"b = now()\n{_FIRST_GRADIENT[library]}\n"
        "print(b - a, now() - b)\n"
    )
    # Installed packages have their bytecode on disk, and so must what is measured here.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if cache is not None:
        environment |= {"NUMBA_CACHE_DIR": cache, "TAPEGRAD_COMPILE": "1"}
    child = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    if child.returncode:
        raise RuntimeError(f"the process that imports {library} failed:\n{child.stderr}")
    importing, first_gradient = map(float, child.stdout.split())
    return Cost(importing, first_gradient)
