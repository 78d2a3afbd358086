"""Products with a Jacobian at inputs that a call had, by machine code, long after the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.drivers.derivatives import joined
from tapegrad.programs.fused.paths import FusedMatrix

__all__ = ["KeptProducts"]


class KeptProducts:
    """Products of one kind.

    Parameters
    ----------
    trace : Trace
        The path that the call took.
    what : {"jvp", "vjp"}
    fused : FusedMatrix
        That has machine code of the product.
    values : sequence
        Of the inputs, which nobody changes.
    """

    __slots__ = ("_fused", "_trace", "_values", "_what")

    def __init__(self, trace: Any, what: str, fused: FusedMatrix, values: Sequence[Any]) -> None:
        self._trace, self._what, self._fused, self._values = trace, what, fused, values

    def __call__(self, what: str, vector: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        """The product with a vector over all inputs or outputs; None if code does not give it."""
        if what != self._what:
            return None
        given, trace = [*self._values, vector], self._trace
        if trace.is_running:  # code that somebody uses has its memory for him
            return self._taken(self._fused.another().gradient(given))
        trace.is_running = True
        try:
            return self._taken(self._fused.code.gradient(given))
        finally:
            trace.is_running = False

    def _taken(self, found: Any) -> np.ndarray[Any, Any] | None:
        if found is None:
            return None
        parts = found[1]
        return joined(parts) if self._what == "vjp" else parts[-1].reshape(-1)
