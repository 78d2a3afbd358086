"""Factorisations, inverses and solutions that report a matrix that has none, in place of an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapegrad.errors import LinAlgError
from tapegrad.linalg.constant_matrices import identity
from tapegrad.linalg.factorisations import cholesky, cholesky_row
from tapegrad.linalg.matrices import Array, square
from tapegrad.linalg.solving import inv, inverse_row, solve
from tapegrad.linalg.triangular_factors import lu_factor
from tapegrad.ops.arithmetic import where
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["cholesky_ex", "inv_ex", "lu_factor_ex", "solve_ex"]


class CholeskyEx(NamedTuple):
    """What `cholesky_ex` returns."""

    L: Tensor
    info: Tensor


class InvEx(NamedTuple):
    """What `inv_ex` returns."""

    inverse: Tensor
    info: Tensor


class SolveEx(NamedTuple):
    """What `solve_ex` returns."""

    result: Tensor
    info: Tensor


class LUFactorEx(NamedTuple):
    """What `lu_factor_ex` returns."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx:
    """`cholesky` that says which matrices are not positive-definite.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
    upper : bool
        As for `cholesky`.
    check_errors : bool
        Whether to raise after all.

    Returns
    -------
    L : Tensor, shape (..., n, n)
        The factors; nan where there is none.
    info : Tensor of int32, shape (...)
        0, or the order of the first leading minor that is not positive.

    Raises
    ------
    RuntimeError
        If the matrices are not square.
    LinAlgError
        If one is not positive-definite and `check_errors` is true.

    Examples
    --------
    >>> tg.linalg.cholesky_ex(tg.tensor([[1.0, 2.0], [2.0, 1.0]])).info
    tensor(2, dtype=int32)
    """
    a = square(A, "linalg.cholesky_ex")
    try:
        return CholeskyEx(cholesky(A, upper=upper), _successes(a))
    except LinAlgError:
        if check_errors:
            raise
    kept = np.swapaxes(a, -1, -2) if upper else a
    info = _each(kept, _minor)
    found = array_of(cholesky(wrap(_mended(a, info)), upper=upper))
    return CholeskyEx(cholesky_row(A, _spoiled(found, info), upper), wrap(info))


def inv_ex(A: Tensor, *, check_errors: bool = False) -> InvEx:
    """`inv` that says which matrices are singular.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
    check_errors : bool
        Whether to raise after all.

    Returns
    -------
    inverse : Tensor, shape (..., n, n)
        nan where there is none.
    info : Tensor of int32, shape (...)
        0, or the number of the first pivot that is zero.

    Raises
    ------
    RuntimeError
        If the matrices are not square.
    LinAlgError
        If one is singular and `check_errors` is true.

    Examples
    --------
    >>> tg.linalg.inv_ex(tg.tensor([[1.0, 2.0], [2.0, 4.0]])).info
    tensor(2, dtype=int32)
    """
    a = square(A, "linalg.inv_ex")
    try:
        return InvEx(inv(A), _successes(a))
    except LinAlgError:
        if check_errors:
            raise
    info = _zero_pivots(a)
    return InvEx(inverse_row(A, _spoiled(array_of(inv(wrap(_mended(a, info)))), info)), wrap(info))


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> SolveEx:
    """`solve` that says which matrices are singular.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
    B : Tensor, shape (..., n, k), or (..., n) or (n,) for vectors
        As for `solve`.
    left : bool
        As for `solve`.
    check_errors : bool
        Whether to raise after all.

    Returns
    -------
    result : Tensor, of the shape of B with batches broadcast
        nan where there is no solution.
    info : Tensor of int32, of the batch's shape of A
        0, or the number of the first pivot that is zero.

    Raises
    ------
    RuntimeError
        If the shapes do not fit together, or the dtypes differ.
    LinAlgError
        If a matrix is singular and `check_errors` is true.

    Examples
    --------
    >>> tg.linalg.solve_ex(tg.tensor([[1.0, 2.0], [2.0, 4.0]]), tg.ones(2))
    SolveEx(result=tensor([nan, nan]), info=tensor(2, dtype=int32))
    """
    try:
        return SolveEx(solve(A, B, left=left), _successes(array_of(A)))
    except LinAlgError:
        if check_errors:
            raise
    a, b = array_of(A), array_of(B)
    info = _zero_pivots(a)
    failed = (info > 0)[..., None, None]
    found = solve(where(wrap(failed), wrap(identity(a.shape[-1], a.dtype)), A), B, left=left)
    vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])
    factor = np.where(failed[..., 0] if vector else failed, np.nan, 1.0).astype(a.dtype)
    return SolveEx(found * wrap(factor), wrap(info))


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUFactorEx:
    """`lu_factor` that says which matrices are singular.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
    pivot : bool
        As for `lu_factor`.
    check_errors : bool
        Whether to raise for singular matrices.

    Returns
    -------
    LU : Tensor, shape (..., m, n)
    pivots : Tensor of int64, shape (..., min(m, n))
    info : Tensor of int32, shape (...)
        0, or the number of the first pivot that is zero.

    Raises
    ------
    RuntimeError
        As for `lu_factor`.
    LinAlgError
        If a matrix is singular and `check_errors` is true.

    Examples
    --------
    >>> tg.linalg.lu_factor_ex(tg.tensor([[1.0, 2.0], [2.0, 4.0]])).info
    tensor(2, dtype=int32)
    """
    found = lu_factor(A, pivot=pivot)
    info = _first_zero(np.diagonal(array_of(found.LU), 0, -2, -1))
    if check_errors and info.any():
        number = int(info[info > 0][0])
        raise LinAlgError(
            f"linalg.lu_factor_ex: U[{number},{number}] is zero and using it on lu_solve would result in a division by zero."
        )
    return LUFactorEx(*found, wrap(info))


def _successes(a: Array) -> Tensor:
    return wrap(np.zeros(a.shape[:-2], np.int32))


def _each(a: Array, number: Callable[[Array], int]) -> Any:
    batch = a.shape[:-2]
    return np.array([number(a[place]) for place in np.ndindex(batch)], np.int32).reshape(batch)


def _minor(a: Array) -> int:
    """The order of the first leading minor that is not positive, 0 if all are."""
    for order in range(1, len(a) + 1):
        try:
            np.linalg.cholesky(a[:order, :order])
        except np.linalg.LinAlgError:
            return order
    return 0


def _zero_pivots(a: Array) -> Any:
    return _first_zero(np.diagonal(array_of(lu_factor(wrap(a)).LU), 0, -2, -1))


def _first_zero(pivots: Array) -> Any:
    """The number of the first element that is zero, counted from one, 0 if none is."""
    if not pivots.shape[-1]:
        return np.zeros(pivots.shape[:-1], np.int32)
    zero = pivots == 0
    return np.asarray(np.where(zero.any(-1), zero.argmax(-1) + 1, 0), np.int32)


def _mended(a: Array, info: Any) -> Array:
    """The matrices with the unit matrix in the place of those that failed."""
    return np.where((info > 0)[..., None, None], identity(a.shape[-1], a.dtype), a)


def _spoiled(found: Array, info: Any) -> Array:
    return np.where((info > 0)[..., None, None], np.nan, found).astype(found.dtype)
