"""Values of large arrays that are stretched along rows, columns or blocks of one another, with the bits of NumPy's operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.arrays.sizes import is_one_number
from tapegrad.tape.array_kernels import ARRAY_KERNELS

__all__ = [
    "OPERATIONS",
    "combined",
    "divided_twice",
    "outer_product",
    "outer_products",
    "product_of_column_and_row",
    "scaled_sum",
    "sums_of_products",
]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
LEAST = 4 * SMALL  # elements from which on looking at the shapes takes less than is saved
SHORT, LONG = 8, 8192  # columns: NumPy goes along other dimensions where there are fewer, and where there are more it is as quick

# As `engine.stretched_operands` counts them.
OVER_COLUMNS, OVER_ROWS, OVER_BLOCKS = 1, 2, 4
OPERATIONS: dict[Any, int] = {np.add: 0, np.subtract: 1, np.multiply: 2, np.true_divide: 3}
PRODUCTS_AND_ZERO, QUOTIENTS_TWICE = 4, 5


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
    found = _runs(whole.shape, a.shape, b.shape)
    if found is None or len(found[0]) == 1 or found[0][-1] > LONG:
        return None
    return _in_runs(operation, a, b, whole.shape, *found)


def divided_twice(a: Array, b: Array) -> Array | None:
    """``a / b / b`` of large contiguous float64 arrays, in one pass; None where this is left to NumPy."""
    if not (a.dtype is b.dtype is dtypes.float64 and a.flags.c_contiguous and b.flags.c_contiguous) or a.size * b.size <= LEAST:
        return None
    shape = np.broadcast_shapes(a.shape, b.shape)
    found = _runs(shape, a.shape, b.shape)
    return None if found is None else _in_runs(QUOTIENTS_TWICE, a, b, shape, *found)


def scaled_sum(operation: int, a: Array, b: Array, c: Array, value: float) -> Array | None:
    """``a + value * (b * c)``, or with a quotient, of large contiguous float64 arrays, in one pass; None where there is none."""
    if not all(x.dtype is dtypes.float64 and x.flags.c_contiguous for x in (a, b, c)):
        return None
    shape = np.broadcast_shapes(a.shape, b.shape, c.shape)
    found = _runs(shape, a.shape, b.shape, c.shape)
    if found is None or len(found[0]) > 2 or not (found[1][1] | found[1][2]) & OVER_COLUMNS:
        return None
    lengths, extents = found
    result = large_empty(shape, dtypes.float64)
    rows, columns = (1, *lengths)[-2:]
    packed = extents[0] | extents[1] << 2 | extents[2] << 4
    ARRAY_KERNELS.scaled_sum(id(result), id(a), id(b), id(c), rows, columns, packed, float(value), operation)
    return result


def sums_of_products(a: Any, b: Array, shape: Shape) -> Array | None:
    """Products of a number that is stretched with a large array, zero if either is, summed to a shape; None where NumPy sums."""
    if type(a) is float or a.shape != b.shape or not is_one_number(a):
        return None
    if not (a.dtype is b.dtype is dtypes.float64 and b.flags.c_contiguous):
        return None
    columns = math.prod(shape)
    if len(shape) >= b.ndim or b.shape[b.ndim - len(shape) :] != shape or not SHORT < columns < b.size:
        return None
    result = np.empty(shape)
    ARRAY_KERNELS.sums_of_products(id(result), id(b), float(a[(0,) * a.ndim]), b.size // columns, columns)
    return result


def _in_runs(operation: int, a: Array, b: Array, shape: Shape, lengths: Shape, extents: Shape) -> Array:
    result = large_empty(shape, dtypes.float64)
    ARRAY_KERNELS.combine_stretched(id(result), id(a), id(b), *(1, 1, *lengths)[-3:], *extents, operation)
    return result


def _runs(shape: Shape, *shapes: Shape) -> tuple[Shape, Shape] | None:
    """The result as a run, rows of columns, or blocks of these, and along which of them operands extend; None if it is none."""
    rank = len(shape)
    lengths: list[int] = []  # of neighbouring dimensions that the same operands have
    owners: list[tuple[bool, ...]] = []
    for d, extent in enumerate(shape):
        if extent == 1:
            continue
        have = tuple([d >= rank - len(own) and own[d - rank] == extent for own in shapes])
        if owners and owners[-1] == have:
            lengths[-1] *= extent
        else:
            lengths.append(extent)
            owners.append(have)
    if not 0 < len(lengths) <= 3 or lengths[-1] <= SHORT:
        return None
    bits = (OVER_BLOCKS, OVER_ROWS, OVER_COLUMNS)[-len(lengths) :]
    extents = [sum(bit for bit, have in zip(bits, owners, strict=True) if have[k]) for k in range(len(shapes))]
    return tuple(lengths), tuple(extents)


def outer_product(a: Array, b: Array) -> Array:
    """The products of all elements of a vector with all of another, ``a[:, None] * b``."""
    if a.size * b.size > LEAST and a.dtype is b.dtype is dtypes.float64:
        found = combined(OPERATIONS[np.multiply], np.ascontiguousarray(a).reshape(-1, 1), np.ascontiguousarray(b))
        if found is not None:
            return found
    product: Array = a[:, None] * b
    return product


def product_of_column_and_row(a: Array, b: Array) -> Array | None:
    """The product of matrices whose inner size is one, as the BLAS has it; None where NumPy is to call that."""
    if not (a.dtype is b.dtype is dtypes.float64) or a.size * b.size <= LEAST:
        return None
    return combined(PRODUCTS_AND_ZERO, np.ascontiguousarray(a), np.ascontiguousarray(b))


def outer_products(a: Array, b: Array) -> Array | None:
    """Products of columns and rows in batches, with the BLAS's zeros, which are sums; None where NumPy is to call it for each."""
    if not (a.ndim > 2 < b.ndim and a.shape[-1] == b.shape[-2] == 1 and a.dtype is b.dtype is dtypes.float64):
        return None
    shape = np.broadcast_shapes(a.shape, b.shape)
    result = np.multiply(a, b, out=large_empty(shape, dtypes.float64))
    result += 0.0
    return result
