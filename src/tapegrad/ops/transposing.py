"""Views with the dimensions in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.sizes import sizes
from tapegrad.errors import ShapeError
from tapegrad.ops.views import view
from tapegrad.recording.axes import axis
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["H", "T", "adjoint", "mT", "moveaxis", "movedim", "permute", "swapaxes", "swapdims", "t", "transpose"]

Array = np.ndarray[Any, Any]


class Reordering:
    """The map of a view that reorders dimensions."""

    __slots__ = ("order",)

    def __init__(self, order: tuple[int, ...]) -> None:
        self.order = order

    def __call__(self, array: Array) -> Array:
        return array.transpose(self.order)


def swapped(ndim: int, first: int, second: int) -> tuple[int, ...]:
    """The order of dimensions in which two are exchanged."""
    order = list(range(ndim))
    if ndim:
        order[first], order[second] = second, first
    return tuple(order)


def transpose(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two dimensions exchanged.

    Examples
    --------
    >>> tg.transpose(tg.zeros(2, 3, 4), 0, -1).shape
    tapegrad.Size([4, 3, 2])
    """
    ndim = array_of(x).ndim
    return view(x, "TransposeBackward0", Reordering(swapped(ndim, axis(dim0, ndim), axis(dim1, ndim))))


def swapaxes(x: Tensor, axis0: int, axis1: int) -> Tensor:
    """The same as `transpose`."""
    return transpose(x, axis0, axis1)


def swapdims(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """The same as `transpose`."""
    return transpose(x, dim0, dim1)


def permute(x: Tensor, *order: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
    """A view whose dimension ``k`` is dimension ``dims[k]`` of `x`; `dims` are given as numbers, as a sequence, or by that name.

    Raises
    ------
    ShapeError
        If `dims` does not name every dimension exactly once.
    """
    wanted = sizes(order, "permute", dims) if order or dims is not None else ()
    ndim = array_of(x).ndim
    if len(wanted) != ndim:
        raise ShapeError(
            "permute(): number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(wanted)}"
        )
    positions = tuple(axis(dim, ndim) for dim in wanted)
    if len(set(positions)) != ndim:
        raise ShapeError(f"permute(): duplicate dims are not allowed, got {list(wanted)}")
    return view(x, "PermuteBackward0", Reordering(positions))


def t(x: Tensor) -> Tensor:
    """The transpose of a matrix; tensors of fewer dimensions are viewed unchanged.

    Raises
    ------
    ShapeError
        If `x` has more than two dimensions.
    """
    ndim = array_of(x).ndim
    if ndim > 2:
        raise ShapeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D; use transpose or mT")
    return view(x, "TBackward0", Reordering(tuple(reversed(range(ndim)))))


def T(x: Tensor) -> Tensor:
    """A view with all dimensions in reverse order."""
    return view(x, "PermuteBackward0", Reordering(tuple(reversed(range(array_of(x).ndim)))))


def mT(x: Tensor) -> Tensor:
    """A view with the last two dimensions exchanged.

    Raises
    ------
    ShapeError
        If `x` has fewer than two dimensions.
    """
    ndim = array_of(x).ndim
    if ndim < 2:
        raise ShapeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {ndim}-D tensor.")
    return view(x, "TransposeBackward0", Reordering(swapped(ndim, ndim - 2, ndim - 1)))


def adjoint(x: Tensor) -> Tensor:
    """The same as `mT`: elements are real."""
    return mT(x)


def H(x: Tensor) -> Tensor:
    """A view of a matrix with its dimensions exchanged.

    Raises
    ------
    ShapeError
        If `x` has not two dimensions.
    """
    ndim = array_of(x).ndim
    if ndim not in (0, 2):
        raise ShapeError(f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor.")
    return transpose(x, 0, ndim - 1)


def movedim(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """A view with some dimensions moved to new positions; the others keep their order.

    Raises
    ------
    ShapeError
        If `source` and `destination` differ in length or repeat a dimension.

    Examples
    --------
    >>> tg.movedim(tg.zeros(2, 3, 4), 0, -1).shape
    tapegrad.Size([3, 4, 2])
    """
    ndim = array_of(x).ndim
    sources = (source,) if isinstance(source, int) else tuple(source)
    destinations = (destination,) if isinstance(destination, int) else tuple(destination)
    if len(sources) != len(destinations):
        raise ShapeError(
            f"movedim: Invalid source or destination dims: source ({list(sources)} dims) should contain the same "
            f"number of dims as destination ({list(destinations)} dims)"
        )
    origin = [axis(dim, ndim) for dim in sources]
    target = [axis(dim, ndim) for dim in destinations]
    for name, dims, given in (("source", origin, sources), ("destination", target, destinations)):
        if len(set(dims)) != len(dims):
            raise ShapeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    if ndim == 0:
        return view(x, "PermuteBackward0", Reordering(()))
    order = [k for k in range(ndim) if k not in origin]
    for place, dim in sorted(zip(target, origin, strict=True)):
        order.insert(place, dim)
    return view(x, "PermuteBackward0", Reordering(tuple(order)))


def moveaxis(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """The same as `movedim`."""
    return movedim(x, source, destination)
