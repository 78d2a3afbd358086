"""What is to be done as soon as somebody imports a module: a hook in the sense of PEP 369, as a finder that waits for its name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from itertools import dropwhile
from types import ModuleType
from typing import Any

__all__ = ["when_imported"]


class _Waiting:
    """It finds one module as the other finders do, and goes once that has been imported."""

    def __init__(self, name: str, then: Callable[[Any], None]) -> None:
        self._name, self._then = name, then

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """What the finders behind it find, with a loader that calls what waits."""
        if fullname != self._name:
            return None
        behind = dropwhile(lambda finder: finder is not self, list(sys.meta_path))
        next(behind, None)
        found = next(filter(None, (finder.find_spec(fullname, path, target) for finder in behind)), None)
        if found is not None and found.loader is not None:
            found.loader = _Calling(found.loader, self.finish)  # type: ignore[assignment]
        return found

    def finish(self, module: ModuleType) -> None:
        """Call what waits."""
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
        self._then(module)


class _Calling:
    """A loader that leaves all to another, and makes a call behind."""

    def __init__(self, loader: Any, then: Callable[[ModuleType], None]) -> None:
        self._loader, self._then = loader, then

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_loader"], name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """A new module."""
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Run it as if there were no hook, which nobody sees afterwards."""
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._then(module)


def when_imported(name: str, then: Callable[[Any], None]) -> None:
    """Call something with a module, now if it is imported, or else when it is.

    Parameters
    ----------
    name : str
        Its full name.
    then : callable
        Takes the module.
    """
    if name in sys.modules:
        then(import_module(name))  # which waits for another thread that is at it
    else:
        sys.meta_path.insert(0, _Waiting(name, then))
