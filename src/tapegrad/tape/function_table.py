"""Where compiled functions are that loops of rules call, NumPy's and ours: the last words of the table of kernels."""

from __future__ import annotations

import numpy as np

from tapegrad.arrays.numpy_api import inner_loop
from tapegrad.engine.layout import FUNCTIONS_READY
from tapegrad.kernels.opcodes import FUNCTIONS, OWN_LOOPS

__all__ = ["WORDS", "functions_in", "replace"]

NAMES = [*FUNCTIONS, *OWN_LOOPS]
WORDS = 2 * len(NAMES)  # of each its address and its data's


def functions_in(table: np.ndarray) -> int:
    """Address of their words, which are written when it is first asked for; 0 if one of them is not as it is known."""
    if not table[FUNCTIONS_READY]:
        words = [word for name in FUNCTIONS for word in inner_loop(getattr(np, name))]
        first = len(table) - WORDS
        table[first : first + len(words)], table[FUNCTIONS_READY] = words, int(all(words[::2]))
    return int(table.__array_interface__["data"][0]) + 8 * (len(table) - WORDS) if table[FUNCTIONS_READY] else 0


def replace(table: np.ndarray, name: str, loop: tuple[int, int]) -> None:
    """Have a function by another loop."""
    if name in NAMES and functions_in(table):
        at = len(table) - WORDS + 2 * NAMES.index(name)
        # Another thread may read while this writes: its last argument means nothing to the loop that was there.
        address, data = loop
        table[at + 1] = data
        table[at] = address
