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

    Attributes
    ----------
    place : int
        Of what `take_inputs` of the engine is to know about them.
    only : callable or None
        `MachineCode.only` of the code.
    """

    __slots__ = ("_expected", "_run", "only", "place")

    def __init__(self, code: Any, kinds: Sequence[tuple[Any, ...]]) -> None:
        words = [len(kinds)]
        for (kind, shape, dtype), (place, count) in zip(kinds, code.places(), strict=True):
            lengths = shape or ()
            words += [id(kind), 0 if shape is None else id(dtype), place, count, len(lengths), *lengths]
        self._expected = np.array(words, np.int64)
        self.place, self._run, self.only = self._expected.ctypes.data, code.run, code.only()

    def gradient(self, given: tuple[Any, ...]) -> tuple[float, list[Any]] | None:
        """Value and gradient; None if an input is of another kind, or the function would go another way."""
        return self._run() if TAPE.take_inputs(self.place, id(given)) else None
