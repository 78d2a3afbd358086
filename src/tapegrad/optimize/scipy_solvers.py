"""SciPy's solvers, imported when they are first asked for, from the inside outwards.

CPython keeps the frames of calls in pieces of 16 kB, and each call that goes over the end of one asks the system for another.
Modules that import modules come to such an end in the middle of what calls functions by the thousand: ``import scipy.optimize``
by itself asked for 700 to 3,300 pieces, by the depth of the call that it stood in, and took up to 20 of 400 ms for that. With what
lies innermost imported before it asks for one.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

__all__ = ["solvers"]

INSIDE = ("numpy.ma", "scipy.special", "scipy.linalg", "scipy.sparse")  # all of which `scipy.optimize` imports


def solvers() -> Any:
    """The module `scipy.optimize`."""
    if "scipy.optimize" not in sys.modules:
        for name in INSIDE:
            import_module(name)
    return import_module("scipy.optimize")
