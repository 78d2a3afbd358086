"""Elements at places of the flattened tensor: taken, put there, and added there.

All indexing by arrays and masks comes to this, and so do poolings, orders and paddings: a list of places, and one compiled loop
over it. Each map is linear in what it moves. The transpose of taking is adding into zeros, and that of putting is taking what was
not overwritten, so all can be differentiated to any order.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave, quiet
from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.arrays.sizes import expanded
from tapegrad.engine.layout import ADDED_AT, ALL_BUT_AT, LAST_TAKEN_AT, PUT_AT, TAKEN_AT, UNMOVED
from tapegrad.errors import ShapeError
from tapegrad.named_tuples import Named
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, make, wrap

__all__ = [
    "PUT", "Places", "accumulating", "add_at", "along", "are_all_different", "blocks", "fitting", "increased_at", "put_at",
    "putting", "summed_to", "sums_at", "take_at", "take_last", "take_vjp", "taking", "written_at",
]  # fmt: skip

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
contiguous: Any = np.ascontiguousarray
FEW = 16  # places, each of which is compared with all of them


class Places(Named):
    """Where the elements of a selection stand.

    Attributes
    ----------
    at : ndarray of int64, one dimension
        Numbers of blocks of `inner` elements, none beyond the end; -1 stands for no element. Nobody writes into it.
    inner : int
        Elements in a block.
    shape : tuple of int
        Of the selection.
    """

    __slots__ = ()
    at: Array
    inner: int
    shape: Shape


def along(index: Array, position: int, shape: Shape) -> tuple[Places, int]:
    """Places of elements of a tensor whose index along one dimension is given, and in the others is that in the array `index`.

    Returns
    -------
    Places
    int
        -1, or the number of an index that is out of bounds; then the places are of no use.
    """
    index = contiguous(index, np.int64)
    at = np.empty(index.size, np.int64)
    like = np.empty(shape, np.int8) if index.size else index
    wrong = ARRAY_KERNELS.places_along(id(at), id(index), id(like), position, 0) if index.size else -1
    return Places(at, 1, index.shape), wrong


def blocks(index: Array, shape: Shape, position: int, dimensions: int = 1, from_the_end: bool = True) -> tuple[Places, int]:
    """Places of whole slices along one dimension, or along several taken as one, that `index` names; answers as `along` does."""
    given, index = index, contiguous(index, np.int64)
    outer, extent = math.prod(shape[:position]), math.prod(shape[position : position + dimensions])
    rest = shape[position + dimensions :]
    count = outer * index.size
    at = np.empty(max(count, index.size), np.int64)
    wrong = ARRAY_KERNELS.places_of_blocks(id(at), id(index), outer, extent, int(from_the_end))
    return Places(at[:count] if count < at.size else at, math.prod(rest), (*shape[:position], *given.shape, *rest)), wrong


def take_at(x: Tensor, places: Places, op: Structural | None = None) -> Tensor:
    """The elements at places, as a copy; recorded as `op`, which is made with `taking`."""
    return apply(op or _TAKE, (x,), taken_at(x._data, places), places[1:], (make(places.at, 0),))


def taken_at(data: Array, places: Places) -> Array:
    """The array of `take_at`."""
    data = contiguous(data)
    result = np.empty(places.shape, data.dtype)
    ARRAY_KERNELS.take_elements(id(result), id(data), id(places.at), places.inner)
    return result


def take_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    """The vjp of operations made with `taking`."""
    return (ctx.on.add_at(g, Places(ctx.extra[0]._data, *ctx.attrs), ctx.shapes[0]),)


def taking(name: str) -> Structural:
    """An operation that takes elements, under PyTorch's name for it."""
    return Structural(name, ((),), take_vjp, linear=(_taken_from_many,), moves=(TAKEN_AT,))


def add_at(g: Tensor, places: Places, shape: Shape) -> Tensor:
    """Zeros of `shape` with `g` added at places, in their order; float32 is summed in float64."""
    at, inner, own = places
    return apply(_ADD, (g,), sums_at(array_of(g), places, shape), (inner, own), (make(at, 0),))


def sums_at(values: Array, places: Places, shape: Shape) -> Array:
    """The array of `add_at`."""
    at, inner, _ = places
    dtype = values.dtype
    values = contiguous(values)
    if dtype.kind != "f":
        result = np.zeros(shape, dtype)
        if values.size:
            np.add.at(result.reshape(-1, inner), at, values.reshape(at.size, inner))
        return result
    if dtype.itemsize == 2:
        values = values.astype(np.float64)
    result = np.zeros(shape)
    ARRAY_KERNELS.add_elements(id(result), id(values), id(at), inner)
    if dtype.itemsize == 8:
        return result
    with quiet():
        return result.astype(dtype)


