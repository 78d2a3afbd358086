"""Copies that are recorded."""

from __future__ import annotations

import numpy as np

from tapegrad.recording.strided_maps import reshape_copy
from tapegrad.tensors.tensor import Tensor

__all__ = ["clone"]


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
