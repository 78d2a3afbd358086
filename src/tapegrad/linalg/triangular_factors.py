"""Decomposition into a lower and an upper triangle, with exchanged rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.linalg.constant_matrices import identity
from tapegrad.linalg.matrices import Array, square
from tapegrad.linalg.outputs import ManyOutputs, joint_outputs
from tapegrad.linalg.solving import solve_triangular, triangular_cotangent, triangular_solution
from tapegrad.ops.flat_places import Places, blocks, take_at
from tapegrad.ops.selecting import take_along_dim
from tapegrad.ops.transposing import transpose
from tapegrad.ops.triangles import tril, triu
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, as_operand, wrap

__all__ = ["lu", "lu_factor", "lu_solve"]


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
    wide = a.dtype if a.dtype.itemsize in (4, 8) else np.dtype(np.float32)
    found, pivots = np.array(a, wide, order="C"), np.empty(a.shape[:-1], np.int64)
    ARRAY_KERNELS.eliminate_columns(id(found), id(pivots), a.shape[-1])
    return found.astype(a.dtype, copy=False), pivots


def _orders(pivots: Array) -> tuple[Array, Array]:
    """Which row of the matrix comes to each place, and where each row of the batch went, counted through.

    Raises
    ------
    RuntimeError
        If a pivot is no row.
    """
    pivots = np.ascontiguousarray(pivots, np.int64)
    order, back = np.empty(pivots.shape, np.int64), np.empty(pivots.size, np.int64)
    n = pivots.shape[-1]
    wrong = ARRAY_KERNELS.follow_exchanges(id(order), id(back), id(pivots), n)
    if wrong >= 0:
        raise RuntimeError(
            f"linalg.lu_solve: pivots must be from 1 to {n}, got {pivots.flat[wrong]}. Did you pass the result of lu_factor?"
        )
    return order, back


def _matrix_cotangent(on: Any, g: Tensor, found: Tensor, back: Array) -> Tensor:
    """The cotangent of a matrix, by that of its two triangles in one."""
    upper, lower = on.triangle(found, True), on.triangle(found, False, True)
    lower = lower + wrap(identity(found._data.shape[-1], found._data.dtype))
    inner = on.triangle(on.matmul(on.mT(lower), on.triangle(g, False, True)), False, True)
    inner = inner + on.triangle(on.matmul(on.triangle(g, True), on.mT(upper)), True)
    left = triangular_cotangent(on.mT(lower), inner, True, unit=True)
    rows = triangular_cotangent(on.mT(upper), left, False, left=False)
    shape = rows._data.shape
    return take_at(rows, Places(back, shape[-1], shape))


def _vjp(g: Tensor, ctx: Context) -> tuple[Tensor]:
    assert ctx.result is not None
    return (_matrix_cotangent(ctx.on, g, ctx.result, ctx.attrs),)


def _lu_vjp(cotangents: list[Tensor], outputs: list[Tensor], ctx: Context) -> Tensor:
    on, (g_lower, g_upper), (L, U) = ctx.on, cotangents, outputs
    g = on.triangle(g_lower, False, True) + on.triangle(g_upper, True)
    return _matrix_cotangent(on, g, on.triangle(L, False, True) + U, ctx.attrs[1])


_LU_FACTOR = Structural("LinalgLuFactorExBackward0", (("z",),), _vjp)
_LU = ManyOutputs("LinalgLuBackward0", _lu_vjp)


def _check_pivot(function: str, pivot: bool) -> None:
    if not pivot:
        raise RuntimeError(f"linalg.{function}: LU without pivoting is not implemented on the CPU")


def lu_factor(a: Tensor, *, pivot: bool = True) -> LUFactor:
    """Both triangles of ``a = P @ L @ U`` in one matrix, as `lu_solve` takes them.

    Parameters
    ----------
    a : Tensor, shape (..., n, n)
    pivot : bool
        True: rows are exchanged so that the largest element is divided by.

    Returns
    -------
    LU : Tensor, shape (..., n, n)
        `U` on and above the diagonal, `L` below it; its diagonal are ones.
    pivots : Tensor of int64, shape (..., n)

    Raises
    ------
    RuntimeError
        If the matrices are not square, or `pivot` is false.

    Notes
    -----
    The order of the rows is a constant of the derivative.

    Examples
    --------
    >>> tg.linalg.lu_factor(tg.tensor([[1.0, 2.0], [2.0, 2.0]]))
    LUFactor(LU=tensor([[2.0000, 2.0000],
            [0.5000, 1.0000]]), pivots=tensor([2, 2]))
    """
    _check_pivot("lu_factor", pivot)
    found, pivots = _decomposed(square(a, "linalg.lu_factor"))
    return LUFactor(apply(_LU_FACTOR, (a,), found, _orders(pivots)[1]), wrap(pivots))


def lu(a: Tensor, *, pivot: bool = True) -> LU:
    """Permutation and triangles with ``a = P @ L @ U``.

    Parameters
    ----------
    a : Tensor, shape (..., n, n)
    pivot : bool
        True: as of `lu_factor`.

    Returns
    -------
    P, L, U : Tensor, shape (..., n, n)

    Raises
    ------
    RuntimeError
        If the matrices are not square, or `pivot` is false.

    Examples
    --------
    >>> P, L, U = tg.linalg.lu(tg.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> P @ L @ U
    tensor([[1., 2.],
            [2., 2.]])
    """
    _check_pivot("lu", pivot)
    found, pivots = _decomposed(square(a, "linalg.lu"))
    n = pivots.shape[-1]
    order, back = _orders(pivots)
    one = identity(n, found.dtype)
    lower, upper = array_of(tril(wrap(found), -1)) + one, array_of(triu(wrap(found)))
    permutation = np.ascontiguousarray(np.swapaxes(one[order], -1, -2))
    return LU(wrap(permutation), *joint_outputs(_LU, a, (lower, upper), back, (1, 2)))


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """The solution of ``a @ x = B``, with what `lu_factor` gave for `a`.

    Parameters
    ----------
    LU : Tensor, shape (..., n, n)
    pivots : Tensor of int64, shape (..., n)
    B : Tensor, shape (..., n, k)
    left : bool
        False for ``x @ a = B``.
    adjoint : bool
        Whether the transpose of `a` takes its place.

    Examples
    --------
    >>> factors = tg.linalg.lu_factor(tg.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> tg.linalg.lu_solve(*factors, tg.tensor([[3.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    square(LU, "linalg.lu_solve")
    if adjoint:
        return transpose(lu_solve(LU, pivots, transpose(B, -2, -1), left=not left), -2, -1)
    order, _ = _orders(array_of(pivots))
    if not left:
        right = solve_triangular(LU, B, upper=True, left=False)
        whole = triangular_solution(LU, right, False, False, True)
        return _taken(whole, np.argsort(order, -1), -1)
    rows = _taken(B, order, -2)
    return triangular_solution(LU, solve_triangular(LU, rows, upper=False, unitriangular=True), True)


def _taken(x: Tensor, order: Array, dim: int) -> Tensor:
    if order.ndim == 1:
        shape = array_of(x).shape
        found, _ = blocks(order, shape, len(shape) + dim)
        return take_at(x, found)
    places = order[..., None] if dim == -2 else order[..., None, :]
    return take_along_dim(x, as_operand(places), dim)
