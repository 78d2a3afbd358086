"""Parts of the build in processes of their own: Numba compiles on one processor, and for one family of processors in a process."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tapegrad.kernels import library

__all__ = ["written_meanwhile"]


@contextlib.contextmanager
def written_meanwhile(module: str, *arguments: str, text: str = "") -> Iterator[Callable[[], str]]:
    """A process that runs a module of the build, and what waits for it and gives what it wrote.

    Parameters
    ----------
    module : str
        Its name. It is given the arguments, and the path of a file to write to, in which the text stands.

    Raises
    ------
    RuntimeError
        When it is waited for, if the process failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "code.ll")
        path.write_text(text)
        command = [sys.executable, "-m", f"tapegrad.library_build.{module}", *arguments, str(path)]
        places = os.pathsep.join(filter(None, [os.path.dirname(library.PACKAGE), os.environ.get("PYTHONPATH")]))
        process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": places})

        def written() -> str:
            if process.wait():
                raise RuntimeError(f"the process of {module} failed")
            return path.read_text()

        try:
            yield written
        finally:
            process.kill()
            process.wait()
