"""``x[key]`` and the functional form of ``x[key] = value``.

As in PyTorch, a key is two steps. Numbers, slices, None and the ellipsis make a view. Index arrays, lists and masks
then select from that view. A number is never an index array, so ``x[0, :, [1, 2]]`` keeps its dimensions in place where
NumPy moves them.

The second step is a list of places (`ops/flat_places.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np

from tapegrad.arrays.addresses import address_of
from tapegrad.arrays.dtypes import bool as mask_type
from tapegrad.arrays.dtypes import int64, type_name
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.engine.layout import ALL_BUT_AT, PUT_AT
from tapegrad.ops.flat_places import (
    Places,
    blocks,
    fitting,
    put_at,
    summed_to,
    take_at,
    take_last,
    taking,
    without_leading_ones,
    written_at,
)  # fmt: skip
from tapegrad.ops.index_keys import FULL, Array, Key, explain, parse
from tapegrad.ops.views import view
from tapegrad.recording.strided_maps import numbers_of_part
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.number_entries import NumberEntries, entry
from tapegrad.tensors.tensor import Tensor, array_of, as_operand, make, wrap

__all__ = ["getitem", "index_put"]

Advanced = tuple[Any, ...]
Shape = tuple[int, ...]


def getitem(x: Tensor, key: Any) -> Tensor:
    """The part of `x` that `key` names: ``x[key]``.

    Parameters
    ----------
    x : Tensor
    key : int, slice, None, ellipsis, bool, list, ndarray, Tensor, or a tuple of these

    Returns
    -------
    Tensor
        A view for numbers, slices, None and the ellipsis, else a copy.

    Raises
    ------
    IndexError
        If an index is out of bounds, the key has too many parts, or a part is of no type that indexes.
    ValueError
        If a slice has a step that is not positive.
    """
    kind = type(key)
    data = x._data
    # The commonest keys first: parsing costs as much as the view itself.
    if type(data) is not float and data.ndim:
        if kind is int:
            if -data.shape[0] <= key < data.shape[0]:
                if data.ndim == 1 and type(x._meta) is NumberEntries:
                    return entry(x, key)
                return view(x, "SelectBackward0", itemgetter((key, Ellipsis)))
        elif kind is slice and key.step is None:
            return view(x, "SliceBackward0", itemgetter(key))
        elif kind is tuple and len(key) <= data.ndim:
            node = _plain_node(key, data.shape)
            if node:
                if type(x._meta) is NumberEntries and len(key) == data.ndim and {*map(type, key)} == {int}:
                    return entry(x, key)
                return view(x, node, itemgetter((*key, Ellipsis)))
        elif (kind is Tensor or kind is np.ndarray or kind is list) and not TAPE.tracers:
            places = _places_of_one(array_of(key) if kind is Tensor else key, data.shape)
            if places is not None:
                return take_at(x, places)
    parsed = parse(key, () if type(data) is float else data.shape)
    return read(x, parsed.basic, parsed.node, parsed.advanced)


def _places_of_one(index: Any, shape: Shape) -> Places | None:
    """Where the elements stand that one index array, mask or list names along the first dimensions; None for any other key."""
    if type(index) is list:
        if {*map(type, index)} != {int} or not -shape[0] <= min(index) <= max(index) < shape[0]:
            return None
        index = np.array(index, int64)
    if index.dtype is int64 and index.ndim:
        places, wrong = blocks(index, shape, 0)
        return places if wrong < 0 else None
    if index.dtype is mask_type and index.ndim and index.shape == shape[: index.ndim]:
        return blocks(np.flatnonzero(index), shape, 0, index.ndim)[0]
    return None


def _plain_node(key: tuple[Any, ...], shape: tuple[int, ...]) -> str:
    """The node of a view by numbers within bounds and slices without a step; empty for any other key."""
    node = "AliasBackward0"
    for item, extent in zip(key, shape, strict=False):
        if type(item) is int:
            if not -extent <= item < extent:
                return ""
            node = "SelectBackward0"
        elif type(item) is not slice or item.step is not None:
            return ""
        elif (item.start is not None or item.stop is not None) and item.indices(extent) != (0, extent, 1):
            node = "SliceBackward0"
    return node


def read(x: Tensor, basic: Advanced | None, node: str, advanced: Advanced | None) -> Tensor:
    """A view by the first step of a key, and a selection from it by the second; None for a step that does nothing."""
    if basic is not None:
        x = view(x, node, itemgetter(basic))
    return x if advanced is None else select(x, advanced)


def select(x: Tensor, advanced: Advanced, op: Structural | None = None) -> Tensor:
    """The elements of `x` at the places that index arrays and masks name, as a copy; recorded as `op`, made with `taking`."""
    return take_at(x, located(advanced, _shape(x)), op)


def _shape(x: Tensor) -> Shape:
    return () if type(x._data) is float else x._data.shape


def located(advanced: Advanced, shape: Shape) -> Places:
    """Where the elements stand that index arrays and masks name.

    Raises
    ------
    IndexError
        If an index is out of bounds, or the arrays do not broadcast.
    """
    position = 0
    while advanced[position] is FULL:
        position += 1
    arrays = advanced[position:]
    if len(arrays) == 1:
        (one,) = arrays
        if one.dtype.kind == "b":
            return blocks(np.flatnonzero(one), shape, position, one.ndim)[0]
        places, wrong = blocks(one, shape, position)
        if wrong >= 0:
            raise explain(advanced, shape)
        return places
    if any(part is FULL for part in arrays):  # NumPy moves the dimensions of the selection in front
        try:
            found = np.arange(math.prod(shape)).reshape(shape)[advanced]
        except (IndexError, ValueError):
            raise explain(advanced, shape) from None
        return Places(np.ravel(found), 1, found.shape)
    numbers = [part for one in arrays for part in (one.nonzero() if one.dtype.kind == "b" else (one,))]
    if len({one.shape for one in numbers}) > 1:
        try:
            numbers = list(np.broadcast_arrays(*numbers))
        except ValueError:
            raise explain(advanced, shape) from None
    return _joined(numbers, advanced, shape, position)


def _joined(numbers: Sequence[Array], advanced: Advanced, shape: Shape, position: int) -> Places:
    """Places of neighbouring dimensions, of which each has an index array of the same shape."""
    index = np.empty(numbers[0].shape, np.int64)
    extents = shape[position : position + len(numbers)]
    for k, (one, extent) in enumerate(zip(numbers, extents, strict=True)):
        one = np.ascontiguousarray(one, np.int64)
        if ARRAY_KERNELS.add_index(id(index), id(one), extent, int(k == 0)) >= 0:
            raise explain(advanced, shape)
    if position == 0:
        rest = shape[len(numbers) :]
        return Places(index.reshape(-1), math.prod(rest), (*index.shape, *rest))
    return blocks(index, shape, position, len(numbers))[0]


def select_again(x: Tensor, replay: Callable[[Array], Array], z: Array | None = None) -> Tensor:
    """A view of `x`, or its value, recorded as a selection: for views that are strided only in memory of another order."""
    data = array_of(x)
    found = replay(np.arange(data.size).reshape(data.shape))
    places = Places(np.ravel(found), 1, found.shape)
    if z is None:
        return take_at(x, places, _AS_STRIDED)
    return apply(_AS_STRIDED, (x,), z, (1, found.shape), (wrap(places.at),))


_AS_STRIDED = taking("AsStridedBackward0")


def index_put(x: Tensor, key: Any, value: Any) -> Tensor:
    """A copy of `x` with the part that `key` names replaced by `value`.

    Parameters
    ----------
    x : Tensor
    key : any key that ``x[key]`` accepts
    value : Tensor, ndarray or number
        Broadcasts to the shape of ``x[key]``.

    Returns
    -------
    Tensor, of the shape and dtype of `x`
        Where the key repeats a place, the last value stays, and it alone receives a gradient.

    Raises
    ------
    IndexError, ValueError
        As for ``x[key]``.
    ShapeError
        If `value` does not broadcast to the shape of ``x[key]``.
    RuntimeError
        If a key with index arrays is given values of another dtype.

    Examples
    --------
    >>> from tapegrad.ops.indexing import index_put
    >>> index_put(tg.zeros(3), [0, 2], 7.0)
    tensor([7., 0., 7.])
    """
    return place(x, parse(key, array_of(x).shape), as_operand(value, x))


def place(x: Tensor, key: Key, value: Tensor, op: Structural | None = None) -> Tensor:
    """`index_put` with a key that has been parsed; recorded as `op`, made with `placing` for views and else with `putting`."""
    data = array_of(x)
    if key.advanced is None:
        return _put_view(x, key.basic, key.node, value, op)
    check_same_dtype(data, array_of(value))
    if key.basic is None:
        return put_at(x, located(key.advanced, data.shape), value, op)
    return _put_part(x, key.basic, key.node, located(key.advanced, data[key.basic].shape), value)


def check_same_dtype(data: Array, values: Array) -> None:
    """Refuse values of another dtype than that of what they are put into, but for single ones."""
    if values.dtype != data.dtype and values.size != 1:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{type_name(data.dtype)} for the destination and {type_name(values.dtype)} for the source."
        )


def _put_view(x: Tensor, basic: Advanced | None, node: str, value: Tensor, op: Structural | None = None) -> Tensor:
    result = array_of(x).copy()
    target = result if basic is None else result[basic]
    with quiet():
        target[...] = fitting(array_of(value), target.shape)
    extra: tuple[Tensor, ...] = ()
    if (x._row or value._row) and target.size <= SMALL:
        extra = (make(_places_of_view(result, target, basic), 0),)
    return apply(op or _PUT_VIEW, (x, value), result, (1, basic, node), extra)


def _places_of_view(whole: Array, part: Array, basic: Advanced | None) -> Array:
    """Where the elements of a small view of an array in C order stand, for the plain pass."""
    if whole.size > SMALL:
        steps = tuple([step // whole.itemsize for step in part.strides])
        return numbers_of_part((address_of(part) - address_of(whole)) // whole.itemsize, part.shape, steps).reshape(-1)
    numbers = _numbers(whole.shape)
    return (numbers if basic is None else numbers[basic]).ravel()


@lru_cache(256)
def _numbers(shape: Shape) -> Array:
    """The numbers of all elements, which nobody writes into."""
    return np.arange(math.prod(shape)).reshape(shape)


def _put_view_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    _, basic, node = ctx.attrs
    x_bar = _put_view(g, basic, node, make(0.0, 0)) if ctx.needs[0] else None
    return x_bar, summed_to(read(g, basic, node, None), ctx.shapes[1], ctx.on) if ctx.needs[1] else None


def placing(name: str) -> Structural:
    """An operation that writes into a view, under PyTorch's name for it."""
    linear, moves = (_without_the_view, _view_into_zeros), (ALL_BUT_AT, PUT_AT)
    return Structural(name, ((),), _put_view_vjp, linear=linear, takes_stretched=True, moves=moves)


