"""Change of dtype as a differentiable operation, and the dtype that several operands share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.arrays.dtypes import as_dtype, promote_types
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.recording.structural import Structural, apply
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import Tensor, array_of
from tapegrad.tensors.tracers import computed

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["cast", "common_dtype", "in_dtype"]

# The engine casts a cotangent to the dtype of its input, so the derivative of a cast is the identity.
_CAST = Structural("ToCopyBackward0", ((),), lambda g, ctx: (g,))


def cast(x: Tensor, dtype: DTypeLike) -> Tensor:
    """`x` with another dtype; `x` itself if it has that dtype already."""
    data = array_of(x)
    wanted = as_dtype(dtype)
    if data.dtype == wanted:
        return x
    if wanted.kind != "f" and untracked_values.decisions_in_use:
        untracked_values.compared(x)
    with quiet():  # beyond float32 is inf, as in PyTorch
        converted = data.astype(wanted)
    found = apply(_CAST, (x,), converted)
    return computed(in_dtype, (x, wanted), {}, found) if TAPE.tracers and not x._row else found


def in_dtype(values: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Values that have no row in another dtype."""
    return np.asarray(values).astype(dtype)


def common_dtype(arrays: Sequence[np.ndarray[Any, Any]]) -> np.dtype[Any]:
    """The dtype that arrays are promoted to when they are joined."""
    return reduce(promote_types, (array.dtype for array in arrays))
