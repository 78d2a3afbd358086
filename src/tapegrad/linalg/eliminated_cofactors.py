"""Cofactors of a matrix by the factors of its elimination, near and at singular matrices too; without derivatives.

A product with an inverse loses as many digits as the condition number has if determinant and inverse have errors of their own. If
both come from the same factors, they are those of one matrix near the given one, and so are the cofactors: these are
polynomials of the elements, so they are as accurate as exact cofactors of rounded elements are [1]_. What singular values cost
is spared.

References
----------
.. [1] G. W. Stewart, "On the adjugate matrix", Linear Algebra and its Applications 283, 1998.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.linalg.kept_factors import Factors, determinants, exchanges, inverses

__all__ = ["eliminated_cofactors", "unit_scales"]

Array = np.ndarray[Any, Any]
add_reduce: Any = np.add.reduce
multiply_reduce: Any = np.multiply.reduce

UNEVEN = 8  # binary digits by which the sizes of rows may differ: elimination chooses rows by their elements' sizes
OUTSIZE = 64  # by which the sizes of columns may differ from one
GROWTH = 64.0  # times the root of the order: by how much elements may grow in elimination; as many digits are lost
STEP = 1000  # binary digits of a factor at most
SMALLEST, LARGEST = 60, 200  # binary digits by which what is put in the place of a zero is smaller than the largest element
TOGETHER = 900  # of all of these at most, if there is room for it
NOTHING = 100  # binary digits below the other pivots' product: no cofactor, but what was put in the place of zeros


def unit_scales(data: Array) -> tuple[Array, Array]:
    """Powers of two for rows and columns that make the largest magnitude of each about one.

    Rows and columns in different units are no reason to call a matrix nearly singular.
    """
    rows = -np.frexp(np.abs(data).max(-1, initial=0.0))[1]
    columns = -np.frexp(np.abs(np.ldexp(data, rows[..., :, None])).max(-2, initial=0.0))[1]
    return rows, columns


def eliminated_cofactors(data: Array, factors: Factors | None = None, inverse: Array | None = None) -> Array | None:
    """Cofactors of a finite matrix; None where elimination does not find them, but singular values do.

    Parameters
    ----------
    data : ndarray, shape (n, n)
    factors : tuple of ndarray, optional
        Its factors, and
    inverse : ndarray, shape (n, n), optional
        by these its inverse, if they are known.

    Notes
    -----
    A pivot that is zero is replaced by a number far below the rounding of the elements. Not found are cofactors where elements grow
    much in elimination, or where the inverse has larger elements than there are numbers.
    """
    if data.dtype != np.float64:
        wide = eliminated_cofactors(data.astype(np.float64))
        return None if wide is None else wide.astype(data.dtype)
    scale: Array | None = None
    if not _is_even(data):
        rows, columns = unit_scales(data)
        scale, factors, inverse = rows[:, None] + columns, None, None
        data = np.ldexp(data, scale)
    if factors is None:
        found = determinants(data, False)
        if found is None:
            return None
        factors = found[2]
    largest, order = max(data.max(), -data.min()), len(data)
    lu, pivots = factors
    if not max(lu.max(), -lu.min()) <= GROWTH * math.sqrt(order) * largest:
        return None
    diagonal, least = lu[0].diagonal(), 0.0
    zeros = diagonal == 0.0
    if zeros.any():
        count, exponent = int(zeros.sum()), math.frexp(largest)[1]
        smaller = min(max(TOGETHER // count, SMALLEST), LARGEST)
        diagonal = np.where(zeros, math.ldexp(1.0, exponent - smaller), diagonal)
        lu, inverse = lu.copy(), None
        lu.reshape(-1)[:: order + 1] = diagonal
        least = math.ldexp(1.0, min(count * smaller - NOTHING - exponent, 1023))
    if inverse is None:
        inverse = inverses((lu, pivots), data.shape)
    if inverse is None or not math.isfinite(add_reduce(inverse, None)):
        return None
    turned = inverse.T if least == 0.0 else np.where(np.abs(inverse.T) < least, 0.0, inverse.T)
    mantissa, power = _product(diagonal)
    mantissa = -mantissa if exchanges(pivots, order) % 2 else mantissa
    if scale is not None:
        cofactors: Array = np.ldexp(turned * mantissa, scale + (power - rows.sum() - columns.sum()))
        return cofactors
    return _times(turned, mantissa, power)


def _is_even(data: Array) -> bool:
    """Whether rows are about of one size, so that `unit_scales` would change no choice of rows, and nothing is far from one."""
    sizes = np.abs(data)
    rows, columns = (np.frexp(sizes.max(axis))[1] for axis in (1, 0))
    return bool(rows.max() - rows.min() <= UNEVEN and max(columns.max(), -columns.min()) <= OUTSIZE)


def _product(values: Array) -> tuple[float, int]:
    """The product of numbers as a number of about one and a power of two."""
    mantissas, exponents = np.frexp(values)
    product, power = 1.0, int(exponents.sum())
    for start in range(0, len(values), STEP):
        product, more = math.frexp(product * float(multiply_reduce(mantissas[start : start + STEP])))
        power += more
    return product, power


def _times(values: Array, mantissa: float, power: int) -> Array:
    """``values * mantissa * 2**power``, also where that is no number."""
    power = max(min(power, 4 * STEP), -4 * STEP)
    first = max(min(power, STEP), -STEP)
    found: Array = values * math.ldexp(mantissa, first)
    while power != first:
        power -= first
        first = max(min(power, STEP), -STEP)
        found *= math.ldexp(1.0, first)
    return found
