"""Tuples and lists in which constants stand beside variables.

In the user's function `(x, 1.0)` is a pair of floats, which can be looped over and indexed; so it is a pair of variables here.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.extending import intrinsic

from tapegrad.nopython.types.variable import Variable, has_variables, variable

__all__ = ["alike", "as_variable"]


@intrinsic
def alike(typingctx: Any, items: Any) -> Any:
    """The same tuple; if all items are floats in the user's function and some are variables, all are."""
    kind = items
    if isinstance(items, types.BaseAnonymousTuple) and has_variables(items):
        plain = [types.unliteral(item) for item in items]
        if all(isinstance(item, Variable) or item == types.float64 for item in plain):
            kind = types.UniTuple(variable, len(plain))

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if kind is items:
            context.nrt.incref(builder, items, args[0])
            return args[0]
        return context.cast(builder, args[0], items, kind)

    return kind(items), write


@intrinsic
def as_variable(typingctx: Any, item: Any) -> Any:
    """A float64 as a variable, so that its container may hold variables; everything else as it is."""
    kind = variable if types.unliteral(item) == types.float64 else item

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if kind is item:
            context.nrt.incref(builder, item, args[0])
            return args[0]
        return context.cast(builder, args[0], item, kind)

    return kind(item), write
