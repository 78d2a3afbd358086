"""Triangles of matrices."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.arrays.sizes import is_one_number
from tapegrad.engine.layout import ALL_BUT_WHERE
from tapegrad.errors import ShapeError
from tapegrad.ops.in_place_copies import written_directly
from tapegrad.recording.mapped_copies import KEPT_MAPS
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.inference_tensors import make_kept
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


def tril_into(t: Tensor, diagonal: int = 0) -> Tensor:
    """`tril` in place."""
    return _triangle_into(_TRIL, 0, "tril", t, diagonal)


def triu_into(t: Tensor, diagonal: int = 0) -> Tensor:
    """`triu` in place."""
    return _triangle_into(_TRIU, 1, "triu", t, diagonal)


def _triangle(op: Structural, upper: int, name: str, x: Tensor, diagonal: int) -> Tensor:
    offset, *place = _place(name, x, diagonal)
    data = array_of(x)
    if data.size > SMALL and data.dtype is dtypes.float64:
        source = np.array([data[(0,) * data.ndim]]) if is_one_number(data) else np.ascontiguousarray(data)
        result = large_empty(data.shape, data.dtype)
    else:
        source = np.ascontiguousarray(data)
        result = np.empty(data.shape, data.dtype)
    ARRAY_KERNELS.copy_triangles(id(result), id(source), *place, upper)
    return apply(op, (x,), result, offset, _left_out(data.shape, place[-1], upper) if data.size <= SMALL else ())


def _triangle_into(op: Structural, upper: int, name: str, t: Tensor, diagonal: int) -> Tensor:
    offset, *place = _place(name, t, diagonal)
    extra = _left_out(t._data.shape, place[-1], upper) if t._data.size <= SMALL else ()
    return written_directly(t, op, (), offset, extra, lambda data: ARRAY_KERNELS.copy_triangles(id(data), id(data), *place, upper))


@lru_cache(KEPT_MAPS)
def _left_out(shape: tuple[int, ...], offset: int, upper: int) -> tuple[Tensor]:
    """Which elements of small matrices are not of a triangle."""
    rows, columns = shape[-2:]
    lower = np.tri(rows, columns, offset - upper, bool)
    return (make_kept(np.array(np.broadcast_to(lower if upper else ~lower, shape), order="C")),)


def _place(name: str, x: Tensor, diagonal: int) -> tuple[int, int, int, int]:
    """The diagonal as it was given, rows and columns, and the diagonal within them."""
    shape = array_of(x).shape
    if len(shape) < 2:
        raise ShapeError(f"{name}: input tensor must have at least 2 dimensions, got {len(shape)}")
    offset, (rows, columns) = operator.index(diagonal), shape[-2:]  # a row must not hold a tensor
    return offset, rows, columns, min(max(offset, -rows), columns)


def _tril_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (tril(g, ctx.attrs),)


def _triu_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (triu(g, ctx.attrs),)


def _lower_of_many(x_dot: np.ndarray, ctx: Context, shape: tuple[int, ...]) -> np.ndarray:
    return np.where(np.tri(shape[-2], shape[-1], ctx.attrs, bool)[..., None], x_dot, 0.0)


def _upper_of_many(x_dot: np.ndarray, ctx: Context, shape: tuple[int, ...]) -> np.ndarray:
    return np.where(np.tri(shape[-2], shape[-1], ctx.attrs - 1, bool)[..., None], 0.0, x_dot)


_TRIL = Structural("TrilBackward0", ((),), _tril_vjp, linear=(_lower_of_many,), takes_stretched=True, moves=(ALL_BUT_WHERE,))
_TRIU = Structural("TriuBackward0", ((),), _triu_vjp, linear=(_upper_of_many,), takes_stretched=True, moves=(ALL_BUT_WHERE,))
