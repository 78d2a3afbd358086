"""``x[key]`` and the functional form of ``x[key] = value``.

As in PyTorch, a key is two steps. Numbers, slices, None and the ellipsis make a view. Index arrays, lists and masks
then select from that view. A number is never an index array, so ``x[0, :, [1, 2]]`` keeps its dimensions in place where
NumPy moves them.

Selecting and adding back into place are each other's derivatives, so both can be differentiated to any order.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.errors import ShapeError
from tapegrad.ops.index_keys import FULL, Array, Key, explain, parse
from tapegrad.ops.shaping import expanded, reshape
from tapegrad.ops.views import view
from tapegrad.recording.structural import Context, Structural, apply, sum_to
from tapegrad.tensors.nested_sequences import MAX_DIMENSIONS
from tapegrad.tensors.number_entries import NumberEntries, entry
from tapegrad.tensors.tensor import Tensor, array_of, as_operand, wrap

__all__ = ["getitem", "index_put"]

Advanced = tuple[Any, ...]


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
    kind = key.__class__
    data = x._data
    # The commonest keys first: parsing costs as much as the view itself.
    if data.__class__ is not float and data.ndim:
        if kind is int:
            if -data.shape[0] <= key < data.shape[0]:
                if data.ndim == 1 and x._meta.__class__ is NumberEntries:
                    return entry(x, key)
                return view(x, "SelectBackward0", operator.itemgetter((key, Ellipsis)))
        elif kind is slice and key.step is None:
            return view(x, "SliceBackward0", operator.itemgetter(key))
        elif kind is tuple and len(key) <= data.ndim:
            node = _plain_node(key, data.shape)
            if node:
                if x._meta.__class__ is NumberEntries and len(key) == data.ndim and {*map(type, key)} == {int}:
                    return entry(x, key)
                return view(x, node, operator.itemgetter((*key, Ellipsis)))
    parsed = parse(key, () if data.__class__ is float else data.shape)
    return read(x, parsed.basic, parsed.node, parsed.advanced)


def _plain_node(key: tuple[Any, ...], shape: tuple[int, ...]) -> str:
    """The node of a view by numbers within bounds and slices without a step; empty for any other key."""
    node = "AliasBackward0"
    for item, extent in zip(key, shape, strict=False):
        if item.__class__ is int:
            if not -extent <= item < extent:
                return ""
            node = "SelectBackward0"
        elif item.__class__ is not slice or item.step is not None:
            return ""
        elif (item.start is not None or item.stop is not None) and item.indices(extent) != (0, extent, 1):
            node = "SliceBackward0"
    return node


def read(x: Tensor, basic: Advanced | None, node: str, advanced: Advanced | None) -> Tensor:
    """A view by the first step of a key, and a selection from it by the second; None for a step that does nothing."""
    if basic is not None:
        x = view(x, node, operator.itemgetter(basic))
    return x if advanced is None else select(x, advanced, INDEX)


def select(x: Tensor, advanced: Advanced, op: Structural) -> Tensor:
    """The elements of `x` at the places that index arrays and masks name, as a copy; recorded as `op`."""
    data = array_of(x)
    try:
        result = _fetch(data, advanced)
    except (IndexError, ValueError):
        raise explain(advanced, data.shape) from None
    template, arrays = _separate(advanced, x)
    return apply(op, (x,), result, template, arrays)


def _fetch(data: Array, advanced: Advanced) -> Array:
    last = advanced[-1]
    if last.dtype.kind == "i" and all(part is FULL for part in advanced[:-1]):
        return np.take(data, last, len(advanced) - 1)
    if len(advanced) == MAX_DIMENSIONS:
        data, advanced = _merged(data, advanced)
    # NumPy lays such results out in the order of the index; nobody expects that of a copy.
    found = data[advanced]
    return np.ascontiguousarray(found) if found.ndim else np.asarray(found)


def _merged(data: Array, advanced: Advanced) -> tuple[Array, Advanced]:
    """The same selection with the first two dimensions as one: NumPy takes one index array less than an array has dimensions."""
    if any(part is FULL or part.dtype.kind == "b" for part in advanced):
        return data, advanced
    first, second = (np.where(part < 0, part + n, part) for part, n in zip(advanced, data.shape[:2], strict=False))
    for part, extent in ((first, data.shape[0]), (second, data.shape[1])):
        if np.any((part < 0) | (part >= extent)):
            raise IndexError
    merged = data.reshape(data.shape[0] * data.shape[1], *data.shape[2:])
    return merged, (first * data.shape[1] + second, *advanced[2:])


def _separate(advanced: Advanced, x: Tensor) -> tuple[Advanced, Sequence[Tensor]]:
    """The key without its arrays, and the arrays, copied if they are kept: the caller may write into theirs."""
    if not x._row:
        return (), ()
    template = tuple(FULL if part is FULL else None for part in advanced)
    return template, [wrap(part.copy()) for part in advanced if part is not FULL]


def _joined(template: Advanced, arrays: Sequence[Tensor]) -> Advanced:
    remaining = iter(arrays)
    return tuple(FULL if part is FULL else array_of(next(remaining)) for part in template)


def _select_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (add_into(g, _joined(ctx.attrs, ctx.extra), ctx.shapes[0]),)


def selection(name: str) -> Structural:
    """An operation that selects by index arrays, under PyTorch's name for it."""
    return Structural(name, ((),), _select_vjp)


INDEX = selection("IndexBackward0")


_AS_STRIDED = selection("AsStridedBackward0")


