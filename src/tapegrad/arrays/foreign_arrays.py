"""Arrays that come from outside: plain ones of a dtype that tensors can have, or a clear refusal."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import as_dtype

__all__ = ["masked_elements", "plain_array"]


def masked_elements(array: np.ndarray[Any, Any] | np.generic) -> int:
    """How many elements are masked. NumPy imports its masked arrays when they are first asked for, which takes 8 ms."""
    if type(array) is np.ndarray or isinstance(array, np.generic) or not isinstance(array, np.ma.MaskedArray):
        return 0
    return int(np.count_nonzero(np.ma.getmaskarray(array)))


def plain_array(array: np.ndarray[Any, Any] | np.generic) -> np.ndarray[Any, Any]:
    """An array, of whatever subclass, or a NumPy scalar as a plain array on the same memory.

    Raises
    ------
    TypeError
        If tensors cannot have its dtype, or elements of it are masked: a tensor has no place for a mask, and what lies under one
        is not a value.
    """
    masked = masked_elements(array)
    if masked:
        raise TypeError(
            f"can't convert a masked array with {masked} masked elements of {array.size}: a tensor has no mask; "
            "give them values first, for example with .filled(0.0)"
        )
    try:
        as_dtype(array.dtype)
    except TypeError as unsupported:
        raise TypeError(f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}: {unsupported}") from None
    return np.asarray(array)
