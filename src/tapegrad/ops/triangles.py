"""Triangles of matrices."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from tapegrad.errors import ShapeError
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["tril", "triu"]


def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """The elements on and below a diagonal of matrices, with zeros above.

    Parameters
    ----------
    x : Tensor, of at least two dimensions
        The last two are those of the matrices.
    diagonal : int
        How far above the main diagonal; negative is below.

    Returns
    -------
    Tensor, of the shape of `x`

    Raises
    ------
    ShapeError
        If `x` has fewer than two dimensions.

    Examples
    --------
    >>> tg.tril(tg.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return _triangle(_TRIL, 0, "tril", x, diagonal)


def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """The elements on and above a diagonal of matrices, with zeros below.

    Parameters and errors are those of `tril`.

    Examples
    --------
    >>> tg.triu(tg.ones(2, 2), 1)
    tensor([[0., 1.],
            [0., 0.]])
    """
    return _triangle(_TRIU, 1, "triu", x, diagonal)


def _triangle(op: Structural, upper: int, name: str, x: Tensor, diagonal: int) -> Tensor:
    data = array_of(x)
    if data.ndim < 2:
        raise ShapeError(f"{name}: input tensor must have at least 2 dimensions, got {data.ndim}")
    offset = operator.index(diagonal)  # a row must not hold a tensor
    rows, columns = data.shape[-2:]
    data = np.ascontiguousarray(data)
    result = np.empty(data.shape, data.dtype)
    ARRAY_KERNELS.copy_triangles(id(result), id(data), rows, columns, min(max(offset, -rows), columns), upper)
    return apply(op, (x,), result, offset)


def _tril_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (tril(g, ctx.attrs),)


def _triu_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (triu(g, ctx.attrs),)


def _lower_of_many(x_dot: np.ndarray, ctx: Context, shape: tuple[int, ...]) -> np.ndarray:
    return np.where(np.tri(shape[-2], shape[-1], ctx.attrs, bool)[..., None], x_dot, 0.0)


def _upper_of_many(x_dot: np.ndarray, ctx: Context, shape: tuple[int, ...]) -> np.ndarray:
    return np.where(np.tri(shape[-2], shape[-1], ctx.attrs - 1, bool)[..., None], 0.0, x_dot)


_TRIL = Structural("TrilBackward0", ((),), _tril_vjp, linear=(_lower_of_many,))
_TRIU = Structural("TriuBackward0", ((),), _triu_vjp, linear=(_upper_of_many,))
