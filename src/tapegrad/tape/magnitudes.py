"""Whether numbers are of a size that what is computed with them stands in the range of their type."""

from __future__ import annotations

import math
import sys
from types import ModuleType
from typing import Any

import numpy as np

from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tape.tape import TAPE

__all__ = ["are_finite_and_not_zero", "are_normal", "have_magnitudes", "have_normal_reciprocals"]

FLOAT64 = np.dtype(np.float64)
LEAST, SMALLEST, MOST = math.ulp(0.0), sys.float_info.min, sys.float_info.max


def have_magnitudes(x: Any, least: float, most: float) -> bool:
    """Whether each magnitude is in a range; nan is in none. `x` is a float or an array."""
    if type(x) is np.ndarray:
        if x.dtype is FLOAT64 and x.flags.c_contiguous and not isinstance(TAPE.kernels, ModuleType):
            return bool(ARRAY_KERNELS.have_magnitudes(id(x), least, most))
        if not x.size:
            return True
        sizes = np.abs(x)
        return least <= float(sizes.min()) and float(sizes.max()) <= most
    return bool(least <= abs(x) <= most)


def are_finite_and_not_zero(x: Any) -> bool:
    """Whether each number is neither zero nor infinite nor nan."""
    return have_magnitudes(x, LEAST, MOST)


def are_normal(x: Any) -> bool:
    """Whether each number is besides none of those that are so small that they have fewer digits."""
    return have_magnitudes(x, *_ends(x))


def have_normal_reciprocals(x: Any) -> bool:
    """Whether that is so of the reciprocal of each number as well."""
    least, _ = _ends(x)
    return have_magnitudes(x, least, 1.0 / least)


def _ends(x: Any) -> tuple[float, float]:
    """The least and the largest number of a type that has all its digits."""
    if type(x) is np.ndarray and x.dtype is not FLOAT64:
        limits = np.finfo(x.dtype)
        return float(limits.tiny), float(limits.max)
    return SMALLEST, MOST
