"""Calls like the latest one, with few steps of Python: compiled code looks at the arguments and reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.tape.tape import TAPE

__all__ = ["QuickCall"]


class QuickCall:
    """Machine code of a path, for arguments of certain kinds.

    Parameters
    ----------
    code : MachineCode
        Before which nothing is computed.
    kinds : sequence of (type, shape or None, dtype or None)
        Of the inputs: floats, and arrays.
    """

    __slots__ = ("_expected", "_place", "_run")

    def __init__(self, code: Any, kinds: Sequence[tuple[Any, ...]]) -> None:
        words = [len(kinds)]
        for (kind, shape, dtype), (place, count) in zip(kinds, code.places(), strict=True):
            lengths = shape or ()
            words += [id(kind), 0 if shape is None else id(dtype), place, count, len(lengths), *lengths]
        self._expected = np.array(words, np.int64)
        self._place, self._run = self._expected.ctypes.data, code.run

    def gradient(self, given: tuple[Any, ...]) -> tuple[float, list[Any]] | None:
        """Value and gradient; None if an input is of another kind, or the function would go another way."""
        return self._run() if TAPE.take_inputs(self._place, id(given)) else None
