"""``x.reshape``, which most functions of a vector begin with: the other methods take ten times as long to import."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.numpy_arrays.array import Array, as_arrays
from tapegrad.numpy_arrays.numbers import like
from tapegrad.ops.cloning import clone
from tapegrad.ops.shaping import reshape as reshape_tensor
from tapegrad.tensors.tensor import is_recording

__all__: list[str] = []


def _are_plain(lengths: tuple[int, ...], data: Any) -> bool:
    """Whether these are lengths by which NumPy and PyTorch mean the same: half of the time is saved."""
    return type(data) is not float and lengths != () and min(lengths) > 0 and math.prod(lengths) == data.size


def reshape(x: Array, *shape: Any, order: str = "C", copy: bool | None = None) -> Array:
    """The elements in another shape; a view where that is possible.

    Raises
    ------
    ValueError
        If the number of elements is another.
    """
    lengths = shape[0] if len(shape) == 1 else shape
    if x._row and not copy and is_recording():
        if order == "C" and type(lengths) is tuple and _are_plain(lengths, x._data):
            return as_arrays(reshape_tensor(x, lengths))
        return like(x, as_arrays(look_up("numpy_protocol.functions:COUNTERPARTS")["reshape"](x, lengths, order)))
    return np.reshape(as_arrays(clone(x)) if copy else x, lengths, order=order)  # type: ignore[call-overload]
