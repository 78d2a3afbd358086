"""The older `norm`, which takes the nuclear norm of matrices among vector norms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapegrad.ops.norms import norm_of_elements
from tapegrad.ops.reductions import Dims
from tapegrad.recording.casting import cast
from tapegrad.tensors.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["legacy_norm"]


def legacy_norm(
    x: Tensor,
    p: float | str | None = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Vector norm of the elements, of all of them or along dimensions.

    Parameters
    ----------
    x : Tensor, of a floating point dtype
    p : number, 'fro' or 'nuc', optional
        The order: ``sum(abs(x)**p)**(1/p)``; 2 by default and for ``'fro'``. ``inf`` is the largest magnitude,
        ``-inf`` the smallest, 0 the number of nonzero elements. ``'nuc'`` is the sum of the singular values of a matrix.
    dim : int or sequence of int, optional
        What to reduce; everything by default.
    keepdim : bool
        Keep the dimensions, with size one.
    dtype : dtype, optional
        Cast to it first.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If the dtype is not a floating point one, or the order is not known.

    Notes
    -----
    Magnitudes whose squares overflow or underflow are scaled first. The derivative is zero where the norm is zero;
    order ``inf`` shares it evenly among ties.

    Examples
    --------
    >>> tg.norm(tg.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if p == "nuc":
        from tapegrad.linalg.matrix_norms import matrix_norm  # with singular values, which other orders need not

        return matrix_norm(x, p, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)  # type: ignore[arg-type]
    if dtype is not None:
        x = cast(x, dtype)
    return norm_of_elements(x, p, dim, keepdim)
