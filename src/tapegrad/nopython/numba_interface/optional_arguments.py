"""Optional arguments of functions of NumPy, as the compiler sees them."""

from __future__ import annotations

from typing import Any

from numba.core import types

__all__ = ["left_away"]


def left_away(argument: Any) -> bool:
    """Whether an optional argument is None, or not given."""
    if isinstance(argument, types.Omitted):
        return argument.value is None
    return argument is None or isinstance(argument, types.NoneType)
