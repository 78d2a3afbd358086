"""What names of ``autograd.numpy`` and its modules mean where this room has nothing of its own: `tapegrad.numpy`'s, or SciPy's."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

import tapegrad.numpy as tnp
from tapegrad.as_autograd.tracing import getval

__all__ = ["fft_name", "linalg_name", "numpy_name", "random_name", "scipy_name"]


def numpy_name(name: str, module: str) -> Any:
    """What NumPy has under a name."""
    if name == "__all__":
        return public(tnp)
    found: Any = getattr(tnp, name)
    is_kind = isinstance(found, type) and issubclass(found, np.integer) and found not in _OTHERS
    return _integers(found) if is_kind else found


_OTHERS = (np.integer, np.signedinteger, np.unsignedinteger, np.timedelta64)  # of which there are no numbers, or no integers


class _Integers(type):
    """What asks for the type of integers that a class stands for gets the answers of that one."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.__mro__[1])

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, cls.__mro__[1])

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.__mro__[1]

    def __hash__(cls) -> int:
        return hash(cls.__mro__[1])


@functools.cache
def _integers(kind: type) -> type:
    """A type of integers that is called with what is differentiated as well: a step, whose value is a constant."""

    def new(cls: type, value: Any = 0, *args: Any) -> Any:
        return kind(getval(value), *args)

    return _Integers(kind.__name__, (kind,), {"__new__": new, "__module__": kind.__module__})


def fft_name(name: str, module: str) -> Any:
    """What `numpy.fft` has under a name."""
    return public(tnp.fft) if name == "__all__" else getattr(tnp.fft, name)


def linalg_name(name: str, module: str) -> Any:
    """What `numpy.linalg` has under a name."""
    return public(tnp.linalg) if name == "__all__" else getattr(tnp.linalg, name)


def random_name(name: str, module: str) -> Any:
    """What `numpy.random` has under a name: random numbers are constants."""
    return public(np.random) if name == "__all__" else getattr(np.random, name)


def scipy_name(name: str, module: str) -> Any:
    """What a module of SciPy, or a distribution of `scipy.stats`, has under a name: what it takes cannot be differentiated by."""
    package, _, inner = module.removeprefix("autograd.").partition(".stats.")
    found = importlib.import_module(f"{package}.stats" if inner else package)
    found = getattr(found, inner) if inner else found
    return public(found) if name == "__all__" else getattr(found, name)


def public(module: Any) -> list[str]:
    """Names that ``from module import *`` takes."""
    return [name for name in dir(module) if not name.startswith("_")]
