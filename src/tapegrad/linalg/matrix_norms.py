"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.arrays.dtypes import as_dtype, promote_types, type_name
from tapegrad.errors import ShapeError
from tapegrad.linalg import lapack
from tapegrad.linalg.matrices import square, tensor_operand
from tapegrad.linalg.solving import inv
from tapegrad.linalg.spectral import svdvals
from tapegrad.ops import elementwise
from tapegrad.ops.arithmetic import where
from tapegrad.ops.extremes import amax, amin
from tapegrad.ops.norms import norm_of_elements
from tapegrad.ops.reductions import Dims
from tapegrad.ops.reductions import sum as sum_over
from tapegrad.ops.shaping import unsqueeze
from tapegrad.ops.transposing import movedim
from tapegrad.recording.axes import axis
from tapegrad.recording.axis_names import with_numpy_names
from tapegrad.recording.casting import cast
from tapegrad.tensors.tensor import Tensor, array_of, wrap
from tapegrad.tensors.tracers import makes_constants_of_shapes

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]

Order = float | str | None


@with_numpy_names
def vector_norm(x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """Norm of the elements as of one vector, or of vectors along dimensions.

    Parameters
    ----------
    x : Tensor
    ord : number
        ``sum(abs(x)**ord)**(1/ord)``; ``inf`` is the largest magnitude, ``-inf`` the smallest, 0 the number of nonzero elements.
    dim : int or sequence of int, optional
        What to reduce; everything by default.
    keepdim : bool
        Keep the dimensions, with size one.
    dtype : dtype, optional
        Cast to it first.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If the dtype is not a floating point one, or there is no element for an order that needs one.

    Examples
    --------
    >>> tg.linalg.vector_norm(tg.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
    tensor([ 5., 10.])
    """
    tensor_operand(x, "linalg.vector_norm", "x")
    if not issubclass(type(ord), (int, float)):
        raise TypeError(f"linalg_vector_norm(): argument 'ord' must be Number, not {type(ord).__name__}")
    return norm_of_elements(_wide(x, dtype, "linalg.vector_norm"), ord, dim, keepdim)


def _wide(x: Tensor, dtype: DTypeLike | None, name: str) -> Tensor:
    if dtype is None:
        return x
    own, wanted = array_of(x).dtype, as_dtype(dtype)
    if promote_types(own, wanted) != wanted:
        raise RuntimeError(
            f"{name}: the dtype of the input ({type_name(own)}) should be convertible without narrowing to the specified dtype "
            f"({type_name(wanted)})"
        )
    return cast(x, wanted)


@with_numpy_names
def matrix_norm(
    A: Tensor, ord: float | str = "fro", dim: tuple[int, int] = (-2, -1), keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Norm of a matrix.

    Parameters
    ----------
    A : Tensor, of two dimensions or more
    ord : {'fro', 'nuc', inf, -inf, 1, -1, 2, -2}
        Square root of the sum of squares; sum of the singular values; largest or smallest sum of magnitudes in a row (inf) or
        column (1); largest or smallest singular value (2).
    dim : pair of int
        Which dimensions are rows and columns.
    keepdim : bool
        Keep the dimensions, with size one.
    dtype : dtype, optional
        Cast to it first.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If the order is not known, or the dimensions are not two different ones.

    Examples
    --------
    >>> tg.linalg.matrix_norm(tg.tensor([[1.0, -2.0], [3.0, 4.0]]), np.inf)
    tensor(7.)
    """
    ndim = tensor_operand(A, "linalg.matrix_norm").ndim
    if ndim < 2:
        raise ShapeError(f"linalg.matrix_norm: The input tensor A must have at least 2 dimensions, but it has {ndim}.")
    if isinstance(dim, int) or len(tuple(dim)) != 2:
        raise ShapeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {dim}")
    rows, columns = (axis(d, ndim) for d in dim)
    if rows == columns:
        raise ShapeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord not in ("fro", "nuc", math.inf, -math.inf, 1, -1, 2, -2):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    A = _wide(A, dtype, "linalg.matrix_norm")
    if ord == "fro":
        return norm_of_elements(A, 2.0, (rows, columns), keepdim)
    if ord in ("nuc", 2, -2):
        in_place = (rows, columns) == (ndim - 2, ndim - 1)
        values = svdvals(A if in_place else movedim(A, (rows, columns), (-2, -1)))
        result = sum_over(values, -1) if ord == "nuc" else _extreme(values, -1, ord == 2)
    else:
        summed, searched = (columns, rows) if math.isinf(float(ord)) else (rows, columns)
        sums = sum_over(elementwise.abs(A), summed)
        result = _extreme(sums, searched - (summed < searched), float(ord) > 0)
    if keepdim:
        for d in sorted((rows, columns)):
            result = unsqueeze(result, d)
    return result


def _extreme(x: Tensor, dim: int, largest: bool) -> Tensor:
    """The largest or smallest element along a dimension; the largest norm of nothing is zero."""
    if largest and array_of(x).shape[dim] == 0:
        return sum_over(x, dim)
    return amax(x, dim) if largest else amin(x, dim)


@with_numpy_names
def norm(A: Tensor, ord: Order = None, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """Norm of a vector or a matrix.

    Parameters
    ----------
    A : Tensor
    ord : number or {'fro', 'nuc'}, optional
        As for `vector_norm` and `matrix_norm`; without it, the square root of the sum of squares of all elements.
    dim : int or pair of int, optional
        Along what: one dimension is a vector, two are a matrix. Without it `A` is a vector or a matrix (with `ord`), or of any
        shape (without).
    keepdim : bool
        Keep the dimensions, with size one.
    dtype : dtype, optional
        Cast to it first.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If the order and the dimensions do not go together.

    Examples
    --------
    >>> tg.linalg.norm(tg.tensor([[3.0, 0.0], [4.0, 0.0]]), 1)
    tensor(7.)
    """
    data = tensor_operand(A, "linalg.norm")
    dims: Any = [dim] if isinstance(dim, int) else None if dim is None else list(dim)
    if ord is None:
        return vector_norm(A, 2, dims, keepdim, dtype=dtype)
    if dims is None and data.ndim not in (1, 2):
        raise ShapeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {data.ndim}D.")
    if dims is not None and len(dims) not in (1, 2):
        raise ShapeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {dims}")
    if isinstance(ord, str) or (data.ndim if dims is None else len(dims)) == 2:
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)  # type: ignore[arg-type]
    return vector_norm(A, ord, dims, keepdim, dtype=dtype)


def cond(A: Tensor, p: Order = None) -> Tensor:
    """Condition number of a matrix: its norm times that of its inverse.

    Parameters
    ----------
    A : Tensor, shape (..., n, n), or (..., m, n) for p = None, 2, -2
    p : {None, 2, -2, 'fro', 'nuc', inf, -inf, 1, -1}
        The norm. For None and 2 the largest singular value over the smallest, for -2 the smallest over the largest.

    Returns
    -------
    Tensor, shape (...)
        inf for singular matrices.

    Raises
    ------
    RuntimeError
        If the norm is not known, or the matrices are not square where they must be.

    Examples
    --------
    >>> tg.linalg.cond(tg.tensor([[4.0, 0.0], [0.0, 2.0]]))
    tensor(2.)
    """
    data = tensor_operand(A, "linalg.cond")
    if data.ndim < 2:
        raise ShapeError(f"linalg.cond: The input tensor must have at least 2 dimensions, but it has {data.ndim}.")
    if p not in (None, 2, -2, "fro", "nuc", math.inf, -math.inf, 1, -1):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if data.size == 0:
        return wrap(np.zeros(data.shape[:-2], data.dtype))
    if p in (None, 2, -2):
        values = svdvals(A)
        first, last = (values[0], values[-1]) if data.ndim == 2 else (values[..., 0], values[..., -1])
        return last / first if p == -2 else first / last
    square(A, "linalg.cond")
    assert p is not None
    singular = _singular(array_of(A))
    if not singular.any():
        return _product_of_norms(A, p)
    eye = wrap(np.eye(data.shape[-1], dtype=data.dtype))
    regular = where(wrap(singular[..., None, None]), eye, A)
    return where(wrap(singular), math.inf, _product_of_norms(regular, p))


@makes_constants_of_shapes
def _product_of_norms(A: Tensor, p: float | str) -> Tensor:
    if p == "nuc":  # an inverse has the singular values' inverses
        values = svdvals(A)
        return sum_over(values, -1) * sum_over(1.0 / values, -1)
    return matrix_norm(A, p) * matrix_norm(inv(A), p)


def _singular(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    sign, _ = lapack.call(np.linalg.slogdet, (data,), {})
    return np.asarray(sign == 0.0)
