"""The largest and the smallest element, and the distance between them: elements that tie share the derivative evenly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from tapegrad.nopython.functions.allocation import asarray
from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.tape.array_rows import extent_row, extreme_row
from tapegrad.nopython.tape.row_writing import primals, with_row
from tapegrad.nopython.types.variable import REAL, Variable, has_variables

__all__ = ["EXTREMES", "EXTREME_METHODS"]


def _extreme(function: Callable[..., Any], method: str = "") -> Any:
    """A function, or the method of arrays that does the same; other types may have a method of that name too."""

    def call(tape, a):
        raise NotImplementedError

    @overload(call)
    def define(tape, a):
        if method and not isinstance(a, types.Array):
            return (lambda tape, a: a.max()) if method == "max" else (lambda tape, a: a.min())
        if not has_variables(a):
            return lambda tape, a: function(a)
        if isinstance(a, Variable):
            return lambda tape, a: a
        if not isinstance(a, types.Array):
            return lambda tape, a: call(tape, asarray(a))

        def impl(tape, a):
            z = function(primals(a))
            return with_row(z, extreme_row(tape, a, z))

        return impl

    return call


def ptp(tape, a):
    raise NotImplementedError


@overload(ptp)
def _ptp(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.ptp(a)
    if isinstance(a, (Variable, *REAL)) or not isinstance(a, types.Array):
        return lambda tape, a: ptp(tape, asarray(a))

    return lambda tape, a: with_row(np.ptp(primals(a)), extent_row(tape, a))


EXTREMES: dict[Any, Any] = {
    np.max: _extreme(np.max), np.min: _extreme(np.min), np.amax: _extreme(np.amax), np.amin: _extreme(np.amin),
    np.nanmax: _extreme(np.nanmax), np.nanmin: _extreme(np.nanmin), np.ptp: ptp,
}  # fmt: skip
EXTREME_METHODS: dict[str, Any] = {"max": _extreme(np.max, "max"), "min": _extreme(np.min, "min")}
