"""Values of triangular equations: with the bits of NumPy's general solver, or by substitution alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.engine import layout as at
from tapegrad.linalg import lapack
from tapegrad.linalg.blas import address_of, by_triangle
from tapegrad.linalg.constant_matrices import upper_triangle
from tapegrad.tape.array_kernels import ARRAY_KERNELS

__all__ = ["large_triangle", "multiplied", "substitute", "substituted"]

Array = np.ndarray[Any, Any]
BLOCK = 64  # rows of a triangle that the general solver takes at once: beyond, it does twice the work of substitution
WORTH_A_CALL = 40  # rows of a triangle from which leaving the elimination out saves more than its checks take
SMALL_TRIANGLE = 16  # rows up to which a loop of ours is quicker than a function for triangles
FLOAT64 = np.dtype(np.float64)


def substitute(a: Array, b: Array, upper: bool, unit: bool) -> Array:
    """Solution of triangular equations, with the bits of the general solver.

    The elimination of an upper triangle changes nothing and exchanges no rows, so the general solver does exactly the back
    substitution. A lower triangle is an upper one when rows and columns are counted from the end. Large triangles are two
    of half the size and a product.
    """
    n = a.shape[-1]
    if 0 < n < WORTH_A_CALL and a.dtype is FLOAT64:
        x = _by_general_solver(_systems(a, upper, unit), b if upper else b[..., ::-1, :])
        return x if upper else x[..., ::-1, :]
    if not upper:
        a, b = a[..., ::-1, ::-1], b[..., ::-1, :]
    whole = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:]
    x = np.array(b if b.shape == whole else np.broadcast_to(b, whole), order="C")
    with quiet():
        if not _by_halves(a, x, unit, _by_second_half):
            x[...] = b
            _by_halves(a, x, unit, _by_whole_solver)
    return x if upper else x[..., ::-1, :]


def _by_halves(a: Array, x: Array, unit: bool, solved: Callable[[Array, Array, bool], bool]) -> bool:
    """Solutions with upper triangles in the place of right sides; whether each block was `solved`."""
    n = a.shape[-1]
    if n <= BLOCK:
        return solved(a, x, unit)
    half = (n // 2 + BLOCK - 1) // BLOCK * BLOCK
    above, below = x[..., :half, :], x[..., half:, :]
    if not _by_halves(a[..., half:, half:], below, unit, solved):
        return False
    np.subtract(above, np.matmul(a[..., :half, half:], below), out=above)
    return _by_halves(a[..., :half, :half], above, unit, solved)


def _by_second_half(a: Array, x: Array, unit: bool) -> bool:
    """A block by what the general solver does after elimination, to the bit.

    Not where there is no function for that, and where a number is not finite, which elimination spreads, as after a zero on the
    diagonal.
    """
    trsm, trsv = address_of("dtrsm"), address_of("dtrsv")
    if not (trsm and trsv and a.dtype == x.dtype == np.float64 and x.size):
        return False
    n, k = x.shape[-2:]
    batch = x.shape[:-2]
    if a.ndim > 2:
        a = np.broadcast_to(a, (*batch, n, n))
    triangles, sides = a.reshape(-1, n, n), x.reshape(-1, n, k)
    room, words = np.empty(n * (n + k)), np.empty(8, np.int64)
    return bool(ARRAY_KERNELS.substitute_upwards(trsm, trsv, id(sides), id(triangles), id(room), id(words), int(unit)))


def _by_whole_solver(a: Array, x: Array, unit: bool) -> bool:
    a = upper_triangle(a)
    if unit and a.size:
        n = a.shape[-1]
        a.reshape(-1, n * n)[:, :: n + 1] = 1.0
    x[...] = _by_general_solver(a, x)
    return True


def _systems(a: Array, upper: bool, unit: bool) -> Array:
    """Upper triangles with zeros below, of lower ones from the end."""
    is_turned = not a.flags.c_contiguous
    matrices = np.ascontiguousarray(a.swapaxes(-1, -2) if is_turned else a)
    systems = np.empty(a.shape)
    options = upper * at.OF_UPPER + is_turned * at.IS_TURNED + unit * at.HAS_ONES
    ARRAY_KERNELS.upper_systems(id(systems), id(matrices), a.shape[-1], options)
    return systems


def _by_general_solver(a: Array, b: Array) -> Array:
    try:
        solved: Array = lapack.call(np.linalg.solve, (a, b), {})
        return solved
    except np.linalg.LinAlgError:
        return _row_by_row(a, b)


def _row_by_row(a: Array, b: Array) -> Array:
    """Back substitution where the diagonal has zeros."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.array(np.broadcast_to(b, batch + b.shape[-2:]))
    with quiet():
        for k in range(a.shape[-1] - 1, -1, -1):
            x[..., k, :] /= a[..., k, k, None]
            x[..., :k, :] -= a[..., :k, k, None] * x[..., k, None, :]
    return x


