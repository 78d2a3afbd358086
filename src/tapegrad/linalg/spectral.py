"""Eigenvalues of symmetric matrices, and singular values.

Vectors turn at a rate of one over the distance between two values, so where two are equal their derivative is inf or nan, as
in PyTorch. The values alone never divide by that distance: they have a row of their own, which takes the vectors as operands
only to be differentiated again; where they are asked for alone, the vectors are found again for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.linalg.matrices import Array, decompose, matrix, square
from tapegrad.linalg.outputs import ManyOutputs, joint_outputs, number_output
from tapegrad.linalg.vector_gaps import with_ties
from tapegrad.ops.transposing import mT
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, array_of, is_recording, make, wrap
from tapegrad.tensors.tracers import computed

__all__ = [
    "SVD", "Eigh", "LegacySVD", "eigenvalues_cotangent", "eigh", "eigh_cotangent", "eigvalsh", "legacy_svd", "svd",
    "svd_cotangent", "svdvals",
]  # fmt: skip


class Eigh(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SVD(NamedTuple):
    """What `tapegrad.linalg.svd` returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class LegacySVD(NamedTuple):
    """What `tapegrad.svd` returns."""

    U: Tensor
    S: Tensor
    V: Tensor


def eigh(A: Tensor, UPLO: str = "L") -> Eigh:
    """Eigenvalues and eigenvectors of a symmetric matrix: ``A = V @ diag(L) @ V.T``.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        Symmetric; only one triangle is read.
    UPLO : {'L', 'U'}
        Which one.

    Returns
    -------
    eigenvalues : Tensor, shape (..., n)
        In ascending order.
    eigenvectors : Tensor, shape (..., n, n)
        In columns, orthonormal; the sign of each is arbitrary.

    Raises
    ------
    RuntimeError
        If the matrices are not square, or the algorithm does not converge (`LinAlgError`).

    Notes
    -----
    The derivative of the eigenvectors is not finite where eigenvalues are equal. That of the eigenvalues is that of
    `eigvalsh`.

    Examples
    --------
    >>> tg.linalg.eigh(tg.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    data = square(A, "linalg.eigh")
    values, vectors = _values_and_vectors(data, _triangle(UPLO))
    if not (A._row and is_recording()):
        return Eigh(wrap(values), wrap(vectors))
    (V,) = joint_outputs(_EIGH, A, (values, vectors), _triangle(UPLO), numbers=(None, 1))
    return Eigh(_eigenvalues(A, V, values, _triangle(UPLO)), V)


def _values_and_vectors(data: Any, triangle: str, shapes: Any = None) -> tuple[Array, Array]:
    found: tuple[Array, Array] = decompose(
        np.linalg.eigh, f"linalg.eigh: {_NOT_CONVERGED}", array_of(data) if isinstance(data, Tensor) else data, UPLO=triangle
    )
    return found


def _triangle(UPLO: str) -> str:
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper()


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues of a symmetric matrix, in ascending order.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        Symmetric; only one triangle is read.
    UPLO : {'L', 'U'}
        Which one.

    Returns
    -------
    Tensor, shape (..., n)

    Raises
    ------
    RuntimeError
        If the matrices are not square, or the algorithm does not converge (`LinAlgError`).

    Notes
    -----
    Where eigenvalues are equal, what is a smooth function of the matrix (their sum, their product) has its gradient; a second
    derivative there is not finite.

    Examples
    --------
    >>> tg.linalg.eigvalsh(tg.tensor([[0.0, 1.0], [1.0, 0.0]]))
    tensor([-1.,  1.])
    """
    data = square(A, "linalg.eigh")
    if A._row and is_recording():
        values, vectors = _values_and_vectors(data, _triangle(UPLO))
        if TAPE.tracers:
            computed(_values_and_vectors, (A, _triangle(UPLO)), {}, (make(values, 0), make(vectors, 0)))
        result = apply(_EIGENVALUES_ALONE, (A,), values, UPLO, (wrap(vectors),))
        number_output(result, 0)
        return result
    return wrap(decompose(np.linalg.eigvalsh, f"linalg.eigh: {_NOT_CONVERGED}", data, UPLO=_triangle(UPLO)))


def _eigenvalues(A: Tensor, V: Tensor, values: Array, triangle: str) -> Tensor:
    result = apply(_EIGENVALUES, (A, V), values, triangle)
    number_output(result, 0)
    return result


def _values_again(arrays: Sequence[Array], triangle: str) -> Array:
    return _values_and_vectors(arrays[0], triangle)[0]


def _eigenvalues_vjp(g: Tensor, ctx: Context) -> tuple[Tensor | None, ...]:
    return eigenvalues_cotangent(ctx.on, g, ctx.inputs[1]), None


