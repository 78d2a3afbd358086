"""Tuples and lists in which constants stand beside variables.

In the user's function `(x, 1.0)` is a pair of floats, which can be looped over and indexed; so it is a pair of variables here.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.extending import intrinsic

from tapegrad.nopython.twins.compiled_versions import outline, plain_type
from tapegrad.nopython.types.variable import complex_variable, has_variables, is_float, primal_type, variable_of

__all__ = ["alike", "as_variable", "item_of_type"]


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


def item_of_type(written: types.Type) -> Any:
    """A function of a tuple and an index that gives the item, one of those of this type in the user's function."""

    @intrinsic
    def item(typingctx: Any, items: Any, index: Any) -> Any:
        wanted = outline(plain_type(written), False)
        places = [k for k, kind in enumerate(items) if outline(plain_type(types.unliteral(kind)), False) == wanted]
        kinds = {types.unliteral(items[k]) for k in places}
        kind = kinds.pop() if len(kinds) == 1 else typingctx.unify_types(*kinds) if kinds else None
        if kind is None:
            raise TypingError(f"[tapegrad] numba.literal_unroll of {items} is not recorded; write the loop out")

        def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            found = cgutils.alloca_once(builder, context.get_value_type(kind))
            other, end = builder.append_basic_block("no_item"), builder.append_basic_block("item")
            switch = builder.switch(args[1], other)
            for k in places:
                block = builder.append_basic_block(f"item{k}")
                switch.add_case(context.get_constant(index, k), block)
                builder.position_at_end(block)
                builder.store(context.cast(builder, builder.extract_value(args[0], k), items[k], kind), found)
                builder.branch(end)
            builder.position_at_end(other)
            context.call_conv.return_user_exc(builder, IndexError, ("tuple index out of range",))
            builder.position_at_end(end)
            value = builder.load(found)
            context.nrt.incref(builder, kind, value)
            return value

        return kind(items, index), write

    return item
