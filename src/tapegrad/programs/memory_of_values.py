"""What steps do with the memory of values: other shapes and types of it, and whether it is the same again."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["in_dtype_of", "reshaped", "same"]

Array = np.ndarray[Any, Any]


def reshaped(array: Array, shape: tuple[int, ...]) -> Array:
    """The same memory in another shape; it raises if that takes a copy, into which nobody would look."""
    view = array.reshape(shape)
    if view.base is None or (view.base is not array and view.base is not array.base):
        raise ValueError(f"an array of shape {array.shape} and strides {array.strides} has no view of shape {shape}")
    return view


def in_dtype_of(operand: Array, dtype: Any) -> Array:
    """A number in the dtype of a result; arrays as they are."""
    return operand if operand.ndim else operand.astype(dtype)


def same(a: Any, b: Any) -> bool:
    """Whether two Python values or arrays have the same bits."""
    if issubclass(type(a), (np.ndarray, np.generic)):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(type(p) is type(q) and same(p, q) for p, q in zip(a, b, strict=True))
    return bool(a == b or (a != a and b != b))
