"""Arrays of variables, made and filled by instructions that are written where they are needed.

Nearly every recording makes some: of its inputs, its work arrays, and of constants that variables are written into. As functions
that are compiled for each type and number of dimensions, they took a third of the time until the derivative of a short function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.np.arrayobj import get_itemsize, load_item, make_array, populate_array, store_item

from tapegrad.nopython.types.variable import NO_ROW, make, number_of, row_of, variable_of

__all__ = ["copied", "copied_by", "copied_type", "copied_with_gaps", "copy_in_order", "empty", "taken_apart", "zeros"]

I32, I64 = ir.IntType(32), ir.IntType(64)


def empty(context: Any, builder: Any, kind: types.Array, shape: Sequence[Any]) -> Any:
    """A new array without gaps. Numba's own does the same, but through a function that is compiled."""
    made = make_array(kind)(context, builder)
    itemsize = I64(get_itemsize(context, kind))
    size, too_big = itemsize, ir.IntType(1)(0)
    strides = {}
    for axis in range(kind.ndim) if kind.layout == "F" else reversed(range(kind.ndim)):
        strides[axis] = size
        size, overflows = _product(builder, size, shape[axis])
        too_big = builder.or_(too_big, overflows)
    with builder.if_then(too_big, likely=False):
        text = "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size."
        context.call_conv.return_user_exc(builder, ValueError, (text,))
    align = ir.IntType(32)(context.get_preferred_array_alignment(kind.dtype))
    meminfo = context.nrt.meminfo_alloc_aligned(builder, size, align)
    data = builder.bitcast(context.nrt.meminfo_data(builder, meminfo), context.get_data_type(kind.dtype).as_pointer())
    sizes, steps = (cgutils.pack_array(builder, items, ty=I64) for items in (shape, [strides[k] for k in range(kind.ndim)]))
    populate_array(made, data, sizes, steps, itemsize, meminfo)
    return made


def _product(builder: Any, a: Any, b: Any) -> tuple[Any, Any]:
    both = builder.smul_with_overflow(a, b)
    return builder.extract_value(both, 0), builder.extract_value(both, 1)


def zeros(context: Any, builder: Any, kind: types.Array, shape: Any) -> Any:
    """An array of constants that are zero."""
    made = empty(context, builder, kind, shape)
    cgutils.memset(builder, made.data, builder.mul(made.itemsize, made.nitems), 0)
    return made._getvalue()


def copied_type(kind: types.Array) -> types.Array:
    """The type of an array of variables in the memory order of another one: what copies and what is a view depends on it."""
    ordered = kind.ndim > 1 or (kind.ndim == 1 and kind.layout == "A")
    return types.Array(variable_of(kind.dtype), kind.ndim, kind.layout if ordered else "C")


def _empty(context: Any, builder: Any, kind: types.Array, shape: Any) -> Any:
    """Where an array is not contiguous, every second place is left out: what asks for contiguous memory copies it."""
    if kind.layout != "A":
        return empty(context, builder, kind, shape)
    whole = empty(context, builder, kind.copy(layout="C"), [*shape[:-1], _twice(context, builder, shape[-1])])
    made = make_array(kind)(context, builder)
    strides = cgutils.unpack_tuple(builder, whole.strides)
    strides[-1] = builder.mul(strides[-1], I64(2))
    populate_array(
        made, whole.data, cgutils.pack_array(builder, shape, ty=I64), cgutils.pack_array(builder, strides, ty=I64),
        whole.itemsize, whole.meminfo,
    )  # fmt: skip
    return made


def _twice(context: Any, builder: Any, count: Any) -> Any:
    """Twice a number of items; one that has no double in 64 bits has too large an array, which is told where it is allocated."""
    doubled = builder.smul_with_overflow(count, I64(2))
    return builder.select(builder.extract_value(doubled, 1), I64(2**62), builder.extract_value(doubled, 0))