def substituted(a: Array, b: Array, upper: bool, left: bool = True, unit: bool = False) -> Array:
    """Solution X of ``a @ X = b``, or ``X @ a = b``, for derivatives: of large matrices by substitution alone.

    Parameters
    ----------
    a : ndarray, shape (..., n, n)
        Of which one triangle is read.
    b : ndarray, shape (..., n, k) or (..., k, n)
    upper : bool
        Which triangle.
    left : bool
        On which side `a` stands.
    unit : bool
        Whether the diagonal are ones and not read.
    """
    if a.shape[-1] <= SMALL_TRIANGLE and a.dtype is FLOAT64 is b.dtype and a.shape[:-2] == b.shape[:-2]:
        return _by_rows(a, b, upper, left, unit)
    if unit or a.diagonal(0, -2, -1).all():
        found = by_triangle("dtrsm", a, b, upper, left, unit)
        if found is not None:
            return found
    if left:
        return substitute(a, b, upper, unit)
    return substitute(a.swapaxes(-1, -2), b.swapaxes(-1, -2), not upper, unit).swapaxes(-1, -2)


def _by_rows(a: Array, b: Array, upper: bool, left: bool, unit: bool) -> Array:
    """The same of small triangles, row by row in compiled code; where the diagonal has zeros, inf and nan."""
    is_turned = not a.flags.c_contiguous
    matrices, x = np.ascontiguousarray(a.swapaxes(-1, -2) if is_turned else a), np.array(b, order="C")
    options = left * at.IS_LEFT + upper * at.OF_UPPER + is_turned * at.IS_TURNED + unit * at.HAS_ONES
    ARRAY_KERNELS.substitute_triangles(id(x), id(matrices), a.shape[-1], b.shape[-1 if left else -2], options)
    return x


def multiplied(a: Array, b: Array, upper: bool) -> Array | None:
    """``a @ b`` for a large matrix that is a triangle, in half the time of another matrix; None for what is not large."""
    return by_triangle("dtrmm", a, b, upper) if a.shape[-1] > BLOCK else None


def large_triangle(a: Array) -> str | None:
    """Which triangle of a large matrix has all that is not zero, "upper" or "lower"; None for any other matrix."""
    n = a.shape[-1]
    if a.ndim != 2 or n <= BLOCK:
        return None
    for name, matrix in (("lower", a), ("upper", a.T)):
        if not matrix[0, n - 1] and all(_is_zero_above(matrix, k) for k in range(0, n, BLOCK)):
            return name
    return None


def _is_zero_above(a: Array, k: int) -> bool:
    """Whether there are zeros above the diagonal in the rows of a block."""
    end = k + BLOCK
    return _is_zero(a[k:end, end:]) and _is_zero(np.triu(a[k:end, k:end], 1))


def _is_zero(a: Array) -> bool:
    # Three times as fast as `any` of numbers.
    return not a.size or bool(a.max() == 0.0 == a.min())
