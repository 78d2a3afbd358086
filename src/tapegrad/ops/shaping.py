"""Other shapes of the same elements: reshape, flatten, squeeze, expand.

Everything here is a view where the memory layout allows it. Only `reshape`, its relatives and `contiguous` may copy.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.sizes import expanded, resolve, sizes
from tapegrad.errors import ShapeError
from tapegrad.ops import views
from tapegrad.recording.axes import axes, axis
from tapegrad.recording.strided_maps import reshape_copy
from tapegrad.tensors.tensor import Tensor, array_of, check_adjoint

__all__ = [
    "broadcast_to",
    "contiguous",
    "expand",
    "expand_as",
    "flatten",
    "ravel",
    "reshape",
    "reshape_as",
    "squeeze",
    "unflatten",
    "unsqueeze",
    "view",
    "view_as",
]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


def reshape(x: Tensor, *lengths: int | Sequence[int], shape: Sequence[int] | None = None) -> Tensor:
    """The elements of `x`, in C order, in another shape; a view where the layout allows it, else a copy.

    Parameters
    ----------
    x : Tensor
    *lengths : int or sequence of int
        The new shape; one entry may be -1, which is then inferred.
    shape : sequence of int, optional
        The same, by its name.

    Returns
    -------
    Tensor, of the new shape

    Raises
    ------
    ShapeError
        If the number of elements differs.

    Examples
    --------
    >>> tg.reshape(tg.tensor([1.0, 2.0, 3.0, 4.0]), 2, -1)
    tensor([[1., 2.],
            [3., 4.]])
    """
    data = x._data
    if type(data) is float:
        data = array_of(x)
    target = resolve(lengths, data.size, "reshape", shape)
    if data.flags.c_contiguous:
        return views.view(x, "ViewBackward0", _Reshape(target))
    result = data.reshape(target)
    if _is_view(result, data):
        return views.view(x, "ViewBackward0", _Reshape(target))
    return reshape_copy(x, "UnsafeViewBackward0", result)


def view(x: Tensor, *lengths: int | Sequence[int], size: Sequence[int] | None = None) -> Tensor:
    """The elements of `x` in another shape, always sharing memory with `x`.

    Parameters
    ----------
    x : Tensor
    *lengths : int or sequence of int
        The new shape; one entry may be -1, which is then inferred.
    size : sequence of int, optional
        The same, by its name.

    Returns
    -------
    Tensor, of the new shape

    Raises
    ------
    ShapeError
        If the number of elements differs, or the layout of `x` admits no such view; `reshape` copies then.

    Examples
    --------
    >>> tg.tensor([1.0, 2.0, 3.0, 4.0]).view(2, 2)
    tensor([[1., 2.],
            [3., 4.]])
    """
    data = x._data
    if type(data) is float:
        data = array_of(x)
    target = resolve(lengths, data.size, "view", size)
    if not data.flags.c_contiguous and not _is_view(data.reshape(target), data):
        raise ShapeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            f"contiguous subspaces): size {list(data.shape)}, wanted {list(target)}. Use .reshape(...) instead."
        )
    return views.view(x, "ViewBackward0", _Reshape(target))


def view_as(x: Tensor, other: Tensor) -> Tensor:
    """`view` of `x` in the shape of `other`."""
    return view(x, array_of(other).shape)


def reshape_as(x: Tensor, other: Tensor) -> Tensor:
    """`reshape` of `x` to the shape of `other`."""
    return reshape(x, array_of(other).shape)


def flatten(x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge the dimensions from `start_dim` to `end_dim`, both included, into one.

    A tensor that needs no merging is returned itself; a 0-d tensor becomes one of shape ``(1,)``.

    Raises
    ------
    ShapeError
        If `start_dim` comes after `end_dim`.
    """
    shape = array_of(x).shape
    first, last = axis(start_dim, len(shape)), axis(end_dim, len(shape))
    if first > last:
        raise ShapeError(f"flatten() has invalid args: start_dim {start_dim} cannot come after end_dim {end_dim}")
    if not shape:
        return reshape(x, (1,))
    if first == last:
        return x
    merged = 1
    for extent in shape[first : last + 1]:
        merged *= extent
    return reshape(x, (*shape[:first], merged, *shape[last + 1 :]))


def unflatten(x: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """A view with one dimension split into several.

    Parameters
    ----------
    x : Tensor
    dim : int
    sizes : sequence of int
        What it is split into; one entry may be -1, which is then inferred.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If `sizes` is a number.
    ShapeError
        If `sizes` is empty or does not multiply up to the size of the dimension.

    Examples
    --------
    >>> tg.unflatten(tg.zeros(2, 6), 1, (3, -1)).shape
    tapegrad.Size([2, 3, 2])
    """
    if not isinstance(sizes, (tuple, list)):
        raise TypeError(f"unflatten(): argument 'sizes' (position 2) must be tuple of ints, not {type(sizes).__name__}")
    if not sizes:
        raise ShapeError("unflatten: sizes must be non-empty")
    shape = array_of(x).shape
    if not shape:
        raise ShapeError(f"unflatten: dimension specified as {dim} but tensor has no dimensions")
    position = axis(dim, len(shape))
    extent = shape[position]
    try:
        parts = resolve((sizes,), extent, "unflatten")
    except ShapeError as error:
        raise ShapeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {position} ({extent}) in the input "
            f"tensor: {error}"
        ) from None
    return view(x, (*shape[:position], *parts, *shape[position + 1 :]))


