"""Largest and smallest elements, and where they are.

Where several elements tie, the reductions to a value share the gradient among them evenly; `max` and `min` along a
dimension give it to the element whose index they return.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.engine.layout import TAKEN_AT
from tapegrad.ops import elementwise
from tapegrad.ops.flat_places import Places, along, take_at, take_vjp
from tapegrad.ops.namespaces import TENSORS
from tapegrad.ops.reductions import Dims, add_reduce, reduce_along, reduced
from tapegrad.recording.axes import axis
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import Tensor, array_of, make, wrap
from tapegrad.tensors.tracers import computed

__all__ = ["MinMax", "ValuesIndices", "amax", "amin", "aminmax", "argmax", "argmin", "max", "min"]

Array = np.ndarray[Any, Any]
FLOAT64 = np.dtype(np.float64)


class ValuesIndices(NamedTuple):
    """What the choice of an element along a dimension returns."""

    values: Tensor
    indices: Tensor


class MinMax(NamedTuple):
    """What `aminmax` returns."""

    min: Tensor
    max: Tensor


def max(
    x: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None
) -> Tensor | ValuesIndices:
    """The largest element of all, or along a dimension; or the larger of two tensors, element by element.

    Parameters
    ----------
    x : Tensor
    dim : int or Tensor, optional
        A dimension; or the tensor to compare with.
    keepdim : bool
        Keep the dimension, with size one.
    other : Tensor, optional
        The tensor to compare with; the same as giving it as `dim`.

    Returns
    -------
    Tensor or ValuesIndices
        ``(values, indices)`` if `dim` is a number. nan counts as larger and as smaller than everything.

    Raises
    ------
    RuntimeError, IndexError
        If there is no element to choose from.

    Notes
    -----
    Ties: `x.max()` shares the gradient evenly, along a dimension the first one gets it, of two tensors each gets half.

    Examples
    --------
    >>> tg.max(tg.tensor([1.0, 5.0, 2.0]))
    tensor(5.)
    >>> tg.max(tg.tensor([[1.0, 5.0], [7.0, 3.0]]), 1).indices
    tensor([1, 0])
    """
    if other is None and isinstance(dim, Tensor):
        dim, other = None, dim
    if other is not None:
        return elementwise.maximum(x, other)
    if dim is None:
        return _extreme(_MAX, np.maximum, "max", x, None, keepdim)
    return _along(_MAX_ALONG, np.argmax, "max", x, dim, keepdim)  # type: ignore[arg-type]


def min(
    x: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None
) -> Tensor | ValuesIndices:
    """The smallest element of all, or along a dimension; or the smaller of two tensors, element by element.

    Parameters, results, ties and errors are those of `max`.

    Examples
    --------
    >>> tg.min(tg.tensor([4.0, 1.0]))
    tensor(1.)
    """
    if other is None and isinstance(dim, Tensor):
        dim, other = None, dim
    if other is not None:
        return elementwise.minimum(x, other)
    if dim is None:
        return _extreme(_MIN, np.minimum, "min", x, None, keepdim)
    return _along(_MIN_ALONG, np.argmin, "min", x, dim, keepdim)  # type: ignore[arg-type]


def amax(x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The largest element of all, or along one or several dimensions; ties share the gradient evenly.

    Parameters
    ----------
    x : Tensor
    dim : int or sequence of int, optional
    keepdim : bool
        Keep the dimensions, with size one.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError, IndexError
        If there is no element to choose from.

    Examples
    --------
    >>> x = tg.tensor([3.0, 1.0, 3.0], requires_grad=True)
    >>> tg.amax(x).backward()
    >>> x.grad
    tensor([0.5000, 0.0000, 0.5000])
    """
    return _extreme(_AMAX, np.maximum, "amax", x, dim, keepdim)