def _add_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (ctx.on.take_at(g, Places(ctx.extra[0]._data, *ctx.attrs)),)


def put_at(x: Tensor, places: Places, values: Tensor, op: Structural | None = None) -> Tensor:
    """A copy of `x` with `values` at places, of which the last of the same counts; recorded as `op`, made with `putting`.

    Parameters
    ----------
    values : Tensor
        Of one element, or broadcasting to the places' shape.
    """
    result = written_at(array_of(x), places, array_of(values))
    return apply(op or PUT, (x, values), result, places[1:], (make(places.at, 0),))


def written_at(data: Array, places: Places, values: Array) -> Array:
    """The array of `put_at`."""
    given, result = written_values(values, places, data.dtype), np.array(data, order="C")
    ARRAY_KERNELS.put_elements(id(result), id(given), id(places.at), places.inner, int(given.size != 1))
    return result


def written_values(values: Array, places: Places, dtype: Any) -> Array:
    """What is written to places: one element, or as many as there are.

    Raises
    ------
    ShapeError
        If the values do not broadcast.
    """
    if values.dtype is not dtype:
        with quiet():
            values = values.astype(dtype, copy=False)
    if values.shape != places.shape and values.size != 1:
        wrong = "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {}"
        values = fitting(values, places.shape, wrong)
    return contiguous(values)


def _put_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    places = Places(ctx.extra[0]._data, *ctx.attrs)
    x_bar = on.put_at(g, places, make(0.0, 0)) if ctx.needs[0] else None
    if not ctx.needs[1]:
        return x_bar, None
    return x_bar, summed_to(on.take_last(g, places), ctx.shapes[1], on)


def summed_to(g: Tensor, shape: Shape, on: Any) -> Tensor:
    """The cotangent of values that `fitting` broadcast."""
    return on.reshape(on.sum_to(g, without_leading_ones(shape)), shape)


def fitting(values: Array, shape: Shape, message: str = "") -> Array:
    """Values broadcast to the shape of what they are written to; further dimensions of size one in front do not count.

    Raises
    ------
    ShapeError
        If they do not broadcast.
    """
    stripped = values.reshape(without_leading_ones(values.shape))
    if message:
        try:
            return np.broadcast_to(stripped, shape)
        except ValueError:
            raise ShapeError(message.format(list(values.shape), list(shape))) from None
    expanded(stripped.shape, shape)  # raises
    return stripped


def without_leading_ones(shape: Shape) -> Shape:
    """A shape from its first dimension that is not of size one."""
    first = 0
    while first < len(shape) and shape[first] == 1:
        first += 1
    return shape[first:]


def putting(name: str) -> Structural:
    """An operation that puts values at places, under PyTorch's name for it."""
    linear = _without_the_places, _put_into_zeros
    moves = ALL_BUT_AT, PUT_AT
    return Structural(name, ((),), _put_vjp, linear=linear, forward=_put_again, takes_stretched=True, moves=moves)


def _put_again(arrays: Sequence[Array], attrs: Any, at: Array) -> Array:
    return written_at(arrays[0], Places(at, *attrs), arrays[1])


def take_last(g: Tensor, places: Places) -> Tensor:
    """The transpose of `put_at` for its values: those that a later one overwrote get zero."""
    return apply(_TAKE_LAST, (g,), last_taken_at(g._data, places), places[1:], (make(places.at, 0),))


