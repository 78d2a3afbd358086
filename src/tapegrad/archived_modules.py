"""Bytecode of the package's modules in one file: an import by it takes half of the time that Python's own takes.

Python looks for a module in its folder, and opens and reads a file of bytecode, by code of its own that is in Python: 60 µs, and
160 times in a script that solves an optimisation. Here one file is mapped, which is where Python keeps the bytecode of the package
itself. Of a module's source it is asked what Python asks, too: whether its size and the time of its last change are what they were.

Importing this module puts the finder of these modules before the one that looks through `sys.path`, and behind all others, which
tools may have put there. Whatever is unknown, changed, or not as usual is left to Python: modules that are reloaded, and the whole
package where something else than Python's own loader has it. What Python had to look for is added when the process ends, so
processes come to find all that they import. Nothing is written where Python writes no bytecode.
"""

from __future__ import annotations

import contextlib
import marshal
import mmap
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

__all__ = ["SETTLED", "Finder", "replace_file"]

SETTLED = 10_000_000_000  # ns; clocks of file systems tick every 2 s at worst, and those of servers differ
HEADER = f"{sys.hexversion:x} 1\n".encode()  # of which interpreter the bytecode is, and the version of the file's form
PACKAGE = "tapegrad"


class _Loader(SourceFileLoader):
    """Python's own loader of a source, but for where the bytecode comes from."""

    def __init__(self, name: str, path: str, code: memoryview | None) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType | None:
        """The module's code, taken once; who wants it again gets it from Python."""
        kept, self._code = self._code, None
        if kept is not None and fullname == self.name:
            with contextlib.suppress(ValueError, TypeError, EOFError):
                code = marshal.loads(kept)
                if isinstance(code, CodeType) and code.co_filename == self.path:
                    return code
        return super().get_code(fullname)


class Finder:
    """Finds modules of the package whose bytecode is in a file, as an entry of `sys.meta_path`.

    Parameters
    ----------
    folder : str
        Of the package.
    path : str
        The file, which need not be there.
    ending : str
        Of the names of files of bytecode, behind that of the module.
    """

    def __init__(self, folder: str, path: str, ending: str) -> None:
        self._folder, self._path, self._ending = folder, path, ending
        self._known, self._code = _read(path, folder)
        self._is_watching = False

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """A module's spec, which says what the one says that Python makes; None if it is to be found by others."""
        if not name.startswith(f"{PACKAGE}.") or target is not None:
            return None
        if (known := self._known.get(name)) is None:
            self._watch()
            return None
        is_package, state, start, stop = known.split(" ")
        file = _source(self._folder, name, bool(is_package))
        parent, _, base = file.rpartition(os.sep)
        within = parent.rpartition(os.sep)[0] if is_package else parent
        if state != _state(file) or path is None or list(path) != [within]:
            self._watch()
            return None
        spec = ModuleSpec(name, _Loader(name, file, self._code[int(start) : int(stop)]), origin=file, is_package=bool(is_package))
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(parent)
        spec.has_location, spec.cached = True, f"{parent}{os.sep}__pycache__{os.sep}{base[:-3]}.{self._ending}"
        return spec

    def _watch(self) -> None:
        """Add what Python finds when the process ends."""
        if not self._is_watching and not sys.dont_write_bytecode:
            import atexit

            self._is_watching = True
            atexit.register(self.add)

    def add(self) -> None:
        """Add the modules that Python found to those that the file has by now."""
        known, code = _read(self._path, self._folder)
        found: dict[str, tuple[str, Any]] = {}
        for name, (is_package, state, start, stop) in ((name, words.split(" ")) for name, words in known.items()):
            if state == _state(_source(self._folder, name, bool(is_package))):
                found[name] = f"{is_package} {state}", code[int(start) : int(stop)]
        count = len(found)
        for name, module in list(sys.modules.items()):
            spec = getattr(module, "__spec__", None)
            if name.startswith(f"{PACKAGE}.") and name not in found and type(getattr(spec, "loader", None)) is SourceFileLoader:
                with contextlib.suppress(Exception):  # the process is about to end, and nobody asked for this
                    found[name] = _compiled(spec, self._folder)
        if len(found) > count:
            replace_file(self._path, _written(found, self._folder))