def amin(x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The smallest element of all, or along one or several dimensions; ties share the gradient evenly.

    Parameters, results and errors are those of `amax`.
    """
    return _extreme(_AMIN, np.minimum, "amin", x, dim, keepdim)


def aminmax(x: Tensor, *, dim: int | None = None, keepdim: bool = False) -> MinMax:
    """The smallest and the largest element, of all or along a dimension; ties share the gradient evenly.

    Parameters
    ----------
    x : Tensor
    dim : int, optional
    keepdim : bool
        Keep the dimensions, with size one.

    Returns
    -------
    MinMax
        ``(min, max)``; nan counts as smaller and as larger than everything.

    Raises
    ------
    RuntimeError, IndexError
        If there is no element to choose from.

    Examples
    --------
    >>> tg.aminmax(tg.tensor([3.0, 1.0, 2.0])).max
    tensor(3.)
    """
    data = array_of(x)
    if dim is None and not data.size:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity. Give dim= of another size."
        )
    position = None if dim is None else axis(dim, data.ndim)
    return MinMax(
        _extreme(_LEAST, np.minimum, "aminmax", x, position, keepdim), _extreme(_MOST, np.maximum, "aminmax", x, position, keepdim)
    )


def argmax(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Index of the largest element, along a dimension or in the flattened tensor; the first of several; untracked.

    Returns
    -------
    Tensor of int64

    Examples
    --------
    >>> tg.argmax(tg.tensor([1.0, 5.0, 5.0]))
    tensor(1)
    """
    return _position(np.argmax, "argmax", x, dim, keepdim)


def argmin(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Index of the smallest element, along a dimension or in the flattened tensor; the first of several; untracked."""
    return _position(np.argmin, "argmin", x, dim, keepdim)


def require_elements(data: Array, axes: tuple[int, ...], whole: bool, name: str) -> None:
    """Raise if a reduction over `axes` would have nothing to choose from.

    Raises
    ------
    RuntimeError, IndexError
        The latter along a dimension, and for the whole tensor from the functions that return an index.
    """
    if data.size:
        return
    if whole:
        kind = IndexError if name.startswith("arg") else RuntimeError
        raise kind(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            "the 'dim' argument."
        )
    for k in axes:
        if data.shape[k] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {k} to have non-zero size.")


def _extreme(op: Structural, choose: Any, name: str, x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    data = array_of(x)
    removed = reduced(dim, data.ndim)
    require_elements(data, removed, dim is None, name)
    is_large = data.size > SMALL
    value = reduce_along(choose, data, removed, keepdim) if is_large else choose.reduce(data, removed, None, None, keepdim)
    return apply(op, (x,), value, (removed, keepdim))


def largest_again(arrays: Sequence[Array], attrs: Any) -> Any:
    """The value of a largest element."""
    return reduce_along(np.maximum, arrays[0], *attrs)


def smallest_again(arrays: Sequence[Array], attrs: Any) -> Any:
    """The value of a smallest element."""
    return reduce_along(np.minimum, arrays[0], *attrs)


def share_evenly(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    """The vjp of a reduction to one of the elements: all that equal it get the same share of the cotangent."""
    removed, keepdim = ctx.attrs
    return (ctx.on.shared_evenly(g, ctx.inputs[0], ctx.result, removed, keepdim, ctx.shapes[0]),)


def shared_evenly(
    g: Tensor, x: Tensor, z: Tensor, removed: tuple[int, ...], keepdim: bool, shape: tuple[int, ...], on: Any = TENSORS
) -> Tensor:
    """The cotangent of what was reduced over some axes to its largest or smallest elements `z`."""
    data, value = array_of(x), on.restore(z, removed, keepdim, shape)._data
    chosen, unordered = data == value, value != value
    if unordered if type(value) is float else unordered.any():
        chosen |= (data != data) & unordered  # nan ties with nan
    share = chosen / add_reduce(chosen, removed, None, None, True)
    return elementwise._mul0(on.restore(g, removed, keepdim, shape), wrap(share.astype(data.dtype, copy=False)))


def shared_by_loop(g: Tensor, x: Tensor, z: Tensor, removed: tuple[int, ...], magnitudes: bool = False) -> Tensor | None:
    """The same, or of `magnitudes`, by a compiled loop; None where there is none."""
    data, values, adjoint = x._data, array_of(z), array_of(g)
    if type(data) is not np.ndarray or not (data.dtype is values.dtype is adjoint.dtype is FLOAT64) or not data.flags.c_contiguous:
        return None
    extents = _groups(data.shape, removed) if data.size else None
    if extents is None:
        return None
    if not (values.flags.c_contiguous and adjoint.flags.c_contiguous):
        values, adjoint = np.ascontiguousarray(values), np.ascontiguousarray(adjoint)
    result = large_empty(data.shape, FLOAT64)
    ARRAY_KERNELS.share_evenly(id(result), id(data), id(values), id(adjoint), *extents, int(magnitudes))
    return make(result, 0)


@functools.lru_cache(maxsize=512)
def _groups(shape: tuple[int, ...], removed: tuple[int, ...]) -> tuple[int, ...] | None:
    """Elements of what is removed in front, kept, removed and kept again; None if they lie otherwise."""
    if not removed:
        return None
    extents, group = [1, 1, 1, 1], 1 if removed[-1] - removed[0] + 1 == len(removed) or removed[0] else 0
    for k, extent in enumerate(shape):
        if (group % 2 == 0) != (k in removed):
            group += 1
        if group > 3:
            return None
        extents[group] *= extent
    return tuple(extents)


def _position(find: Any, name: str, x: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    data = array_of(x)
    if data.dtype.kind == "b":
        raise RuntimeError(f"{name}(): does not support bool input; convert it to an integer dtype")
    position = None if dim is None else axis(dim, data.ndim)
    if untracked_values.decisions_in_use:
        untracked_values.compared(x)
    require_elements(data, () if position is None else (position,), dim is None, name)
    if data.ndim == 0:
        return wrap(np.zeros((), np.int64))
    return wrap(np.asarray(find(data, position, keepdims=keepdim), np.int64))


def _along(op: Structural, find: Any, name: str, x: Tensor, dim: int, keepdim: bool) -> ValuesIndices:
    data = array_of(x)
    position = axis(dim, data.ndim)
    if data.ndim == 0:
        return pick_only(op, x)
    require_elements(data, (position,), False, name)
    return pick_along(op, x, position, lambda data: np.asarray(find(data, position, keepdims=True), np.int64), keepdim)


def pick_only(op: Structural, x: Tensor) -> ValuesIndices:
    """`pick_along` for a tensor without dimensions."""
    return ValuesIndices(apply(op, (x,), array_of(x).copy(), None), wrap(np.zeros((), np.int64)))


def pick_along(op: Structural, x: Tensor, position: int, find: Callable[[Array], Array], keepdim: bool) -> ValuesIndices:
    """The elements that `find` names along a dimension, which is dropped unless it is to be kept, and their indices.

    `op` is made with `to_the_picked`.
    """
    data = array_of(x)
    if not data.ndim:
        return pick_only(op, x)
    where = find(data)
    places, _ = along(where, position, data.shape)
    at, inner, shape = places
    if not keepdim:
        shape = (*shape[:position], *shape[position + 1 :])
    indices = wrap(where.reshape(shape))
    if TAPE.tracers:
        computed(_found_again, (x, find, position, shape), {}, (make(at, 0), indices))
    return ValuesIndices(take_at(x, Places(at, inner, shape), op), indices)


def _found_again(data: Any, find: Callable[[Array], Array], position: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    where = find(array_of(data) if isinstance(data, Tensor) else data)
    return along(where, position, np.shape(data))[0].at, where.reshape(shape)


def to_the_picked(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    """The vjp of the choice of one element along a dimension: that one gets the cotangent."""
    return (g,) if ctx.attrs is None else take_vjp(g, ctx)


def choosing(name: str) -> Structural:
    """An operation that chooses elements along a dimension, under PyTorch's name for it."""
    return Structural(name, ((),), to_the_picked, forward=_picked_again, moves=(TAKEN_AT,))


def _picked_again(arrays: Sequence[Array], attrs: Any, *extra: Array) -> Array:
    if attrs is None:
        return arrays[0]
    inner, shape = attrs
    return array_of(take_at(make(arrays[0], 0), Places(extra[0], inner, shape)))


_MAX = Structural("MaxBackward1", ((0, "z"),), share_evenly, forward=largest_again)
_MIN = Structural("MinBackward1", ((0, "z"),), share_evenly, forward=smallest_again)
_AMAX = Structural("AmaxBackward0", ((0, "z"),), share_evenly, forward=largest_again)
_AMIN = Structural("AminBackward0", ((0, "z"),), share_evenly, forward=smallest_again)
_MAX_ALONG = choosing("MaxBackward0")
_MIN_ALONG = choosing("MinBackward0")
_LEAST = Structural("AminmaxBackward0", ((0, "z"),), share_evenly)
_MOST = Structural("AminmaxBackward0", ((0, "z"),), share_evenly)
