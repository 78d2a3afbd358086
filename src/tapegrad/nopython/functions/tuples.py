"""Tuples and lists in which constants stand beside variables.

In the user's function `(x, 1.0)` is a pair of floats, which can be looped over and indexed; so it is a pair of variables here.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.extending import intrinsic

from tapegrad.nopython.types.variable import complex_variable, has_variables, is_float, primal_type, variable_of

__all__ = ["alike", "as_variable"]


@intrinsic
def alike(typingctx: Any, items: Any) -> Any:
    """The same tuple; if all items are floats in the user's function and some are variables, all are."""
    kind = items
    if isinstance(items, types.BaseAnonymousTuple) and has_variables(items):
        plain = {primal_type(types.unliteral(item)) for item in items}
        if len(plain) == 1 and is_float(*plain):
            kind = types.UniTuple(variable_of(*plain), len(items))

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if kind is items:
            context.nrt.incref(builder, items, args[0])
            return args[0]
        return context.cast(builder, args[0], items, kind)

    return kind(items), write


def _of_variables(kind: types.Type) -> types.Type:
    plain = types.unliteral(kind)
    if is_float(plain):
        return variable_of(plain)
    if plain == types.complex128:
        return complex_variable
    if isinstance(plain, types.BaseAnonymousTuple):
        items = [_of_variables(item) for item in plain]
        if any(made is not item for made, item in zip(items, plain, strict=True)):
            return types.Tuple(list(map(types.unliteral, items)))
    return kind


@intrinsic
def as_variable(typingctx: Any, item: Any) -> Any:
    """A float, or the floats in a tuple, as variables, so that its container may hold variables; everything else as it is."""
    kind = _of_variables(item)

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if kind is item:
            context.nrt.incref(builder, item, args[0])
            return args[0]
        return context.cast(builder, args[0], item, kind)

    return kind(item), write