def _source(folder: str, name: str, is_package: bool) -> str:
    """The file of a module."""
    inside = name[len(PACKAGE) + 1 :].replace(".", os.sep)
    return f"{folder}{os.sep}{inside}{os.sep}__init__.py" if is_package else f"{folder}{os.sep}{inside}.py"


def _state(file: str) -> str:
    """Size and time of the last change; empty if it is not there."""
    try:
        state = os.stat(file)
    except OSError:
        return ""
    return f"{state.st_size}-{state.st_mtime_ns}"


def _compiled(spec: Any, folder: str) -> tuple[str, bytes]:
    """What is kept of a module that Python loaded.

    Raises
    ------
    ValueError
        If it is no usual one, or was changed just now.
    """
    import time

    is_package, file = spec.submodule_search_locations is not None, spec.origin
    if file != _source(folder, spec.name, is_package) or not spec.cached:
        raise ValueError("no module of the package's own folder")
    state = _state(file)  # before the code is taken: what is changed meanwhile will differ
    if not 0 <= int(state.partition("-")[2]) <= time.time_ns() - SETTLED:
        raise ValueError("changed just now")
    return f"{'p' * is_package} {state}", marshal.dumps(spec.loader.get_code(spec.name))


def _read(path: str, folder: str) -> tuple[dict[str, str], memoryview]:
    """What a file has, and the bytecode in it; nothing if it is of another interpreter, or the package was somewhere else.

    Of a module there is: ``p`` for a package, the state of its source, where its bytecode begins, and where it ends.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        if data[: len(HEADER)] == HEADER:
            start = len(HEADER) + 8
            end = start + int.from_bytes(data[len(HEADER) : start], "little")
            known = marshal.loads(data[start:end])
            if known.pop("") == folder:
                return known, data[end:]
    except (OSError, ValueError, TypeError, EOFError, KeyError, AttributeError):
        pass
    return {}, memoryview(b"")


def _written(found: dict[str, tuple[str, Any]], folder: str) -> bytes:
    """The content of a file."""
    index, done = {"": folder}, 0
    for name, (words, code) in found.items():
        index[name] = f"{words} {done} {done + len(code)}"
        done += len(code)
    head = marshal.dumps(index)
    return b"".join([HEADER, len(head).to_bytes(8, "little"), head, *(code for _, code in found.values())])


def replace_file(path: str, content: bytes) -> None:
    """Write a file that is a note only, so that others find the former one or all of it; not where that cannot be."""
    own = f"{path}.{os.getpid()}"
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            with open(own, "xb") as file:
                file.write(content)
            os.replace(own, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(own)


def _install() -> None:
    """Find the package's modules by the file beside its own bytecode."""
    spec: Any = getattr(sys.modules[PACKAGE], "__spec__", None)
    cached = getattr(spec, "cached", None)
    # A folder for all bytecode (PYTHONPYCACHEPREFIX) is for who looks after it himself.
    if cached is None or sys.pycache_prefix is not None or type(spec.loader) is not SourceFileLoader or not spec.origin:
        return
    beside, _, name = cached.rpartition(os.sep)
    ending = name.removeprefix("__init__.")
    kept = f"{beside}{os.sep}modules.{ending.removesuffix('.pyc')}.bytecode"
    sys.meta_path[:] = [one for one in sys.meta_path if type(one).__module__ != __name__]  # one at a time
    with contextlib.suppress(ValueError):  # something else than Python's looks through the path
        sys.meta_path.insert(sys.meta_path.index(PathFinder), Finder(os.path.dirname(spec.origin), kept, ending))


_install()
