"""Products with large matrices of NumPy's, of which an operation keeps a copy: made block by block, while a block is in the cache.

Whoever has the matrix may write into it before the derivative is taken. To copy all of it and multiply the copy then takes it from
memory twice.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.arrays.memory_pool import large_empty
from tapegrad.linalg.blas import function_of_library
from tapegrad.ops.products import BY_RANKS
from tapegrad.recording.structural import apply
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, is_recording, make

__all__ = ["WORTH_BLOCKS", "product_with_copy"]

WORTH_BLOCKS = 1 << 23  # bytes of a matrix from which its copy leaves the caches before it is read
BLOCK = 1 << 18  # bytes, of which the caches of a core hold several
ROWS = 64  # of which a block has a multiple: BLAS takes some at once, and what is left at the end in another order
FLOAT64 = np.dtype(np.float64)


def product_with_copy(x: np.ndarray[Any, Any], y: Tensor) -> Tensor | None:
    """``x @ y`` for a tracked vector; None, with nothing done, where it is not made in blocks.

    Its elements have the bits of the whole product, since each is the sum over one row, as long as BLAS does not divide the rows
    among threads at other places.

    Parameters
    ----------
    x : ndarray, shape (n, k)
        Copied.
    y : Tensor, shape (k,)
    """
    b = y._data
    if not y._row or x.ndim != 2 or x.nbytes < WORTH_BLOCKS or type(b) is not np.ndarray or b.ndim != 1 or not is_recording():
        return None
    n, k = x.shape
    rows = max(BLOCK // (8 * k) // ROWS, 1) * ROWS
    if n < 2 * rows or len(b) != k or not x.dtype == b.dtype == FLOAT64 or not x.flags.c_contiguous or not b.flags.c_contiguous:
        return None
    if TAPE.tracers or _threads() != 1:
        return None
    kept, result = large_empty(x.shape, FLOAT64), large_empty((n,), FLOAT64)
    ends = [*range(rows, n - rows + 1, rows), n]
    token = enter(IGNORING)
    try:
        first = 0
        for end in ends:
            block = kept[first:end]
            block[...] = x[first:end]
            np.dot(block, b, out=result[first:end])
            first = end
    finally:
        leave(token)
    return apply(BY_RANKS[2][1], (make(kept, 0), y), result)


def _threads() -> int:
    """How many threads BLAS takes for a product; 0 where it does not say."""
    function = function_of_library("openblas_get_num_threads", "scipy_{}64_ {}64_ scipy_{} {}")
    return 0 if function is None else ctypes.c_int(function()).value
