"""`numpy.polynomial` for coefficients and points that are differentiated.

NumPy's own functions and classes are written in Python with NumPy's public functions. Here the same code runs with this namespace
in place of `numpy`, so values are NumPy's and nothing is written again.
"""

from __future__ import annotations

import builtins
import functools
import importlib.util
import types
from collections.abc import Mapping, Sequence
from typing import Any

from tapegrad.numpy.namespaces import namespace

__all__ = ["CLASSES"]

PACKAGE = "numpy.polynomial"
# Classes of the package, and the modules that define them.
CLASSES = {
    "Polynomial": "polynomial", "Chebyshev": "chebyshev", "Legendre": "legendre", "Laguerre": "laguerre", "Hermite": "hermite",
    "HermiteE": "hermite_e",
}  # fmt: skip
MODULES = frozenset([*CLASSES.values(), "polyutils"])


def _imported(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    """What an import in one of these modules gives: neighbours are of the same kind."""
    if not level:
        return builtins.__import__(name, globals, locals, fromlist or (), level)
    return bound(name) if name else types.SimpleNamespace(**{part: bound(part) for part in fromlist or ()})


@functools.cache
def bound(name: str) -> types.ModuleType:
    """A module of the package with this namespace in place of `numpy`."""
    full = f"{PACKAGE}.{name}"
    spec = importlib.util.find_spec(full)
    assert spec is not None
    loader: Any = spec.loader
    made = types.ModuleType(full)
    made.__dict__.update(__builtins__={**vars(builtins), "__import__": _imported}, __package__=PACKAGE, __file__=spec.origin)
    exec(loader.get_code(full), made.__dict__)
    # Functions that ask their operands for another implementation have found it here.
    made.__dict__.update({own: getattr(value, "_implementation", value) for own, value in vars(made).items()})
    made.__dict__["np"] = namespace("numpy")  # only now: what a module makes when it is loaded are constants of NumPy's
    return made


def __getattr__(name: str) -> Any:
    if name in CLASSES:
        return getattr(bound(CLASSES[name]), name)
    if name in MODULES:
        return bound(name)
    return getattr(importlib.import_module(PACKAGE), name)