def eigenvalues_cotangent(on: Any, g: Tensor, V: Tensor) -> Tensor:
    """The cotangent of a symmetric matrix by that of its eigenvalues alone, and its eigenvectors."""
    return on.matmul(V * on.unsqueeze(g, -2), on.mT(V))


def _eigenvalues_alone_vjp(g: Tensor, ctx: Context) -> tuple[Tensor | None, ...]:
    A, V = ctx.inputs[0], ctx.extra[0]
    if A._row and is_recording():  # the vectors are to be differentiated
        V = eigh(A, ctx.attrs).eigenvectors
    return (eigenvalues_cotangent(ctx.on, g, V),)


def _eigh_vjp(cotangents: list[Tensor], outputs: list[Tensor], ctx: Context) -> Tensor:
    (g_values, g_vectors), (L, V) = cotangents, outputs
    return eigh_cotangent(ctx.on, g_values, g_vectors, with_ties(L), V)


def eigh_cotangent(on: Any, g_values: Tensor, g_vectors: Tensor, L: Tensor, V: Tensor) -> Tensor:
    """The cotangent of a symmetric matrix by those of its eigenvalues `L` and its eigenvectors."""
    inner = on.between_eigenvectors(on.matmul(on.mT(V), g_vectors), g_values, L)
    return on.matmul(on.matmul(V, inner), on.mT(V))


_NOT_CONVERGED = "The algorithm failed to converge because the input matrix contained non-finite values or is ill-conditioned."
_EIGH = ManyOutputs("LinalgEighBackward0", _eigh_vjp, again=_values_and_vectors)
_EIGENVALUES = Structural("LinalgEighBackward0", ((1,), ()), _eigenvalues_vjp, joins=True, forward=_values_again)
_EIGENVALUES_ALONE = Structural("LinalgEighBackward0", ((0,),), _eigenvalues_alone_vjp)


def svd(A: Tensor, full_matrices: bool = True) -> SVD:
    """Singular value decomposition: ``A = U @ diag(S) @ Vh``.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
    full_matrices : bool
        Whether `U` and `Vh` are square; else they have ``k = min(m, n)`` columns and rows.

    Returns
    -------
    U : Tensor, shape (..., m, m) or (..., m, k)
    S : Tensor, shape (..., k)
        In descending order.
    Vh : Tensor, shape (..., n, n) or (..., k, n)

    Raises
    ------
    RuntimeError
        If the algorithm does not converge (`LinAlgError`), as with nan.

    Notes
    -----
    The derivative of the vectors is not finite where singular values are equal, or zero in a matrix that is not square. The
    vectors beyond the k-th are arbitrary, and no gradient flows through them. The derivative of `S` is that of `svdvals`.

    Examples
    --------
    >>> tg.linalg.svd(tg.tensor([[3.0, 0.0], [0.0, -2.0]])).S
    tensor([3., 2.])
    """
    data = matrix(A, "linalg.svd")
    U, S, Vh = _singular(data, full_matrices)
    if not (A._row and is_recording()):
        return SVD(wrap(U), wrap(S), wrap(Vh))
    k = S.shape[-1]
    left, right = joint_outputs(_SVD, A, (S, U, Vh), k, numbers=(None, 0, 2))
    values = apply(_SINGULAR_VALUES, (A, left, right), S, bool(full_matrices))
    number_output(values, 1)
    return SVD(left, values, right)


def _singular(data: Any, full_matrices: bool) -> tuple[Array, Array, Array]:
    found: tuple[Array, Array, Array] = decompose(
        np.linalg.svd,
        f"linalg.svd: {_NOT_CONVERGED}",
        array_of(data) if isinstance(data, Tensor) else data,
        full_matrices=full_matrices,
    )
    return found


def _singular_again(data: Array, k: int, shapes: Any) -> tuple[Array, Array, Array]:
    (m, n), (_, left, right) = data.shape[-2:], shapes
    U, S, Vh = _singular(data, left[-1] == m and right[-2] == n)
    return S, U, Vh


def svdvals(A: Tensor) -> Tensor:
    """Singular values of a matrix, in descending order.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)

    Returns
    -------
    Tensor, shape (..., min(m, n))

    Raises
    ------
    RuntimeError
        If the algorithm does not converge (`LinAlgError`), as with nan.

    Notes
    -----
    Where singular values are equal, what is a smooth function of the matrix has its gradient; a second derivative there is
    not finite.

    Examples
    --------
    >>> tg.linalg.svdvals(tg.tensor([[0.0, 2.0], [1.0, 0.0]]))
    tensor([2., 1.])
    """
    data = matrix(A, "linalg.svd")
    if A._row and is_recording():
        U, S, Vh = _singular(data, False)
        if TAPE.tracers:
            computed(_singular, (A, False), {}, (make(U, 0), make(S, 0), make(Vh, 0)))
        result = apply(_SINGULAR_VALUES_ALONE, (A,), S, None, (wrap(U), wrap(Vh)))
        number_output(result, 1)
        return result
    return wrap(decompose(np.linalg.svd, f"linalg.svd: {_NOT_CONVERGED}", data, compute_uv=False))


