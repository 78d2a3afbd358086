"""Sums, extremes and products of arrays, in calls and as methods."""

from __future__ import annotations

from typing import Any

# Methods of arrays that compute with items; the others move them, and are Numba's own.
METHODS = frozenset(
    ["all", "any", "argmax", "argmin", "clip", "cumprod", "cumsum", "dot", "max", "mean", "min", "prod", "ptp", "round", "std",
     "sum", "trace", "var"]
)  # fmt: skip
RECORDED: dict[Any, Any] = {}