def last_taken_at(data: Array, places: Places) -> Array:
    """The array of `take_last`."""
    data = contiguous(data)
    if data.size > SMALL and are_all_different(places.at):
        return taken_at(data, places)
    result, writer = np.empty(places.shape, data.dtype), np.empty(data.size // max(places.inner, 1), np.int64)
    ARRAY_KERNELS.take_last_elements(id(result), id(data), id(places.at), places.inner, id(writer))
    return result


def are_all_different(at: Array) -> bool:
    """Whether places are known to be different ones, since each is behind the one before it."""
    return not at.size or bool(at[0] >= 0 and (at[1:] > at[:-1]).all())


def _take_last_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    zeros = wrap(np.zeros(ctx.shapes[0], ctx.dtypes[0]))
    return (put_at(zeros, Places(ctx.extra[0]._data, *ctx.attrs), g),)


def increased_at(x: Tensor, places: Places, values: Tensor, op: Structural) -> Tensor:
    """A copy of `x` with `values`, which broadcast, added at places; recorded as `op`, which is made with `accumulating`."""
    data, terms = array_of(x), array_of(values)
    if terms.shape != places.shape:
        given, terms = terms, np.empty(places.shape, terms.dtype)
        terms[...] = given  # a fifth of the time of `broadcast_to`
    if data.size <= SMALL and data.dtype is terms.dtype is dtypes.float64:
        sums = sums_at(terms, places, data.shape)
        token = enter(IGNORING)
        try:
            result = data + sums
        finally:
            leave(token)
        return apply(op, (x, values), result, places[1:], (make(places.at, 0),))
    with quiet():
        if data.size > SMALL and data.dtype is terms.dtype is dtypes.float64 and are_all_different(places.at):
            result, terms = np.add(data, 0.0, out=large_empty(data.shape, data.dtype)), contiguous(terms)
            ARRAY_KERNELS.add_elements(id(result), id(terms), id(places.at), places.inner)
        elif data.dtype is terms.dtype is dtypes.float64 and _are_few(places, data.size):
            result = np.add(data, 0.0, out=large_empty(data.shape, data.dtype))
            if places.at.size <= FEW:
                terms = contiguous(terms)
                ARRAY_KERNELS.add_sums_of_few(id(result), id(terms), id(places.at), places.inner)
            else:
                _add_to_few(result, terms, places)
        else:
            result = data + sums_at(terms, places, data.shape)
    return apply(op, (x, values), result, places[1:], (make(places.at, 0),))


def _are_few(places: Places, size: int) -> bool:
    """Whether zeros and a sum of all elements of a large array would be most of the work of adding at places."""
    return (
        size > SMALL and 4 * places.at.size * places.inner < size and 32 * places.at.size < size and places.at.min(initial=0) >= 0
    )


def _add_to_few(result: Array, terms: Array, places: Places) -> None:
    """Add at places what the terms of each sum to, as if it were added to zeros first."""
    apart, numbers = np.unique(places.at, return_inverse=True)
    sums = sums_at(terms, Places(numbers.reshape(-1), places.inner, places.shape), (apart.size * places.inner,))
    ARRAY_KERNELS.add_elements(id(result), id(sums), id(apart), places.inner)


def _increased_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    if not ctx.needs[1]:
        return g, None
    return g, ctx.on.sum_to(ctx.on.take_at(g, Places(ctx.extra[0]._data, *ctx.attrs)), ctx.shapes[1])


def accumulating(name: str) -> Structural:
    """An operation that adds values at places, under PyTorch's name for it."""
    linear, moves = (_unchanged, _sums_of_many), (UNMOVED, ADDED_AT)
    return Structural(name, ((),), _increased_vjp, linear=linear, takes_stretched=True, moves=moves)


# Many arrays stand interleaved: what was an element is a block of as many as there are arrays, and the places stay.


def _of_many(ctx: Context, count: int) -> Places:
    inner, shape = ctx.attrs
    return Places(ctx.extra[0]._data, inner * count, (*shape, count))


def _taken_from_many(x_dot: Array, ctx: Context, shape: Shape) -> Array:
    return array_of(take_at(make(x_dot, 0), _of_many(ctx, x_dot.shape[-1])))


def _sums_of_many(x_dot: Array, ctx: Context, shape: Shape) -> Array:
    count = x_dot.shape[-1]
    places = _of_many(ctx, count)
    if x_dot.shape != places.shape:
        ahead = (1,) * (len(places.shape) - x_dot.ndim)
        x_dot = np.broadcast_to(x_dot.reshape(ahead + x_dot.shape), places.shape)
    return sums_at(x_dot, places, (*shape, count))


def _last_of_many(x_dot: Array, ctx: Context, shape: Shape) -> Array:
    return array_of(take_last(make(x_dot, 0), _of_many(ctx, x_dot.shape[-1])))


def _without_the_places(x_dot: Array, ctx: Context, shape: Shape) -> Array:
    return written_at(x_dot, _of_many(ctx, x_dot.shape[-1]), np.zeros(1))


def _put_into_zeros(x_dot: Array, ctx: Context, shape: Shape) -> Array:
    count = x_dot.shape[-1]
    places = _of_many(ctx, count)
    values = x_dot.reshape(*without_leading_ones(x_dot.shape[:-1]), count)
    return written_at(np.zeros((*shape, count)), places, np.broadcast_to(values, places.shape))


def _unchanged(x_dot: Array, ctx: Context, shape: Shape) -> Array:
    return x_dot


_TAKE = taking("IndexBackward0")
_ADD = Structural("IndexAddBackward0", ((),), _add_vjp, linear=(_sums_of_many,), moves=(ADDED_AT,))
PUT = putting("IndexPutBackward0")
_TAKE_LAST = Structural("IndexBackward0", ((),), _take_last_vjp, linear=(_last_of_many,), moves=(LAST_TAKEN_AT,))
