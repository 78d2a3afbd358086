"""The matrix exponential, by scaling and squaring."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.linalg import lapack
from tapegrad.linalg.constant_matrices import identity
from tapegrad.linalg.matrices import FLOAT64, Array, square
from tapegrad.ops.joining import cat
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, make, wrap

__all__ = ["matrix_exp"]

# Degree of the Padé approximation, up to which 1-norm it is exact to rounding, and its coefficients: Higham, "The scaling and
# squaring method for the matrix exponential revisited", SIAM J. Matrix Anal. Appl. 26(4), 2005.
_APPROXIMATIONS: tuple[tuple[float, tuple[float, ...]], ...] = (
    (1.495585217958292e-2, (120.0, 60.0, 12.0, 1.0)),
    (2.539398330063230e-1, (30240.0, 15120.0, 3360.0, 420.0, 30.0, 1.0)),
    (9.504178996162932e-1, (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0)),
    (
        2.097847961257068e0,
        (17643225600.0, 8821612800.0, 2075673600.0, 302702400.0, 30270240.0, 2162160.0, 110880.0, 3960.0, 90.0, 1.0),
    ),
)  # fmt: skip
_LARGEST_NORM = 5.371920351148152
_THIRTEEN = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0, 10559470521600.0,
    670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip


def matrix_exp(A: Tensor) -> Tensor:
    """Exponential of a square matrix: the sum of ``A**k / k!``.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)

    Returns
    -------
    Tensor, shape (..., n, n)

    Raises
    ------
    RuntimeError
        If the matrices are not square.

    Notes
    -----
    Scaling and squaring with a Padé approximation [1]_. The gradient is a block of the exponential of a matrix of twice the
    size.

    References
    ----------
    .. [1] N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", SIAM Journal on Matrix
       Analysis and Applications 26(4), 2005.

    Examples
    --------
    >>> tg.linalg.matrix_exp(tg.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    data = square(A, "linalg.matrix_exp")
    if data.dtype == np.float32:
        exponential = _exponential(data.astype(np.float64))
        with quiet():
            return apply(_EXP, (A,), exponential.astype(np.float32))
    return apply(_EXP, (A,), _exponential(data))


def _exponential(a: Array) -> Array:
    if not a.size:
        return a.copy()
    with quiet():
        norms = np.abs(a).sum(-2).max(-1)
        largest = norms.max()
        if not np.isfinite(largest):
            return _each_finite(a, norms)
        for bound, coefficients in _APPROXIMATIONS:
            if largest <= bound:
                return _low_degree(a, coefficients)
        halvings = np.maximum(0, np.ceil(np.log2(np.maximum(norms, 1e-300) / _LARGEST_NORM))).astype(np.int64)
        result = _degree_thirteen(a * (0.5**halvings)[..., None, None])
        for k in range(int(halvings.max())):
            again = (halvings > k)[..., None, None]
            result = np.where(again, np.matmul(result, result), result)
        return result


def _each_finite(a: Array, norms: Array) -> Array:
    """nan for the matrices that have nan or inf in them, so that the others are not spoilt."""
    bad = ~np.isfinite(norms)[..., None, None]
    return np.where(bad, np.nan, _exponential(np.where(bad, 0.0, a)))


def _low_degree(a: Array, b: tuple[float, ...]) -> Array:
    squared = np.matmul(a, a)
    power = np.broadcast_to(identity(a.shape[-1], FLOAT64), a.shape)
    odd, even = b[1] * power, b[0] * power
    for k in range(2, len(b), 2):
        power = np.matmul(power, squared)
        odd, even = odd + b[k + 1] * power, even + b[k] * power
    return _quotient(np.matmul(a, odd), even)


def _degree_thirteen(a: Array) -> Array:
    b, one = _THIRTEEN, identity(a.shape[-1], FLOAT64)
    a2 = np.matmul(a, a)
    a4 = np.matmul(a2, a2)
    a6 = np.matmul(a2, a4)
    odd = np.matmul(a6, b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * one
    even = np.matmul(a6, b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
    return _quotient(np.matmul(a, odd), even)


def _quotient(odd: Array, even: Array) -> Array:
    found: Array = lapack.call(np.linalg.solve, (even - odd, even + odd), {})
    return found


def _exp_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    # exp([[X, G], [0, X]]) has the derivative of exp at X in the direction G as its upper right block.
    on, A = ctx.on, ctx.inputs[0]
    n = array_of(A).shape[-1]
    if not (A._row or g._row) and array_of(A).dtype == np.float64:
        blocks = np.zeros((*array_of(A).shape[:-2], 2 * n, 2 * n))
        blocks[..., :n, :n] = blocks[..., n:, n:] = array_of(A).swapaxes(-1, -2)
        blocks[..., :n, n:] = array_of(g)
        return (make(_exponential(blocks)[..., :n, n:], 0),)
    turned = on.mT(A)
    nothing = wrap(np.zeros(array_of(turned).shape, ctx.dtypes[0]))
    whole = cat([cat([turned, g], -1), cat([nothing, turned], -1)], -2)
    return (matrix_exp(whole)[..., :n, n:],)


_EXP = Structural("LinalgMatrixExpBackward0", ((0,),), _exp_vjp, forward=lambda arrays, attrs: _exponential(arrays[0]))
