"""Decomposition into a lower and an upper triangle, with exchanged rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.linalg.matrices import square
from tapegrad.linalg.solving import solve_triangular
from tapegrad.ops.indexing import getitem
from tapegrad.ops.products import matmul
from tapegrad.ops.selecting import take_along_dim
from tapegrad.ops.transposing import transpose
from tapegrad.ops.triangles import tril, triu
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, as_operand

__all__ = ["lu", "lu_factor", "lu_solve"]

Array = np.ndarray[Any, Any]


class LU(NamedTuple):
    """Permutation, unit lower triangle and upper triangle, whose product is the matrix."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactor(NamedTuple):
    """Both triangles in one matrix, and with which row, counted from one, each row was exchanged in turn."""

    LU: Tensor
    pivots: Tensor


def _decomposed(a: Array) -> tuple[Array, Array]:
    """Both triangles in one matrix of each of a batch, and the pivots."""
    found = a.copy()
    n = a.shape[-1]
    pivots = np.empty(a.shape[:-1], np.int64)
    batch = np.indices(a.shape[:-2]) if a.ndim > 2 else ()
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in range(n):
            row = np.argmax(np.abs(found[..., k:, k]), -1) + k
            pivots[..., k] = row + 1
            here, there = (*batch, np.full_like(row, k)), (*batch, row)
            found[here], found[there] = found[there], found[here].copy()
            pivot = found[..., k : k + 1, k : k + 1]
            below = found[..., k + 1 :, k : k + 1]
            np.divide(below, pivot, out=below, where=pivot != 0)
            found[..., k + 1 :, k + 1 :] -= below * found[..., k : k + 1, k + 1 :]
    return found, pivots


def _order(pivots: Array) -> Array:
    """Which row of the matrix comes to each place."""
    order = np.broadcast_to(np.arange(pivots.shape[-1]), pivots.shape).copy()
    flat, turns = order.reshape(-1, order.shape[-1]), pivots.reshape(-1, order.shape[-1])
    for rows, exchanged in zip(flat, turns, strict=True):
        for k, j in enumerate(exchanged - 1):
            rows[k], rows[j] = rows[j], rows[k]
    return order


def _vjp(g: Tensor, ctx: Context) -> tuple[Tensor]:
    found, back = ctx.result, ctx.attrs
    assert found is not None
    upper, lower = triu(found), tril(found, -1) + as_operand(np.eye(array_of(found).shape[-1], dtype=array_of(found).dtype))
    inner = tril(matmul(transpose(lower, -1, -2), tril(g, -1)), -1) + triu(matmul(triu(g), transpose(upper, -1, -2)))
    left = solve_triangular(transpose(lower, -1, -2), inner, upper=True, unitriangular=True)
    rows = solve_triangular(transpose(upper, -1, -2), left, upper=False, left=False)
    return (take_along_dim(rows, as_operand(back), -2),)


_LU = Structural("LinalgLuFactorExBackward0", (("z",),), _vjp)


def _factored(a: Tensor, name: str) -> tuple[Tensor, Array]:
    square(a, name)
    data = array_of(a)
    found, pivots = _decomposed(data)
    back = np.argsort(_order(pivots), -1)[..., None]
    return apply(_LU, (a,), found, np.broadcast_to(back, data.shape)), pivots


def lu_factor(a: Tensor) -> LUFactor:
    """Both triangles of ``a = P @ L @ U`` in one matrix, as `lu_solve` takes them.

    Parameters
    ----------
    a : Tensor, shape (..., n, n)

    Returns
    -------
    LU : Tensor, shape (..., n, n)
        `U` on and above the diagonal, `L` below it; its diagonal are ones.
    pivots : Tensor of int64, shape (..., n)

    Raises
    ------
    RuntimeError
        If the matrices are not square.

    Notes
    -----
    The order of the rows is a constant of the derivative.

    Examples
    --------
    >>> tg.linalg.lu_factor(tg.tensor([[1.0, 2.0], [2.0, 2.0]]))
    LUFactor(LU=tensor([[2.0000, 2.0000],
            [0.5000, 1.0000]]), pivots=tensor([2, 2]))
    """
    found, pivots = _factored(a, "linalg.lu_factor")
    return LUFactor(found, as_operand(pivots))


def lu(a: Tensor) -> LU:
    """Permutation and triangles with ``a = P @ L @ U``.

    Parameters
    ----------
    a : Tensor, shape (..., n, n)

    Returns
    -------
    P, L, U : Tensor, shape (..., n, n)

    Raises
    ------
    RuntimeError
        If the matrices are not square.

    Examples
    --------
    >>> P, L, U = tg.linalg.lu(tg.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> P @ L @ U
    tensor([[1., 2.],
            [2., 2.]])
    """
    found, pivots = _factored(a, "linalg.lu")
    one = np.eye(pivots.shape[-1], dtype=array_of(a).dtype)
    permutation = np.swapaxes(one[_order(pivots)], -1, -2)
    return LU(as_operand(np.ascontiguousarray(permutation)), tril(found, -1) + as_operand(one), triu(found))


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The solution of ``a @ x = B``, with what `lu_factor` gave for `a`.

    Parameters
    ----------
    LU : Tensor, shape (..., n, n)
    pivots : Tensor of int64, shape (..., n)
    B : Tensor, shape (..., n, k)
    left : bool
        False for ``x @ a = B``.

    Examples
    --------
    >>> factors = tg.linalg.lu_factor(tg.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> tg.linalg.lu_solve(*factors, tg.tensor([[3.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    square(LU, "linalg.lu_solve")
    order = _order(array_of(pivots))
    if not left:
        right = solve_triangular(LU, B, upper=True, left=False)
        whole = solve_triangular(LU, right, upper=False, left=False, unitriangular=True)
        return _taken(whole, np.argsort(order, -1), -1)
    rows = _taken(B, order, -2)
    return solve_triangular(LU, solve_triangular(LU, rows, upper=False, unitriangular=True), upper=True)


def _taken(x: Tensor, order: Array, dim: int) -> Tensor:
    if order.ndim == 1:
        return getitem(x, (..., as_operand(order)) if dim == -1 else (..., as_operand(order), slice(None)))
    places = order[..., None] if dim == -2 else order[..., None, :]
    return take_along_dim(x, as_operand(places), dim)