def ravel(x: Tensor) -> Tensor:
    """All elements of `x` in one dimension, side by side in memory; a view where they lie so."""
    return contiguous(reshape(x, (array_of(x).size,)))


def contiguous(x: Tensor) -> Tensor:
    """`x` itself if its elements lie in C order, else a copy whose elements do."""
    data = x._data
    if type(data) is float or data.flags.c_contiguous:
        return x
    return reshape_copy(x, "CloneBackward0", data.copy())


def squeeze(x: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """A view without the dimensions of size one.

    Parameters
    ----------
    x : Tensor
    dim : int or sequence of int, optional
        Which ones to drop; those whose size is not one are left alone.

    Returns
    -------
    Tensor
    """
    take = dropping(array_of(x).shape, dim)
    name = "SqueezeBackward0" if dim is None else "SqueezeBackward1" if isinstance(dim, int) else "SqueezeBackward2"
    return views.view(x, name, take)


def dropping(shape: Shape, dim: int | Sequence[int] | None) -> _Squeeze:
    """The map of `squeeze`."""
    if dim is None:
        return _Squeeze(tuple([k for k, extent in enumerate(shape) if extent == 1]))
    chosen = () if isinstance(dim, (tuple, list)) and not dim else axes(dim, len(shape))
    return _Squeeze(tuple(k for k in chosen if k < len(shape) and shape[k] == 1))


def unsqueeze(x: Tensor, dim: int) -> Tensor:
    """A view with a dimension of size one inserted before position `dim`.

    Negative positions count from the end of the result: -1 appends.

    Examples
    --------
    >>> tg.unsqueeze(tg.tensor([1.0, 2.0]), 1).shape
    tapegrad.Size([2, 1])
    """
    position = axis(dim, array_of(x).ndim + 1)
    return views.view(x, "UnsqueezeBackward0", inserting(position))


def inserting(position: int) -> Any:
    """The map of `unsqueeze`."""
    return operator.itemgetter((slice(None),) * position + (None, Ellipsis))


def expand(x: Tensor, *lengths: int | Sequence[int], size: Sequence[int] | None = None) -> Tensor:
    """A view in which dimensions of size one are repeated without copying.

    Parameters
    ----------
    x : Tensor
    *lengths : int or sequence of int
        The wanted shape; -1 keeps a size. New dimensions may be added in front.
    size : sequence of int, optional
        The same, by its name.

    Returns
    -------
    Tensor, of the wanted shape
        Several elements may share one place in memory.

    Raises
    ------
    ShapeError
        If a dimension whose size is not one would have to change.

    Examples
    --------
    >>> tg.tensor([[1.0], [2.0]]).expand(-1, 3)
    tensor([[1., 1., 1.],
            [2., 2., 2.]])
    """
    target = expanded(array_of(x).shape, sizes(lengths, "expand", size))
    try:
        result = views.view(x, "ExpandBackward0", _Broadcast(target))
    except ValueError:
        raise ShapeError(
            f"expand: no tensor can have the shape {list(target)}, for its dimensions are too many or too long"
        ) from None
    if result._row:
        check_adjoint(array_of(result).size)
    return result


def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """`expand` of `x` to the shape of `other`."""
    return expand(x, array_of(other).shape)


def broadcast_to(x: Tensor, *lengths: int | Sequence[int], size: Sequence[int] | None = None) -> Tensor:
    """The same as `expand`."""
    return expand(x, *lengths, size=size)


class _Reshape:
    """The map of a view that reshapes: dearer to make as a closure."""

    __slots__ = ("shape",)

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def __call__(self, array: Array) -> Array:
        return array.reshape(self.shape)


class _Broadcast(_Reshape):
    __slots__ = ()

    def __call__(self, array: Array) -> Array:
        shape = self.shape
        if array.flags.c_contiguous and array.size:  # a third of the time of NumPy's function
            own, ahead = array.shape, (0,) * (len(shape) - array.ndim)
            steps = tuple([0 if n == 1 else step for n, step in zip(own, array.strides, strict=True)])
            if own == tuple([n if n == 1 else m for n, m in zip(own, shape[len(ahead) :], strict=True)]):
                return np.ndarray(shape, array.dtype, array, 0, ahead + steps)
        result = np.broadcast_to(array, shape)
        # Writes are refused where elements share memory, not because NumPy is careful.
        result.flags.writeable = array.flags.writeable
        return result


class _Squeeze(_Reshape):
    __slots__ = ()

    def __call__(self, array: Array) -> Array:
        return array.squeeze(self.shape)


def _is_view(result: Array, source: Array) -> bool:
    return source.size == 0 or np.may_share_memory(result, source)