def select_again(x: Tensor, replay: Callable[[Array], Array], z: Array | None = None) -> Tensor:
    """A view of `x`, or its value, recorded as a selection: for views that are strided only in memory of another order."""
    shape = array_of(x).shape
    places = np.unravel_index(replay(np.arange(array_of(x).size).reshape(shape)), shape)
    if z is None:
        return select(x, places, _AS_STRIDED)
    template, arrays = _separate(places, x)
    return apply(_AS_STRIDED, (x,), z, template, arrays)


def add_into(g: Tensor, advanced: Advanced, shape: tuple[int, ...]) -> Tensor:
    """Zeros of `shape` with `g` added at the places of a key; repeated ones get the sum, in the order of the key."""
    template, kept = _separate(advanced, g)
    return apply(_ADD_INTO, (g,), _summed(array_of(g), advanced, shape), template, kept)


def _summed(values: Array, advanced: Advanced, shape: tuple[int, ...]) -> Array:
    arrays = [part for part in advanced if part is not FULL]
    if not values.size or values.dtype.kind != "f" or (len(arrays) == 1 and arrays[0].dtype.kind == "b"):
        result = np.zeros(shape, values.dtype)
        if values.size:
            np.add.at(result, advanced, values)
        return result
    size = math.prod(shape)
    places = _fetch(np.arange(size).reshape(shape), advanced)
    # Several times faster than np.add.at, and sums float32 in float64.
    total = np.bincount(places.ravel(), values.ravel(), size)
    with quiet():
        return total.astype(values.dtype, copy=False).reshape(shape)


def _add_into_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (select(g, _joined(ctx.attrs, ctx.extra), INDEX),)


_ADD_INTO = Structural("IndexAddBackward0", ((),), _add_into_vjp)


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
    """`index_put` with a key that has been parsed; recorded as `op`."""
    data, values = array_of(x), array_of(value)
    if key.advanced is not None and values.dtype != data.dtype and values.size != 1:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{type_name(data.dtype)} for the destination and {type_name(values.dtype)} for the source."
        )
    result = data.copy()
    target = result if key.basic is None else result[key.basic]
    assign(target, key.advanced, values)
    template, arrays = (None, ()) if key.advanced is None else _separate(key.advanced, x if x.requires_grad else value)
    return apply(op or _PUT, (x, value), result, (key.basic, key.node, template), arrays)


def assign(target: Array, advanced: Advanced | None, values: Array) -> None:
    """``target[advanced] = values`` with PyTorch's errors; None stands for all of `target`."""
    stripped = values.reshape(_without_leading_ones(values.shape))
    with quiet():
        if advanced is None:
            expanded(stripped.shape, target.shape)  # raises where NumPy's message would be less clear
            target[...] = stripped
            return
        try:
            if not stripped.size:  # NumPy lets too many dimensions pass when there is nothing to write
                expanded(stripped.shape, _fetch(target, advanced).shape)
            target[advanced] = stripped
        except IndexError:
            raise explain(advanced, target.shape) from None
        except (ValueError, TypeError, ShapeError):
            raise ShapeError(
                f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
                f"shape {list(_fetch(target, advanced).shape)}"
            ) from None


def _without_leading_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    first = 0
    while first < len(shape) and shape[first] == 1:
        first += 1
    return shape[first:]


def _put_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    basic, node, template = ctx.attrs
    advanced = None if template is None else _joined(template, ctx.extra)
    x_bar = value_bar = None
    if ctx.needs[0]:
        x_bar = place(g, Key(basic, node, advanced), wrap(np.zeros((), ctx.dtypes[0])))
    if ctx.needs[1]:
        part = read(g, basic, node, None)
        if advanced is not None:
            kept = _last_written(array_of(part).shape, advanced)
            part = select(part, advanced, INDEX)
            if kept is not None:
                part = part * wrap(kept.astype(array_of(part).dtype))
        shape = ctx.shapes[1]
        value_bar = reshape(sum_to(part, _without_leading_ones(shape)), shape)
    return x_bar, value_bar


def _last_written(shape: tuple[int, ...], advanced: Advanced) -> Array | None:
    """Which values of an assignment were not overwritten by a later one of the same; None if none were."""
    if all(part is FULL or part.dtype.kind == "b" for part in advanced):
        return None
    owner = np.empty(shape, np.int64)
    there = owner[advanced].shape
    number = np.arange(int(np.prod(there))).reshape(there)
    owner[advanced] = number
    kept = owner[advanced] == number
    return None if kept.all() else kept


def placing(name: str) -> Structural:
    """An operation that puts values at the places of a key, under PyTorch's name for it."""
    return Structural(name, ((),), _put_vjp)


_PUT = placing("IndexPutBackward0")


def accumulate(x: Tensor, advanced: Advanced, values: Tensor, op: Structural) -> Tensor:
    """A copy of `x` with `values`, of the shape of what the key selects, added at its places; recorded as `op`."""
    data, terms = array_of(x), array_of(values)
    try:
        result = data + _summed(terms, advanced, data.shape)
    except IndexError:
        raise explain(advanced, data.shape) from None
    template, arrays = _separate(advanced, values)
    return apply(op, (x, values), result, template, arrays)


def _add_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return g, select(g, _joined(ctx.attrs, ctx.extra), INDEX) if ctx.needs[1] else None


def adding(name: str) -> Structural:
    """An operation that adds values at the places of a key, under PyTorch's name for it."""
    return Structural(name, ((),), _add_vjp)
