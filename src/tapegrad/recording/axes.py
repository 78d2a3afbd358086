"""Dimensions as callers name them, as axes, and what lies around an axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.errors import ShapeError

__all__ = ["around", "axes", "axes_in_order", "axis"]


def axis(dim: Any, ndim: int) -> int:
    """A dimension as a non-negative axis.

    Raises
    ------
    IndexError
        If it is out of range; `numpy.exceptions.AxisError`, which users of NumPy catch as a ValueError as well.
    TypeError
        If it is not an integer.
    """
    if type(dim) is int and -ndim <= dim < ndim:  # a third of the time
        return dim if dim >= 0 else dim + ndim
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"dim must be an int, but got {type(dim).__name__} {dim!r}")
    number = dim.__index__()
    bound = max(ndim, 1)
    if not -bound <= number < bound:
        text = f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {number})"
        raise np.exceptions.AxisError(text)
    return int(number) % bound


def axes(dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions as sorted non-negative axes; None and () are all of them.

    Raises
    ------
    IndexError
        If one is out of range.
    RuntimeError
        If one appears twice.
    """
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, (tuple, list)):
        return tuple(sorted(axes_in_order(dim, ndim))) if dim else tuple(range(ndim))
    return (axis(dim, ndim),)


def axes_in_order(dims: tuple[Any, ...] | list[Any], ndim: int) -> tuple[int, ...]:
    """Dimensions as non-negative axes, in the order that is given.

    Raises
    ------
    IndexError
        If one is out of range.
    RuntimeError
        If one appears twice.
    """
    found = [axis(d, ndim) for d in dims]
    for d in found:
        if found.count(d) > 1:
            raise ShapeError(f"dim {d} appears multiple times in the list of dims")
    return tuple(found)


def around(shape: tuple[int, ...], position: int) -> tuple[int, int, int]:
    """Elements before, along and behind an axis."""
    return math.prod(shape[:position]), shape[position], math.prod(shape[position + 1 :])
