"""The command line: ``info`` says what this installation is made of, ``warmup`` fills caches before they are needed."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import tapegrad as tg
from tapegrad.kernels import kernel_files, library

__all__ = ["main"]

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def _installed(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} not installed"


def _size(folder: Path) -> str:
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return f"{len(sizes)} files, {sum(sizes) / 1e6:.1f} MB"


def information() -> Iterator[tuple[str, str]]:
    """What `info` prints, a line each."""
    yield "tapegrad", f"{tg.__version__} in {Path(tg.__file__).parent}"
    yield "Python", f"{platform.python_version()} ({platform.python_implementation()}, {platform.platform()})"
    yield "packages", ", ".join(map(_installed, ("numpy", "numba", "llvmlite", "scipy")))
    reason = library.why_compiled()
    yield "engine", f"compiled on this machine: {reason}" if reason else f"built with the package, in {library.FOLDER}"
    yield "processor", f"{platform.machine()}: {' '.join(sorted(library.available_features()))}"
    for folder in dict.fromkeys(kernel_files.folders()):
        if folder.is_dir():
            yield "cache", f"{folder} ({_size(folder)})"
    chosen = [f"{name}={os.environ[name]}" for name in THREADS if name in os.environ]
    yield "threads", ", ".join([f"{os.cpu_count()} processors", *chosen])
    yield "default dtype", str(tg.get_default_dtype())


def warm_up(names: list[str]) -> None:
    """Compile what is not built, and call functions that take no arguments, so that what they compile is kept.

    Parameters
    ----------
    names : list of str
        ``module:function`` each.

    Raises
    ------
    SystemExit
        If there is no such module or function.
    """
    if library.why_compiled():
        kernel_files.compile_all()
    for name in names:
        module, _, function = name.partition(":")
        try:
            found = getattr(import_module(module), function)
        except (ImportError, AttributeError, ValueError) as error:
            raise SystemExit(f"tapegrad: {name!r} is not found: {error}. Give it as module:function.") from error
        found()
        print(f"{name} was called")


def main(arguments: list[str] | None = None) -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(prog="python -m tapegrad", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="versions, where compiled code comes from and is kept, threads, default dtype")
    warm = commands.add_parser("warmup", help="compile and keep what later processes need")
    warm.add_argument("functions", nargs="*", metavar="module:function", help="functions without arguments, which are called")
    chosen = parser.parse_args(arguments)
    if chosen.command == "info":
        for name, value in information():
            print(f"{name + ':':<15}{value}")
    else:
        warm_up(chosen.functions)


if __name__ == "__main__":
    main()