def _only_singular(arrays: Sequence[Array], full_matrices: bool) -> Array:
    return _singular(arrays[0], full_matrices)[1]


def _singular_values_vjp(g: Tensor, ctx: Context) -> tuple[Tensor | None, ...]:
    _, U, Vh = ctx.inputs
    return _with_singular_values(ctx.on, g, U, Vh), None, None


def _with_singular_values(on: Any, g: Tensor, U: Tensor, Vh: Tensor) -> Tensor:
    k = g._data.shape[-1]
    return on.matmul(_columns(on, U, k) * on.unsqueeze(g, -2), _rows(on, Vh, k))


def _singular_values_alone_vjp(g: Tensor, ctx: Context) -> tuple[Tensor | None, ...]:
    A, (U, Vh) = ctx.inputs[0], ctx.extra
    if A._row and is_recording():  # the vectors are to be differentiated
        U, _, Vh = svd(A, full_matrices=False)
    return (_with_singular_values(ctx.on, g, U, Vh),)


def _columns(on: Any, x: Tensor, count: int) -> Tensor:
    return x if x._data.shape[-1] == count else on.getitem(x, (..., slice(None, count)))


def _rows(on: Any, x: Tensor, count: int) -> Tensor:
    return x if x._data.shape[-2] == count else on.getitem(x, (..., slice(None, count), slice(None)))


def _svd_vjp(cotangents: list[Tensor], outputs: list[Tensor], ctx: Context) -> Tensor:
    on = ctx.on
    _, k = ctx.attrs
    g_values, g_left, g_right = cotangents
    S, U, Vh = outputs
    S = with_ties(S)
    U, g_left = _columns(on, U, k), _columns(on, g_left, k)
    V, g_right = on.mT(_rows(on, Vh, k)), on.mT(_rows(on, g_right, k))
    rows, columns = ctx.shapes[0][-2:]
    return svd_cotangent(on, g_values, g_left, g_right, S, U, V, rows > k, columns > k)


def svd_cotangent(
    on: Any, g_values: Tensor, g_left: Tensor, g_right: Tensor, S: Tensor, U: Tensor, V: Tensor, tall: bool, wide: bool
) -> Tensor:
    """The cotangent of a matrix by those of its singular values `S` and vectors, which are the columns of `U` and `V`."""
    left, right = on.matmul(on.mT(U), g_left), on.matmul(on.mT(V), g_right)
    inner = on.between_singular_vectors(left, right, g_values, S)
    total = on.matmul(on.matmul(U, inner), on.mT(V))
    if tall:
        total = total + on.matmul((g_left - on.matmul(U, left)) / on.unsqueeze(S, -2), on.mT(V))
    if wide:
        total = total + on.matmul(U / on.unsqueeze(S, -2), on.mT(g_right - on.matmul(V, right)))
    return total


_SVD = ManyOutputs("LinalgSvdBackward0", _svd_vjp, again=_singular_again)
_SINGULAR_VALUES = Structural("LinalgSvdBackward0", ((1, 2), (), ()), _singular_values_vjp, joins=True, forward=_only_singular)
_SINGULAR_VALUES_ALONE = Structural("LinalgSvdBackward0", ((0,),), _singular_values_alone_vjp)


def legacy_svd(x: Tensor, some: bool = True, compute_uv: bool = True) -> LegacySVD:
    """Singular value decomposition in PyTorch's older form: ``x = U @ diag(S) @ V.T``.

    Parameters
    ----------
    x : Tensor, shape (..., m, n)
    some : bool
        Whether `U` and `V` have only ``min(m, n)`` columns.
    compute_uv : bool
        Whether to compute them; else they are zeros.

    Returns
    -------
    U, S, V : Tensor

    See Also
    --------
    tapegrad.linalg.svd : The same with `V` transposed.

    Examples
    --------
    >>> tg.svd(tg.tensor([[3.0, 0.0], [0.0, -2.0]])).S
    tensor([3., 2.])
    """
    if not compute_uv:
        *batch, m, n = matrix(x, "linalg.svd").shape
        return LegacySVD(wrap(np.zeros((*batch, m, m), x.dtype)), svdvals(x), wrap(np.zeros((*batch, n, n), x.dtype)))
    U, S, Vh = svd(x, full_matrices=not some)
    return LegacySVD(U, S, mT(Vh))
