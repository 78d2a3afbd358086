"""What looks at the memory of an array instead of its values: a recording has another layout, and the derivative would be lost."""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.errors import TypingError
from numba.core.extending import intrinsic

from tapegrad.nopython.variable import has_variables

__all__ = ["MEMORY", "without_layout"]

MEMORY = frozenset(["ctypes", "data", "itemsize", "nbytes", "strides", "tobytes", "view"])


@intrinsic
def without_layout(typingctx: Any, a: Any) -> Any:
    """An object whose memory may be looked at."""
    if isinstance(a, types.Array) and has_variables(a):
        raise TypingError(
            "[tapegrad] the memory layout of an array (itemsize, strides, view, ...) is another one while it is differentiated; "
            "use shapes and values only"
        )

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        context.nrt.incref(builder, a, args[0])
        return args[0]

    return a(a), write
