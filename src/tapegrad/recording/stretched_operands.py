"""Values of large arrays that are stretched along rows or columns of one another, with the bits of NumPy's operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.tape.array_kernels import ARRAY_KERNELS

__all__ = ["OPERATIONS", "combined", "outer_product", "outer_products"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
LEAST = 4 * SMALL  # elements from which on looking at the shapes takes less than is saved
SHORT, LONG = 8, 8192  # columns: NumPy goes along other dimensions where there are fewer, and where there are more it is as quick

# As `engine.stretched_operands` counts them.
OVER_COLUMNS, OVER_ROWS = 1, 2
OPERATIONS: dict[Any, int] = {np.add: 0, np.subtract: 1, np.multiply: 2, np.true_divide: 3}


def combined(operation: int, a: Array, b: Array) -> Array | None:
    """The value of one of `OPERATIONS` for float64 arrays of different shapes; None where this is left to NumPy.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.
    """
    if a.size * b.size <= LEAST:
        return None
    whole = np.broadcast(a, b)
    if whole.size <= LEAST or not (a.flags.c_contiguous and b.flags.c_contiguous):
        return None
    shape = whole.shape
    found = _rows_and_columns(shape, (1,) * (len(shape) - a.ndim) + a.shape, (1,) * (len(shape) - b.ndim) + b.shape)
    if found is None:
        return None
    result = large_empty(shape, dtypes.float64)
    ARRAY_KERNELS.combine_stretched(id(result), id(a), id(b), *found, operation)
    return result


def _rows_and_columns(shape: Shape, own: Shape, other: Shape) -> tuple[int, int, int, int] | None:
    """The result as a matrix, and along what of it either operand has elements of its own; None if it is no such matrix."""
    groups: list[list[Any]] = []  # neighbouring dimensions that the same operands have: elements, and which operands
    for extent, *lengths in zip(shape, own, other, strict=True):
        if extent == 1:
            continue
        have = tuple([length == extent for length in lengths])
        if groups and groups[-1][1] == have:
            groups[-1][0] *= extent
        else:
            groups.append([extent, have])
    if len(groups) != 2 or not SHORT < groups[1][0] <= LONG:
        return None
    (rows, over_rows), (columns, over_columns) = groups
    extents = [OVER_ROWS * down + OVER_COLUMNS * along for down, along in zip(over_rows, over_columns, strict=True)]
    return rows, columns, extents[0], extents[1]


def outer_product(a: Array, b: Array) -> Array:
    """The products of all elements of a vector with all of another, ``a[:, None] * b``."""
    if a.size * b.size > LEAST and a.dtype is b.dtype is dtypes.float64:
        found = combined(OPERATIONS[np.multiply], np.ascontiguousarray(a).reshape(-1, 1), np.ascontiguousarray(b))
        if found is not None:
            return found
    product: Array = a[:, None] * b
    return product


def outer_products(a: Array, b: Array) -> Array | None:
    """Products of columns and rows in batches, with the BLAS's zeros, which are sums; None where NumPy is to call it for each."""
    if not (a.ndim > 2 < b.ndim and a.shape[-1] == b.shape[-2] == 1 and a.dtype is b.dtype is dtypes.float64):
        return None
    shape = np.broadcast_shapes(a.shape, b.shape)
    result = np.multiply(a, b, out=large_empty(shape, dtypes.float64))
    result += 0.0
    return result
