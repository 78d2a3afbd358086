"""Values of any size in a few words."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["described", "duration_in_words", "number", "size_in_words"]

FEW = 4


def number(value: Any) -> str:
    """A number with the digits that tell."""
    return f"{float(value):.6g}"


def described(value: Any) -> str:
    """A number, or shape, first elements and range of an array."""
    if type(value) is float:
        return f"{value:.6g}"
    array = np.asarray(value)
    if array.ndim == 0:
        return number(array)
    if not array.size:
        return f"[] of shape {array.shape}"
    flat = array.reshape(-1)
    shown = ", ".join(map(number, flat[:FEW])) + (", ..." if flat.size > FEW else "")
    text = f"[{shown}] of shape {array.shape}"
    if flat.size <= FEW:
        return text
    finite = flat[np.isfinite(flat)]
    if finite.size:
        text += f", from {number(finite.min())} to {number(finite.max())}"
    odd = flat.size - finite.size
    return text + (f", {odd} not finite" if odd else "")


def size_in_words(count: float) -> str:
    """A number of bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000.0 or unit == "GB":
            break
        count /= 1000.0
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"


def duration_in_words(seconds: float) -> str:
    """A time."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 0.9995 or unit == "µs":
            break
    return f"{seconds * factor:.3g} {unit}"
