"""Losses of differences between two arrays, and the slopes of such losses: one pass in the place of one for each function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.ops.namespaces import TENSORS
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, make

__all__ = ["HUBER", "SMOOTH", "SQUARE", "differences_by_loop", "limited_differences", "losses_by_loop"]

Array = np.ndarray[Any, Any]
Cotangents = Sequence[Tensor | None]
FLOAT64 = np.dtype(np.float64)
SQUARE, SMOOTH, HUBER = range(3)  # as the kernel numbers them


def _are_alike(x: Any, y: Any) -> bool:
    """Whether these are contiguous float64 arrays of one shape."""
    if type(x) is not np.ndarray or type(y) is not np.ndarray or x.dtype is not FLOAT64 or y.dtype is not FLOAT64:
        return False
    return x.ndim > 0 and x.shape == y.shape and x.flags.c_contiguous and y.flags.c_contiguous


@lru_cache(maxsize=256)
def _words(*numbers: float) -> Array:
    """Numbers as compiled code reads them."""
    return np.array(numbers, np.float64)


def losses_by_loop(x: Any, y: Any, kind: int, parameter: float | None) -> Array | None:
    """Losses of ``x - y``; None if NumPy is to compute them."""
    if not _are_alike(x, y):
        return None
    empty, number = np.empty if x.size <= SMALL else large_empty, _words(0.0 if parameter is None else parameter)
    z: Array = empty(x.shape, FLOAT64)
    ARRAY_KERNELS.residual_losses(id(z), id(x), id(y), id(number), kind)
    return z


def limited_differences(
    g: Tensor, x: Tensor, y: Tensor, divisor: float, bound: float, factor: float, needs: Sequence[bool], on: Any = TENSORS
) -> Cotangents:
    """Cotangents of two operands of a loss of ``x - y`` whose slope is ``(x - y) / divisor`` between two bounds, times a factor.

    Parameters
    ----------
    g : Tensor
        Cotangent of the losses.
    bound : float
        Of the slope's size.
    needs : sequence of bool
        Which of the two are wanted.
    """
    slopes = x - y
    if divisor != 1.0:
        slopes = slopes / divisor
    if bound != math.inf:
        slopes = slopes.clamp(-bound, bound)
    change = slopes * (g * factor)  # numbers first: g mostly is one
    return (
        on.sum_to(change, x.shape) if needs[0] else None,
        on.sum_to(-change, y.shape) if needs[1] else None,
    )


def differences_by_loop(
    g: Tensor, x: Tensor, y: Tensor, divisor: float, bound: float, factor: float, needs: Sequence[bool]
) -> Cotangents | None:
    """The same in one pass; None if operations are to compute it."""
    a, b, adjoint = x._data, y._data, g._data
    if not _are_alike(a, b):
        return None
    if type(adjoint) is float:
        adjoint = np.array(adjoint)
    is_number = not any(adjoint.strides)
    if adjoint.dtype is not FLOAT64 or (not is_number and (adjoint.shape != a.shape or not adjoint.flags.c_contiguous)):
        return None
    numbers, empty = _words(divisor, -bound, bound, factor), np.empty if a.size <= SMALL else large_empty
    first = empty(a.shape, FLOAT64) if needs[0] else None
    second = empty(a.shape, FLOAT64) if needs[1] else None
    at = 0 if first is None else id(first), 0 if second is None else id(second)
    ARRAY_KERNELS.limited_differences(*at, id(a), id(b), id(adjoint), id(numbers), 0 if is_number else 1)
    return None if first is None else make(first, 0), None if second is None else make(second, 0)