def _part_of_many(many: Array, basic: Advanced | None) -> Array:
    """The same view of each of many arrays that stand interleaved."""
    return many if basic is None else np.moveaxis(np.moveaxis(many, -1, 0)[(slice(None), *basic)], 0, -1)


def _without_the_view(x_dot: Array, ctx: Context, shape: Shape) -> Array:
    result = x_dot.copy()
    _part_of_many(result, ctx.attrs[1])[...] = 0.0
    return result


def _view_into_zeros(x_dot: Array, ctx: Context, shape: Shape) -> Array:
    count = x_dot.shape[-1]
    result = np.zeros((*shape, count))
    _part_of_many(result, ctx.attrs[1])[...] = x_dot.reshape(*without_leading_ones(x_dot.shape[:-1]), count)
    return result


_PUT_VIEW = placing("IndexPutBackward0")


def _put_part(x: Tensor, basic: Advanced, node: str, places: Places, value: Tensor) -> Tensor:
    """A copy of `x` with values at places of a view of it."""
    result = array_of(x).copy()
    part = result[basic]
    part[...] = written_at(part, places, array_of(value))
    return apply(_PUT_PART, (x, value), result, (basic, node, places.inner, places.shape), (wrap(places.at),))


def _put_part_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    basic, node, inner, shape = ctx.attrs
    places = Places(ctx.extra[0]._data, inner, shape)
    x_bar = _put_part(g, basic, node, places, make(0.0, 0)) if ctx.needs[0] else None
    if not ctx.needs[1]:
        return x_bar, None
    return x_bar, summed_to(take_last(read(g, basic, node, None), places), ctx.shapes[1], ctx.on)


def _put_again(arrays: Sequence[Array], attrs: Any, at: Array) -> Array:
    basic, _, inner, shape = attrs
    result = arrays[0].copy()
    part = result[basic]
    part[...] = written_at(part, Places(at, inner, shape), arrays[1])
    return result


_PUT_PART = Structural("IndexPutBackward0", ((),), _put_part_vjp, forward=_put_again, takes_stretched=True)