def copied(context: Any, builder: Any, kind: types.Array, array: Any, target_kind: types.Array, first: Any = None) -> Any:
    """An array of variables with the values of an array of numbers: constants, or inputs, of which `first` is the first row."""
    source = make_array(kind)(context, builder, array)
    shape = cgutils.unpack_tuple(builder, source.shape, kind.ndim)
    target = _empty(context, builder, target_kind, shape)
    number = cgutils.alloca_once(builder, I64)
    builder.store(I64(0) if first is None else first, number)
    with cgutils.loop_nest(builder, shape, I64) as place:
        value = load_item(context, builder, kind, _item(context, builder, kind, source, place))
        value = context.cast(builder, value, kind.dtype, types.float64)
        row = NO_ROW
        if first is not None:
            now = builder.load(number)
            row = builder.trunc(now, I32)
            builder.store(builder.add(now, I64(1)), number)
        item = _item(context, builder, target_kind, target, place)
        store_item(context, builder, target_kind, make(context, builder, value, row), item)
    return target._getvalue()


def copied_with_gaps(context: Any, builder: Any, kind: types.Array, array: Any, target_kind: types.Array) -> Any:
    """The numbers in an array of variables, where every second place is left out."""
    source = make_array(kind)(context, builder, array)
    shape = cgutils.unpack_tuple(builder, source.shape, kind.ndim)
    target = _empty(context, builder, target_kind, shape)
    with cgutils.loop_nest(builder, shape, I64) as place:
        value = load_item(context, builder, kind, _item(context, builder, kind, source, place))
        item = _item(context, builder, target_kind, target, place)
        store_item(context, builder, target_kind, number_of(context, builder, kind.dtype, value), item)
    return target._getvalue()


def copied_by(context: Any, builder: Any, kind: types.Array, target_kind: types.Array, array: Any, of: Callable[[Any], Any]) -> Any:
    """An array of what is made of the items of another one."""
    source = make_array(kind)(context, builder, array)
    shape = cgutils.unpack_tuple(builder, source.shape, kind.ndim)
    target = empty(context, builder, target_kind, shape)
    with cgutils.loop_nest(builder, shape, I64) as place:
        value = of(load_item(context, builder, kind, _item(context, builder, kind, source, place)))
        store_item(context, builder, target_kind, value, _item(context, builder, target_kind, target, place))
    return target._getvalue()


def copy_in_order(context: Any, builder: Any, kind: types.Array, target_kind: types.Array, array: Any) -> Any:
    """A copy of an array in another memory order, or of another type."""
    source = make_array(kind)(context, builder, array)
    shape = cgutils.unpack_tuple(builder, source.shape, kind.ndim)
    target = empty(context, builder, target_kind, shape)
    with cgutils.loop_nest(builder, shape, I64) as place:
        value = load_item(context, builder, kind, _item(context, builder, kind, source, place))
        value = context.cast(builder, value, kind.dtype, target_kind.dtype)
        store_item(context, builder, target_kind, value, _item(context, builder, target_kind, target, place))
    return target


def taken_apart(context: Any, builder: Any, kind: types.Array, array: Any) -> tuple[Any, Any]:
    """Arrays of the primals and of the rows of an array of variables."""
    source = make_array(kind)(context, builder, array)
    shape = cgutils.unpack_tuple(builder, source.shape, kind.ndim)
    kinds = [types.Array(dtype, kind.ndim, "C") for dtype in (kind.dtype.primal, types.int32)]
    made = [empty(context, builder, own, shape) for own in kinds]
    with cgutils.loop_nest(builder, shape, I64) as place:
        value = load_item(context, builder, kind, _item(context, builder, kind, source, place))
        parts = number_of(context, builder, kind.dtype, value), row_of(builder, value)
        for own, target, part in zip(kinds, made, parts, strict=True):
            store_item(context, builder, own, part, _item(context, builder, own, target, place))
    return made[0]._getvalue(), made[1]._getvalue()


def _item(context: Any, builder: Any, kind: types.Array, array: Any, place: Any) -> Any:
    """The address of an item at indices that are none from the end."""
    shape = cgutils.unpack_tuple(builder, array.shape, kind.ndim)
    strides = cgutils.unpack_tuple(builder, array.strides, kind.ndim)
    return cgutils.get_item_pointer2(context, builder, array.data, shape, strides, kind.layout, place, wraparound=False)
