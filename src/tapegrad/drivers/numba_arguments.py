"""Arrays of ours as arguments of functions that Numba compiled: Numba finds the types of arguments by their classes as `isinstance`
does, and would take them for arrays and numbers that it can read.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.tensors.tensor import Tensor

__all__ = ["refuse_in_numba"]

_REFUSED: list[type] = []


def refuse_in_numba() -> None:
    """Let Numba refuse arrays of ours as it refuses tensors, with what to write instead; nothing as long as it is not imported."""
    typeof = None if _REFUSED else getattr(sys.modules.get("numba.core.typing.typeof"), "typeof_impl", None)
    if typeof is None:
        return
    for kind in (np.ndarray, np.generic, float):
        _REFUSED.append(kind)
        typeof.register(kind)(_of_others(typeof.dispatch(kind)))


def _of_others(known: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(known)
    def typeof(value: Any, context: Any) -> Any:
        return value._numba_type_ if isinstance(value, Tensor) else known(value, context)

    return typeof
