"""SciPy's solvers, imported when they are first asked for, without work that nobody asked for.

It takes three times as long as importing NumPy. SciPy's modules are what they always are. In milliseconds of 360:

- 60: SciPy copies every name that NumPy lists, and thereby imports what NumPy only imports when it is asked for: ``numpy.f2py``,
  ``numpy.testing`` with ``unittest``, ``numpy.ma``. Here it copies what is there; the others are found when they are asked for.
- 15: a collection of garbage looks at every object of the process, at moments when modules only make new ones.
- 20: CPython keeps the frames of calls in pieces of 16 kB, and each call that goes over the end of one asks the system for another.
  Modules that import modules come to such an end in the middle of what calls functions by the thousand, by the depth of the call
  that the import stood in. With what lies innermost imported before it asks for one.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from tapegrad.collector import without_collections

__all__ = ["solvers"]

INSIDE = ("scipy.special", "scipy.linalg", "scipy.sparse")  # all of which `scipy.optimize` imports
COPIES = ("scipy._external.array_api_compat", "scipy._lib.array_api_compat")  # where it is, and was before SciPy 1.18

_lock = threading.Lock()


def solvers() -> Any:
    """The module `scipy.optimize`."""
    if "scipy.optimize" not in sys.modules:
        with _lock:
            return without_collections(_imported)
    return import_module("scipy.optimize")


def _imported() -> Any:
    """The module; what was made for it is not looked at before the next collection of everything."""
    _copy_numpy()
    for name in INSIDE:
        import_module(name)
    found = import_module("scipy.optimize")
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()  # gives it to the oldest generation
    return found


def _copy_numpy() -> None:
    """Let SciPy copy from NumPy the names that are there, where it copies in the way that is known."""
    for package in COPIES:
        try:
            copying: Any = import_module(f"{package}._internal")
            copy_all = copying.clone_module
        except (ImportError, AttributeError):
            continue
        if f"{package}.numpy" not in sys.modules:
            _copy_with(copying, copy_all, f"{package}.numpy")
        return


def _copy_with(copying: Any, copy_all: Callable[..., Any], where: str) -> None:
    """Import SciPy's copy of NumPy with another function in the place of that which copies."""
    late: set[str] = set()

    def clone_module(name: str, space: dict[str, Any]) -> Any:
        if name != "numpy":
            return copy_all(name, space)
        listed = {*np.__all__, *(name for name in dir(np) if not name.startswith("_"))}
        late.update(listed - vars(np).keys())
        space.update((name, vars(np)[name]) for name in listed - late)
        return list(listed - late)

    copying.clone_module = clone_module
    try:
        copy: Any = import_module(where)
    finally:
        copying.clone_module = copy_all
    late -= vars(copy).keys()  # some it has forms of its own of

    def get_late(name: str) -> Any:
        if name in late:
            return getattr(np, name)
        raise AttributeError(f"module {where!r} has no attribute {name!r}")

    copy.__getattr__ = get_late
    copy.__all__ = sorted(late.union(copy.__all__))
