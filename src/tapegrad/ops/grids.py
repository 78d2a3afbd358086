"""Grids: tensors expanded against each other, and all choices of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.sizes import Size, sizes
from tapegrad.errors import ShapeError
from tapegrad.ops.indexing import getitem
from tapegrad.ops.joining import stack
from tapegrad.ops.shaping import expand, reshape
from tapegrad.recording.apply_rule import check_broadcast
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["broadcast_shapes", "broadcast_tensors", "cartesian_prod", "combinations", "meshgrid"]


def _given(tensors: tuple[Any, ...], name: str) -> list[Tensor]:
    inputs = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else list(tensors)
    for k, x in enumerate(inputs):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}(): expected Tensor as element {k} in argument 0, but got {type(x).__name__}")
    return inputs


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape, as views; those that have it already are returned themselves.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> [tuple(t.shape) for t in tg.broadcast_tensors(tg.zeros(3, 1), tg.zeros(2))]
    [(3, 2), (3, 2)]
    """
    inputs = _given(tensors, "broadcast_tensors")
    check_broadcast(*(array_of(x) for x in inputs))
    common = np.broadcast_shapes(*(array_of(x).shape for x in inputs))
    return tuple(x if array_of(x).shape == common else expand(x, common) for x in inputs)


def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """The shape that tensors of given shapes broadcast to.

    Raises
    ------
    ShapeError
        If they do not broadcast.

    Examples
    --------
    >>> tg.broadcast_shapes((3, 1), (2,))
    tapegrad.Size([3, 2])
    """
    given = [sizes((shape,), "broadcast_shapes") for shape in shapes]
    check_broadcast(*(np.broadcast_to(np.int8(0), shape) for shape in given))
    return Size(np.broadcast_shapes(*given))


def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of a grid, one view for each vector of coordinates.

    Parameters
    ----------
    *tensors : Tensor of shape (n,) or ()
    indexing : {"ij", "xy"}
        The order of the grid's dimensions: that of the tensors, or with the first two exchanged.

    Returns
    -------
    tuple of Tensor

    Raises
    ------
    RuntimeError
        If there is no tensor, one has more than one dimension, the dtypes differ, or `indexing` is something else.

    Examples
    --------
    >>> x, y = tg.meshgrid(tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0]), indexing="ij")
    >>> x, y
    (tensor([[1., 1.],
            [2., 2.]]), tensor([[3., 4.],
            [3., 4.]]))
    """
    inputs = _given(tensors, "meshgrid")
    if not inputs:
        raise ShapeError("meshgrid expects a non-empty TensorList")
    for x in inputs:
        if array_of(x).ndim > 1:
            raise ShapeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got shape {list(array_of(x).shape)}")
        if array_of(x).dtype != array_of(inputs[0]).dtype:
            raise RuntimeError(
                "meshgrid expects all tensors to have the same dtype, got "
                f"{type_name(array_of(inputs[0]).dtype)} and {type_name(array_of(x).dtype)}"
            )
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    exchanged = indexing == "xy" and len(inputs) > 1
    if exchanged:
        inputs[0], inputs[1] = inputs[1], inputs[0]
    shape = tuple(array_of(x).size for x in inputs)
    grids = [expand(reshape(x, _alone(shape, k)), shape) for k, x in enumerate(inputs)]
    if exchanged:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def _alone(shape: tuple[int, ...], k: int) -> tuple[int, ...]:
    return tuple(extent if j == k else 1 for j, extent in enumerate(shape))


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All tuples of one element from each vector, in the order of nested loops.

    Parameters
    ----------
    *tensors : Tensor of shape (n,)

    Returns
    -------
    Tensor of shape (number of tuples, number of tensors)
        The vector itself if there is only one.

    Raises
    ------
    RuntimeError
        If there is no tensor, or one is not a vector.

    Examples
    --------
    >>> tg.cartesian_prod(tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0]))
    tensor([[1., 3.],
            [1., 4.],
            [2., 3.],
            [2., 4.]])
    """
    inputs = _given(tensors, "cartesian_prod")
    for x in inputs:
        _check_vector(x)
    if len(inputs) == 1:
        return inputs[0]
    return stack([reshape(grid, (array_of(grid).size,)) for grid in meshgrid(*inputs)], 1)


def combinations(x: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` elements of a vector, in the order of `itertools.combinations`.

    Parameters
    ----------
    x : Tensor of shape (n,)
    r : int
    with_replacement : bool
        Whether an element may be chosen several times.

    Returns
    -------
    Tensor of shape (number of choices, r)

    Raises
    ------
    RuntimeError
        If `x` is not a vector or `r` is negative.

    Examples
    --------
    >>> tg.combinations(tg.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 2.],
            [1., 3.],
            [2., 3.]])
    """
    _check_vector(x)
    if r < 0:
        raise ShapeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return wrap(np.empty(0, array_of(x).dtype))
    return getitem(x, wrap(_choices(array_of(x).size, r, with_replacement)))


def _choices(count: int, r: int, with_replacement: bool) -> np.ndarray:
    """All choices of `r` of the first numbers, each ascending, in the order of their first, second, ... number."""
    chosen = np.arange(count)[:, None]
    for _ in range(1, r):
        first = chosen[:, -1] + (not with_replacement)  # that may follow
        follow = np.maximum(count - first, 0)
        starts = np.cumsum(follow) - follow
        last = np.arange(follow.sum()) + np.repeat(first - starts, follow)
        chosen = np.concatenate([np.repeat(chosen, follow, 0), last[:, None]], 1)
    return chosen


def _check_vector(x: Tensor) -> None:
    if array_of(x).ndim != 1:
        raise ShapeError(f"Expect a 1D vector, but got shape {list(array_of(x).shape)}")
