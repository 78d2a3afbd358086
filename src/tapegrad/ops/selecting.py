"""Elements chosen by index tensors and masks, as functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import int64, type_name
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.engine.layout import ALL_BUT_WHERE, PUT_WHERE
from tapegrad.errors import ShapeError
from tapegrad.ops.flat_places import Places, add_at, along, blocks, take_at, taking
from tapegrad.ops.in_place_copies import write_result, written_directly
from tapegrad.ops.shaping import expand, reshape
from tapegrad.recording.axes import axis
from tapegrad.recording.primal_values import choose
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, as_operand, wrap

__all__ = ["gather", "index_select", "masked_fill", "masked_select", "take", "take_along_dim"]

Array = np.ndarray[Any, Any]

_INDEX_SELECT = taking("IndexSelectBackward0")
_GATHER = taking("GatherBackward0")
_MASKED_SELECT = taking("MaskedSelectBackward0")
_TAKE = taking("TakeBackward0")


def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of `x` along a dimension that `index` lists, as a copy.

    Parameters
    ----------
    x : Tensor
    dim : int
    index : Tensor of int32 or int64, shape (n,) or ()
        Not negative.

    Returns
    -------
    Tensor
        Of the shape of `x` with ``n`` in dimension `dim`.

    Raises
    ------
    IndexError
        If an index is out of range, or `index` has more than one dimension.

    Examples
    --------
    >>> tg.index_select(tg.tensor([1.0, 2.0, 3.0]), 0, tg.tensor([2, 0]))
    tensor([3., 1.])
    """
    places = places_along(index, "index_select()")
    if places.ndim > 1:
        raise IndexError(f"index_select(): Index is supposed to be a vector, got {places.ndim} dimensions")
    shape = array_of(x).shape
    position = axis(dim, len(shape))
    found, wrong = blocks(places.reshape(-1), shape or (1,), position, from_the_end=False)
    if wrong >= 0:
        extent = shape[position] if shape else 1
        raise IndexError(f"index out of range in self: dimension {position} has size {extent}, index {places.reshape(-1).tolist()}")
    result = take_at(x, found, _INDEX_SELECT)
    return result if shape else reshape(result, ())


