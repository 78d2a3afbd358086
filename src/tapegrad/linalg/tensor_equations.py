"""Linear equations whose unknown is a tensor of any shape."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tapegrad.errors import ShapeError
from tapegrad.linalg.matrices import tensor_operand
from tapegrad.linalg.solving import inv, solve
from tapegrad.ops.shaping import reshape
from tapegrad.ops.transposing import movedim
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["tensorinv", "tensorsolve"]


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The solution X of ``tensordot(A, X, X.ndim) = B``.

    Parameters
    ----------
    A : Tensor
        Its first dimensions are those of `B`; the product of the others' sizes is the number of elements of `B`.
    B : Tensor
    dims : sequence of int, optional
        Dimensions of `A` to move to the end first.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If the shapes do not fit together, or the equations are singular (`LinAlgError`).

    Examples
    --------
    >>> tg.linalg.tensorsolve(2.0 * tg.eye(4).reshape(2, 2, 4), tg.ones(2, 2))
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    a, b = tensor_operand(A, "linalg.tensorsolve"), tensor_operand(B, "linalg.tensorsolve", "B")
    if dims is not None:
        A = movedim(A, list(dims), list(range(a.ndim - len(dims), a.ndim)))
        a = array_of(A)
    shape = a.shape[b.ndim :]
    if math.prod(shape) != math.prod(a.shape[: b.ndim]):
        raise ShapeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
            f"{math.prod(shape)} != {math.prod(a.shape[: b.ndim])}"
        )
    return reshape(solve(reshape(A, (b.size, b.size)), reshape(B, (b.size,))), shape)


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """Inverse of the linear map ``tensordot(A, ., A.ndim - ind)``.

    Parameters
    ----------
    A : Tensor
        The products of its first `ind` sizes and of the others are equal.
    ind : int
        Positive.

    Returns
    -------
    Tensor
        Of shape ``A.shape[ind:] + A.shape[:ind]``.

    Raises
    ------
    RuntimeError
        If the shape does not allow it, or the map is singular (`LinAlgError`).

    Examples
    --------
    >>> tg.linalg.tensorinv(tg.eye(4).reshape(4, 2, 2), ind=1).shape
    tapegrad.Size([2, 2, 4])
    """
    a = tensor_operand(A, "linalg.tensorinv")
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', got {ind}")
    n, m = math.prod(a.shape[:ind]), math.prod(a.shape[ind:])
    if n != m:
        raise ShapeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {m} != {n}"
        )
    return reshape(inv(reshape(A, (n, n))), a.shape[ind:] + a.shape[:ind])
