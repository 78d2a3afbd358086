"""Cholesky and QR factorisations, and what is solved with a Cholesky factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.errors import LinAlgError, ShapeError
from tapegrad.linalg.matrices import Array, broadcast_batches, decompose, matrix, square
from tapegrad.linalg.outputs import ManyOutputs, joint_outputs
from tapegrad.linalg.solving import product_with_triangle
from tapegrad.linalg.substitution import substituted
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = [
    "QR", "cholesky", "cholesky_inverse", "cholesky_row", "cholesky_solve", "legacy_cholesky", "legacy_qr", "qr", "qr_cotangent",
]  # fmt: skip


class QR(NamedTuple):
    """What `qr` returns."""

    Q: Tensor
    R: Tensor


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The triangular factor of a symmetric positive-definite matrix: ``A = L @ L.T``.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        Only one triangle is read: the lower one, with `upper` the upper one.
    upper : bool
        Return ``U`` with ``A = U.T @ U`` instead.

    Returns
    -------
    Tensor, shape (..., n, n)

    Raises
    ------
    RuntimeError
        If the matrices are not square, or one is not positive-definite (`LinAlgError`).

    Notes
    -----
    The gradient is symmetric: that of a function of symmetric matrices.

    Examples
    --------
    >>> tg.linalg.cholesky(tg.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    return cholesky_row(A, _factor((square(A, "linalg.cholesky"),), bool(upper)), bool(upper))


def cholesky_row(A: Tensor, value: Array, upper: bool) -> Tensor:
    """`cholesky` whose value is known."""
    return apply(_CHOLESKY, (A,), value, upper)


def _factor(arrays: Sequence[Any], upper: bool) -> Any:
    message = "linalg.cholesky: The factorization could not be completed because the input is not positive-definite."
    return decompose(np.linalg.cholesky, message, arrays[0], upper=upper)


def _cholesky_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    L, g = (on.mT(ctx.result), on.mT(g)) if ctx.attrs else (ctx.result, g)
    inner = on.mirrored(product_with_triangle(on.mT(L), g, True, on))  # its symmetric part, twice
    half = on.triangular_cotangent(on.mT(L), inner, True)
    return (0.5 * on.triangular_cotangent(L, half, False, False),)


_CHOLESKY = Structural("LinalgCholeskyExBackward0", (("z",),), _cholesky_vjp, forward=_factor)


def legacy_cholesky(x: Tensor, upper: bool = False) -> Tensor:
    """The same as `tapegrad.linalg.cholesky`, in PyTorch's older form.

    Parameters
    ----------
    x : Tensor, shape (..., n, n)
    upper : bool

    Returns
    -------
    Tensor, shape (..., n, n)
    """
    return cholesky(x, upper=upper)


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """The solution X of ``A @ X = B`` where `L` is the Cholesky factor of `A`.

    Parameters
    ----------
    B : Tensor, shape (..., n, k)
    L : Tensor, shape (..., n, n)
        Only one triangle is read. Batches broadcast.
    upper : bool
        Whether ``A = L.T @ L`` with an upper triangle, and not ``A = L @ L.T`` with a lower one.

    Returns
    -------
    Tensor, of the shape of B with batches broadcast

    Raises
    ------
    RuntimeError
        If the shapes do not fit together.

    Notes
    -----
    The gradient by `L` is that of a function of ``L @ L.T`` with a whole matrix `L`, so it has elements in the triangle that is
    not read, as in PyTorch. For the gradient by the triangle that is read, pass ``tg.tril(L)``.

    Examples
    --------
    >>> tg.cholesky_solve(tg.tensor([[4.0], [2.0]]), tg.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([[1.],
            [2.]])
    """
    for name, operand in (("b", B), ("u", L)):
        if isinstance(operand, Tensor) and array_of(operand).ndim < 2:
            raise ShapeError(f"{name} should have at least 2 dimensions, but has {array_of(operand).ndim} dimensions instead")
    b, a = matrix(B, "cholesky_solve", "input"), square(L, "cholesky_solve", "input2")
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {a.shape[-2]} by {a.shape[-1]} but each b matrix is "
            f"{b.shape[-2]} by {b.shape[-1]}"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(f"cholesky_solve: Expected b and A to have the same dtype, but got {b.dtype} and {a.dtype}")
    broadcast_batches("cholesky_solve", a, b)
    return apply(_CHOLESKY_SOLVE, (B, L), _substituted_twice(a, b, upper), bool(upper))


def _substituted_twice(a: Array, b: Array, upper: bool) -> Array:
    first = a if not upper else a.swapaxes(-1, -2)
    return substituted(first.swapaxes(-1, -2), substituted(first, b, upper=False), upper=True)


def _cholesky_solve_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    upper = ctx.attrs
    L, x = ctx.inputs[1], ctx.result
    b_bar = apply(_CHOLESKY_SOLVE, (g, L), _substituted_twice(array_of(L), array_of(g), upper), upper)
    l_bar = None
    if ctx.needs[1]:
        moved = on.matmul(b_bar, on.mT(x))
        moved = -(moved + on.mT(moved))
        l_bar = on.sum_to(on.matmul(L, moved) if upper else on.matmul(moved, L), ctx.shapes[1])
    return on.sum_to(b_bar, ctx.shapes[0]) if ctx.needs[0] else None, l_bar


def _solutions_for_many(b_dot: Array, ctx: Context, shape: tuple[int, ...]) -> Array:
    wide = b_dot.reshape(*b_dot.shape[:-2], b_dot.shape[-2] * b_dot.shape[-1])
    return _substituted_twice(array_of(ctx.inputs[1]), wide, ctx.attrs)


def _solved_again(arrays: Sequence[Array], upper: bool) -> Array:
    return _substituted_twice(arrays[1], arrays[0], upper)


_CHOLESKY_SOLVE = Structural(
    "CholeskySolveBackward0", ((1,), (1, "z")), _cholesky_solve_vjp, linear=(_solutions_for_many, None), forward=_solved_again
)


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of the matrix whose Cholesky factor is `L`.

    Parameters
    ----------
    L : Tensor, shape (..., n, n)
        Only one triangle is read; the gradient is as for `cholesky_solve`.
    upper : bool
        Which one.

    Returns
    -------
    Tensor, shape (..., n, n)

    Raises
    ------
    RuntimeError
        If the matrices are not square, or one has a zero on its diagonal (`LinAlgError`).

    Examples
    --------
    >>> tg.cholesky_inverse(tg.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([[0.2500, 0.0000],
            [0.0000, 1.0000]])
    """
    data = square(L, "cholesky_inverse")
    return apply(_CHOLESKY_INVERSE, (L,), _squared_inverse((data,), bool(upper)), bool(upper))


def _squared_inverse(arrays: Sequence[Array], upper: bool) -> Array:
    """The inverse of a product by the inverse of its factor; that of a single matrix is symmetric to the bit."""
    (a,) = arrays
    n, regular = a.shape[-1], a.diagonal(0, -2, -1) != 0.0
    if not regular.all():
        number, k = divmod(int(regular.argmin()), n)
        which = f"(Batch element {number}): " if a.ndim > 2 else ""
        raise LinAlgError(
            f"cholesky_inverse: {which}The diagonal element {k + 1} is zero, the inversion could not be completed because the "
            "input matrix is singular."
        )
    units = np.zeros(a.shape, a.dtype)
    units.reshape(*a.shape[:-2], n * n)[..., :: n + 1] = 1.0
    inverse = substituted(a.swapaxes(-1, -2) if upper else a, units, upper=False)
    with quiet():
        found: Array = np.matmul(inverse.swapaxes(-1, -2), inverse)
        return found


def _cholesky_inverse_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    L, inverse = ctx.inputs[0], ctx.result
    moved = -on.matmul(inverse, on.matmul(g + on.mT(g), inverse))
    return (on.matmul(L, moved) if ctx.attrs else on.matmul(moved, L),)


_CHOLESKY_INVERSE = Structural("CholeskyInverseBackward0", ((0, "z"),), _cholesky_inverse_vjp, forward=_squared_inverse)


def qr(A: Tensor, mode: str = "reduced") -> QR:
    """A factor with orthonormal columns and an upper triangular one: ``A = Q @ R``.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
    mode : {'reduced', 'complete', 'r'}
        Whether `Q` has ``min(m, n)`` or m columns, or is empty and not computed.

    Returns
    -------
    Q : Tensor, shape (..., m, k)
    R : Tensor, shape (..., k, n)
        The signs of its diagonal are LAPACK's.

    Raises
    ------
    RuntimeError
        If `mode` is not known. At the derivative: if `Q` was not computed, or has columns that are arbitrary (``'complete'``
        with more rows than columns).

    Notes
    -----
    The first ``min(m, n)`` columns must be linearly independent for the derivative to exist.

    Examples
    --------
    >>> tg.linalg.qr(tg.tensor([[3.0], [4.0]])).R.abs()
    tensor([[5.]])
    """
    data = matrix(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    return QR(*joint_outputs(_QR, A, _orthogonal_and_triangular(data, mode), mode))


def _orthogonal_and_triangular(data: Array, mode: str, shapes: Any = None) -> tuple[Array, Array]:
    found: Any = decompose(np.linalg.qr, "linalg.qr: The algorithm failed.", data, mode=mode)
    return (np.zeros(0, data.dtype), found) if mode == "r" else tuple(found)


def legacy_qr(x: Tensor, some: bool = True) -> QR:
    """QR factorisation in PyTorch's older form.

    Parameters
    ----------
    x : Tensor, shape (..., m, n)
    some : bool
        Whether `Q` has ``min(m, n)`` columns; else m.

    Returns
    -------
    Q, R : Tensor

    See Also
    --------
    tapegrad.linalg.qr : The same.
    """
    return qr(x, "reduced" if some else "complete")


def _qr_vjp(cotangents: list[Tensor], outputs: list[Tensor], ctx: Context) -> Tensor:
    on = ctx.on
    _, mode = ctx.attrs
    m, n = ctx.shapes[0][-2:]
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
            "mode='reduced') if you are going to differentiate through linalg.qr."
        )
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols: use mode='reduced'.")
    (Q_bar, R_bar), (Q, R) = cotangents, outputs
    rest_bar = None
    if n > m:  # the other columns are Q times the rest of R
        first, others = (..., slice(None, m)), (..., slice(m, None))
        rest, g = on.getitem(R, others), on.getitem(R_bar, others)
        rest_bar = on.matmul(Q, g)
        Q_bar = Q_bar + on.matmul(on.matmul(Q, rest), on.mT(g))
        R, R_bar = on.getitem(R, first), on.getitem(R_bar, first)
    square_bar = qr_cotangent(on, Q_bar, R_bar, Q, R)
    return square_bar if rest_bar is None else on.cat([square_bar, rest_bar], -1)


def qr_cotangent(on: Any, Q_bar: Tensor, R_bar: Tensor, Q: Tensor, R: Tensor) -> Tensor:
    """The cotangent of a matrix with no more columns than rows by those of its factors."""
    inner = on.matmul(R, on.mT(R_bar)) - on.matmul(on.mT(Q_bar), Q)
    return on.triangular_cotangent(on.mT(R), Q_bar + on.matmul(Q, on.mirrored(inner)), False, False)


_QR = ManyOutputs("LinalgQrBackward0", _qr_vjp, again=_orthogonal_and_triangular)