def gather(x: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Elements of `x` chosen along a dimension: ``result[i][j] = x[index[i][j]][j]`` for ``dim=0``.

    Parameters
    ----------
    x : Tensor
    dim : int
    index : Tensor of int32 or int64
        Of the rank of `x`, and not larger than it in the other dimensions.
    sparse_grad : bool
        Of no effect: gradients are dense.

    Returns
    -------
    Tensor, of the shape of `index`

    Raises
    ------
    RuntimeError
        If an index is out of range or negative, or the shapes do not fit together.

    Examples
    --------
    >>> tg.gather(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, tg.tensor([[1], [0]]))
    tensor([[2.],
            [3.]])
    """
    shape = array_of(x).shape
    position = axis(dim, len(shape))
    if isinstance(index, Tensor) and not array_of(index).size:
        # Nothing is looked up, so neither the dtype nor the shape matters.
        return take_at(x, Places(np.empty(0, np.int64), 1, array_of(index).shape), _GATHER)
    places = places_along(index, "gather()")
    if max(places.ndim, 1) != max(len(shape), 1):
        raise ShapeError(
            f"Index tensor must have the same number of dimensions as input tensor, got {places.ndim} and {len(shape)}"
        )
    if not shape or not places.ndim:
        # a 0-d tensor counts as one of size one
        return reshape(gather(reshape(x, (array_of(x).size,)), 0, wrap(places.reshape(-1))), places.shape)
    for k, wanted in enumerate(() if places.shape == shape else places.shape):
        if wanted > shape[k] and k != position:
            raise ShapeError(
                f"Size does not match at dimension {k} expected index {list(places.shape)} to be no larger than self "
                f"{list(shape)} apart from dimension {position}"
            )
    found, wrong = along(places, position, shape)
    if wrong >= 0:
        raise RuntimeError(f"index {places.flat[wrong]} is out of bounds for dimension {position} with size {shape[position]}")
    return take_at(x, found, _GATHER)


def take_along_dim(x: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`gather` whose operands broadcast apart from the dimension; over the flattened tensors if none is given.

    Parameters
    ----------
    x : Tensor
    indices : Tensor of int64, or int32 without `dim`
        Along a dimension they count round and round, as in PyTorch: -1 is the last one, and so is ``2 * n - 1``.
    dim : int, optional

    Raises
    ------
    RuntimeError
        If `indices` are of another dtype, the ranks differ, or, without `dim`, an index is negative or out of range.

    Examples
    --------
    >>> x = tg.tensor([[1.0, 3.0], [4.0, 2.0]])
    >>> tg.take_along_dim(x, tg.tensor([[-1], [0]]), 1)
    tensor([[3.],
            [4.]])
    """
    places = places_along(indices, "take_along_dim()")
    if dim is None:
        return gather(reshape(x, (-1,)), 0, wrap(places.reshape(-1)))
    if array_of(indices).dtype is not int64 and array_of(indices).dtype != int64:
        raise RuntimeError(f"take_along_dim(): dtype of indices should be Long but got {type_name(array_of(indices).dtype)}")
    shape = array_of(x).shape
    if places.ndim != len(shape):
        raise ShapeError(
            "take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{len(shape)} dimensions for input, and {places.ndim} dimensions for indices"
        )
    position = axis(dim, len(shape))
    if shape and shape[position]:
        places = places % shape[position]
    others, given = _without(shape, position), _without(places.shape, position)
    if others == given and places.size and shape[position]:
        return take_at(x, along(places, position, shape)[0], _GATHER)
    common = list(common_shape(others, given))
    whole = (*common[:position], shape[position], *common[position:])
    there = stretched(places, (*common[:position], places.shape[position], *common[position:]))
    return gather(x if whole == shape else expand(x, whole), position, wrap(there))


def take(x: Tensor, index: Tensor) -> Tensor:
    """The elements of `x` that `index` counts in the flattened tensor, as a copy.

    Parameters
    ----------
    x : Tensor
    index : Tensor of int64
        Negative ones count from the end.

    Returns
    -------
    Tensor, of the shape of `index`

    Raises
    ------
    RuntimeError
        If `index` is of another dtype.
    IndexError
        If an index is out of range.

    Examples
    --------
    >>> tg.take(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([0, -1]))
    tensor([1., 4.])
    """
    data = array_of(x)
    if array_of(index).dtype is not int64 and array_of(index).dtype != int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {type_name(array_of(index).dtype)}")
    return take_at(x, flat_places(index, data.size), _TAKE)


def flat_places(index: Tensor, size: int) -> Places:
    """Where the elements stand that indices count in a flattened tensor of `size` elements, also from its end.

    Raises
    ------
    IndexError
        If one is out of range.
    """
    numbers = array_of(index)
    places, wrong = blocks(numbers, (size,), 0)
    if wrong >= 0:
        raise IndexError(f"out of range: tried to access index {numbers.flat[wrong]} on a tensor of {size} elements.")
    return places


def put_along(g: Tensor, position: int, places: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Zeros of `shape` with `g` added at `places` along a dimension: the transpose of `gather`."""
    return add_at(g, along(array_of(places), position, shape)[0], shape)


def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements of `x` where `mask` holds, in one dimension; both broadcast.

    Raises
    ------
    RuntimeError
        If `mask` is not of bools, or the shapes do not broadcast.
    """
    chosen = _mask(mask, "masked_select()")
    if chosen.dtype != np.bool_:
        raise RuntimeError(f"masked_select: expected BoolTensor for mask, got {type_name(chosen.dtype)}")
    common = common_shape(array_of(x).shape, chosen.shape)
    if common != array_of(x).shape:
        x = expand(x, common)
    at = np.flatnonzero(stretched(chosen, common))
    return take_at(x, Places(at, 1, at.shape), _MASKED_SELECT)


def masked_fill(x: Tensor, mask: Tensor, value: Tensor | float) -> Tensor:
    """A copy of `x` with `value` where `mask` holds; `x` and `mask` broadcast.

    Parameters
    ----------
    x : Tensor
    mask : Tensor of bool
    value : number or 0-d Tensor

    Returns
    -------
    Tensor, of the dtype of `x`

    Raises
    ------
    RuntimeError
        If `mask` is not of bools, `value` has dimensions, or the shapes do not broadcast.

    Examples
    --------
    >>> tg.masked_fill(tg.tensor([1.0, 2.0]), tg.tensor([True, False]), 0.0)
    tensor([0., 2.])
    """
    data, (chosen, number) = array_of(x), _filling(x, mask, value)
    common = common_shape(data.shape, chosen.shape)
    with quiet():
        result = choose(chosen, array_of(number).astype(data.dtype), data)
    tracked = x.requires_grad or number.requires_grad
    kept = wrap(np.array(stretched(chosen, common), order="C")) if tracked else None
    extra = () if kept is None else (kept,)
    if isinstance(value, Tensor):
        return apply(_FILL_TENSOR, (x, number), result, None, extra)
    return apply(_FILL, (x,), result, None, extra)


def fill_into(t: Tensor, mask: Tensor, value: Tensor | float) -> Tensor:
    """`masked_fill` in place."""
    data, (chosen, number) = array_of(t), _filling(t, mask, value)
    if common_shape(data.shape, chosen.shape) != data.shape:
        return write_result(t, masked_fill(t, mask, value))  # which says what is wrong
    kept = np.array(stretched(chosen, data.shape), order="C")
    with quiet():
        given = array_of(number).astype(data.dtype)
    op, others = (_FILL_TENSOR, (number,)) if isinstance(value, Tensor) else (_FILL, ())
    return written_directly(t, op, others, None, (wrap(kept),), lambda target: np.copyto(target, given, where=kept))


def _filling(x: Tensor, mask: Tensor, value: Tensor | float) -> tuple[Array, Tensor]:
    """The mask and the number of `masked_fill`."""
    chosen = _mask(mask, "masked_fill()")
    if chosen.dtype != np.bool_:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {chosen.dtype}")
    number = as_operand(value, x)
    if array_of(number).ndim:
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {array_of(number).ndim} dimension(s)."
        )
    return chosen, number


def _fill_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    (mask,) = ctx.extra
    x_bar = on.sum_to(masked_fill(g, mask, 0.0), ctx.shapes[0]) if ctx.needs[0] else None
    if len(ctx.needs) == 1:
        return (x_bar,)
    opposite = wrap(~array_of(mask))
    return x_bar, on.sum_to(masked_fill(g, opposite, 0.0), ()) if ctx.needs[1] else None


def _many_masked(x_dot: Array, ctx: Context, shape: tuple[int, ...]) -> Array:
    return np.where(array_of(ctx.extra[0])[..., None], 0.0, x_dot)


def _many_behind_the_mask(x_dot: Array, ctx: Context, shape: tuple[int, ...]) -> Array:
    return np.where(array_of(ctx.extra[0])[..., None], x_dot, 0.0)


_FILL = Structural("MaskedFillBackward0", ((),), _fill_vjp, linear=(_many_masked,), moves=(ALL_BUT_WHERE,))
_FILL_TENSOR = Structural(
    "MaskedFillBackward1", ((),), _fill_vjp, linear=(_many_masked, _many_behind_the_mask), moves=(ALL_BUT_WHERE, PUT_WHERE)
)


def places_along(index: Tensor, name: str) -> Array:
    """An index tensor's array, checked to be of integers."""
    if not isinstance(index, Tensor):
        raise TypeError(f"{name}: argument 'index' must be Tensor, not {type(index).__name__}; use tg.tensor(...)")
    places = array_of(index)
    if places.dtype is int64:
        return places
    if places.dtype not in (np.int32, np.int64):
        raise RuntimeError(f"{name}: Expected dtype int32 or int64 for index, got {type_name(places.dtype)}")
    return places.astype(np.int64, copy=False)


def _mask(mask: Tensor, name: str) -> Array:
    if not isinstance(mask, Tensor):
        raise TypeError(f"{name}: argument 'mask' must be Tensor, not {type(mask).__name__}; use tg.tensor(...)")
    return array_of(mask)


def _without(shape: tuple[int, ...], position: int) -> tuple[int, ...]:
    return shape[:position] + shape[position + 1 :]


def stretched(array: Array, shape: tuple[int, ...]) -> Array:
    """An array broadcast to a shape; NumPy's function takes six microseconds also where there is nothing to do."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def common_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that two broadcast to."""
    if a == b:
        return a
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        ndim = max(len(a), len(b))
        pairs = zip(reversed((1,) * (ndim - len(a)) + a), reversed((1,) * (ndim - len(b)) + b), strict=True)
        k, (m, n) = next((k, pair) for k, pair in enumerate(pairs) if pair[0] != pair[1] and 1 not in pair)
        raise ShapeError(
            f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension {ndim - 1 - k}"
        ) from None
