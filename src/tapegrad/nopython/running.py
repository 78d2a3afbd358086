"""Running sums and products, in the order in which Numba computes them; they are recorded as a user's function would be."""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["cumprod", "cumsum"]


@numba.njit
def cumsum(a):
    out = np.empty(a.size)
    items = a.ravel()
    total = 0.0
    for k in range(items.size):
        total = total + items[k]
        out[k] = total
    return out


@numba.njit
def cumprod(a):
    out = np.empty(a.size)
    items = a.ravel()
    total = 1.0
    for k in range(items.size):
        total = total * items[k]
        out[k] = total
    return out
