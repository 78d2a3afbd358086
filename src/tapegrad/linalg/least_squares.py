"""Pseudo-inverses, least squares and ranks."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.errors import ShapeError
from tapegrad.linalg.matrices import Array, decompose, matrix, square, tensor_operand
from tapegrad.linalg.substitution import substituted
from tapegrad.ops.shaping import squeeze, unsqueeze
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, is_recording, make, wrap

__all__ = ["Lstsq", "lstsq", "matrix_rank", "pinv", "pinv_cotangent", "pinverse"]

_maximum: Any = np.maximum.reduce  # the method's wrapper takes twice as long

Tolerance = Tensor | float | None


class Lstsq(NamedTuple):
    """What `lstsq` returns."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def pinv(A: Tensor, rcond: Tolerance = None, hermitian: bool = False, *, atol: Tolerance = None, rtol: Tolerance = None) -> Tensor:
    """Moore-Penrose pseudo-inverse.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
    rcond : number or Tensor, optional
        The older name of `rtol`.
    hermitian : bool
        Whether the matrices are symmetric; then only the lower triangle is read.
    atol, rtol : number or Tensor, optional
        Singular values up to ``max(atol, rtol * largest)`` count as zero. Without both, `rtol` is ``max(m, n)`` times the
        rounding of the dtype.

    Returns
    -------
    Tensor, shape (..., n, m)

    Raises
    ------
    RuntimeError
        If `A` has fewer than two dimensions, or has no singular value decomposition (`LinAlgError`).

    Notes
    -----
    The derivative is that within the matrices of the same rank; where the rank changes there is none.

    Examples
    --------
    >>> tg.linalg.pinv(tg.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    if isinstance(A, Tensor) and array_of(A).ndim < 2:
        data = array_of(A)
        raise ShapeError(
            f"linalg.pinv({type_name(data.dtype)}{{{list(data.shape)}}}): expected a tensor with 2 or more dimensions of float, "
            "double, cfloat or cdouble types"
        )
    if hermitian:
        square(A, "linalg.pinv")
    else:
        matrix(A, "linalg.pinv")
    tolerance = _Tolerance(atol, rcond if rtol is None else rtol)
    return _pinv(A, hermitian, tolerance)


def pinverse(x: Tensor, rcond: float = 1e-15) -> Tensor:
    """Moore-Penrose pseudo-inverse: `tapegrad.linalg.pinv` with another default tolerance."""
    return pinv(x, rcond)


@functools.cache
def _rounding(dtype: Any) -> Any:
    """What is lost of one."""
    return np.finfo(dtype).eps


class _Tolerance:
    """Up to where singular values count as zero."""

    __slots__ = ("absolute", "relative")

    def __init__(self, absolute: Tolerance, relative: Tolerance) -> None:
        self.absolute, self.relative = (self._plain(t) for t in (absolute, relative))

    @staticmethod
    def _plain(value: Tolerance) -> Any:
        return array_of(value) if isinstance(value, Tensor) else value

    def cutoff(self, values: Array, shape: tuple[int, ...]) -> Array:
        """The bound for singular values (in the last dimension) of matrices of a shape."""
        relative = self.relative
        if self.absolute is None and (relative is None or type(relative) is float):
            if relative is None:
                relative = _rounding(values.dtype) * max(shape[-2:])
            largest = np.asarray(_maximum(values, -1, None, None, False, 0.0))
            usual: Array = np.maximum(0.0, np.asarray(relative) * largest)
            return usual[..., None]
        absolute = 0.0 if self.absolute is None else np.asarray(self.absolute)
        if relative is None:
            default = np.finfo(values.dtype).eps * max(shape[-2:])
            relative = default if self.absolute is None else np.where(np.asarray(absolute) > 0.0, 0.0, default)
        largest = np.asarray(_maximum(values, -1, None, None, False, 0.0))
        for bound in (absolute, relative):
            if isinstance(bound, float):
                continue
            own = np.shape(bound)
            if len(own) > largest.ndim or any(n not in (1, m) for n, m in zip(own[::-1], largest.shape[::-1], strict=False)):
                raise ShapeError(
                    f"a tolerance of shape {list(own)} does not broadcast to matrices in a batch of {list(largest.shape)}"
                )
        return np.maximum(absolute, np.asarray(relative) * largest)[..., None]


def _spectrum(data: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """Singular vectors and values; with `hermitian`, from the eigenvalues of what the lower triangle says."""
    if not hermitian:
        found: tuple[Array, Array, Array] = decompose(
            np.linalg.svd, "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values.",
            data, full_matrices=False,
        )  # fmt: skip
        return found
    values, vectors = decompose(
        np.linalg.eigh, "linalg.eigh: The algorithm failed to converge because the input matrix contained non-finite values.", data
    )
    return vectors * np.where(values < 0.0, -1.0, 1.0).astype(data.dtype)[..., None, :], np.abs(values), vectors.swapaxes(-1, -2)


def _pinv(A: Tensor, hermitian: bool, tolerance: _Tolerance) -> Tensor:
    data = array_of(A)
    U, S, Vh = _spectrum(data, hermitian)
    (inverse,) = _inverted(S, tolerance.cutoff(S, data.shape), Vh, U.swapaxes(-1, -2))
    return apply(_PINV, (A,), inverse)


def _inverted(S: Array, cutoff: Array, Vh: Array, *rest: Array) -> list[Array]:
    """``V @ diag(1 / S) @ matrix`` for each matrix, where what is not above the bound counts as zero."""
    with quiet():
        factors = np.where(cutoff >= S, 0.0, 1.0 / S).astype(S.dtype, copy=False)
        scaled = Vh.swapaxes(-1, -2) * factors[..., None, :]
        return [np.matmul(scaled, matrix) for matrix in rest]


def _pinv_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (pinv_cotangent(ctx.on, g, ctx.inputs[0], ctx.result),)


def pinv_cotangent(on: Any, g: Tensor, A: Tensor | None, P: Tensor | None) -> Tensor:
    """The cotangent of a matrix by that of its pseudo-inverse `P`."""
    # From the differential of the pseudo-inverse at constant rank (Golub and Pereyra, 1973).
    Pt, gt = on.mT(P), on.mT(g)
    total = -on.matmul(on.matmul(Pt, g), Pt)
    towards = on.matmul(on.matmul(gt, P), Pt)
    total = total + towards - on.matmul(A, on.matmul(P, towards))
    backwards = on.matmul(on.matmul(Pt, P), gt)
    return total + backwards - on.matmul(on.matmul(backwards, P), A)


_PINV = Structural("LinalgPinvBackward0", ((0, "z"),), _pinv_vjp)


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Lstsq:
    """The X of least norm among those that make ``A @ X - B`` least.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
    B : Tensor, shape (..., m, k) or (..., m)
        Of the same dtype.
    rcond : float, optional
        Singular values up to ``rcond`` times the largest count as zero; by default ``max(m, n)`` times the rounding of the
        dtype.
    driver : {'gelsy', 'gelsd', 'gelss', 'gels'}, optional
        Which results there are, as in PyTorch: `residuals` not for ``'gelsy'`` (the default), `rank` not for ``'gels'``,
        `singular_values` for ``'gelsd'`` and ``'gelss'``. All are computed from singular values, but for ``'gels'``, which is for
        matrices of full rank: these are computed from a QR factorisation, in a third of the time.

    Returns
    -------
    solution : Tensor, shape (..., n, k) or (..., n)
    residuals : Tensor, shape (..., k)
        Sums of squares, if ``m > n`` and all matrices have full rank; else empty.
    rank : Tensor of int64, shape (...)
    singular_values : Tensor, shape (..., min(m, n))

    Raises
    ------
    RuntimeError
        If the shapes do not fit together, the dtypes differ, or the driver is not known.

    Examples
    --------
    >>> tg.linalg.lstsq(tg.tensor([[1.0], [0.0]]), tg.tensor([[2.0], [3.0]])).solution
    tensor([[2.]])
    """
    a, b = matrix(A, "torch.linalg.lstsq", "input"), tensor_operand(B, "torch.linalg.lstsq", "other")
    name = "torch.linalg.lstsq"
    if b.ndim < 1:
        raise ShapeError(f"{name}: other must have at least 1 dimension")
    if not 0 <= a.ndim - b.ndim <= 1:
        raise ShapeError(f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {type_name(a.dtype)} and other's "
            f"dtype {type_name(b.dtype)}"
        )
    chosen = "gelsy" if driver is None else driver
    if chosen not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    vector = a.ndim - 1 == b.ndim and a.shape[:-1] == b.shape
    whole = unsqueeze(B, -1) if vector else B
    if array_of(whole).ndim < 2 or a.shape[-2] != array_of(whole).shape[-2]:
        raise ShapeError(f"{name}: input.size(-2) should match other.size(-1)" if vector or b.ndim < a.ndim else
                         f"{name}: input.size(-2) should match other.size(-2)")  # fmt: skip
    if a.shape[:-2] != array_of(whole).shape[:-2]:
        raise ShapeError(
            f"{name}: the batches of input and other differ: {list(a.shape[:-2])} and {list(array_of(whole).shape[:-2])}"
        )
    solution, rank, values = _least_squares(A, whole, _Tolerance(None, rcond), chosen == "gels" and rcond is None)
    m, n = a.shape[-2:]
    sums, kept = np.zeros(0, a.dtype), []
    if chosen != "gelsy" and m > n and bool((rank == n).all()):
        away = np.matmul(a, array_of(solution)) - array_of(whole)
        sums = np.square(away).sum(-2)
        kept = [make(away, 0)] if A._row or whole._row else []
    residuals = apply(_RESIDUALS, (A, whole, solution), sums, extra=tuple(kept))
    nothing = np.zeros(0, a.dtype)
    return Lstsq(
        squeeze(solution, -1) if vector else solution,
        residuals,
        wrap(np.zeros(0, np.int64) if chosen == "gels" else rank),
        wrap(values if chosen in ("gelsd", "gelss") else nothing),
    )


def _least_squares(A: Tensor, B: Tensor, tolerance: _Tolerance, regular: bool) -> tuple[Tensor, Array, Array]:
    a, b = array_of(A), array_of(B)
    tracked = bool(A._row or B._row)
    found = _by_triangle(a, b) if regular else None
    if found is not None:
        solution, *inverse = found
        rank, values = np.full(a.shape[:-2], min(a.shape[-2:]), np.int64), np.zeros(0, a.dtype)
    else:
        U, values, Vh = _spectrum(a, False)
        cutoff = tolerance.cutoff(values, a.shape)
        turned = U.swapaxes(-1, -2)
        solution, *inverse = _inverted(values, cutoff, Vh, np.matmul(turned, b), *((turned,) if tracked else ()))
        rank = np.asarray((cutoff < values).sum(-1), np.int64)
    kept = tuple([make(matrix, 0) for matrix in inverse]) if tracked else ()
    return apply(_LSTSQ, (A, B), solution, tolerance, kept), rank, values


def _by_triangle(a: Array, b: Array) -> tuple[Array, Array, Array] | None:
    """The solution and the factors of matrices of full rank, or of their transposes if these are tall.

    None where a factor says that one is not.
    """
    tall = a.shape[-2] >= a.shape[-1]
    Q, R = decompose(np.linalg.qr, "linalg.lstsq: The algorithm failed.", a if tall else a.swapaxes(-1, -2))
    sizes = np.abs(R.diagonal(0, -2, -1))
    with quiet():
        if not a.size or not (sizes.min(-1) > np.finfo(a.dtype).eps * max(a.shape[-2:]) * sizes.max(-1)).all():
            return None
        if tall:
            return substituted(R, np.matmul(Q.swapaxes(-1, -2), b), True), Q, R
        return np.matmul(Q, substituted(R.swapaxes(-1, -2), b, False)), Q, R


def _pseudo_inverse(A: Tensor, kept: Sequence[Tensor]) -> Tensor:
    """The pseudo-inverse, or what the factors say that it is: where only residuals are differentiated, nobody asks."""
    if len(kept) == 1:
        return kept[0]
    Q, R = (array_of(part) for part in kept)
    with quiet():
        found = substituted(R, Q.swapaxes(-1, -2), True)
    return wrap(found if Q.shape[-2] == array_of(A).shape[-2] else found.swapaxes(-1, -2))


def _lstsq_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    # The solution is P @ B with the pseudo-inverse P, whose differential is that of `_pinv_vjp`.
    on = ctx.on
    A, B = ctx.inputs
    x = ctx.result
    P = _pinv(A, False, ctx.attrs) if A._row and is_recording() else _pseudo_inverse(A, ctx.extra)
    b_bar = on.matmul(on.mT(P), g)
    if not ctx.needs[0]:
        return None, b_bar
    residual = B - on.matmul(A, x)
    from_rows = on.matmul(residual, on.mT(on.matmul(P, b_bar)))
    outside = on.mT(g) - on.matmul(on.mT(b_bar), A)
    return from_rows - on.matmul(b_bar, on.mT(x)) + on.matmul(on.matmul(on.mT(P), x), outside), b_bar if ctx.needs[1] else None


_LSTSQ = Structural("LinalgLstsqBackward0", ((0, 1, "z"), (0,)), _lstsq_vjp)


def _residuals_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    A, B, x = ctx.inputs
    if not array_of(g).size:
        return None, None, None  # they were not computed
    # The sums are least at the solution, so they do not change with it in first order.
    # Where the derivative is differentiated itself, they are what changes: the kept ones are numbers.
    differences = on.matmul(A, x) - B if (A._row or B._row) and is_recording() else ctx.extra[0]
    away = 2.0 * on.unsqueeze(g, -2) * differences
    return on.matmul(away, on.mT(x)) if ctx.needs[0] else None, -away if ctx.needs[1] else None, None


_RESIDUALS = Structural("LinalgLstsqBackward0", ((0, 1, 2), (0, 1, 2), ()), _residuals_vjp)


def matrix_rank(
    A: Tensor, tol: Tolerance = None, hermitian: bool = False, *, atol: Tolerance = None, rtol: Tolerance = None
) -> Tensor:
    """Number of singular values that are not zero; untracked.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
    tol : number or Tensor, optional
        The older form of `atol`, with `rtol` zero.
    hermitian : bool
        Whether the matrices are symmetric.
    atol, rtol : number or Tensor, optional
        As for `pinv`.

    Returns
    -------
    Tensor of int64, shape (...)

    Examples
    --------
    >>> tg.linalg.matrix_rank(tg.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    data = square(A, "linalg.matrix_rank") if hermitian else matrix(A, "torch.linalg.matrix_rank", "input")
    tolerance = _Tolerance(atol, rtol) if tol is None else _Tolerance(tol, 0.0)
    message = "linalg.matrix_rank: The algorithm failed to converge because the input matrix contained non-finite values."
    if hermitian:
        values = np.abs(decompose(np.linalg.eigvalsh, message, data))
    else:
        values = decompose(np.linalg.svd, message, data, compute_uv=False)
    return wrap(np.asarray((values > tolerance.cutoff(values, data.shape)).sum(-1), np.int64))
