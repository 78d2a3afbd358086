"""Running sums and products, in the order in which Numba computes them; those of variables are recorded as the user's would be."""

from __future__ import annotations

import numpy as np
from numba.core.errors import TypingError

from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.numba_interface.optional_arguments import left_away
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.variable import has_variables

__all__ = ["cumprod", "cumsum"]


@part
def sums(a):
    totals = np.full(a.size + 1, 0.0, a.dtype)
    items = a.ravel()
    for k in range(items.size):
        totals[k + 1] = totals[k] + items[k]
    return totals[1:]


@part
def products(a):
    totals = np.full(a.size + 1, 1.0, a.dtype)
    items = a.ravel()
    for k in range(items.size):
        totals[k + 1] = totals[k] * items[k]
    return totals[1:]


def cumsum(tape, a, axis=None, dtype=None):
    raise NotImplementedError


@overload(cumsum)
def _cumsum(tape, a, axis=None, dtype=None):
    if not has_variables(a):
        if left_away(dtype):  # an integer or a truth value has an integer sum
            if left_away(axis):
                return lambda tape, a, axis=None, dtype=None: np.cumsum(a)
            return lambda tape, a, axis=None, dtype=None: np.cumsum(a, axis)
        return lambda tape, a, axis=None, dtype=None: np.cumsum(a, axis, dtype)
    if not left_away(axis) or not left_away(dtype):
        raise TypingError("[tapegrad] np.cumsum of variables takes no axis and no dtype; call it once for each row")
    recording = twin(sums)
    return lambda tape, a, axis=None, dtype=None: recording(tape, a)


def cumprod(tape, a):
    raise NotImplementedError


@overload(cumprod)
def _cumprod(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.cumprod(a)
    recording = twin(products)
    return lambda tape, a: recording(tape, a)
