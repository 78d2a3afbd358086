"""What makes ``import autograd`` find the modules of this room."""

from __future__ import annotations

import importlib
import sys
import types
import warnings
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

from tapegrad.as_autograd.names import EAGER, FALLBACKS, MODULES, OPEN
from tapegrad.deferred import NamesOnDemand, look_up, places

__all__ = ["Finder", "install"]


class Finder(MetaPathFinder, Loader):
    """Finds autograd and its modules, whose names are resolved when they are first asked for."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> ModuleSpec | None:
        """The module of this name, if it is one of autograd's.

        Raises
        ------
        ModuleNotFoundError
            If it would be one of autograd's that tapegrad does not have.
        """
        if fullname in MODULES:
            return ModuleSpec(fullname, self, origin="tapegrad.as_autograd", is_package=_is_package(fullname))
        if fullname.startswith("autograd."):
            raise ModuleNotFoundError(
                f"tapegrad.as_autograd has no module {fullname!r}: what it stands for has no counterpart in tapegrad, which has no "
                "boxes and no nodes. Modules there are: " + ", ".join(MODULES),
                name=fullname,
            )
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        """Give a module its names."""
        name = module.__name__
        module.__doc__ = f"What autograd has as {name}, by tapegrad."
        for child, public in EAGER.get(name, {}).items():
            importlib.import_module(f"{name}.{child}")  # sets the module under its name, where autograd has a function of it
            setattr(module, child, look_up(public))
        module.__dict__.update(_protocol(name, vars(module)))


def _is_package(name: str) -> bool:
    return any(other.startswith(f"{name}.") for other in MODULES)


def _protocol(module: str, space: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """``__getattr__`` and ``__dir__`` of a module."""
    names = NamesOnDemand({"__name__": module} if module in OPEN else space, places(MODULES[module]))
    below = {other.rpartition(".")[2] for other in MODULES if other.rpartition(".")[0] == module}
    fallback = FALLBACKS.get(module)

    def get(name: str) -> Any:
        if name == "__all__":
            return [name for name in listed() if not name.startswith("_")]
        if name in below:
            return importlib.import_module(f"{module}.{name}")
        try:
            found = names.get(name)
        except AttributeError:
            if fallback is None or (name.startswith("_") and name != "__version__"):
                raise
            found = look_up(fallback)(name, module)
        if module in OPEN:
            found = look_up("as_autograd.library_functions:open_to_derivatives")(found)
        return space.setdefault(name, found)  # another thread may have been first

    def listed() -> list[str]:
        return sorted({*names.listed(), *below, *(look_up(fallback)("__all__", module) if fallback else ())})

    return {"__getattr__": get, "__dir__": listed}


def install() -> None:
    """Put the finder before all others, unless another `autograd` is there already.

    Warns
    -----
    RuntimeWarning
        If it is; nothing is changed then.
    """
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return
    before = sys.modules.get("autograd")
    if before is not None:
        warnings.warn(
            f"autograd was imported from {getattr(before, '__file__', None) or before!r} before tapegrad.as_autograd, and stays "
            "what it is: import tapegrad.as_autograd first, or run python -m tapegrad.as_autograd script.py",
            RuntimeWarning,
            stacklevel=3,
        )
        return
    sys.meta_path.insert(0, Finder())
