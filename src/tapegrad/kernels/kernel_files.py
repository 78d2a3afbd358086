"""The engine compiled on this machine, where none was built: a generated file, named by its content, and Numba's cache of it.

Numba keys its cache by file, signature and processor; a file of another content has another name, so nothing stale is ever found.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tapegrad.compilation.jit import Lazy
from tapegrad.interrupts import undone, whole_file
from tapegrad.kernels.generated_text import array_source, linear_source, source
from tapegrad.kernels.opcodes import rule_table
from tapegrad.kernels.second_partials import second_table

__all__ = ["compile_all", "folders", "load", "load_arrays", "load_linear"]


def folders() -> Iterator[Path]:
    """Where the file may go, in Numba's own order: the folder the user chose, beside the package, the user's cache."""
    from numba.core import config
    from numba.misc import appdirs

    chosen = getattr(config, "CACHE_DIR", "")
    if chosen:
        yield Path(chosen) / "tapegrad"
    yield Path(__file__).parent.parent / "__pycache__"
    user: Any = appdirs.AppDirs  # type: ignore[no-untyped-call, unused-ignore]
    yield Path(user(appname="numba", appauthor=False).user_cache_dir) / "tapegrad"


def _place(text: str, name: str) -> Path | None:
    """Write the file whole or not at all into the first folder that takes it; None if none does."""
    import os

    content = text.encode()
    for folder in folders():
        path = folder / f"{name}.py"
        try:
            if path.read_bytes() == content and os.access(folder, os.W_OK):
                return path
        except OSError:
            pass
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as file:
                file.write(content)
        except OSError:
            continue
        return path
    return None


def _import(path: Path, name: str) -> ModuleType:
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:  # pragma: no cover - a .py path always has a loader
        raise ImportError(f"cannot import the generated kernels from {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    undone(functools.partial(sys.modules.pop, name), spec.loader.exec_module, module)
    return module


def load() -> ModuleType:
    """The compiled engine; generated, compiled and cached where that has not been done.

    Returns
    -------
    module
        Its attributes are the entries and kernels of `tapegrad.engine`, each of which is compiled when it is first asked for.

    Warns
    -----
    RuntimeWarning
        If no cache folder is writable: compilation (some seconds) is then repeated by every process.

    Notes
    -----
    Costs the import of Numba; 0.3 s more from a filled cache, a few seconds with an empty one.
    """
    module = _loaded("tapegrad_kernels_", source())
    module.rules = rule_table()  # type: ignore[attr-defined]
    return module


def load_linear() -> ModuleType:
    """The compiled sweeps over linear tapes, where the engine was not built: each is compiled, or loaded, when first used."""
    module = _loaded("tapegrad_linear_", linear_source())
    module.second_partials = second_table()  # type: ignore[attr-defined]
    return module


def load_arrays() -> ModuleType:
    """The compiled loops over whole arrays, where the engine was not built: each is compiled, or loaded, when first used."""
    return _loaded("tapegrad_arrays_", array_source())


def compile_all() -> None:
    """Compile every entry and kernel, or load it from the cache."""
    for module in (load(), load_linear(), load_arrays()):
        for lazy in list(vars(module).values()):
            if isinstance(lazy, Lazy):
                lazy.get()


def _loaded(prefix: str, text: str) -> ModuleType:
    import hashlib

    import numba

    tags = (text, numba.__version__, np.__version__, sys.version, str(object.__basicsize__))
    name = prefix + hashlib.sha256("\0".join(tags).encode()).hexdigest()[:24]
    if name in sys.modules:
        return sys.modules[name]
    path = _place(text, name)
    if path is not None:
        return _import(path, name)
    warnings.warn(
        "no writable folder for tapegrad's compiled kernels: they are compiled anew by this process. "
        "Set NUMBA_CACHE_DIR to a writable folder to keep them.",
        RuntimeWarning,
        stacklevel=2,
    )
    module = ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
    sys.modules[name] = module
    return module
