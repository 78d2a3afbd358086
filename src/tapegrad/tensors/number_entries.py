"""Arrays whose elements are read as numbers of their own, as NumPy's are, and not as views.

Functions that drivers differentiate are written for arrays: ``x[0] * x[1]`` means numbers there. A view has to share memory, so it
is an array of no dimension, on which an operation takes ten times as long as on a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Meta, Tensor, is_recording, make, retry

__all__ = ["NumberEntries", "entry"]

_ADDRESS = TAPE.address
_FLOAT64 = np.dtype(np.float64)
_number: int = TAPE.name_number("SelectBackward0")


class NumberEntries(Meta):
    """Meta of a float64 array whose single elements are numbers."""

    __slots__ = ()


def entry(x: Tensor, key: Any) -> Tensor:
    """One element, recorded.

    Parameters
    ----------
    x : Tensor
        Of float64, C-contiguous.
    key : int or tuple of int
        Within bounds, one for each dimension.
    """
    data = x._data
    value = data.item(key)
    if not x._row or not is_recording():
        return make(value, 0)
    taken = data[key, ...] if type(key) is int else data[(*key, ...)]
    row = TAPE.view_row(_ADDRESS, _number, x._row, id(data), id(data), id(taken), id(value))
    if row <= 0:
        row = retry(lambda: TAPE.view_row(_ADDRESS, _number, x._row, id(data), id(data), id(taken), id(value)), (x,))
    return make(value, row)
