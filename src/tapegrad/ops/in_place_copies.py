"""In-place forms of functions that return a copy: compute it, then write it into the tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.arrays import dtypes
from tapegrad.ops.overwriting import check_writable, fit, overwrite, take_row
from tapegrad.tensors.tensor import Tensor

__all__ = ["writes"]


def writes(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """In-place form of a function of a tensor.

    The function must not need the values that are overwritten for its derivative.
    """

    def write(t: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        result = function(t, *args, **kwargs)
        tracked = result._row != 0
        z = result._data
        z = fit(t, z, dtypes.float64 if type(z) is float else z.dtype)
        check_writable(t, tracked)
        return overwrite(t, z, (lambda: take_row(result)) if tracked else None)

    write.__name__ = write.__qualname__ = name
    write.__doc__ = f"In-place form of `Tensor.{name[:-1]}`: writes into the tensor and returns it."
    return write
