"""What code names: globals, attributes, modules that it imports itself; and whose code it is."""

from __future__ import annotations

import dis
import functools
import os
import site
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tapegrad.frames import PACKAGE

__all__ = ["NamesInCode", "all_of", "is_installed_file", "is_installed_module"]

INSTALLED = tuple(
    {
        os.path.realpath(path) + os.sep
        for path in [
            *site.getsitepackages(),
            site.getusersitepackages(),
            *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")),
        ]
        if path
    }
    | {PACKAGE}
)
# Builtins that find globals by text, and attributes that give frames, globals and modules.
FINDING = frozenset(["eval", "exec", "globals", "__import__"])
GIVING_GLOBALS = frozenset(["__globals__", "_getframe", "currentframe", "f_globals", "import_module"])
IMPORTING = dis.opmap["IMPORT_NAME"]
# What code takes from installed modules and can be another.
REPLACED = (
    bool, int, float, complex, str, bytes, np.generic, np.ndarray, np.ufunc,
    types.FunctionType, types.BuiltinFunctionType, type(np.sum),
)  # fmt: skip
OF_MODULES = types.ModuleType, type(None)  # whose functions have no state
OWN = __name__.partition(".")[0]
# What finds attributes of modules by text.
READING_ATTRIBUTES = frozenset(["__dict__", "attrgetter", "getattr", "vars"])


@functools.cache
def is_installed_file(name: str | None) -> bool:
    """Whether a file belongs to an installed package, to Python or to this package; what has no file does."""
    if name is None or name.startswith("<"):
        return name is None or name.startswith("<frozen")
    return os.path.realpath(name).startswith(INSTALLED)


@functools.cache
def is_installed_module(name: str | None) -> bool:
    """The same of a module by its name; one that has no file is Python's or somebody's own."""
    module = sys.modules.get(name or "")
    file = getattr(module, "__file__", None)
    return (name or "").partition(".")[0] in sys.stdlib_module_names if file is None else is_installed_file(file)


class NamesInCode:
    """Names in code, and in what is defined in it.

    Attributes
    ----------
    names : tuple of str
        Those that it may read from its globals or as attributes.
    imports : tuple of str
        Modules that it imports when it runs.
    finds : str
        What finds globals by text, which nobody can follow; empty if nothing does.
    reads_attributes : bool
        Whether it may read attributes by text.
    """

    __slots__ = ("finds", "imports", "names", "reads_attributes")

    def __init__(self, code: types.CodeType) -> None:
        names: set[str] = set()
        imports: set[str] = set()
        found: set[str] = set()
        pending = [code]
        while pending:
            part = pending.pop()
            names.update(part.co_names)
            pending += [constant for constant in part.co_consts if isinstance(constant, types.CodeType)]
            if IMPORTING not in part.co_code[::2] and FINDING.isdisjoint(part.co_names):
                continue  # as nearly always, which is seen without taking the code apart
            for step in dis.get_instructions(part):
                if step.opname == "IMPORT_NAME":
                    imports.add(step.argval)
                elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval in FINDING:
                    found.add(step.argval)
        if names >= {"sys", "modules"}:
            found.add("sys.modules")
        self.names, self.imports = tuple(sorted(names)), tuple(sorted(imports))
        self.reads_attributes = bool(names & READING_ATTRIBUTES)
        self.finds = min(found | names & GIVING_GLOBALS, default="")

    def of_module(self, module: types.ModuleType) -> list[str]:
        """Which names of a module the code may read."""
        if self.reads_attributes:
            return all_of(module)
        return [name for name in (*self.names, "__getattr__") if name in vars(module)]

    def of_installed(self, modules: Iterable[Any]) -> Iterator[tuple[dict[str, Any], str, Any]]:
        """Numbers, arrays and functions of installed modules, and of modules in these, that the code names."""
        pending = [one for one in modules if type(one) is types.ModuleType and is_installed_module(one.__name__)]
        seen = set()
        while pending:
            module = pending.pop()
            space = vars(module)
            if id(module) in seen or module.__name__.partition(".")[0] == OWN:
                continue
            seen.add(id(module))
            for name in self.names:
                part = space.get(name)
                if isinstance(part, types.ModuleType):
                    pending += [part] if is_installed_module(part.__name__) else []
                elif isinstance(part, REPLACED) and isinstance(getattr(part, "__self__", None), OF_MODULES):
                    yield space, name, part

    def imported(self, space: dict[str, Any]) -> list[types.ModuleType]:
        """Modules that the code imports; names in packages may be relative."""
        found = []
        for name in self.imports:
            package = str(space.get("__package__") or "")
            for full in (name, *(".".join(filter(None, (start, name))) for start in _with_parents(package))):
                module = sys.modules.get(full)
                if isinstance(module, types.ModuleType):
                    found.append(module)
        return found

    def finds_globals(self, space: dict[str, Any]) -> bool:
        """Whether the code finds globals by text, by Python's own functions."""
        return bool(self.finds) and self.finds not in space


def all_of(module: types.ModuleType) -> list[str]:
    """All names of a module but Python's own, which finds others by the module's ``__getattr__``."""
    return [name for name in vars(module) if not name.startswith("__") or name == "__getattr__"]


def _with_parents(package: str) -> list[str]:
    """A package, and those that it is in."""
    parts = package.split(".") if package else []
    return [".".join(parts[:k]) for k in range(len(parts), 0, -1)]
