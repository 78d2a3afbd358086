"""The compiled functions that work on linear tapes, and what these need of the engine."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tapegrad.kernels.entries import KERNEL_WORDS
from tapegrad.tape.tape import TAPE

__all__ = ["ONE", "entry_of", "load_needed", "second_words"]

ONE = np.ones(1)  # the weight of the one result
NEEDED = ("partial_block", "gather_block", "scalar_partials")  # kernels of the engine that evaluate partials


@functools.cache
def _module() -> Any:
    """What holds the sweeps: a built engine has them, else they are compiled apart from the rest."""
    TAPE.load()
    if hasattr(TAPE.kernels, "linearise"):
        return TAPE.kernels
    from tapegrad.kernels import kernel_files

    return kernel_files.load_linear()


@functools.cache
def entry_of(name: str) -> Any:
    """A compiled function that works on linear tapes, by name."""
    return getattr(_module(), name).get()


@functools.cache
def second_words() -> tuple[int, int, int]:
    """Addresses of the table of second partials and of the kernels that evaluate them."""
    return _module().second_partials.ctypes.data, entry_of("second_scalar"), entry_of("second_block")


@functools.cache
def load_needed() -> None:
    """Load the kernels of the engine that evaluate partials."""
    for name in NEEDED:
        TAPE.kernel_table[KERNEL_WORDS[name]] = getattr(TAPE.kernels, name).get()
