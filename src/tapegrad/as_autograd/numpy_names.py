"""What names of ``autograd.numpy`` and its modules mean where this room has nothing of its own: `tapegrad.numpy`'s, or SciPy's."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

import tapegrad.numpy as tnp

__all__ = ["fft_name", "linalg_name", "numpy_name", "random_name", "scipy_name"]


def numpy_name(name: str, module: str) -> Any:
    """What NumPy has under a name."""
    return public(tnp) if name == "__all__" else getattr(tnp, name)


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
