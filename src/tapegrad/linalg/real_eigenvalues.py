"""Eigenvalues and eigenvectors of matrices that are not symmetric, where all of them are real."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tapegrad.linalg.matrices import decompose, diagonal_matrix, square
from tapegrad.linalg.outputs import ManyOutputs, joint_outputs
from tapegrad.linalg.solving import solve
from tapegrad.recording.structural import Context
from tapegrad.tensors.tensor import Tensor, wrap

__all__ = ["Eig", "eig"]


class Eig(NamedTuple):
    """What `eig` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def eig(A: Tensor) -> Eig:
    """Eigenvalues and eigenvectors of a matrix: ``A @ V = V @ diag(L)``.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)

    Returns
    -------
    eigenvalues : Tensor, shape (..., n)
        In no order.
    eigenvectors : Tensor, shape (..., n, n)
        In columns of length 1.

    Raises
    ------
    TypeError
        If an eigenvalue is complex.
    RuntimeError
        If the matrices are not square, or the algorithm does not converge (`LinAlgError`).

    Notes
    -----
    The derivative is not finite where eigenvalues are equal.
    """
    data = square(A, "linalg.eig")
    values, vectors = decompose(np.linalg.eig, "linalg.eig: The algorithm failed to converge.", data)
    if values.dtype.kind == "c":
        raise TypeError(
            f"linalg.eig: complex eigenvalues ({values.ravel()[np.argmax(abs(values.imag))]:.4g}) have no derivative here; "
            "for a symmetric matrix write np.linalg.eigh"
        )
    return Eig(*joint_outputs(_EIG, A, (values, vectors)))


def _eig_vjp(cotangents: list[Tensor], outputs: list[Tensor], ctx: Context) -> Tensor:
    on = ctx.on
    (g_values, g_vectors), (L, V) = cotangents, outputs
    turned = on.matmul(on.mT(V), g_vectors)
    # Vectors of length 1 do not grow: what points along them is taken out.
    along = on.unsqueeze(on.sum(V * g_vectors, -2), -2)
    eye = wrap(np.eye(L.shape[-1], dtype=L.dtype))
    gaps = on.unsqueeze(L, -2) - on.unsqueeze(L, -1) + eye
    inner = (turned - on.matmul(on.mT(V), V) * along) / gaps * (1.0 - eye) + diagonal_matrix(g_values)
    return solve(on.mT(V), on.matmul(inner, on.mT(V)))


_EIG = ManyOutputs("LinalgEigBackward0", _eig_vjp)
