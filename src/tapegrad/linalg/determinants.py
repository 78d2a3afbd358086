"""Determinants.

The determinant is a polynomial, so it has derivatives of every order at singular matrices too: its gradient is the matrix of
cofactors, which is not zero where one singular value is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.linalg import lapack
from tapegrad.linalg.eliminated_cofactors import eliminated_cofactors, unit_scales
from tapegrad.linalg.kept_factors import Factors, determinants, inverses
from tapegrad.linalg.matrices import Array, decompose, square
from tapegrad.linalg.outputs import ManyOutputs, joint_outputs
from tapegrad.linalg.solving import inv, inverse_row
from tapegrad.ops import elementwise
from tapegrad.ops.arithmetic import where
from tapegrad.ops.joining import cat, stack
from tapegrad.ops.namespaces import TENSORS
from tapegrad.ops.products import matmul
from tapegrad.ops.shaping import reshape, unsqueeze
from tapegrad.ops.transposing import mT
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, array_of, is_recording, make, wrap

__all__ = ["LARGEST_CONDITION", "SlogDet", "det", "logdet", "slogdet"]


class SlogDet(NamedTuple):
    """What `slogdet` returns."""

    sign: Tensor
    logabsdet: Tensor


def det(A: Tensor) -> Tensor:
    """Determinant of a square matrix.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)

    Returns
    -------
    Tensor, shape (...)

    Raises
    ------
    RuntimeError
        If the matrices are not square.

    Notes
    -----
    Derivatives are right at singular matrices too: in every order while at most six singular values are zero, else in orders
    up to six.

    Examples
    --------
    >>> x = tg.tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)
    >>> tg.linalg.det(x).backward()
    >>> x.grad.numpy().round(6)
    array([[ 4., -2.],
           [-2.,  1.]])
    """
    data = square(A, "linalg.det")
    found = _factored(A, data, False)
    if found is None:
        return apply(_DET, (A,), _determinant((data,)))
    _, values, factors, _ = found
    return apply(_DET, (A,), values, None, _kept(factors))


def _factored(A: Tensor, data: Array, with_signs: bool) -> Any:
    """Determinants with factors for the derivative, where that is wanted; a program, which computes them again, has none."""
    return determinants(data, with_signs) if A._row and is_recording() and not TAPE.tracers else None


def _kept(factors: Factors) -> tuple[Tensor, ...]:
    return tuple([make(part, 0) for part in factors])


def _inverse_by(extra: Sequence[Tensor], data: Array) -> Array | None:
    """The inverses by the factors that were kept, or by such as a program did not keep; None if a matrix is singular."""
    if extra:
        return inverses((array_of(extra[0]), array_of(extra[1])), data.shape)
    found = determinants(data, False)
    return None if found is None else inverses(found[2], data.shape)


def _determinant(arrays: Sequence[Array], attrs: Any = None, *extra: Array) -> Any:
    with quiet():
        return lapack.call(np.linalg.det, (arrays[0],), {})


def _det_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (elementwise._mul0(ctx.on.column(g), cofactors(ctx.inputs[0], ctx.result, ctx.extra, ctx.on)),)


_DET = Structural("LinalgDetBackward0", ((0, "z"),), _det_vjp, forward=_determinant)


def cofactors(A: Tensor, value: Tensor, factors: Sequence[Tensor] = (), on: Any = TENSORS) -> Tensor:
    """The gradient of the determinant, whose value is given: ``det(A) * inv(A).T`` where that exists."""
    data, is_checked, inverse = array_of(A), False, None
    known: Factors | None = (array_of(factors[0]), array_of(factors[1])) if factors else None
    if known is not None and data.flags.c_contiguous:  # of float64
        is_checked, inverse = data.ndim == 2, inverses(known, data.shape)
        if inverse is not None:
            turned, values = inverse.swapaxes(-1, -2), array_of(value)
            if ARRAY_KERNELS.are_well_conditioned(id(data), id(turned), id(values), LARGEST_CONDITION[8], sys.float_info.min):
                found: Tensor = on.column(value) * on.mT(inverse_row(A, inverse))
                return found
    if not np.isfinite(data).all():
        return A * np.nan if data.ndim == 2 else _one_by_one(A, value, factors, np.zeros(array_of(value).size, bool))
    if not is_checked:
        regular, inverse = _are_well_conditioned(data, _inverse_by(factors, data))
        regular = regular & _has_all_digits(array_of(value))
        if regular.all():
            assert inverse is not None
            return column(value) * mT(inverse_row(A, inverse))
        if data.ndim > 2:
            return _one_by_one(A, value, factors, np.ravel(regular))
    with quiet():
        eliminated = eliminated_cofactors(data, known, inverse)
    if eliminated is not None and not A.requires_grad:
        return wrap(eliminated)
    rows, columns = unit_scales(data)
    scale = rows[..., :, None] + columns[..., None, :]
    scaled = np.ldexp(data, scale)
    if _are_well_conditioned(scaled)[0] and (_has_all_digits(array_of(value)) or not _has_all_digits(_determinant((scaled,)))):
        exact = column(value) * mT(inv(A))
        if not A.requires_grad or _count_small(_singular_values(data)) > _LARGEST_EXPANSION:
            return exact
        # Derivatives of the inverse would cancel; each element of its value is accurate.
        smooth = _cofactors_of_singular(A, data)
        return smooth + (exact - smooth).detach()
    back = scale - (rows.sum(-1) + columns.sum(-1))[..., None, None]
    with quiet():
        constants = [wrap(np.ldexp(np.ones((), data.dtype), exponents)) for exponents in (scale, back)]
    smooth = _cofactors_of_singular(A * constants[0], scaled) * constants[1]
    return smooth if eliminated is None else _corrected(smooth, eliminated)


def _corrected(smooth: Tensor, values: Array) -> Tensor:
    """What has the right derivatives, with values that are right to the last digits."""
    with quiet():
        missing = values - array_of(smooth)
    return smooth + wrap(np.where(np.isfinite(missing), missing, 0.0).astype(values.dtype, copy=False))


def _has_all_digits(values: Array) -> Array:
    """Which determinants are neither too small nor too large for a number; cofactors may be numbers where these are not."""
    magnitudes = np.abs(values)
    return (magnitudes >= np.finfo(magnitudes.dtype).tiny) & (magnitudes < np.inf)


def _one_by_one(A: Tensor, value: Tensor, factors: Sequence[Tensor], regular: Array) -> Tensor:
    """Cofactors of a batch: the well-conditioned matrices together, each of the others alone."""
    shape = array_of(A).shape
    matrices, values = reshape(A, (-1, *shape[-2:])), reshape(value, (-1,))
    together, alone = np.flatnonzero(regular), np.flatnonzero(~regular)
    parts = [cofactors(matrices[wrap(together)], values[wrap(together)])]
    for k in alone.tolist():
        own = _kept((array_of(factors[0])[k : k + 1], array_of(factors[1])[k : k + 1])) if factors else ()
        parts.append(unsqueeze(cofactors(matrices[k], values[k], own), 0))
    order = np.argsort(np.concatenate([together, alone]))
    return reshape(cat(parts)[wrap(order)], shape)


def _are_well_conditioned(data: Array, inverse: Array | None = None) -> tuple[Array, Array | None]:
    """Which of them are, and the inverses if all have one."""
    try:
        with quiet():
            inverse = lapack.call(np.linalg.inv, (data,), {}) if inverse is None else inverse
            condition = np.abs(data).sum(-2).max(-1, initial=0.0) * np.abs(inverse).sum(-2).max(-1, initial=0.0)
    except np.linalg.LinAlgError:
        if data.ndim == 2:
            return np.asarray(False), None
        values = _singular_values(data)
        with quiet():
            condition = values[..., 0] / values[..., -1]
    return np.asarray(condition < LARGEST_CONDITION[data.dtype.itemsize]), inverse


def _singular_values(data: Array) -> Array:
    values: Array = decompose(np.linalg.svd, "linalg.det: The matrix has no singular values.", data, compute_uv=False)
    return values


# A product with an inverse loses as many digits as the condition number has.
LARGEST_CONDITION = {4: 1e2, 8: 1e4}


def _cofactors_of_singular(A: Tensor, data: Array) -> Tensor:
    """Cofactors where A is singular or nearly so.

    Shifting the small singular values of A by a constant of the size of the largest gives a matrix M that is well conditioned,
    ``A = M - U @ V.T`` with constants U and V of r columns. Then ``det(A) = det(M) * det(S)`` with the small matrix
    ``S = I - V.T @ inv(M) @ U``, which holds near A as well as at A. The gradient of this has only inverses of M in it, and the
    cofactors of S, which are written out.
    """
    n = data.shape[-1]
    left, values, right = decompose(np.linalg.svd, "linalg.det: The matrix has no singular value decomposition.", data)
    largest = values[0] if values[0] > 0.0 else values.dtype.type(1.0)
    r = min(max(1, _count_small(values)), _LARGEST_EXPANSION)
    if n > r and values[n - r - 1] <= n * np.finfo(data.dtype).eps * largest:
        return A * 0.0  # more than r singular values are zero: so are all derivatives of the determinant up to order r
    U = wrap(left[:, n - r :] * largest)
    V = wrap(np.ascontiguousarray(right[n - r :].T))
    M = A + matmul(U, mT(V))
    inverse = inv(M)
    passed = matmul(inverse, U)
    S = wrap(np.eye(r, dtype=data.dtype)) - matmul(mT(V), passed)
    minors, small_det = _small_cofactors(S, r)
    inner = matmul(matmul(matmul(mT(inverse), V), minors), mT(passed))
    return column(det(M)) * (column(small_det) * mT(inverse) + inner)


def _count_small(values: Array) -> int:
    """How many singular values of a matrix are much smaller than its largest."""
    return int(np.sum(values <= values[0] / np.sqrt(LARGEST_CONDITION[values.dtype.itemsize])))


def column(x: Tensor) -> Tensor:
    """Numbers as matrices of one element."""
    return unsqueeze(unsqueeze(x, -1), -1)


def _small_cofactors(S: Tensor, r: int) -> tuple[Tensor, Tensor]:
    """Cofactors and determinant of small matrices as polynomials of their elements."""
    minors = _Minors(S)
    everything = tuple(range(r))
    rows = []
    for i in range(r):
        others = tuple(k for k in everything if k != i)
        row = []
        for j in range(r):
            minor = minors(others, tuple(k for k in everything if k != j))
            row.append(minor if (i + j) % 2 == 0 else -minor)
        rows.append(stack(row, -1))
    found = stack(rows, -2)
    return found, (S[..., 0, :] * found[..., 0, :]).sum(-1)


_LARGEST_EXPANSION = 6


class _Minors:
    """Determinants of parts of a matrix, each by expansion along its first row, computed once."""

    def __init__(self, S: Tensor) -> None:
        self._matrix = S
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], Tensor] = {}

    def __call__(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> Tensor:
        if not rows:
            return self._matrix[..., 0, 0] * 0.0 + 1.0
        if len(rows) == 1:
            return self._matrix[..., rows[0], columns[0]]
        found = self._known.get((rows, columns))
        if found is None:
            found = self._known[rows, columns] = self._expand(rows, columns)
        return found

    def _expand(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> Tensor:
        total = None
        for k, column in enumerate(columns):
            term = self(rows[:1], (column,)) * self(rows[1:], columns[:k] + columns[k + 1 :])
            total = term if total is None else total - term if k % 2 else total + term
        assert total is not None
        return total


def slogdet(A: Tensor) -> SlogDet:
    """Sign and logarithm of the magnitude of the determinant.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)

    Returns
    -------
    sign : Tensor, shape (...)
        -1, 0 or 1; its gradient is zero.
    logabsdet : Tensor, shape (...)
        -inf if the matrix is singular.

    Raises
    ------
    RuntimeError
        If the matrices are not square.

    Examples
    --------
    >>> tg.linalg.slogdet(tg.tensor([[0.0, 1.0], [1.0, 0.0]])).sign
    tensor(-1.)
    """
    data = square(A, "linalg.slogdet")
    found = _factored(A, data, True)
    if found is None:
        return SlogDet(*joint_outputs(_SLOGDET, A, _sign_and_logarithm(data)))
    signs, logarithms, factors, regular = found
    return SlogDet(*joint_outputs(_SLOGDET, A, (signs, logarithms), extra=_kept(factors) if regular else ()))


def _sign_and_logarithm(data: Array, options: Any = None, shapes: Any = None) -> tuple[Array, Array]:
    with quiet():
        sign, logarithm = lapack.call(np.linalg.slogdet, (data,), {})
    return sign, logarithm


def _slogdet_vjp(cotangents: list[Tensor], outputs: list[Tensor], ctx: Context) -> Tensor:
    on, A = ctx.on, ctx.inputs[0]
    inverse = _inverse_by(ctx.extra, array_of(A))
    found = _inverse_or_infinite(A, array_of(outputs[1]) == -np.inf) if inverse is None else inverse_row(A, inverse)
    cotangent: Tensor = on.column(cotangents[1]) * on.mT(found)
    return cotangent


def _inverse_or_infinite(A: Tensor, singular: Array) -> Tensor:
    """Inverses of the regular matrices of a batch, inf for the others."""
    if not singular.any():
        return inv(A)
    data = array_of(A)
    marks = singular[..., None, None]
    regular = where(wrap(marks), wrap(np.eye(data.shape[-1], dtype=data.dtype)), A)
    return where(wrap(marks), np.inf, inv(regular))


_SLOGDET = ManyOutputs("LinalgSlogdetBackward0", _slogdet_vjp, ((0, "z"),), _sign_and_logarithm)


def logdet(x: Tensor) -> Tensor:
    """Logarithm of the determinant: nan if it is negative, -inf if it is zero.

    Parameters
    ----------
    x : Tensor, shape (..., n, n)

    Returns
    -------
    Tensor, shape (...)

    Raises
    ------
    RuntimeError
        If the matrices are not square.

    Examples
    --------
    >>> tg.logdet(tg.eye(3) * 2.0) / np.log(2.0)
    tensor(3.)
    """
    square(x, "logdet")
    sign, logarithm = slogdet(x)
    return where(sign.detach() == -1.0, np.nan, logarithm)
