"""The cotangent of the matrix of linear equations, by their solution and the cotangent of their right side."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.ops.namespaces import TENSORS
from tapegrad.ops.products import product
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor

__all__ = ["large_cotangent", "matrix_cotangent", "triangle_cotangent"]

Array = np.ndarray[Any, Any]


def matrix_cotangent(b_bar: Tensor, x: Tensor, left: bool = True, on: Any = TENSORS) -> Tensor:
    """``-b_bar @ x.mT``, or for a matrix on the right ``-x.mT @ b_bar``.

    An inverse is the solution for the unit matrix.
    """
    return -on.matmul(b_bar, on.mT(x)) if left else -on.matmul(on.mT(x), b_bar)


def triangle_cotangent(b_bar: Tensor, x: Tensor, upper: bool, left: bool, unit: bool, on: Any = TENSORS) -> Tensor:
    """The same of a triangular matrix, with zeros where it is not read."""
    found: Tensor = on.triangle(on.matrix_cotangent(b_bar, x, left), upper, unit)
    return found


def large_cotangent(b_bar: Array, x: Array, left: bool, upper: bool = True, diagonal: int | None = None) -> Array | None:
    """Either of them for large arrays of float64, in one pass over the product; None for others.

    Parameters
    ----------
    b_bar, x : ndarray, shape (..., n, k) or (..., k, n)
    left : bool
        On which side the matrix stands.
    upper : bool
        Which triangle is wanted: what is on and above a diagonal, or on and below it.
    diagonal : int, optional
        Which diagonal that is; without it, the whole matrix is wanted.
    """
    columns, rows = (b_bar, x.swapaxes(-1, -2)) if left else (x.swapaxes(-1, -2), b_bar)
    n, m = columns.shape[-2], rows.shape[-1]
    if columns.size * m <= SMALL * columns.shape[-1] or not (b_bar.dtype is dtypes.float64 is x.dtype):
        return None
    part = n, m, -n if diagonal is None else diagonal, int(upper)
    if columns.ndim > 2 and columns.shape[-1] == 1 and columns.shape[:-2] == rows.shape[:-2]:
        columns, rows = np.ascontiguousarray(columns), np.ascontiguousarray(rows)
        found: Array = large_empty((*columns.shape[:-1], m), dtypes.float64)
        ARRAY_KERNELS.negative_products(id(found), id(columns), id(rows), *part)
        return found
    found = product(columns, rows)
    if not found.flags.c_contiguous:
        return None
    ARRAY_KERNELS.negate_triangles(id(found), *part)
    return found
