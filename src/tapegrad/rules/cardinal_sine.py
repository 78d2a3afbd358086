"""Derivatives of ``sin(y) / y``, of a number or of an array: as they are, and compiled by Numba as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["bound_of_series", "recurrence", "series"]


def bound_of_series(order: int) -> float:
    """Up to where the series is the better way."""
    return max(3.0, float(order))


def recurrence(y: Any, order: int) -> Any:
    """What Leibniz's rule gives for the derivatives of ``y * (sin(y) / y)``; stable as long as ``abs(y) > order``."""
    s, c = np.sin(y), np.cos(y)
    value = s / y
    for k in range(1, order + 1):
        s, c = c, -s
        value = (s - k * value) / y
    return value


def series(y: Any, order: int) -> Any:
    """The Taylor series, which loses few digits near 0."""
    first = (order + 1) // 2
    term = (y if order % 2 else 0.0 * y + 1.0) * (-1.0) ** first
    value = term / (2 * first + 1)
    # terms fall faster than (bound / power)**2 from there on
    for k in range(first + 1, first + 12 + 2 * max(3, order)):
        power = 2 * k - order
        term = term * (-y * y / (power * (power - 1)))
        value = value + term / (2 * k + 1)
    return value
