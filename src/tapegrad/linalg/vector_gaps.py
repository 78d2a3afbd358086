"""How fast vectors of a decomposition turn into each other: quotients by differences of their values.

Where two values are equal these are inf or nan, as in PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.namespaces import TENSORS
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, make, wrap

__all__ = ["TIES", "between_eigenvectors", "between_singular_vectors", "by_loop", "with_ties"]

TIES = 4  # roundings of the largest value, for each row: decompositions are as far off, and so is a product that is decomposed


def between_eigenvectors(turned: Tensor, g_values: Tensor, L: Tensor, on: Any = TENSORS) -> Tensor:
    """The cotangent as eigenvectors see it: that of the eigenvalues on the diagonal, quotients by their differences off it."""
    turned = on.off_diagonal(turned / _differences(on, L))
    # Not before the division: equal eigenvalues must give nan, not the zero that a difference of equal numbers would.
    symmetric: Tensor = 0.5 * (turned + on.mT(turned)) + on.diagonal_matrix(g_values)
    return symmetric


def between_singular_vectors(left: Tensor, right: Tensor, g_values: Tensor, S: Tensor, on: Any = TENSORS) -> Tensor:
    """The same of singular values, with cotangents of the vectors on both sides."""
    gaps = _differences(on, S * S)
    # Each term by itself: equal singular values must give nan, not the zero that a difference of equal numbers would.
    turned = _skew(on, left, on.unsqueeze(S, -2), gaps) + _skew(on, right, on.unsqueeze(S, -1), gaps)
    inner: Tensor = on.off_diagonal(turned) + on.diagonal_matrix(g_values)
    return inner


def by_loop(kernel: str, values: Tensor, *cotangents: Tensor) -> Tensor | None:
    """Either of these by compiled code; None of what is not of float64, or has equal values, where signs of zeros count."""
    arrays = [np.ascontiguousarray(t._data) for t in (values, *cotangents)]
    if any(a.dtype != np.float64 for a in arrays):
        return None
    n, out = arrays[0].shape[-1], np.empty(arrays[1].shape)
    if ARRAY_KERNELS.has_equal_values(id(arrays[0]), n, 0.0):
        return None
    getattr(ARRAY_KERNELS, kernel)(id(out), *map(id, arrays), n)
    return make(out, 0)


def with_ties(values: Tensor) -> Tensor:
    """Ordered values; those that are equal up to rounding are equal, so that quotients by differences are not finite."""
    data = array_of(values)
    are_doubles = data.dtype == np.float64 and data.flags.c_contiguous
    if are_doubles and not ARRAY_KERNELS.has_equal_values(id(data), data.shape[-1], TIES * data.shape[-1] * 2.0**-52):
        return values
    bound = TIES * data.shape[-1] * np.finfo(data.dtype).eps * np.abs(data).max(-1, initial=0.0, keepdims=True)
    first = np.ones(data.shape, bool)  # of those that are equal to the one before
    first[..., 1:] = ~(np.abs(np.diff(data)) <= bound)
    if first.all():
        return values
    places = np.maximum.accumulate(np.where(first, np.arange(data.shape[-1]), 0), -1)
    # Equal to the last bit: a difference that was added would be rounded.
    return (values - wrap(data)) + wrap(np.take_along_axis(data, places, -1))


def _differences(on: Any, L: Tensor) -> Tensor:
    """``L[j] - L[i]`` off the diagonal, ones on it."""
    return on.unsqueeze(L, -2) - on.unsqueeze(L, -1) + on.identity_beside(L)


def _skew(on: Any, x: Tensor, scale: Tensor, gaps: Tensor) -> Tensor:
    return x * scale / gaps - on.mT(x) * scale / gaps
