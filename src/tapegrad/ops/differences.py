"""Differences of neighbours, and the trapezoidal rule, which averages them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.errors import ShapeError
from tapegrad.ops.comparing import logical_xor
from tapegrad.ops.indexing import getitem
from tapegrad.ops.joining import cat
from tapegrad.ops.reductions import sum
from tapegrad.ops.scans import cumsum
from tapegrad.ops.shaping import reshape
from tapegrad.recording.axes import axis
from tapegrad.tensors.factories import empty, zeros
from tapegrad.tensors.tensor import Tensor, array_of, as_operand

__all__ = ["cumulative_trapezoid", "diff", "trapezoid", "trapz"]


def _neighbours(x: Tensor, position: int) -> tuple[Tensor, Tensor]:
    """All elements along a dimension but the last, and all but the first."""
    before: tuple[Any, ...] = (slice(None),) * position
    return getitem(x, (*before, slice(0, max(array_of(x).shape[position] - 1, 0)))), getitem(x, (*before, slice(1, None)))


def diff(x: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """Differences of neighbours along a dimension, taken `n` times over.

    Parameters
    ----------
    x : Tensor, with at least one dimension
        Of bools, the difference is the exclusive or.
    n : int
        Not negative; of 0 the result is a copy of `x` alone.
    dim : int
    prepend, append : Tensor, optional
        Put before and after `x` first; of its shape but along the dimension.

    Returns
    -------
    Tensor
        Shorter by `n` along the dimension, or empty.

    Raises
    ------
    RuntimeError
        If `x` has no dimensions, `n` is negative, or the shapes do not fit together.

    Examples
    --------
    >>> tg.diff(tg.tensor([1.0, 3.0, 6.0]))
    tensor([2., 3.])
    >>> tg.diff(tg.tensor([1.0, 3.0, 6.0]), 2)
    tensor([1.])
    """
    shape = array_of(x).shape
    if not shape:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    position = axis(dim, len(shape))
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    parts = [_fitting(part, shape, position) for part in (prepend, append) if part is not None]
    if n == 0:
        return empty(shape, dtype=array_of(x).dtype).copy_(x)
    if parts:
        first = parts[:1] if prepend is not None else []
        x = cat([*first, x, *parts[len(first) :]], position)
    for _ in range(min(n, array_of(x).shape[position])):
        before, after = _neighbours(x, position)
        x = logical_xor(after, before) if array_of(x).dtype.kind == "b" else after - before
    return x


def _fitting(part: Tensor, shape: tuple[int, ...], position: int) -> Tensor:
    own = array_of(part).shape
    if len(own) != len(shape):
        raise ShapeError(f"diff expects prepend or append to be the same dimension as input, got {len(own)} and {len(shape)}")
    for k, (extent, wanted) in enumerate(zip(own, shape, strict=True)):
        if k != position and extent != wanted:
            raise ShapeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
                f"dimension; input.size({k}) = {wanted}, but got tensor.size({k}) = {extent}"
            )
    return part


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """Integral of samples along a dimension by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        Values at the sample points.
    x : Tensor, optional
        The sample points: one for each value along the dimension, or of a shape that broadcasts with that of `y`.
    dx : number, optional
        Distance of the sample points, 1 by default, where `x` is not given.
    dim : int

    Returns
    -------
    Tensor, of the shape of `y` without the dimension

    Raises
    ------
    RuntimeError
        If there is not one sample point for each value, or an operand is of bools.
    TypeError
        If both `x` and `dx` are given.

    Examples
    --------
    >>> tg.trapezoid(tg.tensor([1.0, 2.0, 4.0]))
    tensor(4.5000)
    >>> tg.trapezoid(tg.tensor([1.0, 2.0, 4.0]), tg.tensor([0.0, 1.0, 3.0]))
    tensor(7.5000)
    """
    position = _integrated(y, x, dx, dim, "trapezoid")
    data = array_of(y)
    if not data.shape[position]:
        return zeros(data.shape[:position] + data.shape[position + 1 :], dtype=data.dtype)
    before, after = _neighbours(y, position)
    if x is not None:
        return sum((before + after) * _steps(x, data.shape, position, "trapezoid"), position - data.ndim) / 2.0
    return sum(before + after, position) * (0.5 * (1.0 if dx is None else dx))


def trapz(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The same as `trapezoid`."""
    return trapezoid(y, x, dx=dx, dim=dim)


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """Integrals from the first sample to every later one, along a dimension; the parameters and errors are those of `trapezoid`.

    Returns
    -------
    Tensor, of the shape of `y` but shorter by one along the dimension

    Examples
    --------
    >>> tg.cumulative_trapezoid(tg.tensor([1.0, 2.0, 4.0]))
    tensor([1.5000, 4.5000])
    """
    position = _integrated(y, x, dx, dim, "cumulative_trapezoid")
    before, after = _neighbours(y, position)
    if x is not None:
        steps = _steps(x, array_of(y).shape, position, "cumulative_trapezoid")
        return cumsum((before + after) * steps, position - array_of(y).ndim) / 2.0
    return cumsum((before + after) * (0.5 * (1.0 if dx is None else dx)), position)


def _integrated(y: Tensor, x: Tensor | None, dx: float | None, dim: int, name: str) -> int:
    """The dimension to integrate along."""
    if x is not None and dx is not None:
        raise TypeError(f"{name}(): give the sample points x or their distance dx, not both")
    for label, t in (("x", x), ("y", y)):
        if t is not None and array_of(t).dtype == np.bool_:
            raise RuntimeError(f"{name}: received a bool input for `{label}`, but bool is not supported")
    if not array_of(y).ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return axis(dim, array_of(y).ndim)


def _steps(x: Tensor, shape: tuple[int, ...], position: int, name: str) -> Tensor:
    """Distances of neighbouring sample points, in a shape that broadcasts with that of the values."""
    own = array_of(x).shape
    if len(own) == 1:
        if own[0] != shape[position]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point, got {own[0]} for {shape[position]}")
        x = reshape(x, tuple(own[0] if k == position else 1 for k in range(len(shape))))
    elif len(own) < len(shape):
        x = reshape(x, (1,) * (len(shape) - len(own)) + own)
    before, after = _neighbours(as_operand(x), position)
    return after - before
