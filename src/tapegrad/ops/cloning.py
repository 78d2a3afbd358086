"""Copies that are recorded, and the tensor itself."""

from __future__ import annotations

import numpy as np

from tapegrad.recording.strided_maps import reshape_copy
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["clone", "positive"]


def clone(t: Tensor) -> Tensor:
    """A copy that is recorded.

    Raises
    ------
    TypeError
        If `t` is not a tensor.
    """
    if not isinstance(t, Tensor):
        raise TypeError(f"clone(): argument 'input' (position 1) must be Tensor, not {type(t).__name__}")
    data = t._data
    if type(data) is float:
        return reshape_copy(t, "CloneBackward0", np.array(data))
    return reshape_copy(t, "CloneBackward0", data.copy())


def positive(x: Tensor) -> Tensor:
    """The tensor itself.

    Raises
    ------
    RuntimeError
        If it is of bools.

    Examples
    --------
    >>> tg.positive(tg.tensor([-1.0, 2.0]))
    tensor([-1.,  2.])
    """
    if array_of(x).dtype == np.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return x
