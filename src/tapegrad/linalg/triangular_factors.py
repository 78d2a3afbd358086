"""Decomposition into a lower and an upper triangle, with exchanged rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.linalg.constant_matrices import identity
from tapegrad.linalg.matrices import Array, matrix, square
from tapegrad.linalg.outputs import ManyOutputs, joint_outputs
from tapegrad.linalg.solving import solve_triangular, triangular_cotangent, triangular_solution
from tapegrad.ops.flat_places import Places, blocks, take_at
from tapegrad.ops.namespaces import TENSORS
from tapegrad.ops.selecting import take_along_dim
from tapegrad.ops.transposing import mT
from tapegrad.ops.triangles import tril, triu
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, as_operand, is_recording, make, wrap

__all__ = ["lu", "lu_factor", "lu_solve"]

SMALL = 32  # rows and columns up to which one loop over a matrix is quicker than a dozen functions of libraries


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


def factored_cotangent(g: Tensor, found: Tensor, back: Array, on: Any = TENSORS) -> Tensor:
    """The cotangent of a matrix, by that of its two triangles in one.

    Of a matrix that is not square, the square in front has its own triangles, and the rest follows by substitution: rows below it
    are those of the matrix by the inverse of the upper triangle, columns beside it the inverse of the lower one by those. Both
    parts share that triangle.
    """
    m, n = found._data.shape[-2:]
    if m == n:
        return take_at(_square_cotangent(g, found, on), Places(back, n, found._data.shape))
    k = min(m, n)
    rest: Any = (..., slice(k, None), slice(None)) if m > n else (..., slice(k, None))
    square_part = (..., slice(None, k), slice(None)) if m > n else (..., slice(None, k))
    first, beside = on.getitem(found, square_part), on.getitem(found, rest)
    if m > n:
        far = triangular_cotangent(on.mT(on.triangle(first, True)), on.getitem(g, rest), False, left=False)
        shared = on.triangle(on.matmul(on.mT(beside), far), True)
    else:
        lower = on.triangle(first, False, True) + wrap(identity(k, first._data.dtype))
        far = triangular_cotangent(on.mT(lower), on.getitem(g, rest), True, unit=True)
        shared = on.triangle(on.matmul(far, on.mT(beside)), False, True)
    near = _square_cotangent(on.getitem(g, square_part) - shared, first, on)
    whole = on.cat([near, far], -2 if m > n else -1)
    return take_at(whole, Places(back, n, found._data.shape))


def small_factored_cotangent(g: Tensor, found: Tensor, back: Array) -> Tensor | None:
    """The same in one call of compiled code; None of what is large, not of float64, or has zeros among its pivots."""
    factors = found._data
    if max(factors.shape[-2:]) > SMALL or factors.dtype != np.float64 or not factors.flags.c_contiguous:
        return None
    given, out = np.array(g._data, np.float64, order="C"), np.empty(factors.shape)
    if ARRAY_KERNELS.cotangents_of_factors(id(out), id(given), id(factors), id(back), *factors.shape[-2:]):
        return None
    return make(out, 0)


def _square_cotangent(g: Tensor, found: Tensor, on: Any) -> Tensor:
    """The rows of the cotangent in the order of the triangles."""
    upper, lower = on.triangle(found, True), on.triangle(found, False, True)
    lower = lower + wrap(identity(found._data.shape[-1], found._data.dtype))
    inner = on.triangle(on.matmul(on.mT(lower), on.triangle(g, False, True)), False, True)
    inner = inner + on.triangle(on.matmul(on.triangle(g, True), on.mT(upper)), True)
    left = triangular_cotangent(on.mT(lower), inner, True, unit=True)
    return triangular_cotangent(on.mT(upper), left, False, left=False)


def _vjp(g: Tensor, ctx: Context) -> tuple[Tensor]:
    return (ctx.on.factored_cotangent(g, ctx.result, ctx.attrs),)


def _lu_vjp(cotangents: list[Tensor], outputs: list[Tensor], ctx: Context) -> Tensor:
    on, (g_lower, g_upper), (L, U) = ctx.on, cotangents, outputs
    g = on.triangle(g_lower, False, True) + on.triangle(g_upper, True)
    found: Tensor = on.factored_cotangent(g, on.triangle(L, False, True) + U, ctx.attrs[1])
    return found


_LU_FACTOR = Structural("LinalgLuFactorExBackward0", (("z",),), _vjp)
_LU = ManyOutputs("LinalgLuBackward0", _lu_vjp)


def lu_factor(a: Tensor, *, pivot: bool = True) -> LUFactor:
    """Both triangles of ``a = P @ L @ U`` in one matrix, as `lu_solve` takes them.

    Parameters
    ----------
    a : Tensor, shape (..., m, n)
    pivot : bool
        Whether rows may be exchanged: they are, always.

    Returns
    -------
    LU : Tensor, shape (..., m, n)
        `U` on and above the diagonal, `L` below it; its diagonal are ones.
    pivots : Tensor of int64, shape (..., min(m, n))

    Raises
    ------
    RuntimeError
        If `a` has fewer than two dimensions, or rows are not to be exchanged.

    Notes
    -----
    The order of the rows is a constant of the derivative.

    Examples
    --------
    >>> tg.linalg.lu_factor(tg.tensor([[1.0, 2.0], [2.0, 2.0]]))
    LUFactor(LU=tensor([[2.0000, 2.0000],
            [0.5000, 1.0000]]), pivots=tensor([2, 2]))
    """
    data = _checked(a, "linalg.lu_factor", pivot)
    if data.shape[-1] != data.shape[-2]:
        found, exchanged, _ = _of_rectangle(a, data)
        return LUFactor(found, wrap(exchanged))
    factors, pivots = _decomposed(data)
    return LUFactor(apply(_LU_FACTOR, (a,), factors, _orders(pivots)[1]), wrap(pivots))


def _checked(a: Tensor, name: str, pivot: bool) -> Array:
    if not pivot:
        raise RuntimeError(f"{name}: LU without pivoting is not implemented on the CPU; leave pivot=False away")
    return matrix(a, name)


def _of_rectangle(a: Tensor, data: Array) -> tuple[Tensor, Array, Array]:
    """Both triangles of a matrix that is not square, the pivots, and which row of the matrix comes to each place.

    In that order of the rows, the square in front has its own factors, and the rest follows by substitution.
    """
    m, n = data.shape[-2:]
    count = min(m, n)
    # Columns of zeros after those of a tall matrix exchange no rows.
    padded = np.zeros((*data.shape[:-2], m, m), data.dtype)
    padded[..., :count] = data[..., :count]
    eliminated, pivots = _decomposed(padded)
    order, back = _orders(pivots)
    is_tall, is_tracked = m > n, bool(a._row and is_recording())
    if is_tall and not is_tracked and not np.diagonal(eliminated, 0, -2, -1)[..., :count].all():
        return wrap(np.ascontiguousarray(eliminated[..., :count])), pivots[..., :count], order  # nothing to divide by
    rows = array_of(_taken(wrap(data), order, -2))
    if is_tall:
        square_part = _decomposed(rows[..., :count, :])[0]
        rest = array_of(triangular_solution(wrap(square_part), wrap(rows[..., count:, :]), True, False))
        pivots = np.ascontiguousarray(pivots[..., :count])
    else:
        square_part = _decomposed(rows[..., :count])[0]
        rest = array_of(triangular_solution(wrap(square_part), wrap(rows[..., count:]), False, True, True))
    value = np.concatenate([square_part, rest], -2 if is_tall else -1)
    return apply(_LU_FACTOR, (a,), value, back), pivots, order


def lu(a: Tensor, *, pivot: bool = True) -> LU:
    """Permutation and triangles with ``a = P @ L @ U``.

    Parameters
    ----------
    a : Tensor, shape (..., m, n)
    pivot : bool
        Whether rows may be exchanged: they are, always.

    Returns
    -------
    P : Tensor, shape (..., m, m)
    L : Tensor, shape (..., m, min(m, n))
    U : Tensor, shape (..., min(m, n), n)

    Raises
    ------
    RuntimeError
        If `a` has fewer than two dimensions, or rows are not to be exchanged.

    Examples
    --------
    >>> P, L, U = tg.linalg.lu(tg.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> P @ L @ U
    tensor([[1., 2.],
            [2., 2.]])
    """
    data = _checked(a, "linalg.lu", pivot)
    m, n = data.shape[-2:]
    if m != n:
        both, _, order = _of_rectangle(a, data)
        k = min(m, n)
        lower = tril(both[..., :k], -1) + wrap(np.eye(m, k, dtype=data.dtype))
        return LU(_permutation(order, data), lower, triu(both[..., :k, :]))
    found, pivots = _decomposed(data)
    order, back = _orders(pivots)
    lower_part, upper_part = np.empty_like(found), np.empty_like(found)
    ARRAY_KERNELS.copy_triangles(id(lower_part), id(found), n, n, -1, 0)
    ARRAY_KERNELS.copy_triangles(id(upper_part), id(found), n, n, 0, 1)
    return LU(_permutation(order, data), *joint_outputs(_LU, a, (lower_part + identity(n, found.dtype), upper_part), back, (1, 2)))


def _permutation(order: Array, data: Array) -> Tensor:
    return wrap(np.ascontiguousarray(np.swapaxes(identity(data.shape[-2], data.dtype)[order], -1, -2)))


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
        True for the transpose of `a` in its place.

    Examples
    --------
    >>> factors = tg.linalg.lu_factor(tg.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> tg.linalg.lu_solve(*factors, tg.tensor([[3.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    if adjoint:
        return mT(lu_solve(LU, pivots, mT(B), left=not left))
    square(LU, "linalg.lu_solve")
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
