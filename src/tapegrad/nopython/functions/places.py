"""Places of elements and truth values of arrays: Numba's own functions, of the primals. Their results are constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.tape.row_writing import primals

__all__ = ["PLACES", "nonzero"]


def nonzero(tape, a):
    raise NotImplementedError


@overload(nonzero, complex_too=True)
def _nonzero(tape, a):
    return lambda tape, a: np.nonzero(primals(a))


def _close(function: Any) -> Any:
    def call(tape, a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
        raise NotImplementedError

    @overload(call)
    def define(tape, a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
        return lambda tape, a, b, rtol=1e-05, atol=1e-08, equal_nan=False: function(
            primals(a), primals(b), primals(rtol), primals(atol), equal_nan
        )

    return call


PLACES: dict[Any, Any] = {np.nonzero: nonzero, np.isclose: _close(np.isclose), np.allclose: _close(np.allclose)}
