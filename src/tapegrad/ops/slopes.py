"""Slopes of sampled functions by differences of second order, as NumPy and PyTorch take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import get_default_dtype
from tapegrad.errors import ShapeError
from tapegrad.ops.indexing import getitem
from tapegrad.ops.joining import cat
from tapegrad.ops.shaping import reshape
from tapegrad.recording.axes import axis
from tapegrad.recording.casting import cast
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["gradient"]


def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Slopes of a function that is sampled on a grid, along each dimension, by central differences of second order.

    Parameters
    ----------
    input : Tensor
        Values on the grid; integers become floats.
    spacing : number, sequence of numbers, or sequence of Tensor, optional
        Distance of the samples, 1 by default; one for each dimension, or the coordinates along each, which are of one dimension.
    dim : int or sequence of int, optional
        Along which; all by default.
    edge_order : 1 or 2
        Order of the one-sided differences at the ends.

    Returns
    -------
    tuple of Tensor, each of the shape of `input`
        One for each dimension in `dim`.

    Raises
    ------
    RuntimeError
        If there are too few samples, or `spacing` does not fit to the dimensions.

    Examples
    --------
    >>> tg.gradient(tg.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    >>> tg.gradient(tg.tensor([1.0, 4.0, 9.0, 16.0]), spacing=0.5)
    (tensor([ 6.,  8., 12., 14.]),)
    """
    data = array_of(input)
    if data.dtype == np.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    given = range(data.ndim) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    axes = [axis(k, data.ndim) for k in given]
    if len(set(axes)) != len(axes):
        raise ShapeError(f"dim {next(k for k in axes if axes.count(k) > 1)} appears multiple times in the list of dims")
    for k in axes:
        if data.shape[k] < edge_order + 1:
            raise RuntimeError(
                f"torch.gradient expected each dimension size to be at least edge_order+1 = {edge_order + 1}, but dimension {k} of "
                f"{list(data.shape)} is smaller"
            )
    if data.dtype.kind != "f":
        input = cast(input, get_default_dtype())
    return tuple(slope(input, k, steps, edge_order) for k, steps in zip(axes, _steps(spacing, data.shape, axes), strict=True))


def _steps(spacing: Any, shape: tuple[int, ...], axes: Sequence[int]) -> list[Any]:
    """Distance of neighbours along each dimension: a number, or a tensor with one for each pair."""
    if spacing is None or issubclass(type(spacing), (int, float)):
        return [1.0 if spacing is None else spacing] * len(axes)
    if isinstance(spacing, Tensor) or len(spacing) != len(axes):
        count = "a single tensor" if isinstance(spacing, Tensor) else f"{len(spacing)} elements"
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar or a list of length {len(axes)}, one for each dimension, "
            f"but got {count}"
        )
    found: list[Any] = []
    for k, given in zip(axes, spacing, strict=True):
        if isinstance(given, Tensor):
            own = array_of(given).shape
            if len(own) != 1:
                raise RuntimeError(
                    "torch.gradient expected each element of spacing to have one dimension, but got an element with "
                    f"{len(own)} dimensions"
                )
            if own[0] != shape[k]:
                raise ShapeError(f"torch.gradient expected {shape[k]} coordinates along dimension {k}, but got {own[0]}")
            given = getitem(given, slice(1, None)) - getitem(given, slice(0, -1))
        found.append(given)
    return found


def slope(f: Tensor, k: int, steps: Any, edge_order: int) -> Tensor:
    """Slopes along dimension `k`, with NumPy's formulas and their bits.

    Parameters
    ----------
    steps : number or Tensor
        The distance of neighbours, or that of each pair, of one dimension; equal ones are one number, unless they are tracked.
    """
    rank = len(f.shape)

    def at(first: int, last: int | None, of: Any = f) -> Tensor:
        return getitem(of, (*(slice(None),) * k, slice(first, last)))

    if getattr(steps, "ndim", 0):
        distances = array_of(steps)
        if not steps._row and (distances == distances[0]).all():
            steps = float(distances[0])
        else:
            steps = reshape(steps, tuple(-1 if n == k else 1 for n in range(rank)))
    ends = [
        _end(lambda n: at(n, n + 1 or None), steps if _is_number(steps) else lambda n: at(n, n + 1 or None, steps), edge_order, n)
        for n in (0, -1)
    ]
    if _is_number(steps):
        inner = (at(2, None) - at(0, -2)) / (2.0 * steps)
    else:
        first, second = at(0, -1, steps), at(1, None, steps)
        both = first + second
        before = -second / (first * both)
        inner = before * at(0, -2) + (second - first) / (first * second) * at(1, -1) + first / (second * both) * at(2, None)
    return cat([ends[0], inner, ends[1]], k)


def _is_number(steps: Any) -> bool:
    return not getattr(steps, "ndim", 0)


def _end(at: Callable[[int], Tensor], steps: Any, edge_order: int, n: int) -> Tensor:
    """The slope at the first (0) or the last place (-1)."""
    inwards = 1 if n == 0 else -1
    edge, near = at(n), at(n + inwards)
    if edge_order == 1:
        step = steps(n) if callable(steps) else steps
        return (near - edge) / step if n == 0 else (edge - near) / step
    far = at(n + 2 * inwards)
    if not callable(steps):
        a, b, c = (-1.5 / steps, 2.0 / steps, -0.5 / steps) if n == 0 else (1.5 / steps, -2.0 / steps, 0.5 / steps)
    else:
        one, two = steps(n), steps(n + inwards)
        both = one + two
        a, b, c = -(2.0 * one + two) / (one * both), both / (one * two), -one / (two * both)
        if n:
            a, b, c = -a, -b, -c
    return a * edge + b * near + c * far if n == 0 else c * far + b * near + a * edge
